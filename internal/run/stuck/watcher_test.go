package stuck_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/notice"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/problem"
	"github.com/signalbox-dev/signalbox/internal/run/stuck"
	"github.com/signalbox-dev/signalbox/internal/run/stuck/verdict"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/fresh"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const here = project.Default

// temporal stands where the engine would; the real one is in the tests of the whole platform.
type temporal struct {
	mu         sync.Mutex
	away       bool
	queue      stuck.QueueState
	queueErr   error
	problems   map[string]string
	executions map[string]verdict.Execution
	behind     func(id string) (bool, error)
	described  []string
}

func (e *temporal) Connection() verdict.Connection {
	return verdict.Connection{Usable: !e.away, Address: "127.0.0.1:7233", Kind: "unreachable"}
}

func (e *temporal) Queue(context.Context, string) (stuck.QueueState, error) {
	return e.queue, e.queueErr
}

func (e *temporal) Problems(context.Context) (map[string]string, error) { return e.problems, nil }

func (e *temporal) Execution(_ context.Context, id string) (verdict.Execution, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.described = append(e.described, id)
	x, ok := e.executions[id]
	if !ok {
		return x, errors.New("no answer")
	}
	return x, nil
}

func (e *temporal) Behind(_ context.Context, _, id string) (bool, error) {
	if e.behind == nil {
		return false, nil
	}
	return e.behind(id)
}

// world is a watcher over a real store, whose clock is the test's.
type world struct {
	*stuck.Watcher

	store     *storetest.Plain
	engine    *temporal
	now       time.Time
	changes   *notice.Board
	committed []string

	// ended are the runs that the platform ended, endedBy and endedFor who did the last one, and why.
	ended    []string
	endedBy  auth.Actor
	endedFor string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s, err := storetest.Open(t.Context(), t, store.Options{Driver: store.SQLite, DSN: fresh.SQLite(t), AutoMigrate: true, CallTimeout: time.Minute})
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, s.Stop(context.WithoutCancel(t.Context()))) })
	w := &world{
		store: s, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), changes: notice.NewBoard(),
		engine: &temporal{queue: stuck.QueueState{Name: "signalbox-default"}, executions: map[string]verdict.Execution{}},
	}
	w.Watcher = newWatcher(w)
	return w
}

func newWatcher(w *world) *stuck.Watcher {
	return stuck.New(w.store.Verdicts(), w.store, w.engine, stuck.Options{
		After: time.Minute, PoisonAfter: 15 * time.Minute, End: w.end, Now: func() time.Time { return w.now }, Fingerprint: func() worker.Fingerprint { return worker.Fingerprint{} },
		Changes: w.changes, Committed: func(_ context.Context, project string, _ bool) { w.committed = append(w.committed, project) },
	})
}

func (w *world) start(t *testing.T, id string) {
	t.Helper()
	r := run.Run{
		ID: id, Project: here, Workflow: "demo/hello", Version: "1.0.0", Status: run.Queued, QueuedReason: run.QueuedWorker, StatusAt: w.now,
		RequestID: id, Trigger: run.TriggerAPI, CreatedAt: w.now, Input: json.RawMessage(`{}`),
	}
	_, made, err := w.store.InsertRun(t.Context(), r, audit.Entry{Time: w.now, Action: audit.RunStart, Project: here, Subject: id})
	require.NoError(t, err)
	require.True(t, made)
}

// after lets time pass, looks, and returns the code of a run's verdict.
func (w *world) after(t *testing.T, d time.Duration, id string) string {
	t.Helper()
	w.now = w.now.Add(d)
	require.NoError(t, w.Look(t.Context()))
	r, err := w.store.GetRun(t.Context(), here, id)
	require.NoError(t, err)
	if r.Stuck == nil {
		return ""
	}
	return r.Stuck.Code
}

// polled has somebody poll the queue.
func (w *world) polled() {
	line := stuck.Line{Pollers: []verdict.Poller{{Identity: "w1", LastAccess: w.now.Add(time.Hour)}}}
	w.engine.queue.Workflow, w.engine.queue.Activity = line, line
}

func (w *world) move(t *testing.T, id string, position int64, status run.Status) {
	t.Helper()
	_, err := w.store.ApplyUpdates(t.Context(), []run.Update{{RunID: id, ExecutionID: "x", Position: position, State: &run.State{
		Status: status, Since: w.now, StartedAt: w.now,
	}}})
	require.NoError(t, err)
}

// told are the events, oldest first: type, code and the code of before.
func (w *world) told(t *testing.T) (lines []string) {
	t.Helper()
	list, err := w.store.Events().ListEvents(t.Context(), event.ListFilter{Project: here, Source: stuck.Source(here), Limit: 500})
	require.NoError(t, err)
	for _, e := range slices.Backward(list) {
		var data struct{ RunID, Code, Previous, Status string }
		require.NoError(t, json.Unmarshal(e.Data, &data))
		require.Equal(t, e.Subject, data.RunID)
		lines = append(lines, fmt.Sprintf("%s %s %s %s", e.Type[len(event.Own):], data.Code, data.Previous, data.Status))
	}
	return lines
}

func TestARunIsStuckAfterAMinuteAndUntilItGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(t, "r1")
	changed, stop := w.changes.Subscribe("r1")
	defer stop()
	require.Empty(t, w.after(t, 59*time.Second, "r1"))
	require.Empty(t, changed)
	require.Equal(t, problem.NoPoller, w.after(t, 2*time.Second, "r1"), "61 seconds")
	require.Len(t, changed, 1, "who watches is told")
	require.Equal(t, []string{here}, w.committed)
	counts, acting := w.Counts()
	require.True(t, acting)
	require.Len(t, counts, len(problem.Codes()), "those that are zero, too")
	require.Equal(t, int64(1), counts[problem.NoPoller])

	require.Equal(t, problem.NoPoller, w.after(t, 2*time.Second, "r1"))
	require.Equal(t, problem.NoPoller, w.after(t, time.Minute, "r1"))
	r, err := w.store.GetRun(t.Context(), here, "r1")
	require.NoError(t, err)
	require.Equal(t, w.now, r.Stuck.CheckedAt)
	require.Equal(t, r.StatusAt, r.Stuck.Since)
	require.Equal(t, []string{"run.stuck NO_POLLER  "}, w.told(t), "what is said again is not told again")

	w.polled()
	w.move(t, "r1", 1, run.Running)
	require.Empty(t, w.after(t, time.Second, "r1"))
	require.Equal(t, []string{"run.stuck NO_POLLER  ", "run.unstuck NO_POLLER  running"}, w.told(t))
	counts, _ = w.Counts()
	require.Zero(t, counts[problem.NoPoller])
}

func TestAChangeOfTheReasonIsToldOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(t, "r1")
	require.Equal(t, problem.NoPoller, w.after(t, 61*time.Second, "r1"))
	w.polled()
	w.engine.executions["r1"] = verdict.Execution{Task: &verdict.Task{Attempt: 4}, Failure: "unable to find workflow type"}
	require.Equal(t, problem.TaskFailing, w.after(t, 2*time.Second, "r1"))
	require.Equal(t, problem.TaskFailing, w.after(t, 2*time.Second, "r1"))
	// Somebody asks for its cancellation: the run is another one, and is stuck all the same.
	_, err := w.store.MarkCancelRequested(t.Context(), here, "r1", "why", audit.Entry{Time: w.now, Action: audit.RunCancel, Project: here, Subject: "r1"})
	require.NoError(t, err)
	require.Equal(t, problem.TaskFailing, w.after(t, 2*time.Second, "r1"))
	require.Equal(t, []string{"run.stuck NO_POLLER  ", "run.stuck TASK_FAILING NO_POLLER "}, w.told(t))
	w.move(t, "r1", 1, run.Completed)
	require.Empty(t, w.after(t, 2*time.Second, "r1"))
	require.Equal(t, "run.unstuck TASK_FAILING  completed", w.told(t)[2])
}

func TestWhatIsNotKnownChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(t, "r1")
	w.engine.queueErr = errors.New("no answer")
	require.Empty(t, w.after(t, 61*time.Second, "r1"))
	w.engine.queueErr = nil
	require.Equal(t, problem.NoPoller, w.after(t, time.Second, "r1"))
	w.engine.queueErr = errors.New("no answer")
	require.Equal(t, problem.NoPoller, w.after(t, time.Second, "r1"))
	w.engine.away = true
	require.Equal(t, problem.NoPoller, w.after(t, time.Second, "r1"))
	require.Equal(t, problem.NoPoller, w.after(t, 60*time.Second, "r1"), "away for a minute, and no more")
	require.Equal(t, problem.EngineDisconnected, w.after(t, time.Second, "r1"))
	w.engine.away, w.engine.queueErr = false, nil
	require.Equal(t, problem.NoPoller, w.after(t, time.Second, "r1"))
}

// TestAFewAreDescribedAtATime has more unclear runs than may be asked about at once: their turn comes.
func TestAFewAreDescribedAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.polled()
	const many = 230
	for i := range many {
		id := fmt.Sprintf("r%03d", i)
		w.start(t, id)
		w.engine.executions[id] = verdict.Execution{Activities: []verdict.Activity{{Type: "call", Attempt: 1, Started: true}}}
	}
	w.engine.executions["r229"] = verdict.Execution{Activities: []verdict.Activity{{Type: "emit", Attempt: 3, Failure: "refused"}}}
	asked := func() int { return len(w.engine.described) }
	require.Empty(t, w.after(t, 61*time.Second, "r229"))
	require.Equal(t, 100, asked())
	require.Empty(t, w.after(t, 2*time.Second, "r229"))
	require.Equal(t, 200, asked())
	require.Equal(t, problem.ActivityRetrying, w.after(t, 2*time.Second, "r229"))
	require.Equal(t, many, asked())
	require.Equal(t, problem.ActivityRetrying, w.after(t, 2*time.Second, "r229"))
	require.Equal(t, many, asked(), "an answer counts for a while")
	require.Empty(t, w.after(t, 0, "r000"))
	require.Len(t, w.told(t), 1)
}

// TestARowThatIsBehindIsBroughtUpFirst has runs that look stuck because their rows were not written.
func TestARowThatIsBehindIsBroughtUpFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.polled()
	w.start(t, "behind")
	w.start(t, "spoilt")
	w.engine.executions["behind"] = verdict.Execution{Closed: "Completed"}
	w.engine.executions["spoilt"] = verdict.Execution{Closed: "Completed"}
	w.engine.behind = func(id string) (bool, error) {
		if id == "spoilt" {
			return false, errors.New("its history cannot be read")
		}
		w.move(t, id, 1, run.Completed)
		return true, nil
	}
	require.Empty(t, w.after(t, 61*time.Second, "behind"))
	require.Equal(t, problem.ExecutionClosed, w.after(t, 2*time.Second, "spoilt"))
	require.Equal(t, []string{"run.stuck EXECUTION_CLOSED  "}, w.told(t))
}

// TestWorkersTellWhyTasksFail needs no question about the run.
func TestWorkersTellWhyTasksFail(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.polled()
	w.start(t, "r1")
	w.start(t, "r2")
	failures := stuck.NewFailures(w.store.Verdicts())
	failures.Note(stuck.TaskFailure{RunID: "r1", At: w.now.Add(time.Second), Text: "needs interpreter 9", Cause: problem.NewerInterpreter})
	require.NoError(t, failures.Start(t.Context()))
	require.Eventually(t, func() bool {
		list, err := w.store.Verdicts().Overdue(t.Context(), w.now.Add(time.Hour), stuck.Cursor{}, 10)
		return err == nil && list[0].Failure != nil
	}, 10*time.Second, 10*time.Millisecond)
	require.NoError(t, failures.Stop(t.Context()))
	w.engine.problems = map[string]string{"r2": "NonDeterministicError"}
	require.Equal(t, problem.TaskFailing, w.after(t, 61*time.Second, "r1"))
	require.Equal(t, problem.TaskFailing, w.after(t, 0, "r2"))
	require.Empty(t, w.engine.described)
}

// TestARunThatWaitsDoesNotTakeNote has runs that may wait for as long as it takes, and at which workers fail, or that are to be canceled.
func TestARunThatWaitsDoesNotTakeNote(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.polled()
	for _, id := range []string{"failing", "reported", "canceled", "sound"} {
		w.start(t, id)
		w.move(t, id, 1, run.Waiting)
	}
	require.NoError(t, w.store.Verdicts().NoteFailures(t.Context(), []stuck.TaskFailure{{RunID: "failing", At: w.now, Text: "panic"}}))
	w.engine.problems = map[string]string{"reported": "NonDeterministicError"}
	_, err := w.store.MarkCancelRequested(t.Context(), here, "canceled", "why", audit.Entry{Time: w.now, Action: audit.RunCancel, Project: here, Subject: "canceled"})
	require.NoError(t, err)
	require.Empty(t, w.after(t, 0, "failing"), "Temporal is asked what it reports")
	w.engine.executions = map[string]verdict.Execution{
		"failing":  {Task: &verdict.Task{Attempt: 3, ScheduledAt: w.now.Add(time.Minute)}, FailedAt: w.now, Failure: "panic"},
		"reported": {Task: &verdict.Task{Attempt: 9, ScheduledAt: w.now}},
		"canceled": {Task: &verdict.Task{Attempt: 1, ScheduledAt: w.now}},
	}
	require.Equal(t, problem.TaskFailing, w.after(t, 61*time.Second, "failing"))
	require.Equal(t, problem.TaskFailing, w.after(t, 0, "reported"))
	require.Equal(t, problem.Backlog, w.after(t, 0, "canceled"))
	require.Empty(t, w.after(t, 0, "sound"))
	require.NotContains(t, w.engine.described, "sound")

	w.engine.executions["failing"] = verdict.Execution{}
	require.Empty(t, w.after(t, 20*time.Second, "failing"))
	asked := len(w.engine.described)
	w.engine.problems = nil
	w.move(t, "canceled", 2, run.Canceled)
	require.Empty(t, w.after(t, 20*time.Minute, "canceled"))
	w.engine.described = w.engine.described[:asked]
	require.Empty(t, w.after(t, time.Minute, "failing"))
	require.Len(t, w.engine.described, asked, "a failure of long ago is no reason to ask")
}

// TestOneLooksAtATime starts two watchers on one store; the other one takes over.
func TestOneLooksAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := stuck.New(w.store.Verdicts(), w.store, w.engine, stuck.Options{
		After: time.Minute, Now: func() time.Time { return w.now }, Fingerprint: func() worker.Fingerprint { return worker.Fingerprint{} },
		Changes: w.changes, Committed: func(context.Context, string, bool) {},
	})
	acting := func(x *stuck.Watcher) func() bool {
		return func() bool {
			_, is := x.Counts()
			return is
		}
	}
	require.NoError(t, w.Start(t.Context()))
	require.Eventually(t, acting(w.Watcher), time.Minute, 5*time.Millisecond)
	require.NoError(t, other.Start(t.Context()))
	require.Never(t, acting(other), 100*time.Millisecond, 10*time.Millisecond)
	require.NoError(t, w.Stop(t.Context()))
	require.False(t, acting(w.Watcher)())
	require.Eventually(t, acting(other), time.Minute, 5*time.Millisecond)
	require.NoError(t, other.Stop(t.Context()))
}

// TestSuspendedWatcherLeavesTheDiagnosisToAnother suspends the one that acts, as a process near its memory limit does.
func TestSuspendedWatcherLeavesTheDiagnosisToAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var suspended atomic.Bool
		s := &one{told: make(chan time.Time, 1)}
		w := stuck.New(s, s, &temporal{queue: stuck.QueueState{Name: "signalbox-default"}}, stuck.Options{
			After: time.Minute, Now: time.Now, Fingerprint: func() worker.Fingerprint { return worker.Fingerprint{} },
			Changes: notice.NewBoard(), Committed: func(context.Context, string, bool) {}, Suspended: suspended.Load,
		})
		require.NoError(t, w.Start(t.Context()))
		<-time.After(5 * time.Second)
		_, acting := w.Counts()
		require.True(t, acting)

		suspended.Store(true)
		<-time.After(5 * time.Second)
		_, acting = w.Counts()
		require.False(t, acting, "it has given the diagnosis up")
		s.mu.Lock()
		asked := s.asked
		s.mu.Unlock()
		<-time.After(time.Minute)
		s.mu.Lock()
		require.Equal(t, asked, s.asked, "it asks the store for nothing meanwhile")
		s.mu.Unlock()

		suspended.Store(false)
		<-time.After(5 * time.Second)
		_, acting = w.Counts()
		require.True(t, acting)
		require.NoError(t, w.Stop(t.Context()))
	})
}
