package app

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/conn/conntype"
	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/dispatcher"
	"github.com/signalbox-dev/signalbox/internal/engine"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/event/match"
	"github.com/signalbox-dev/signalbox/internal/health"
	"github.com/signalbox-dev/signalbox/internal/keyring"
	"github.com/signalbox-dev/signalbox/internal/problem"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/diagnose"
	"github.com/signalbox-dev/signalbox/internal/server"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
	"github.com/signalbox-dev/signalbox/internal/webhook"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

// scene is a store behind the vault, wired as in the platform.
type scene struct {
	*sealedStores

	ctx   context.Context
	store *store.Store
	hash  string
	owner inbox.Owner
}

var began = time.Unix(1767225600, 0)

func (s *scene) entry(action, id string) audit.Entry {
	return audit.NewEntry(s.ctx, began, action, project.Default, id, "")
}

// refused is an entry that quotes an answer of Temporal.
func (s *scene) refused(id string) audit.Entry {
	e := s.entry(audit.RunStartRefused, id)
	e.Reason = quotes()
	return e
}

func (s *scene) newRun(id string) run.Run {
	return run.Run{
		ID: id, Project: project.Default, Workflow: "a/b", Version: "1.0.0", DocumentHash: s.hash, Status: run.Queued,
		Input:        encode(map[string]any{"card": planted, "said": quotes()}),
		QueuedReason: run.QueuedStarting, StatusAt: began, CreatedAt: began, RequestID: id, Trigger: run.TriggerAPI,
	}
}

func (s *scene) insert(id string) error {
	_, _, err := s.rows.InsertRun(s.ctx, s.newRun(id), s.entry(audit.RunStart, id))
	return err
}

func (s *scene) enqueue(id string) error {
	r := s.newRun(id)
	r.QueuedReason = run.QueuedEngine
	_, _, err := s.rows.EnqueueRun(s.ctx, r, 10, s.entry(audit.RunStart, id))
	return err
}

func (s *scene) update(id string, position int64, status run.Status) run.Update {
	step := planting(run.Step{
		Number: position, Path: "/do/0/a", Pointer: "/do/0/a", Task: "a", Kind: "set", Status: "completed", StartedAt: began,
		Attempts: []run.Attempt{{StartedAt: began}},
	})
	step.Position, step.InputShown, step.OutputShown = position<<32, nil, nil
	state := planting(run.State{Status: status, Since: began, StartedAt: began})
	return run.Update{RunID: id, ExecutionID: "x", Position: position << 32, State: &state, Steps: []run.Step{step}}
}

func (s *scene) newEvent(id string) event.Event {
	e := planting(event.Event{ID: id, Source: "/s", Type: "t", RunID: id, Status: event.Pending})
	e.Reason = ""
	return e
}

// written returns an error if a case that should have written did not.
func written(done bool, err error) error {
	if err == nil && !done {
		return fmt.Errorf("nothing was written")
	}
	return err
}

// plantings are the methods that store values of runs and events, and texts that quote them.
var plantings = map[string]func(s *scene, id string) error{
	"InsertRun":  (*scene).insert,
	"EnqueueRun": (*scene).enqueue,
	"ApplyUpdates": func(s *scene, id string) error {
		if err := s.insert(id); err != nil {
			return err
		}
		done, err := s.rows.ApplyUpdates(s.ctx, []run.Update{s.update(id, 1, run.Running), s.update(id, 2, run.Failed)})
		return written(len(done) > 0, err)
	},
	"CorrectRun": func(s *scene, id string) error {
		if err := s.insert(id); err != nil {
			return err
		}
		e := s.entry(audit.RunFinish, id)
		return written(s.rows.CorrectRun(s.ctx, s.update(id, 1, run.Running), &e))
	},
	"FollowExecution": func(s *scene, id string) error {
		if err := s.insert(id); err != nil {
			return err
		}
		return written(s.rows.FollowExecution(s.ctx, s.update(id, 1, run.Running), "", nil,
			s.entry(audit.RunFollowReset, id)))
	},
	"RemoveUnstarted": func(s *scene, id string) error {
		if err := s.insert(id); err != nil {
			return err
		}
		return written(s.rows.RemoveUnstarted(s.ctx, id, s.refused(id)))
	},
	"FinishMissing": func(s *scene, id string) error {
		if err := s.insert(id); err != nil {
			return err
		}
		p := planting(run.Error{})
		return written(s.rows.FinishMissing(s.ctx, id, run.Failed, &p, began, s.refused(id)))
	},
	"FinishQueued": func(s *scene, id string) error {
		if err := s.enqueue(id); err != nil {
			return err
		}
		p := planting(run.Error{})
		return written(s.rows.FinishQueued(s.ctx, run.Run{ID: id, Status: run.Failed, Error: &p, EndedAt: began},
			s.refused(id)))
	},
	"PostponeRepair": func(s *scene, id string) error {
		if err := s.insert(id); err != nil {
			return err
		}
		if err := s.rows.RequestRepairs(s.ctx, []run.RepairRequest{{RunID: id, Reason: "behind"}}); err != nil {
			return err
		}
		claimed, there, err := s.rows.ClaimRepair(s.ctx, func(int) time.Duration { return time.Minute })
		if err := written(there, err); err != nil {
			return err
		}
		return s.rows.PostponeRepair(s.ctx, claimed, time.Hour, quotes())
	},
	"Events.Publish": func(s *scene, id string) error {
		if err := s.insert(id); err != nil {
			return err
		}
		accepted, _, err := s.events.Publish(s.ctx, project.Default, []event.Event{s.newEvent(id)})
		return written(len(accepted) == 1 && !accepted[0].Duplicate, err)
	},
	"Events.Listen": func(s *scene, id string) error {
		if err := s.insert(id); err != nil {
			return err
		}
		_, err := s.events.Listen(s.ctx, event.Listener{ID: "l " + id, Project: project.Default, RunID: id, Spec: event.Spec{
			Mode: event.One, Filters: []event.Filter{
				{Correlate: map[string]event.Key{"k": planting(event.Key{From: "${ .k }"})}}},
		}})
		return err
	},
	"Events.CommitRouting": (*scene).route,
	"Events.RecordOutcomes": func(s *scene, id string) error {
		if err := s.route(id); err != nil {
			return err
		}
		due, err := s.events.Due(s.ctx, project.Default, s.owner, 10, time.Minute)
		if err := written(len(due) > 0, err); err != nil {
			return err
		}
		var outcomes []inbox.DeliveryOutcome
		for _, d := range due {
			outcomes = append(outcomes, inbox.DeliveryOutcome{ID: d.ID, Outcome: planting(inbox.Outcome{Result: inbox.Dead})})
		}
		return s.events.RecordOutcomes(s.ctx, project.Default, s.owner, outcomes)
	},
	"Events.RecordOwner": func(s *scene, id string) error {
		e := s.newEvent(id)
		e.RunID = ""
		return s.events.RecordOwner(s.ctx,
			dispatchtype.OwnerChange{Name: inbox.Name{Project: project.Default}, Outcome: "takeover", At: began}, e,
			s.entry(audit.DispatcherChangeOwner, id))
	},
	"Verdicts.ChangeVerdicts": func(s *scene, id string) error {
		if err := s.insert(id); err != nil {
			return err
		}
		r, err := s.rows.GetRun(s.ctx, project.Default, id)
		if err != nil {
			return err
		}
		v := planting(diagnose.Verdict{Code: run.TaskFailing, Cause: run.Other, Since: began})
		done, err := s.verdicts.ChangeVerdicts(s.ctx, project.Default, began, []diagnose.Change{
			{RunID: id, Sequence: r.Sequence, To: &v, Events: []event.Event{s.newEvent(id)}},
		})
		return written(len(done.Runs) == 1, err)
	},
	"Problems.Record": func(s *scene, id string) error {
		_, err := s.problems(id)
		return err
	},
	"Problems.Handle": func(s *scene, id string) error {
		list, err := s.problems(id)
		if err != nil {
			return err
		}
		for _, r := range list {
			before := r.Revision
			r.Revision++
			if err := written(s.store.Problems().Handle(s.ctx, r, before, false,
				s.entry(audit.ProblemAcknowledge, r.ID))); err != nil {
				return err
			}
		}
		return nil
	},
	"Verdicts.NoteFailures": func(s *scene, id string) error {
		if err := s.insert(id); err != nil {
			return err
		}
		return s.verdicts.NoteFailures(s.ctx,
			[]diagnose.TaskFailure{planting(diagnose.TaskFailure{RunID: id, At: began, Cause: run.Other})})
	},
	"Batches.WriteItems": func(s *scene, id string) error {
		items, err := s.batch(id)
		if err := written(len(items) == 1, err); err != nil {
			return err
		}
		return s.batches.WriteItems(s.ctx, id,
			[]batch.Item{planting(batch.Item{Number: items[0].Number, RunID: id, Status: batch.Failed})}, began)
	},
	"Batches.SetWaitReason": func(s *scene, id string) error {
		if _, err := s.batch(id); err != nil {
			return err
		}
		kept, err := s.batches.SetWaitReason(s.ctx, id, id, quotes())
		return written(kept != "" && kept != quotes(), err) // it is logged as well
	},
}

// route matches an event with a set, a run and nothing.
func (s *scene) route(id string) error {
	if err := s.insert(id); err != nil {
		return err
	}
	if _, _, err := s.events.Publish(s.ctx, project.Default, []event.Event{s.newEvent("routed " + id)}); err != nil {
		return err
	}
	b, err := s.events.Unrouted(s.ctx, project.Default, 100)
	if err != nil {
		return err
	}
	var routings []event.Routing
	for _, e := range b.Events {
		d := event.Delivery{
			ID: fmt.Sprintf("d%d", e.Position), Project: project.Default, Position: e.Position, Kind: event.Wake, RunID: id,
			Listener:  "l",
			Positions: []int64{e.Position}, Status: event.DeliveryPending, Reason: quotes(),
		}
		routings = append(routings, event.Routing{
			Position: e.Position, Status: event.Routed, Reason: quotes(), Deliveries: []event.Delivery{d},
			Partials: []event.Partial{
				{Project: project.Default, Workflow: "a/b", Key: string(encode(map[string]string{id: quotes()})),
					Positions: []int64{e.Position, 0}}},
		})
	}
	return s.events.CommitRouting(s.ctx, project.Default, s.owner, routings)
}

// batch starts a batch of one run.
func (s *scene) batch(id string) ([]batch.Item, error) {
	if err := s.insert(id); err != nil {
		return nil, err
	}
	_, _, err := s.store.Batches().StartBatch(s.ctx, batch.Batch{
		ID: id, Project: project.Default, Action: batch.Cancel, Reason: "stale", Rate: 1, RequestID: id, CreatedAt: began,
		Actor: auth.System(),
	}, []string{id}, 10, s.entry(audit.BatchStart, id))
	if err != nil {
		return nil, err
	}
	items, _, err := s.batches.ClaimItems(s.ctx, id, 0, 10)
	return items, err
}

// problems records the problems of a failed run and of a stuck one, with what the store has of their errors.
func (s *scene) problems(id string) ([]problem.Record, error) {
	failed, stuck := id+"-failed", id+"-stuck"
	if err := errors.Join(s.insert(failed), s.insert(stuck)); err != nil {
		return nil, err
	}
	p := planting(run.Error{})
	if err := written(s.rows.FinishMissing(s.ctx, failed, run.Failed, &p, began, s.refused(failed))); err != nil {
		return nil, err
	}
	v := planting(diagnose.Verdict{Code: run.TaskFailing, Cause: run.Other, Since: began})
	done, err := s.verdicts.ChangeVerdicts(s.ctx, project.Default, began,
		[]diagnose.Change{{RunID: stuck, Sequence: 1, To: &v}})
	if err := written(len(done.Runs) == 1, err); err != nil {
		return nil, err
	}
	rows := s.store.Problems()
	service := problem.NewService(problem.Options{
		LostServers: func(context.Context) ([]server.Server, bool, error) { return nil, true, nil },
		Source:      rows, Store: rows, Projects: s.store, Dispatchers: noDispatchers{}, Now: func() time.Time {
			return began
		},
		Connection: func() conntype.Status {
			return conntype.Status{}
		}, Health: func(context.Context) health.Report { return health.Report{} },
		TaskQueue: func(project string) string { return project },
	})
	if err := problem.NewRecorder(service, rows).Pass(s.ctx); err != nil {
		return nil, err
	}
	list, err := rows.Problems(s.ctx, []string{project.Default})
	return list, written(len(list) > 1, err)
}

// noDispatchers is a platform without dispatchers.
type noDispatchers struct{}

// List implements [problem.Dispatchers].
func (noDispatchers) List(context.Context) ([]dispatcher.Dispatcher, error) { return nil, nil }

// harmless are the other methods of the store: those that write nothing, and those that write only texts of people and
// of the platform, such as definitions, reasons, names and numbers.
var harmless = map[string]string{
	"": `AdoptCluster BeatServer BeatWorker CaughtSteps ChangeMaintenance ChangedSteps ClaimRepair ClaimRuns ClockSkew CountBuckets CountQueued CountRuns CreateProject Database DeleteOutages DeletePage DeleteSessions DeleteWebhookDeliveries DeleteWorkflow Document EndRepair
Exclusive Facts DeleteFunction FindByShortName FunctionUsers GetFunction ListFunctions PublishFunction FindRuns GetDraft GetProject GetRun GetVersion GetWorkflow HoldRepair LeaveServer LeaveWorker LeftIn LeftRuns ListAudit
ListLogs ListProjects ListQueued ListRuns ListSteps ListVersions ListWorkers ListWorkflows MarkCancelRequested MarkCompared MarkHandedOver MarkRestored MarkSearched Migrate MoveRunsCluster OnAdmissible
OpenImports OpenInCluster OpenRuns Location Maintenance Ping Pools Publish RecordForeign RecordSealingKey RequestRepairs Resources RestoredRows ReturnQueued RowVersions RunsCluster RunsWithoutRow SaveDraft Comparisons SealingKeys SealingKeyUses SetPaused SetOverride SilentServers Start StartingRuns Status
StepSummary Stop SumSteps TakeQueued MarkDisclosed UpdateProject WorkerClusters WriteAudit WriteAuditOnce`,
	"Events": `ParkedDue Backlogs Due EventsAt Fence FindDeliveries FindListeners GetEvent GetListener GetTimer ListDeliveries ListEvents ListRunDeliveries ListTimers News
OwnerHistory Park Positions SetMissed Progress Redeliver Unlisten Unpark Unrouted`,
	// Events are stored with marks before they are matched; outcomes have nothing of a run.
	"Webhooks": "Backlogs ChangeWebhook Claim DeleteDeliveries Finish GetDelivery InsertTest ListDeliveries " +
		"ListWebhooks Match Receiving Redeliver ReplaceSealed Unmatched Waiting",
	// It moves events with what the store has of errors.
	"Outbox":      "Backlog Move Waiting",
	"Annotations": "DeleteOutages ListOutages ListPublications WriteOutages",
	"Views":       "ChangeView ListViews",
	"Tokens":      "CreateToken GetToken GetTokens ListTokens RevokeToken TouchToken",
	"Sessions":    "CreateSession DeleteSessions EndSession GetSession GetSessions ListSessions TouchSession",
	"Batches": "ActiveBatches ClaimItems CloseRuns NoteOutcomes OpenBatches RunStates Exclusive GetBatch " +
		"ListBatchItems ListBatches PauseBatch RetryBatch SelectMore StartBatch StopWorkflow CountNotTaken",
	"Quotas": "AdmissionQueues Admit Exclusive GetQuota GrantSteps HeldUp ResumeSteps ResumedSteps ReturnAdmitted " +
		"ReturnSteps SetQuota WaitingForSteps",
	"Verdicts": "CheckVerdicts ForgetFailures Left Overdue OverdueWaits ReserveEndings Suspects Verdicts Waiting",
	"Problems": "DeadDeliveries Exclusive FailingWebhooks FailureGroups ForeignRuns MissedSchedules OpenRuns Problems RetryingGroups Runaways Samples StuckGroups",
	// Times of projects.
	"Activity": "OnActive Record Review Served",
	"Awaited":  "Due DueFor Key MarkNotified",
	"Waits":    "Pending Listening NotTaken",
	// The codec of payloads has sealed the argument of Put.
	"Payloads":  "DeleteRun Get Put Stale String Writable",
	"Originals": "SealedOf Secrecies",
	"Search":    "Find",
	// Queries of counts, times and names of tasks.
	"Statistics": "ReadCells ReadLengths ReadWorkflows",
}

// methods lists the methods of the store and its parts, without steps of transactions.
func methods(s *store.Store) (list []string) {
	parts := map[string]reflect.Type{"": reflect.TypeOf(s)}
	for m := range reflect.TypeOf(s).Methods() {
		isPart := m.Type.NumIn() == 1 && m.Type.NumOut() == 1 && m.Type.Out(0).Kind() == reflect.Pointer
		if isPart && m.Type.Out(0) != reflect.TypeFor[*sqldb.DB]() {
			parts[m.Name] = m.Type.Out(0)
		}
	}
	for part, of := range parts {
		for m := range of.Methods() {
			_, isPart := parts[m.Name]
			if isPart && m.Type.NumIn() == 1 || m.Type.NumIn() > 2 && m.Type.In(2).String() == "sqldb.Conn" {
				continue
			}
			list = append(list, strings.TrimPrefix(part+"."+m.Name, "."))
		}
	}
	slices.Sort(list)
	return list
}

// After all methods that write values of runs or events, or texts that quote them, no column of any table contains the
// planted value in any encoding. A new method of the store requires a case here or an entry in harmless.
func TestSensitiveValuesAreInNoTable(t *testing.T) {
	t.Parallel()
	for _, driver := range []struct {
		name string
		open func(t *testing.T) (store.Options, *sql.DB)
		list string
	}{
		{"SQLite", func(t *testing.T) (store.Options, *sql.DB) {
			path := storetest.SQLite(t)
			db, err := sql.Open("sqlite", path)
			require.NoError(t, err)
			return store.Options{Driver: store.SQLite, DSN: path}, db
		}, `SELECT name FROM sqlite_master WHERE type = 'table'`},
		{"Postgres", func(t *testing.T) (store.Options, *sql.DB) {
			dsn := storetest.Postgres(t)
			cfg, err := pgx.ParseConfig(dsn)
			require.NoError(t, err)
			return store.Options{Driver: store.Postgres, DSN: dsn}, stdlib.OpenDB(*cfg)
		}, `SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'`},
	} {
		t.Run(driver.name, func(t *testing.T) {
			t.Parallel()
			o, db := driver.open(t)
			t.Cleanup(func() { require.NoError(t, db.Close()) })
			s := newScene(t, o)
			known := slices.Collect(maps.Keys(plantings))
			for part, list := range harmless {
				for name := range strings.FieldsSeq(list) {
					known = append(known, strings.TrimPrefix(part+"."+name, "."))
				}
			}
			slices.Sort(known)
			require.Equal(t, known, methods(s.store), "plant a value in what a method writes, or say that it is harmless")

			for _, name := range slices.Sorted(maps.Keys(plantings)) {
				require.NoError(t, plantings[name](s, strings.ToLower(name)), name)
			}
			require.NotEmpty(t, readAll(t, db, `SELECT id FROM event_outbox WHERE type = 'io.signalbox.run.failed'`))
			require.NotEmpty(t, readAll(t, db, `SELECT id FROM event_outbox WHERE type = 'io.signalbox.delivery.dead_lettered'`))
			var secrets redact.SecretSet
			secrets.Add(planted)
			var marks int
			for _, table := range readAll(t, db, driver.list) {
				for _, value := range readAll(t, db, `SELECT * FROM "`+table+`"`) { //nolint:unqueryvet // whatever columns there are
					marks += strings.Count(value, redact.Mark)
					shown, found := secrets.Text(value)
					require.False(t, found, "table %s: %s", table, shown)
					for _, form := range encodings() {
						require.NotContains(t, value, form, "table %s", table)
					}
				}
			}
			require.Greater(t, marks, len(plantings))
		})
	}
}

func newScene(t *testing.T, o store.Options) *scene {
	t.Helper()
	o.AutoMigrate, o.CallTimeout = true, time.Minute
	kept, err := store.Open(t.Context(), o)
	require.NoError(t, err)
	last := context.WithoutCancel(t.Context())
	t.Cleanup(func() { require.NoError(t, kept.Stop(last)) })
	require.NoError(t, kept.Start(t.Context()))
	doc, problems := dsl.Parse(
		[]byte("document: {dsl: 1.0.3, namespace: a, name: b, version: 1.0.0, metadata: {sensitive: [/input/card]}}\n" +
			"do: [{a: {set: {n: 1}}}]\n"))
	require.NotNil(t, doc, problems)
	s := &scene{
		sealedStores: newSealedStores(keyring.Random("k1"), kept, engine.NewDocuments(kept, dsl.DefaultLimits()),
			match.New(match.Options{}).Search(100)), ctx: t.Context(), store: kept, hash: doc.Hash(),
	}
	_, _, err = kept.Publish(s.ctx, workflow.Version{
		Project: project.Default, Workflow: "a/b", Version: "1.0.0", Hash: doc.Hash(), Source: string(doc.Canonical()),
		Canonical: doc.Canonical(),
		Trigger:   encode(event.Spec{Mode: event.All, Filters: []event.Filter{{}, {}}}), PublishedAt: began,
	}, func(string, string) bool { return true }, s.entry(audit.WorkflowPublish, "a/b"))
	require.NoError(t, err)
	// The failures of runs and deliveries become events.
	require.NoError(t, kept.Webhooks().ChangeWebhook(s.ctx, project.Default,
		func([]webhook.Webhook) (webhook.Change, error) {
			return webhook.Change{To: &webhook.Webhook{
				ID: "w", Project: project.Default, Name: "w", Format: webhook.CloudEvents,
				Filter: webhook.Filter{Types: []string{"*"}}, Sealed: []byte{1},
				CreatedAt: began, UpdatedAt: began,
			}, Entry: s.entry(audit.WebhookCreate, "w")}, nil
		}))
	s.owner, err = s.events.Fence(s.ctx, project.Default, "q", "host", 0)
	require.NoError(t, err)
	return s
}

// readAll returns all values of a query as texts.
func readAll(t *testing.T, db *sql.DB, query string) (found []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	columns, err := rows.Columns()
	require.NoError(t, err)
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		require.NoError(t, rows.Scan(into...))
		for _, value := range values {
			if raw, ok := value.([]byte); ok {
				value = string(raw)
			}
			found = append(found, fmt.Sprint(value))
		}
	}
	require.NoError(t, rows.Err())
	return found
}
