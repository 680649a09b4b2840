package problem_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/conn/conntype"
	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/dispatcher"
	"github.com/signalbox-dev/signalbox/internal/health"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/problem"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/diagnose"
	"github.com/signalbox-dev/signalbox/internal/server"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shop is the project of the tests.
const shop = "shop"

// bench is a service over a real store, with a clock and a platform that the test sets.
type bench struct {
	*problem.Service

	recorder    *problem.Recorder
	store       *storetest.Plain
	now         time.Time
	connection  conntype.Status
	report      health.Report
	dispatchers []dispatcher.Dispatcher
	dispatchErr error
	lost        []server.Server
	lostUnknown bool
	lostErr     error
	measured    []time.Duration
}

// overview reads the dispatchers that the test has set.
type overview struct{ *bench }

// List implements [problem.Dispatchers].
func (o overview) List(context.Context) ([]dispatcher.Dispatcher, error) {
	return o.dispatchers, o.dispatchErr
}

// Acknowledged implements [problem.Metrics].
func (b *bench) Acknowledged(_ context.Context, _ string, took time.Duration) {
	b.measured = append(b.measured, took)
}

func newBench(t *testing.T) *bench {
	t.Helper()
	s, err := storetest.Open(t.Context(), t,
		store.Options{Driver: store.SQLite, DSN: storetest.SQLite(t), AutoMigrate: true, CallTimeout: time.Minute})
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, s.Stop(context.WithoutCancel(t.Context()))) })
	b := &bench{store: s, now: time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC),
		connection: conntype.Status{State: conntype.Connected}}
	for _, name := range []string{shop, "bank"} {
		require.NoError(t, s.CreateProject(t.Context(), project.Project{Name: name, CreatedAt: b.now},
			audit.Entry{Time: b.now, Action: audit.ProjectCreate, Project: name}))
	}
	b.Service = problem.NewService(problem.Options{
		Source: s.Problems(), Store: s.Problems(), Projects: s, Dispatchers: overview{b}, Metrics: b,
		Connection: func() conntype.Status {
			return b.connection
		}, Health: func(context.Context) health.Report { return b.report },
		LostServers: func(context.Context) ([]server.Server, bool, error) { return b.lost, !b.lostUnknown, b.lostErr },
		Retries:     problem.Retries{Attempts: 3, After: 30 * time.Minute},
		TaskQueue: func(project string) string {
			return "signalbox-" + project
		}, Now: func() time.Time { return b.now }, StartedAt: b.now,
	})
	b.recorder = problem.NewRecorder(b.Service, s.Problems())
	return b
}

// as returns the context of a caller with a role in a project.
func as(t *testing.T, name, where string, role auth.Role) context.Context {
	t.Helper()
	ctx := logger.WithContext(t.Context(), slog.New(slog.DiscardHandler))
	return auth.WithActor(ctx,
		auth.Actor{Kind: auth.KindToken, Name: name, ID: name, Roles: map[string]auth.Role{where: role}})
}

func admin(t *testing.T) context.Context {
	t.Helper()
	return as(t, "ada", auth.Everywhere, auth.Admin)
}

func (b *bench) insert(t *testing.T, id, where string) {
	t.Helper()
	b.insertVersion(t, id, where, "1.4.0")
}

func (b *bench) insertVersion(t *testing.T, id, where, version string) {
	t.Helper()
	r := run.Run{
		ID: id, Project: where, Workflow: "shop/order", Version: version, Status: run.Queued, QueuedReason: run.QueuedWorker,
		StatusAt: b.now, RequestID: id,
		Trigger: run.TriggerAPI, CreatedAt: b.now, Input: json.RawMessage(`{}`),
	}
	_, _, err := b.store.InsertRun(t.Context(), r,
		audit.Entry{Time: b.now, Action: audit.RunStart, Project: where, Subject: id})
	require.NoError(t, err)
}

// fail makes a run that fails.
func (b *bench) fail(t *testing.T, id, where, title string) {
	t.Helper()
	b.insert(t, id, where)
	b.end(t, id, run.Failed, &run.Error{
		Type: "communication", Status: 503, Title: title, Detail: "no answer", Instance: "/do/3/reserve"})
}

// replay replays a run.
func (b *bench) replay(t *testing.T, id string) {
	t.Helper()
	r := run.Run{ID: "replay-" + id, Project: shop, Workflow: "shop/order", Version: "1.4.0", Status: run.Queued,
		StatusAt: b.now, RequestID: "replay-" + id, Trigger: run.TriggerReplay, CreatedAt: b.now, ReplayOf: id}
	_, _, err := b.store.InsertRun(t.Context(), r,
		audit.Entry{Time: b.now, Action: audit.RunReplay, Project: shop, Subject: r.ID})
	require.NoError(t, err)
	b.now = b.now.Add(5 * time.Second) // groups of failures are reused for that long
}

func (b *bench) end(t *testing.T, id string, status run.Status, p *run.Error) {
	t.Helper()
	_, err := b.store.ApplyUpdates(t.Context(), []run.Update{{RunID: id, ExecutionID: "x", Position: 1, State: &run.State{
		Status: status, Since: b.now, StartedAt: b.now, EndedAt: b.now, Error: p,
	}}})
	require.NoError(t, err)
}

// stick makes a run that is stuck.
func (b *bench) stick(t *testing.T, id, where string) {
	t.Helper()
	b.insert(t, id, where)
	done, err := b.store.Verdicts().ChangeVerdicts(t.Context(), where, b.now,
		[]diagnose.Change{{RunID: id, Sequence: 1, To: &diagnose.Verdict{
			Code: run.NoPoller, Since: b.now.Add(-time.Minute), Detail: "no worker polls", Advice: "start a worker",
		}}})
	require.NoError(t, err)
	require.Len(t, done.Runs, 1)
}

func (b *bench) pass(t *testing.T) {
	t.Helper()
	require.NoError(t, b.recorder.Pass(logger.WithContext(t.Context(), slog.New(slog.DiscardHandler))))
}

// list returns the IDs of problems with their states.
func (b *bench) list(ctx context.Context, t *testing.T, q problem.Query) (lines []string) {
	t.Helper()
	found, err := b.List(ctx, q)
	require.NoError(t, err)
	for _, p := range found.Problems {
		lines = append(lines, p.ID+" "+string(p.State))
	}
	return lines
}

func (b *bench) get(t *testing.T, id string) problem.Problem {
	t.Helper()
	p, err := b.Get(admin(t), id)
	require.NoError(t, err)
	return p
}

func at(p problem.Problem) problem.Change { return problem.Change{ID: p.ID, Revision: p.Revision} }

func requireReason(t *testing.T, err error, reason string, parts ...string) {
	t.Helper()
	require.True(t, apperror.Is(err, reason), "%v", err)
	for _, part := range parts {
		require.ErrorContains(t, err, part)
	}
}

const stuckID = "stuck.shop.NO_POLLER"

func TestProblemsAreGrouped(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	require.Empty(t, b.list(admin(t), t, problem.Query{}))
	b.stick(t, "s1", shop)
	b.stick(t, "s2", shop)
	b.stick(t, "s3", "bank")
	b.fail(t, "f1", shop, "no answer for order 1")
	b.now = b.now.Add(time.Hour)
	b.fail(t, "f2", shop, "no answer for order 2")
	found, err := b.List(admin(t), problem.Query{Project: shop})
	require.NoError(t, err)
	require.Empty(t, found.Errors)
	require.Len(t, found.Problems, 2)
	stuck, failed := found.Problems[0], found.Problems[1]
	require.Equal(t, []any{stuckID, int64(2), "signalbox-shop", "no worker polls", []string{"s2", "s1"}, problem.Open,
		int64(0)},
		[]any{stuck.ID, stuck.Count, stuck.TaskQueue, stuck.Detail, stuck.Samples, stuck.State, stuck.Revision})
	require.Equal(t, "failure.shop."+failed.FailureGroup, failed.ID)
	require.Equal(t, []any{int64(2), int64(2), "shop/order", []problem.VersionCount{{Version: "1.4.0", Count: 2}},
		"reserve", "/do/3/reserve", "no answer for order 2", []string{"f2", "f1"}},
		[]any{failed.Count, failed.NotReplayed, failed.Workflow, failed.Versions, failed.Task, failed.Pointer, failed.Title,
			failed.Samples})
	require.Equal(t, b.now, failed.Last)
	require.Equal(t, time.Hour, failed.Series.Interval)
	require.Equal(t, []int64{1, 1}, failed.Series.Counts[22:])

	all := []string{"stuck.bank.NO_POLLER open", stuckID + " open", failed.ID + " open"}
	require.ElementsMatch(t, all, b.list(admin(t), t, problem.Query{}))
	require.Equal(t, all[2:], b.list(admin(t), t, problem.Query{Kinds: []problem.Kind{problem.Failure}}))
	require.Equal(t, all[2:], b.list(admin(t), t, problem.Query{Text: "NO ANSWER"}))
	require.Equal(t, all[:1], b.list(as(t, "eve", "bank", auth.Viewer), t, problem.Query{}), "only the caller's projects")
	first, err := b.List(admin(t), problem.Query{Limit: 1})
	require.NoError(t, err)
	cursor := problem.CursorOf(first.Problems[0])
	require.Len(t, b.list(admin(t), t, problem.Query{After: &cursor}), 2)
	_, err = b.List(admin(t), problem.Query{Kinds: []problem.Kind{"odd"}})
	requireReason(t, err, apperror.InvalidArgument, `kind "odd"`)
	_, err = b.List(admin(t), problem.Query{States: []problem.State{"odd"}})
	requireReason(t, err, apperror.InvalidArgument, `state "odd"`)

	// The last failure is replayed: there is nothing to act on, and the older one has no replay yet.
	for i, id := range []string{"f1", "f2"} {
		b.replay(t, id)
		list := b.list(admin(t), t, problem.Query{Kinds: []problem.Kind{problem.Failure}})
		require.Len(t, list, 1-i)
	}
	b.now = b.now.Add(8 * 24 * time.Hour)
	require.Len(t, b.list(admin(t), t, problem.Query{}), 2, "old failures are no problem")
}

func TestFailuresOfAllVersionsAreOneProblem(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fail(t, "f1", shop, "no answer for order 1")
	b.pass(t)
	found, err := b.List(admin(t), problem.Query{})
	require.NoError(t, err)
	require.Len(t, found.Problems, 1)
	snoozed, err := b.Snooze(admin(t), at(found.Problems[0]), b.now.Add(time.Hour), 0)
	require.NoError(t, err)

	// A new version with one more task before the one that fails.
	for _, id := range []string{"f2", "f3"} {
		b.insertVersion(t, id, shop, "1.5.0")
		b.end(t, id, run.Failed, &run.Error{
			Type: "communication", Status: 503, Title: "no answer for order 2", Detail: "no answer", Instance: "/do/4/reserve"})
	}
	b.now = b.now.Add(5 * time.Second)
	b.pass(t)
	require.Equal(t, []string{snoozed.ID + " snoozed"}, b.list(admin(t), t, problem.Query{}))
	require.Equal(t, []problem.VersionCount{{Version: "1.5.0", Count: 2}, {Version: "1.4.0", Count: 1}},
		b.get(t, snoozed.ID).Versions)
}

func TestResolvedFailuresHaveNoRunsWithoutAReplay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, id := range []string{"f1", "f2", "f3"} {
		b.fail(t, id, shop, "no answer for order 1")
	}
	b.replay(t, "f1")
	b.pass(t) // the record has two runs without a replay
	id := b.list(admin(t), t, problem.Query{})[0][:len("failure.shop.")+20]
	b.replay(t, "f2")
	b.replay(t, "f3")
	for _, when := range []string{"before the recorder's pass", "after it"} {
		p := b.get(t, id)
		require.Equal(t, []any{problem.Resolved, int64(3), int64(0)}, []any{p.State, p.Count, p.NotReplayed}, when)
		b.pass(t)
	}
	b.now = b.now.Add(time.Hour)
	require.Zero(t, b.get(t, id).NotReplayed)
}

func TestOperatorsHandleProblems(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.stick(t, "s1", shop)
	b.pass(t)
	b.now = b.now.Add(3 * time.Minute)
	ada, eve := as(t, "ada", shop, auth.Operator), as(t, "eve", shop, auth.Operator)
	p := b.get(t, stuckID)
	got, err := b.Acknowledge(ada, at(p), "known")
	require.NoError(t, err)
	require.Equal(t, []any{problem.Acknowledged, "ada", "known", int64(1), b.now},
		[]any{got.State, got.Acknowledger, got.Note, got.Revision, got.AcknowledgedAt})
	require.Equal(t, []time.Duration{3 * time.Minute}, b.measured)
	counts, err := b.Count(ada, shop)
	require.NoError(t, err)
	require.Equal(t, map[problem.State]int64{problem.Acknowledged: 1}, counts.States)
	require.Equal(t, 3*time.Minute, counts.TimeToAcknowledge)

	again, err := b.Acknowledge(ada, at(p), "known")
	require.NoError(t, err, "repeating a call changes nothing")
	require.Equal(t, int64(1), again.Revision)
	_, err = b.Acknowledge(eve, at(p), "")
	requireReason(t, err, apperror.ProblemChanged, "revision 0, and has revision 1", "ada acknowledged it")
	b.stick(t, "s2", shop)
	require.Equal(t, []string{stuckID + " acknowledged"}, b.list(eve, t, problem.Query{}),
		"it stays acknowledged as it grows")

	got, err = b.Snooze(eve, at(got), time.Time{}, 3)
	require.NoError(t, err)
	require.Equal(t, []any{problem.Snoozed, "", "known", int64(2)},
		[]any{got.State, got.Acknowledger, got.Note, got.Revision})
	b.stick(t, "s3", shop)
	require.Equal(t, problem.Open, b.get(t, stuckID).State, "the snooze ends at the count")
	got, err = b.Snooze(eve, at(got), b.now.Add(time.Hour), 0)
	require.NoError(t, err)
	require.Equal(t, problem.Snoozed, got.State)
	b.now = b.now.Add(time.Hour)
	require.Equal(t, problem.Open, b.get(t, stuckID).State, "the snooze ends at the time")
	owner := "warehouse"
	got, err = b.Update(eve, at(got), &owner, nil)
	require.NoError(t, err)
	require.Equal(t, []any{"warehouse", "known"}, []any{got.Owner, got.Note})
	require.Len(t, b.list(eve, t, problem.Query{Owner: owner}), 1)
	require.Empty(t, b.list(eve, t, problem.Query{Owner: "ware"}))
	got, err = b.Acknowledge(eve, at(got), "")
	require.NoError(t, err)
	got, err = b.Reopen(eve, at(got))
	require.NoError(t, err)
	require.Equal(t, []any{problem.Open, "warehouse", "known"}, []any{got.State, got.Owner, got.Note})
	entries, err := b.store.ListAudit(t.Context(),
		audit.Filter{Project: shop, Subject: stuckID, OldestFirst: true, Limit: 10})
	require.NoError(t, err)
	var actions []string
	for _, e := range entries {
		actions = append(actions, e.Actor.Name+" "+e.Action)
	}
	require.Equal(t, []string{
		"ada problem.acknowledge", "eve problem.snooze", "eve problem.snooze", "eve problem.update",
		"eve problem.acknowledge", "eve problem.reopen"}, actions)

	requireRefusals(t, b, got)
}

// requireRefusals sends wrong requests about a problem with the count 3.
func requireRefusals(t *testing.T, b *bench, p problem.Problem) {
	t.Helper()
	eve := as(t, "eve", shop, auth.Operator)
	for name, until := range map[string]time.Time{"in the future": b.now, "30 days": b.now.Add(31 * 24 * time.Hour)} {
		_, err := b.Snooze(eve, at(p), until, 0)
		requireReason(t, err, apperror.InvalidArgument, name)
	}
	for part, count := range map[string]int64{"required": 0, "negative": -1, "count 3 already": 3} {
		_, err := b.Snooze(eve, at(p), time.Time{}, count)
		requireReason(t, err, apperror.InvalidArgument, part)
	}
	_, err := b.Snooze(eve, at(p), b.now.Add(time.Hour), 9)
	requireReason(t, err, apperror.InvalidArgument, "not both")
	_, err = b.Update(eve, at(p), nil, nil)
	requireReason(t, err, apperror.InvalidArgument, "set owner or note")
	long := string(make([]byte, 2001))
	_, err = b.Acknowledge(eve, at(p), long)
	requireReason(t, err, apperror.InvalidArgument, "2001 bytes")
	_, err = b.Acknowledge(as(t, "vic", shop, auth.Viewer), at(p), "")
	requireReason(t, err, apperror.PermissionDenied, "operator")
	for _, id := range []string{"", "x", "stuck.shop.", "stuck.shop.BACKLOG", "stuck.none.NO_POLLER"} {
		_, err = b.Acknowledge(eve, problem.Change{ID: id}, "")
		requireReason(t, err, apperror.ProblemNotFound)
	}
	_, err = b.Acknowledge(as(t, "bob", "bank", auth.Operator), at(p), "")
	requireReason(t, err, apperror.ProblemNotFound, "there is no problem")
}

func TestResolvedProblemsStayListedForADay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.stick(t, "s1", shop)
	b.pass(t)
	p, err := b.Acknowledge(admin(t), at(b.get(t, stuckID)), "known")
	require.NoError(t, err)
	b.end(t, "s1", run.Completed, nil)
	require.Equal(t, []string{stuckID + " resolved"}, b.list(admin(t), t, problem.Query{}),
		"the list does not depend on the recorder")
	require.True(t, b.get(t, stuckID).ResolvedAt.IsZero(), "the time is not known yet")
	b.pass(t)
	resolved := b.get(t, stuckID)
	require.Equal(t, b.now, resolved.ResolvedAt)
	_, err = b.Snooze(admin(t), at(resolved), b.now.Add(time.Hour), 0)
	requireReason(t, err, apperror.ProblemResolved)

	b.now = b.now.Add(30 * time.Second)
	b.stick(t, "s2", shop)
	require.Equal(t, problem.Acknowledged, b.get(t, stuckID).State, "it was away for a moment")
	b.pass(t)
	require.Equal(t, p.Revision, b.get(t, stuckID).Revision)
	b.end(t, "s2", run.Completed, nil)
	b.pass(t)
	b.now = b.now.Add(time.Hour)
	b.stick(t, "s3", shop)
	fresh := b.get(t, stuckID)
	require.Equal(t, []any{problem.Open, "", p.Revision + 1}, []any{fresh.State, fresh.Note, fresh.Revision},
		"a new occurrence")
	b.pass(t)
	require.Equal(t, fresh.Revision, b.get(t, stuckID).Revision)
	_, err = b.Acknowledge(admin(t), at(fresh), "again")
	require.NoError(t, err)
	b.end(t, "s3", run.Completed, nil)
	b.pass(t)
	b.now = b.now.Add(24 * time.Hour)
	require.Empty(t, b.list(admin(t), t, problem.Query{}))
	b.pass(t)
	rows, err := b.store.Problems().Problems(t.Context(), []string{shop})
	require.NoError(t, err)
	require.Empty(t, rows)
}

func TestTitleOfADependency(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.report = health.Report{Dependencies: []health.DependencyState{
		{Name: "leases", State: health.Down, LastError: "redis does not answer"},
		{Name: "placement", State: health.Down, Title: "This server uses another Temporal than 21 open runs",
			LastError: "both sides"},
	}}
	list, err := b.List(admin(t), problem.Query{})
	require.NoError(t, err)
	titles := map[string]string{}
	for _, p := range list.Problems {
		titles[p.Cause] = p.Title + ": " + p.Detail
	}
	require.Equal(t, map[string]string{
		"leases": "Redis (leases) is down: redis does not answer", "placement": "This server uses another Temporal than 21 " +
			"open runs: both sides",
	}, titles)
}

func TestPlatformProblems(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	state := func(name string, status dispatchtype.Status) dispatcher.Dispatcher {
		return dispatcher.Dispatcher{
			Dispatcher: dispatchtype.Dispatcher{Name: inbox.Name{Project: name, TaskQueue: "q"}, Status: status}, Detail: "why"}
	}
	b.report = health.Report{Dependencies: []health.DependencyState{
		{Name: "store", State: health.Up}, {Name: "leases", State: health.Down, LastError: "redis does not answer"},
		{Name: "memory", State: health.Down},
	}}
	b.dispatchers = []dispatcher.Dispatcher{state("bank", dispatchtype.NoWorkers), state(shop, dispatchtype.Stale)}
	dispatchers, dependencies := b.dispatchers, b.report
	b.dispatchers = []dispatcher.Dispatcher{state(shop, dispatchtype.Unknown), state("bank", dispatchtype.Missing)}
	b.report = health.Report{}
	require.Empty(t, b.list(admin(t), t, problem.Query{}), "the process has just started")
	b.now = b.now.Add(time.Minute)
	require.ElementsMatch(t, []string{"platform.shop.DISPATCHER_UNKNOWN open", "platform.bank.DISPATCHER_MISSING open"},
		b.list(admin(t), t, problem.Query{}))
	b.now, b.dispatchers, b.report = b.now.Add(time.Minute), dispatchers, dependencies
	want := []string{"platform..DEPENDENCY_NOT_UP.leases open", "platform.shop.DISPATCHER_STALE open"}
	require.ElementsMatch(t, want, b.list(admin(t), t, problem.Query{}), "a project without workers has nothing to do")
	require.Equal(t, want[1:], b.list(as(t, "eve", shop, auth.Admin), t, problem.Query{}),
		"the platform is shown to callers with a role in all projects")
	require.Equal(t, want[1:], b.list(admin(t), t, problem.Query{Project: shop}))
	_, err := b.Acknowledge(as(t, "eve", shop, auth.Admin), problem.Change{ID: "platform..DEPENDENCY_NOT_UP.leases"}, "")
	requireReason(t, err, apperror.ProblemNotFound)
	_, err = b.Acknowledge(as(t, "vic", auth.Everywhere, auth.Viewer),
		problem.Change{ID: "platform..DEPENDENCY_NOT_UP.leases"}, "")
	requireReason(t, err, apperror.PermissionDenied)
	_, err = b.Snooze(admin(t), problem.Change{ID: "platform..DEPENDENCY_NOT_UP.leases"}, time.Time{}, 5)
	requireReason(t, err, apperror.InvalidArgument, "has no count")
	_, err = b.Acknowledge(admin(t), problem.Change{ID: "platform..DEPENDENCY_NOT_UP.leases"}, "")
	require.NoError(t, err)
	b.pass(t)

	// While Temporal is away, the state of dispatchers is not known: that is not a problem of its own, and resolves none.
	b.now = b.now.Add(time.Minute)
	b.report, b.connection = health.Report{},
		conntype.Status{State: conntype.Down, Kind: conntype.Hung, Since: b.now, LastError: "no answer"}
	b.dispatchers = []dispatcher.Dispatcher{state("bank", dispatchtype.Unknown), state(shop, dispatchtype.Unknown)}
	want = []string{"platform..DEPENDENCY_NOT_UP.leases resolved", "platform..TEMPORAL_NOT_CONNECTED open",
		"platform.shop.DISPATCHER_STALE open"}
	require.ElementsMatch(t, want, b.list(admin(t), t, problem.Query{}))
	b.now, b.dispatchErr = b.now.Add(time.Minute), errors.New("no answer")
	list, err := b.List(admin(t), problem.Query{})
	require.NoError(t, err)
	require.Equal(t, []string{"dispatchers are not known: see the server's log for the cause"}, list.Errors)
	require.Len(t, list.Problems, 3)
	_, err = b.Gauges(t.Context())
	require.Error(t, err, "unknown numbers are omitted")

	b.now, b.dispatchErr, b.connection.State = b.now.Add(time.Minute), nil, conntype.Connected
	b.dispatchers = []dispatcher.Dispatcher{state("bank", dispatchtype.NoWorkers), state(shop, dispatchtype.Routing)}
	b.insert(t, "open", "bank")
	require.Contains(t, b.list(admin(t), t, problem.Query{}), "platform.bank.DISPATCHER_NO_WORKERS open",
		"it has an open run")
	gauges, err := b.Gauges(t.Context())
	require.NoError(t, err)
	require.True(t, slices.Contains(gauges,
		problem.Gauge{Project: "bank", Kind: problem.Platform, State: problem.Open, Count: 1}))
	require.True(t, slices.Contains(gauges, problem.Gauge{Project: shop, Kind: problem.Stuck, State: problem.Open}),
		"zeros included")
	b.pass(t)
	b.now = b.now.Add(6 * time.Minute)
	gauges, err = b.Gauges(t.Context())
	require.NoError(t, err)
	require.Contains(t, gauges,
		problem.Gauge{Project: "bank", Kind: problem.Platform, State: problem.Open, Count: 1, Oldest: 6 * time.Minute})
	b.stick(t, "s1", "bank")
	require.NotContains(t, b.list(admin(t), t, problem.Query{Project: "bank"}), "platform.bank.DISPATCHER_NO_WORKERS open",
		"the stuck run says the same")
}

func TestRecorderRecords(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.stick(t, "s1", shop)
	require.NoError(t, b.recorder.Start(logger.WithContext(t.Context(), slog.New(slog.DiscardHandler))))
	require.Eventually(t, func() bool { return !b.get(t, stuckID).SeenAt.IsZero() }, time.Minute, 10*time.Millisecond)
	require.NoError(t, b.recorder.Stop(t.Context()))
}

// Runs in Temporal that lack a version are one problem per version, of their project if it exists; it ends with them.
func TestForeignRunsAreProblems(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, err := b.store.MoveRunsCluster(t.Context(), run.ClusterID{},
		run.RunsCluster{ClusterID: run.ClusterID{Address: "here"}, Since: b.now})
	require.NoError(t, err)
	require.Empty(t, b.list(admin(t), t, problem.Query{}))
	later := run.ForeignRuns{Project: shop, Workflow: "shop/order", Version: "2.0.0", Why: "the document of " +
		"shop/order@2.0.0 is not stored here", Count: 9, Open: 8, RunIDs: []string{"r1", "r2"}, Since: b.now}
	lost := run.ForeignRuns{Project: "gone", Workflow: "a/b", Version: "1.0.0", NoProject: true,
		Why: `its project "gone" does not exist here`, Count: 1, Open: 1, RunIDs: []string{"r3"}, Since: b.now}
	unrelated := run.ForeignRuns{Why: "it was not started by Signalbox", Count: 1, Open: 1, RunIDs: []string{"x"}}
	// Its project was deleted since the runs were read.
	deleted := run.ForeignRuns{Project: "deleted", Workflow: "a/b", Version: "1.0.0", Count: 1, Open: 1,
		RunIDs: []string{"r4"}, Since: b.now}
	require.NoError(t, b.store.RecordForeign(t.Context(), []run.ForeignRuns{unrelated, lost, later, deleted}))
	const ofVersion, ofProject = "platform.shop.RUNS_FOREIGN.shop/order.2.0.0", "platform..RUNS_FOREIGN.gone.a/b.1.0.0"
	require.ElementsMatch(t, []string{ofVersion + " open", ofProject + " open"}, b.list(admin(t), t, problem.Query{}))
	p := b.get(t, ofVersion)
	require.Equal(t, []any{problem.RunsForeign, shop, "shop/order", int64(8), b.now},
		[]any{p.Code, p.Project, p.Workflow, p.Count, p.First.UTC()})
	require.Contains(t, p.Title, "the document of shop/order@2.0.0 is not stored here")
	require.Contains(t, p.Detail, "r1, r2")
	require.Contains(t, p.Advice, "publish shop/order@2.0.0 in project shop")
	p = b.get(t, ofProject)
	require.Empty(t, p.Project)
	require.Contains(t, p.Advice, "`signalbox project create gone`")
	require.NoError(t, b.store.RecordForeign(t.Context(), nil))
	require.Empty(t, b.list(admin(t), t, problem.Query{}))
}
