package dispatcher_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/inbox/inboxtest"
	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/dispatcher"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/event/match"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/start"
	"github.com/signalbox-dev/signalbox/internal/semaphore"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

// bench is a router with its dependencies, over a real store.
type routerBench struct {
	*dispatcher.Router
	ctx       context.Context // the test's, with ada in it
	name      inbox.Name
	store     *storetest.Plain
	events    *event.Service
	workflows *workflow.Service
	runs      *start.Service
	engine    *engine
	bells     chan string
}

// engine accepts runs while it is available.
type engine struct {
	mu      sync.Mutex
	away    bool
	started map[string]int
	targets
}

func (e *engine) Check(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.away {
		return apperror.New(apperror.Unavailable, apperror.EngineUnavailable, "temporal is away")
	}
	return nil
}

func (e *engine) Start(_ context.Context, r run.Run) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.started[r.ID]++
	return "execution-" + r.ID, nil
}

func (e *engine) Cancel(context.Context, run.Run, string) error          { return nil }
func (e *engine) Terminate(context.Context, run.Run, string) error       { return nil }
func (e *engine) Control(context.Context, run.Run, string, string) error { return nil }
func (e *engine) Inspect(context.Context, run.Run) (run.Execution, error) {
	return run.Execution{}, run.ErrNotKnown
}
func (e *engine) Count(context.Context, string, string)                   {}
func (e *engine) Started(context.Context, time.Duration)                  {}
func (e *engine) Document(context.Context, string) (*dsl.Document, error) { panic("not asked") }

type documents struct{ store *storetest.Plain }

func (d documents) Document(ctx context.Context, hash string) (*dsl.Document, error) {
	canonical, err := d.store.Document(ctx, hash)
	if err != nil {
		return nil, err
	}
	doc, violations := dsl.Parse(canonical)
	if doc == nil {
		return nil, violations
	}
	return doc, nil
}

type bells chan string

func (b bells) Wake(_ context.Context, project string) error {
	b <- project
	return nil
}

func sqlite(t testing.TB) store.Options {
	t.Helper()
	return store.Options{Driver: store.SQLite, DSN: storetest.SQLite(t), AutoMigrate: true, CallTimeout: time.Minute}
}

func postgres(t testing.TB) store.Options {
	t.Helper()
	return store.Options{Driver: store.Postgres, DSN: storetest.Postgres(t), AutoMigrate: true, CallTimeout: time.Minute}
}

func newRouterBench(t testing.TB, o store.Options) *routerBench {
	t.Helper()
	kept, err := storetest.Open(t.Context(), t, o)
	require.NoError(t, err)
	last := context.WithoutCancel(t.Context())
	t.Cleanup(func() { require.NoError(t, kept.Stop(last)) })
	require.NoError(t, kept.Start(t.Context()))
	b := &routerBench{
		ctx:  auth.WithActor(t.Context(), auth.Actor{Kind: auth.KindLocal, Name: "ada"}),
		name: inbox.Name{Project: project.Default, TaskQueue: "signalbox-default"}, store: kept,
		workflows: workflow.NewService(kept, kept, dsl.DefaultLimits(), time.Now),
		engine:    &engine{started: map[string]int{}}, bells: make(chan string, 100),
	}
	hints := pubsub.NewNotifier()
	b.events = event.NewService(kept.Events(), kept, hints, bells(b.bells),
		event.Options{Limits: event.DefaultLimits(), Now: time.Now})
	require.NoError(t, b.events.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, b.events.Stop(last)) })
	b.runs = start.New(kept, b.engine, b.workflows, documents{kept}, pubsub.NewNotifier(), start.Options{
		MaxInputBytes: 1 << 20, StartTimeout: time.Minute, AnswerWithin: time.Minute, Now: time.Now, Metrics: b.engine,
	})
	t.Cleanup(func() { require.NoError(t, b.runs.Close(last)) })
	b.Router = dispatcher.NewRouter(dispatcher.RouterOptions{
		Store: kept.Events(), Matcher: match.New(match.Options{}), Runs: b.runs, Waker: b.engine, Hints: hints,
		Turns: turnsOf{semaphore.NewShared(1)}, Reports: event.Platform{Service: b.events},
	})
	require.NoError(t, b.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, b.Stop(last)) })
	return b
}

// publishes creates a workflow with a schedule.
func (b *routerBench) publishes(t *testing.T, name, version, schedule string) {
	t.Helper()
	b.publishesIn(t, b.name.Project, name, version, schedule)
}

func (b *routerBench) publishesIn(t *testing.T, project, name, version, schedule string) {
	t.Helper()
	namespace, short, _ := strings.Cut(name, "/")
	_, err := b.workflows.Publish(b.ctx, project, workflow.Submission{Source: fmt.Sprintf(
		"document: {dsl: 1.0.3, namespace: %s, name: %s, version: %s}\nschedule: %s\ndo: [{a: {set: {n: 1}}}]\n", namespace,
		short, version, schedule)}, "ada")
	require.NoError(t, err)
}

func (b *routerBench) gives(t testing.TB, events ...event.Event) []event.Accepted {
	t.Helper()
	accepted, err := b.events.Publish(b.ctx, b.name.Project, events)
	require.NoError(t, err)
	return accepted
}

// given returns an event of a type with data.
func given(id, typ, data string) event.Event {
	e := event.Event{ID: id, Source: "/s", Type: typ}
	if data != "" {
		e.Data = []byte(data)
	}
	return e
}

func (b *routerBench) owns(t testing.TB) inbox.Owner {
	t.Helper()
	owner, err := b.Fence(b.ctx, b.name, "server-1", 0)
	require.NoError(t, err)
	return owner
}

// works claims, delivers and records outcomes until nothing is due, and returns the outcomes.
func (b *routerBench) works(t testing.TB, owner inbox.Owner) []inbox.Outcome {
	t.Helper()
	var outcomes []inbox.Outcome
	for {
		claimed, err := b.Claim(b.ctx, b.name, owner, 100, time.Hour)
		require.NoError(t, err)
		if len(claimed) == 0 {
			return outcomes
		}
		var recorded []inbox.DeliveryOutcome
		for _, d := range claimed {
			outcome := b.Deliver(b.ctx, b.name, d)
			outcomes = append(outcomes, outcome)
			recorded = append(recorded, inbox.DeliveryOutcome{ID: d.ID, Outcome: outcome})
		}
		require.NoError(t, b.RecordOutcomes(b.ctx, b.name, owner, recorded))
	}
}

func (b *routerBench) event(t *testing.T, position int64) (event.Event, []event.Delivery) {
	t.Helper()
	e, err := b.events.Get(b.ctx, b.name.Project, position)
	require.NoError(t, err)
	deliveries, err := b.events.Deliveries(b.ctx, b.name.Project, position)
	require.NoError(t, err)
	return e, deliveries
}

func TestEventsStartRuns(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]func(testing.TB) store.Options{"sqlite": sqlite, "postgres": postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newRouterBench(t, options(t))
			b.publishes(t, "a/paid", "1.0.0", "{on: {one: {with: {type: paid, data: '${ .total > 10 }'}}}}")
			b.publishes(t, "a/both", "1.0.0", "{on: {all: [{with: {type: paid}}, {with: {type: shipped}}]}, read: data}")
			owner := b.owns(t)
			b.gives(t, given("1", "paid", `{"total":12.50}`), given("2", "paid", `{"total":1}`),
				given("3", "shipped", `"today"`), given("4", "lost", ""))
			require.Equal(t, []inbox.Outcome{{Result: inbox.Done}, {Result: inbox.Done}}, b.works(t, owner))

			first, deliveries := b.event(t, 1)
			require.Equal(t, event.Routed, first.Status)
			require.Len(t, deliveries, 2, "for its own run, and for the set that event 3 completed")
			byWorkflow := map[string]event.Delivery{}
			for _, d := range deliveries {
				require.Equal(t, event.DeliveryDone, d.Status)
				byWorkflow[d.Workflow] = d
			}
			alone, err := b.store.GetRun(b.ctx, b.name.Project, byWorkflow["a/paid"].RunID)
			require.NoError(t, err)
			require.Equal(t, []any{run.TriggerEvent, "signalbox", "a/paid", "1.0.0"},
				[]any{alone.Trigger, alone.Actor, alone.Workflow, alone.Version})
			require.Equal(t, `[{"specversion":"1.0","id":"1","source":"/s","type":"paid","data":{"total":12.50}}]`,
				string(alone.Input))
			both, err := b.store.GetRun(b.ctx, b.name.Project, byWorkflow["a/both"].RunID)
			require.NoError(t, err)
			require.Equal(t, `[{"total":12.50},"today"]`, string(both.Input))
			require.Equal(t, []int64{1, 3}, byWorkflow["a/both"].Positions)

			second, _ := b.event(t, 2)
			require.Equal(t, event.Routed, second.Status, "it waits for another shipment")
			lost, deliveries := b.event(t, 4)
			require.Empty(t, deliveries)
			require.Equal(t, event.Unmatched, lost.Status)
			require.Equal(t, `no published workflow and no waiting run matches type "lost"`, lost.Reason)
		})
	}
}

// TestDuplicateEvents: neither accepting nor delivering an event twice starts a second run.
func TestDuplicateEvents(t *testing.T) {
	t.Parallel()
	b := newRouterBench(t, sqlite(t))
	b.publishes(t, "a/paid", "1.0.0", "{on: {one: {with: {type: paid}}}}")
	first := b.owns(t)
	b.gives(t, given("1", "paid", ""))
	require.Equal(t, []event.Accepted{{Position: 1, Duplicate: true}}, b.gives(t, given("1", "paid", "")))
	claimed, err := b.Claim(b.ctx, b.name, first, 100, time.Hour)
	require.NoError(t, err)
	require.Len(t, claimed, 1)
	require.Equal(t, inbox.Done, b.Deliver(b.ctx, b.name, claimed[0]).Result)

	// The owner dies before it records the outcome, and the next one finds the run.
	second := b.owns(t)
	require.ErrorIs(t, b.RecordOutcomes(b.ctx, b.name, first,
		[]inbox.DeliveryOutcome{{ID: claimed[0].ID, Outcome: inbox.Outcome{Result: inbox.Done}}}), inbox.ErrFenced)
	require.Equal(t, []inbox.Outcome{{Result: inbox.Done}}, b.works(t, second))
	_, deliveries := b.event(t, 1)
	require.Equal(t, map[string]int{deliveries[0].RunID: 1}, b.engine.started)
	require.Equal(t, 2, deliveries[0].Attempts)
}

// TestRedeliver: an outage only delays a delivery; a rejected one is retried on request.
func TestRedeliver(t *testing.T) {
	t.Parallel()
	b := newRouterBench(t, sqlite(t))
	b.publishes(t, "a/paid", "1.0.0", "{on: {one: {with: {type: paid}}}}")
	owner := b.owns(t)
	b.engine.away = true
	b.gives(t, given("1", "paid", ""))
	got := b.works(t, owner)
	require.Equal(t, []any{inbox.Retry, "temporal is away"}, []any{got[0].Result, got[0].Reason})
	require.Empty(t, b.works(t, owner), "not before its pause has ended")
	b.engine.away = false
	changed, err := b.events.Redeliver(b.ctx, b.name.Project, 1, nil, "temporal is back")
	require.NoError(t, err)
	require.Len(t, changed, 1)
	require.Equal(t, []inbox.Outcome{{Result: inbox.Done}}, b.works(t, owner))
	changed, err = b.events.Redeliver(b.ctx, b.name.Project, 1, nil, "once more")
	require.NoError(t, err)
	require.Empty(t, changed, "finished deliveries are unchanged")

	b.gives(t, given("2", "paid", ""))
	claimed, err := b.Claim(b.ctx, b.name, owner, 100, time.Hour)
	require.NoError(t, err)
	_, err = b.workflows.SetPaused(b.ctx, b.name.Project, "a/paid", true, "stocktaking")
	require.NoError(t, err)
	outcome := b.Deliver(b.ctx, b.name, claimed[0])
	require.Equal(t, inbox.Dead, outcome.Result)
	require.Contains(t, outcome.Reason, `workflow "a/paid" is paused (stocktaking)`)
	require.NoError(t, b.RecordOutcomes(b.ctx, b.name, owner,
		[]inbox.DeliveryOutcome{{ID: claimed[0].ID, Outcome: outcome}}))
	b.gives(t, given("3", "paid", ""))
	require.Empty(t, b.works(t, owner))
	third, _ := b.event(t, 3)
	require.Equal(t, []any{event.Unmatched, `workflow "a/paid" is paused`}, []any{third.Status, third.Reason})
	_, err = b.workflows.SetPaused(b.ctx, b.name.Project, "a/paid", false, "")
	require.NoError(t, err)
	_, err = b.events.Redeliver(b.ctx, b.name.Project, 2, []string{claimed[0].ID}, "done counting")
	require.NoError(t, err)
	require.Equal(t, []inbox.Outcome{{Result: inbox.Done}}, b.works(t, owner))
	require.Len(t, b.engine.started, 2)
}

// TestRefusedRunsAreReported: an input that does not fit is reported by one event, which is not reported itself.
func TestRefusedRunsAreReported(t *testing.T) {
	t.Parallel()
	b := newRouterBench(t, sqlite(t))
	_, err := b.workflows.Publish(b.ctx, b.name.Project, workflow.Submission{Source: `
document: {dsl: 1.0.3, namespace: a, name: strict, version: 1.0.0}
schedule: {on: {any: [{with: {type: paid}}, {with: {type: io.signalbox.run.refused}}]}, read: data}
input: {schema: {document: {items: {required: [amount], properties: {amount: {type: integer}}}}}}
do: [{a: {set: {n: 1}}}]
`}, "ada")
	require.NoError(t, err)
	owner := b.owns(t)
	b.gives(t, given("1", "paid", `{"amount": "hunter2"}`))
	outcomes := b.works(t, owner)
	require.Len(t, outcomes, 2, "the event, and its report")
	for _, outcome := range outcomes {
		require.Equal(t, inbox.Dead, outcome.Result)
	}
	reported, _ := b.event(t, 2)
	require.Equal(t, []string{dispatcher.RunRefused, "/projects/" + b.name.Project + "/workflows/a/strict", "a/strict"},
		[]string{reported.Type, reported.Source, reported.Subject})
	require.JSONEq(t, `{
		"workflow": "a/strict", "version": "1.0.0", "events": [{"id": "1", "source": "/s", "position": 1}],
		"error": {
			"type": "https://open-workflow-specification.org/spec/1.0.0/errors/validation", "status": 400, "pointer": "/0/amount",
			"detail": "the input does not match the schema of a/strict@1.0.0: \"/0/amount\": does not meet \"type\""
		}
	}`, string(reported.Data))
	_, err = b.events.Get(b.ctx, b.name.Project, 3)
	require.Error(t, err, "a report is not reported")
}

func TestTimersStartRuns(t *testing.T) {
	t.Parallel()
	b := newRouterBench(t, sqlite(t))
	b.publishes(t, "a/daily", "1.0.0", "{cron: '0 8 * * *'}")
	owner := b.owns(t)
	_, err := event.Platform{Service: b.events}.Publish(b.ctx, b.name.Project, []event.Event{{
		ID: "2026-03-01T08:00:00Z", Source: event.TimerSource(b.name.Project, "a/daily"), Type: event.ScheduleFired,
	}})
	require.NoError(t, err)
	require.Equal(t, []inbox.Outcome{{Result: inbox.Done}}, b.works(t, owner))
	_, deliveries := b.event(t, 1)
	r, err := b.store.GetRun(b.ctx, b.name.Project, deliveries[0].RunID)
	require.NoError(t, err)
	require.Equal(t, []string{run.TriggerSchedule, "null"}, []string{r.Trigger, string(r.Input)})
}

// TestEventsBetweenVersions: an event that was accepted before a publication and is routed after it starts the new
// version.
func TestEventsBetweenVersions(t *testing.T) {
	t.Parallel()
	b := newRouterBench(t, sqlite(t))
	owner := b.owns(t)
	b.gives(t, given("1", "paid", ""))
	b.publishes(t, "a/paid", "1.0.0", "{on: {one: {with: {type: paid}}}}")
	b.gives(t, given("2", "paid", ""))
	b.publishes(t, "a/paid", "1.1.0", "{on: {one: {with: {type: paid}}}}")
	require.Len(t, b.works(t, owner), 1)
	early, _ := b.event(t, 1)
	require.Equal(t, event.Unmatched, early.Status, "there was no such workflow")
	_, deliveries := b.event(t, 2)
	require.Equal(t, "1.1.0", deliveries[0].Version)
}

func TestOwnerChangesAreEvents(t *testing.T) {
	t.Parallel()
	b := newRouterBench(t, sqlite(t))
	b.publishes(t, "ops/owners", "1.0.0", "{on: {one: {with: {type: "+event.OwnerChanged+"}}}}")
	owner := b.owns(t)
	change := dispatchtype.OwnerChange{
		Name: b.name, To: owner, Outcome: "takeover", From: inbox.Owner{Epoch: 0, Holder: "server-0"},
		RunID: "new", Ended: "old", Reason: "server-0 crashed",
	}
	for range 2 {
		require.NoError(t, b.events.RecordOwner(b.ctx, change))
	}
	require.Len(t, b.works(t, owner), 1)
	e, deliveries := b.event(t, 1)
	require.Equal(t, []string{event.OwnerChanged, event.DispatcherSource(b.name.Project, b.name.TaskQueue)},
		[]string{e.Type, e.Source})
	require.JSONEq(t, fmt.Sprintf(
		`{"project":"default","taskQueue":"signalbox-default","how":"takeover","owner":{"serverId":"server-1","epoch":%d},
		"previous":{"serverId":"server-0","epoch":0},"execution":"new","ended":"old","reason":"server-0 crashed"}`, owner.Epoch), string(e.Data))
	require.Len(t, deliveries, 1)
	history, err := b.events.OwnerHistory(b.ctx, b.name, 10)
	require.NoError(t, err)
	require.Len(t, history, 1)
	require.Equal(t, "server-0 crashed", history[0].Reason)
}

// TestInbox runs the conformance suite on the router.
func TestInbox(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]func(testing.TB) store.Options{"sqlite": sqlite, "postgres": postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newRouterBench(t, options(t))
			var count atomic.Int64
			inboxtest.Run(t, func(t *testing.T) inboxtest.Fixture {
				t.Helper()
				return fixture(t, b, fmt.Sprint("test-", count.Add(1)))
			})
		})
	}
}

// fixture accepts events for a workflow that every event starts, and for listening runs if there is a lane. Its
// projects have the prefix.
func fixture(t *testing.T, b *routerBench, prefix string) inboxtest.Fixture {
	t.Helper()
	projects := project.NewService(b.store, time.Now)
	accepted := 0
	return inboxtest.Fixture{
		Inbox: b.Router,
		Name: func(n int) inbox.Name {
			name := fmt.Sprint(prefix, "-", n)
			if _, err := projects.Get(b.ctx, name); err != nil {
				_, err := projects.Create(b.ctx, name, "")
				require.NoError(t, err)
				b.publishesIn(t, name, "a/free", "1.0.0", "{on: {one: {with: {type: free}}}}")
			}
			return inbox.Name{Project: name, TaskQueue: "signalbox-" + name}
		},
		Accept: func(t *testing.T, name inbox.Name, lane string) bool {
			t.Helper()
			accepted++
			typ := "free"
			if lane != "" {
				typ = "lane." + lane
				b.listens(t, name.Project, lane, typ)
			}
			_, wake, err := b.store.Events().Publish(b.ctx, name.Project, []event.Event{{
				Project: name.Project, ID: fmt.Sprint(accepted), Source: "/s", Type: typ, Status: event.Pending,
			}})
			require.NoError(t, err)
			return wake
		},
	}
}

// listens adds a run that listens for an event type.
func (b *routerBench) listens(t *testing.T, in, lane, typ string) {
	t.Helper()
	req := start.Request{Project: in, Workflow: "a/free", RunID: in + "-" + lane, RequestID: in + "-" + lane}
	r, _, err := b.runs.Start(b.ctx, req)
	require.NoError(t, err)
	require.NoError(t, b.events.Listen(b.ctx, event.Listener{
		ID: in + "-" + lane, Project: in, RunID: r.ID,
		Spec: event.Spec{Mode: event.One,
			Filters: []event.Filter{{With: map[string]event.Value{"type": {Literal: []byte(`"` + typ + `"`)}}}}},
	}))
}
