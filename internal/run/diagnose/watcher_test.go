package diagnose_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/diagnose"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const projectName = project.Default

// fakeEngine stands for the engine. The tests of the whole platform use the real one.
type fakeEngine struct {
	mu         sync.Mutex
	away       bool
	queue      diagnose.QueueState
	queueErr   error
	problems   map[string]string
	executions map[string]diagnose.Execution
	behind     func(id string) (bool, error)
	lacks      map[string]bool
	described  []string
	err        error // of Execution
}

func (e *fakeEngine) Connection() diagnose.Connection {
	return diagnose.Connection{Usable: !e.away, Address: "127.0.0.1:7233", Kind: "unreachable"}
}

func (e *fakeEngine) Queue(context.Context, string) (diagnose.QueueState, error) {
	return e.queue, e.queueErr
}

func (e *fakeEngine) Problems(context.Context) (map[string]string, error) { return e.problems, nil }

func (e *fakeEngine) Execution(_ context.Context, id string) (diagnose.Execution, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.described = append(e.described, id)
	x, ok := e.executions[id]
	if e.err != nil {
		return x, e.err
	}
	if !ok {
		return x, errors.New("no answer")
	}
	return x, nil
}

func (e *fakeEngine) Behind(_ context.Context, _, id string) (bool, error) {
	if e.behind == nil {
		return false, nil
	}
	return e.behind(id)
}

func (e *fakeEngine) LacksPayload(_ context.Context, id string) (bool, error) {
	return e.lacks[id], nil
}

// fixture is a watcher over a real store, with a clock that the test sets.
type fixture struct {
	*diagnose.Watcher

	store     *storetest.Plain
	engine    *fakeEngine
	now       time.Time
	changes   *pubsub.Notifier
	committed []string

	// ended are the runs that the platform ended. endedBy and endedFor are the actor and the reason of the last one.
	ended    []string
	endedBy  auth.Actor
	endedFor string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	s, err := storetest.Open(t.Context(), t,
		store.Options{Driver: store.SQLite, DSN: storetest.SQLite(t), AutoMigrate: true, CallTimeout: time.Minute})
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, s.Stop(context.WithoutCancel(t.Context()))) })
	w := &fixture{
		store: s, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), changes: pubsub.NewNotifier(),
		engine: &fakeEngine{queue: diagnose.QueueState{Name: "signalbox-default"},
			executions: map[string]diagnose.Execution{}},
	}
	w.Watcher = newWatcher(w)
	return w
}

func newWatcher(w *fixture) *diagnose.Watcher {
	return diagnose.New(w.store.Verdicts(), w.store, w.engine, diagnose.Options{
		After: time.Minute, PoisonAfter: 15 * time.Minute, End: w.end, Now: func() time.Time {
			return w.now
		}, Fingerprint: func() worker.Fingerprint { return worker.Fingerprint{} },
		Changes: w.changes, Committed: func(_ context.Context, project string, _ bool) {
			w.committed = append(w.committed, project)
		},
	})
}

func (w *fixture) start(t *testing.T, id string) {
	t.Helper()
	r := run.Run{
		ID: id, Project: projectName, Workflow: "demo/hello", Version: "1.0.0", Status: run.Queued,
		QueuedReason: run.QueuedWorker, StatusAt: w.now,
		RequestID: id, Trigger: run.TriggerAPI, CreatedAt: w.now, Input: json.RawMessage(`{}`),
	}
	_, made, err := w.store.InsertRun(t.Context(), r,
		audit.Entry{Time: w.now, Action: audit.RunStart, Project: projectName, Subject: id})
	require.NoError(t, err)
	require.True(t, made)
}

// after advances the clock, makes a pass, and returns the code of a run's verdict.
func (w *fixture) after(t *testing.T, d time.Duration, id string) string {
	t.Helper()
	w.now = w.now.Add(d)
	require.NoError(t, w.RunPass(t.Context()))
	r, err := w.store.GetRun(t.Context(), projectName, id)
	require.NoError(t, err)
	if r.Stuck == nil {
		return ""
	}
	return r.Stuck.Code
}

// polled adds a live poller to the queue.
func (w *fixture) polled() {
	line := diagnose.TaskTypeState{Pollers: []diagnose.Poller{{Identity: "w1", LastAccess: w.now.Add(time.Hour)}}}
	w.engine.queue.Workflow, w.engine.queue.Activity = line, line
}

func (w *fixture) move(t *testing.T, id string, position int64, status run.Status) {
	t.Helper()
	_, err := w.store.ApplyUpdates(t.Context(),
		[]run.Update{{RunID: id, ExecutionID: "x", Position: position, State: &run.State{
			Status: status, Since: w.now, StartedAt: w.now,
		}}})
	require.NoError(t, err)
}

// events returns the events, oldest first: type, code, previous code and status.
func (w *fixture) events(t *testing.T) (lines []string) {
	t.Helper()
	list, err := w.store.Events().ListEvents(t.Context(),
		event.ListFilter{Project: projectName, Source: diagnose.Source(projectName), Limit: 500})
	require.NoError(t, err)
	for _, e := range slices.Backward(list) {
		var data struct {
			RunID, Code, Previous, Status string
			Total                         *int
		}
		require.NoError(t, json.Unmarshal(e.Data, &data))
		if data.Total != nil {
			require.Equal(t, e.Subject, data.Code)
			lines = append(lines, fmt.Sprintf("%s %s %d", e.Type[len(event.Own):], data.Code, *data.Total))
			continue
		}
		require.Equal(t, e.Subject, data.RunID)
		lines = append(lines, fmt.Sprintf("%s %s %s %s", e.Type[len(event.Own):], data.Code, data.Previous, data.Status))
	}
	return lines
}

func TestRunIsStuckAfterAMinuteUntilItContinues(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.start(t, "r1")
	changed, stop := w.changes.Subscribe("r1")
	defer stop()
	require.Empty(t, w.after(t, 59*time.Second, "r1"))
	require.Empty(t, changed)
	require.Equal(t, run.NoPoller, w.after(t, 2*time.Second, "r1"), "61 seconds")
	require.Len(t, changed, 1, "subscribers are notified")
	require.Equal(t, []string{projectName}, w.committed)
	counts, acting := w.Counts()
	require.True(t, acting)
	require.Len(t, counts, len(run.Codes()), "zeros included")
	require.Equal(t, int64(1), counts[run.NoPoller])

	require.Equal(t, run.NoPoller, w.after(t, 2*time.Second, "r1"))
	require.Equal(t, run.NoPoller, w.after(t, time.Minute, "r1"))
	r, err := w.store.GetRun(t.Context(), projectName, "r1")
	require.NoError(t, err)
	require.Equal(t, w.now, r.Stuck.CheckedAt)
	require.Equal(t, r.StatusAt, r.Stuck.Since)
	require.Equal(t, []string{"run.stuck NO_POLLER  "}, w.events(t), "a confirmed verdict causes no event")

	w.polled()
	w.move(t, "r1", 1, run.Running)
	require.Empty(t, w.after(t, time.Second, "r1"))
	require.Equal(t, []string{"run.stuck NO_POLLER  ", "run.unstuck NO_POLLER  running"}, w.events(t))
	counts, _ = w.Counts()
	require.Zero(t, counts[run.NoPoller])
}

// TestOneCauseOfManyRunsIsOneEvent: thirty runs without a poller are announced together, and so is that they are few
// again.
func TestOneCauseOfManyRunsIsOneEvent(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	for i := range 15 {
		w.start(t, fmt.Sprintf("a%02d", i))
	}
	require.Equal(t, run.NoPoller, w.after(t, 61*time.Second, "a00"))
	require.Equal(t, slices.Repeat([]string{"run.stuck NO_POLLER  "}, 15), w.events(t), "few runs have an event each")
	for i := range 15 {
		w.start(t, fmt.Sprintf("b%02d", i))
	}
	require.Equal(t, run.NoPoller, w.after(t, 61*time.Second, "b00"))
	require.Equal(t, []string{"runs.stuck NO_POLLER 30"}, w.events(t)[15:])
	w.start(t, "c")
	require.Equal(t, run.NoPoller, w.after(t, 61*time.Second, "c"))
	require.Len(t, w.events(t), 16, "the cause is known")

	w.polled()
	w.move(t, "c", 1, run.Running)
	require.Empty(t, w.after(t, time.Second, "c"))
	require.Len(t, w.events(t), 16, "the others have it still")
	for i := range 12 {
		w.move(t, fmt.Sprintf("a%02d", i), 1, run.Running)
	}
	w.engine.queue.Workflow.Backlog, w.engine.queue.Workflow.Age = 18, time.Hour
	require.Equal(t, run.Backlog, w.after(t, time.Second, "b00"))
	require.ElementsMatch(t, append(slices.Repeat([]string{"run.stuck BACKLOG NO_POLLER "}, 18),
		"runs.unstuck NO_POLLER 0"), w.events(t)[16:])
}

func TestRunThatWasLeftInAnotherTemporal(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.polled()
	w.start(t, "r1")
	w.move(t, "r1", 1, run.Waiting)
	require.Empty(t, w.after(t, time.Hour, "r1"))
	former := run.RunsCluster{
		ClusterID: run.ClusterID{Address: "a:7233", Namespace: "ns", NamespaceID: "n1"}, Since: w.now}
	next := run.RunsCluster{ClusterID: run.ClusterID{Address: "b:7233", Namespace: "ns", NamespaceID: "n2"}, Since: w.now}
	_, err := w.store.MoveRunsCluster(t.Context(), run.ClusterID{}, former)
	require.NoError(t, err)
	_, adopted, err := w.store.AdoptCluster(t.Context(), former.ClusterID, next,
		audit.Entry{Time: w.now, Action: audit.SystemAdoptTemporal})
	require.NoError(t, err)
	require.True(t, adopted)
	require.Equal(t, run.InAnotherTemporal, w.after(t, time.Second, "r1"))
	require.Equal(t, run.InAnotherTemporal, w.after(t, time.Minute, "r1"))
	r, err := w.store.GetRun(t.Context(), projectName, "r1")
	require.NoError(t, err)
	require.Contains(t, r.Stuck.Detail, "in Temporal at a:7233")
	_, err = w.store.MoveRunsCluster(t.Context(), next.ClusterID, former)
	require.NoError(t, err)
	require.Empty(t, w.after(t, time.Second, "r1"), "the servers use its Temporal again")
	require.Equal(t, []string{"run.stuck IN_ANOTHER_TEMPORAL  ", "run.unstuck IN_ANOTHER_TEMPORAL  waiting"}, w.events(t))
	require.Empty(t, w.engine.described, "Temporal is not asked about it")
}

// A server in another Temporal than the runs does not judge them by what its Temporal lacks.
func TestServerInAnotherTemporal(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	var elsewhere run.ClusterID
	w.Watcher = diagnose.New(w.store.Verdicts(), w.store, w.engine, diagnose.Options{
		After: time.Minute, Now: func() time.Time {
			return w.now
		}, Fingerprint: func() worker.Fingerprint { return worker.Fingerprint{} },
		Elsewhere: func() run.ClusterID {
			return elsewhere
		}, Changes: w.changes, Committed: func(context.Context, string, bool) {},
	})
	w.start(t, "r1")
	elsewhere = run.ClusterID{Address: "a:7233", Namespace: "ns", NamespaceID: "n1"}
	require.Empty(t, w.after(t, 59*time.Second, "r1"))
	require.Equal(t, run.InAnotherTemporal, w.after(t, 2*time.Second, "r1"))
	elsewhere = run.ClusterID{}
	require.Equal(t, run.NoPoller, w.after(t, time.Second, "r1"))
}

func TestChangedCodeCausesOneEvent(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.start(t, "r1")
	require.Equal(t, run.NoPoller, w.after(t, 61*time.Second, "r1"))
	w.polled()
	w.engine.executions["r1"] = diagnose.Execution{
		Task: &diagnose.Task{Attempt: 4}, Failure: "unable to find workflow type"}
	require.Equal(t, run.TaskFailing, w.after(t, 2*time.Second, "r1"))
	require.Equal(t, run.TaskFailing, w.after(t, 2*time.Second, "r1"))
	// A requested cancellation changes the row; the run is still stuck.
	_, err := w.store.MarkCancelRequested(t.Context(), projectName, "r1", "why",
		audit.Entry{Time: w.now, Action: audit.RunCancel, Project: projectName, Subject: "r1"})
	require.NoError(t, err)
	require.Equal(t, run.TaskFailing, w.after(t, 2*time.Second, "r1"))
	require.Equal(t, []string{"run.stuck NO_POLLER  ", "run.stuck TASK_FAILING NO_POLLER "}, w.events(t))
	w.move(t, "r1", 1, run.Completed)
	require.Empty(t, w.after(t, 2*time.Second, "r1"))
	require.Equal(t, "run.unstuck TASK_FAILING  completed", w.events(t)[2])
}

func TestMissingAnswersChangeNoVerdict(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.start(t, "r1")
	w.engine.queueErr = errors.New("no answer")
	require.Empty(t, w.after(t, 61*time.Second, "r1"))
	w.engine.queueErr = nil
	require.Equal(t, run.NoPoller, w.after(t, time.Second, "r1"))
	w.engine.queueErr = errors.New("no answer")
	require.Equal(t, run.NoPoller, w.after(t, time.Second, "r1"))
	w.engine.away = true
	require.Equal(t, run.NoPoller, w.after(t, time.Second, "r1"))
	require.Equal(t, run.NoPoller, w.after(t, 60*time.Second, "r1"), "away for a minute, and no more")
	require.Equal(t, run.EngineDisconnected, w.after(t, time.Second, "r1"))
	w.engine.away, w.engine.queueErr = false, nil
	require.Equal(t, run.NoPoller, w.after(t, time.Second, "r1"))
}

// TestUsedUpBudgetLeavesRunsUndecided has a Temporal to which no further requests may be sent for diagnosis: stored
// verdicts stay, other runs have none, and the watcher counts both as undecided.
func TestUsedUpBudgetLeavesRunsUndecided(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	undecided := func() int64 {
		n, elected := w.Undecided()
		require.True(t, elected)
		return n
	}
	w.start(t, "r1")
	require.Equal(t, run.NoPoller, w.after(t, 61*time.Second, "r1"))
	require.Zero(t, undecided())
	w.start(t, "r2")
	w.engine.queueErr = fmt.Errorf("describing the queue: %w", diagnose.ErrLimited)
	require.Empty(t, w.after(t, 61*time.Second, "r2"), "nothing is known of it")
	require.Equal(t, run.NoPoller, w.after(t, time.Second, "r1"))
	require.Equal(t, int64(2), undecided())

	// One description was refused: no other is requested.
	w.engine.queueErr = nil
	w.engine.queue.Workflow.Pollers = []diagnose.Poller{{Identity: "w", LastAccess: w.now.Add(time.Minute)}}
	w.engine.err = diagnose.ErrLimited
	for i := range 20 {
		w.start(t, fmt.Sprint("r", i+3))
	}
	w.now = w.now.Add(61 * time.Second)
	require.NoError(t, w.RunPass(t.Context()))
	require.Less(t, len(w.engine.described), 10)
	require.Equal(t, int64(22), undecided())

	w.engine.err = nil
	w.engine.queue.Workflow.Pollers = nil
	require.Equal(t, run.NoPoller, w.after(t, time.Second, "r2"))
	require.Zero(t, undecided())
}

// TestDescriptionsAreLimitedPerPass has more unclear runs than one pass may describe: later passes describe the others.
func TestDescriptionsAreLimitedPerPass(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.polled()
	const many = 230
	for i := range many {
		id := fmt.Sprintf("r%03d", i)
		w.start(t, id)
		w.engine.executions[id] = diagnose.Execution{
			Activities: []diagnose.Activity{{Type: "call", Attempt: 1, Started: true}}}
	}
	w.engine.executions["r229"] = diagnose.Execution{
		Activities: []diagnose.Activity{{Type: "emit", Attempt: 3, Failure: "refused"}}}
	described := func() int { return len(w.engine.described) }
	require.Empty(t, w.after(t, 61*time.Second, "r229"))
	require.Equal(t, 100, described())
	require.Empty(t, w.after(t, 2*time.Second, "r229"))
	require.Equal(t, 200, described())
	require.Equal(t, run.ActivityRetrying, w.after(t, 2*time.Second, "r229"))
	require.Equal(t, many, described())
	require.Equal(t, run.ActivityRetrying, w.after(t, 2*time.Second, "r229"))
	require.Equal(t, many, described(), "a description is reused")
	require.Empty(t, w.after(t, 0, "r000"))
	require.Len(t, w.events(t), 1)
}

// TestRowBehindItsHistoryIsRepairedFirst has runs that appear stuck because their rows were not written.
func TestRowBehindItsHistoryIsRepairedFirst(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.polled()
	w.start(t, "behind")
	w.start(t, "unreadable")
	w.engine.executions["behind"] = diagnose.Execution{Closed: "Completed"}
	w.engine.executions["unreadable"] = diagnose.Execution{Closed: "Completed"}
	w.engine.behind = func(id string) (bool, error) {
		if id == "unreadable" {
			return false, errors.New("its history cannot be read")
		}
		w.move(t, id, 1, run.Completed)
		return true, nil
	}
	require.Empty(t, w.after(t, 61*time.Second, "behind"))
	require.Equal(t, run.ExecutionClosed, w.after(t, 2*time.Second, "unreadable"))
	require.Equal(t, []string{"run.stuck EXECUTION_CLOSED  "}, w.events(t))
}

// A run whose rows cannot follow its history, because a value is lost, has that as its cause.
func TestRunThatLacksALargeValue(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.polled()
	w.start(t, "lacks")
	w.start(t, "unclear")
	w.engine.executions["lacks"], w.engine.executions["unclear"] = diagnose.Execution{}, diagnose.Execution{}
	w.engine.lacks = map[string]bool{"lacks": true}
	require.Equal(t, run.TaskFailing, w.after(t, 61*time.Second, "lacks"))
	r, err := w.store.GetRun(t.Context(), projectName, "lacks")
	require.NoError(t, err)
	require.Equal(t, run.PayloadMissing, r.Stuck.Cause)
	require.Equal(t, run.Unknown, w.after(t, 2*time.Second, "unclear"))
}

// TestReportedFailuresNeedNoDescription decides from failures that workers and Temporal report.
func TestReportedFailuresNeedNoDescription(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.polled()
	w.start(t, "r1")
	w.start(t, "r2")
	failures := diagnose.NewFailures(w.store.Verdicts())
	failures.Note(diagnose.TaskFailure{
		RunID: "r1", At: w.now.Add(time.Second), Text: "needs interpreter 9", Cause: run.NewerInterpreter})
	require.NoError(t, failures.Start(t.Context()))
	require.Eventually(t, func() bool {
		list, err := w.store.Verdicts().Overdue(t.Context(), w.now.Add(time.Hour), diagnose.Cursor{}, 10)
		return err == nil && list[0].Failure != nil
	}, 10*time.Second, 10*time.Millisecond)
	require.NoError(t, failures.Stop(t.Context()))
	w.engine.problems = map[string]string{"r2": "NonDeterministicError"}
	require.Equal(t, run.TaskFailing, w.after(t, 61*time.Second, "r1"))
	require.Equal(t, run.TaskFailing, w.after(t, 0, "r2"))
	require.Empty(t, w.engine.described)
}

// TestWaitingRunsWithFailingTasksAreStuck has waiting runs with failing tasks, and one that is to be canceled.
func TestWaitingRunsWithFailingTasksAreStuck(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.polled()
	for _, id := range []string{"failing", "reported", "canceled", "sound"} {
		w.start(t, id)
		w.move(t, id, 1, run.Waiting)
	}
	require.NoError(t, w.store.Verdicts().NoteFailures(t.Context(),
		[]diagnose.TaskFailure{{RunID: "failing", At: w.now, Text: "panic"}}))
	w.engine.problems = map[string]string{"reported": "NonDeterministicError"}
	_, err := w.store.MarkCancelRequested(t.Context(), projectName, "canceled", "why",
		audit.Entry{Time: w.now, Action: audit.RunCancel, Project: projectName, Subject: "canceled"})
	require.NoError(t, err)
	require.Empty(t, w.after(t, 0, "failing"), "the pass reads Temporal's list of problems")
	w.engine.executions = map[string]diagnose.Execution{
		"failing": {Task: &diagnose.Task{Attempt: 3, ScheduledAt: w.now.Add(time.Minute)}, FailedAt: w.now,
			Failure: "panic"},
		"reported": {Task: &diagnose.Task{Attempt: 9, ScheduledAt: w.now}},
		"canceled": {Task: &diagnose.Task{Attempt: 1, ScheduledAt: w.now}},
	}
	require.Equal(t, run.TaskFailing, w.after(t, 61*time.Second, "failing"))
	require.Equal(t, run.TaskFailing, w.after(t, 0, "reported"))
	require.Equal(t, run.Backlog, w.after(t, 0, "canceled"))
	require.Empty(t, w.after(t, 0, "sound"))
	require.NotContains(t, w.engine.described, "sound")

	w.engine.executions["failing"] = diagnose.Execution{}
	require.Empty(t, w.after(t, 20*time.Second, "failing"))
	described := len(w.engine.described)
	w.engine.problems = nil
	w.move(t, "canceled", 2, run.Canceled)
	require.Empty(t, w.after(t, 20*time.Minute, "canceled"))
	w.engine.described = w.engine.described[:described]
	require.Empty(t, w.after(t, time.Minute, "failing"))
	require.Len(t, w.engine.described, described, "an old failure causes no description")
}
