package projection_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/projection"
	"github.com/signalbox-dev/signalbox/internal/run"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// at returns the n-th second of a test.
func at(n int) time.Time {
	return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Second)
}

// wire is a tap between a worker and a fake Temporal that returns the test's responses.
type wire struct {
	*projection.Tap

	// now is the tap's clock.
	now atomic.Pointer[time.Time]

	mu       sync.Mutex
	accepted []run.Update
}

func newWire() *wire {
	w := &wire{}
	w.later(1)
	w.Tap = projection.NewTap(func() time.Time { return *w.now.Load() }, func(_ string, u run.Update, moment time.Time) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if moment != *w.now.Load() {
			panic("the moment of acceptance is the clock's")
		}
		w.accepted = append(w.accepted, u)
	})
	return w
}

// later sets the clock to the n-th second.
func (w *wire) later(n int) {
	now := at(n)
	w.now.Store(&now)
}

// taken returns the updates since its last call, as "run@position: steps".
func (w *wire) taken() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var lines []string
	for _, u := range w.accepted {
		line := fmt.Sprintf("%s@%d:", u.ExecutionID, u.Position)
		for _, s := range u.Steps {
			line += fmt.Sprintf(" %d %s", s.Number, s.Status)
		}
		lines = append(lines, line)
	}
	w.accepted = nil
	return lines
}

// call sends a request to which Temporal responds with a reply or an error. meanwhile runs before the response.
func (w *wire) call(request, reply any, err error, meanwhile ...func()) error {
	return w.Intercept(context.TODO(), "method", request, reply, nil,
		func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
			for _, fn := range meanwhile {
				fn()
			}
			return err
		})
}

func execution(id string) flow.Execution { return flow.Execution{WorkflowID: "run-" + id, RunID: id} }

func task(id, token string) *workflowservice.PollWorkflowTaskQueueResponse {
	e := execution(id)
	return &workflowservice.PollWorkflowTaskQueueResponse{
		TaskToken: []byte(token), WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: e.WorkflowID, RunId: e.RunID},
	}
}

func (w *wire) poll(t testing.TB, id, token string) {
	t.Helper()
	require.NoError(t, w.call(&workflowservice.PollWorkflowTaskQueueRequest{}, task(id, token), nil))
}

func (w *wire) record(id string, position int64, steps ...interp.StepRecord) {
	w.Records(execution(id), position, &interp.RunRecord{Status: interp.StatusRunning, Since: at(0)}, steps, nil, nil)
}

func (w *wire) complete(token string, err error) error {
	return w.call(&workflowservice.RespondWorkflowTaskCompletedRequest{TaskToken: []byte(token)},
		&workflowservice.RespondWorkflowTaskCompletedResponse{}, err)
}

func one(number int64, st interp.Status) interp.StepRecord {
	return interp.StepRecord{Number: number, Status: st, StartedAt: at(int(number))}
}

func TestAcceptedTasksArePassedOn(t *testing.T) {
	t.Parallel()
	w := newWire()
	w.poll(t, "e1", "token")
	w.record("e1", 3, one(1, interp.StatusRunning))
	w.record("e1", 3, one(1, interp.StatusCompleted), one(2, interp.StatusRunning))
	require.Empty(t, w.taken(), "nothing before the completion is sent")
	require.NoError(t, w.call(&workflowservice.RespondWorkflowTaskCompletedRequest{TaskToken: []byte("token")},
		&workflowservice.RespondWorkflowTaskCompletedResponse{}, nil, func() {
			require.Empty(t, w.taken(), "nothing before Temporal responds")
		}))
	require.Equal(t, []string{"e1@3: 1 running 1 completed 2 running"}, w.taken())
	require.NoError(t, w.complete("token", nil))
	require.Empty(t, w.taken(), "a token is good once")
}

// Each step counts once, in the task in which it ended: a worker that interprets the history again counts none of the
// earlier ones, and a task that Temporal does not accept counts none.
func TestEndedStepsAreCountedOnce(t *testing.T) {
	t.Parallel()
	w := newWire()
	counted := map[interp.Status]int64{}
	w.OnEnded(func(_ context.Context, queue string, steps map[interp.Status]int64) {
		require.Equal(t, "queue", queue)
		for status, n := range steps {
			counted[status] += n
		}
	})
	poll := func(token string, previous int64) {
		polled := task("e1", token)
		polled.PreviousStartedEventId, polled.WorkflowExecutionTaskQueue = previous, &taskqueuepb.TaskQueue{Name: "queue"}
		require.NoError(t, w.call(&workflowservice.PollWorkflowTaskQueueRequest{}, polled, nil))
	}
	done := func(number int64, st interp.Status) interp.StepRecord {
		r, ended := one(number, st), at(9)
		r.EndedAt = &ended
		return r
	}
	poll("first", 0)
	w.record("e1", flow.Position(1, 3), one(1, interp.StatusRunning), done(2, interp.StatusCompleted),
		done(3, interp.StatusFailed))
	require.NoError(t, w.complete("first", nil))
	require.Equal(t, map[interp.Status]int64{interp.StatusCompleted: 1, interp.StatusFailed: 1}, counted)

	poll("rejected", 3)
	w.record("e1", flow.Position(1, 8), done(1, interp.StatusCompleted))
	require.Error(t, w.complete("rejected", status.Error(codes.NotFound, "gone")))
	require.Equal(t, int64(1), counted[interp.StatusCompleted])

	poll("again", 3)
	w.record("e1", flow.Position(1, 3), one(1, interp.StatusRunning), done(2, interp.StatusCompleted),
		done(3, interp.StatusFailed))
	w.record("e1", flow.Position(1, 8), done(1, interp.StatusCompleted))
	require.NoError(t, w.complete("again", nil))
	require.Equal(t, map[interp.Status]int64{interp.StatusCompleted: 2, interp.StatusFailed: 1}, counted)
}

func TestUpdateContainsTheRecords(t *testing.T) {
	t.Parallel()
	w := newWire()
	w.poll(t, "e1", "token")
	ended, until := at(4), at(60)
	problem := &run.Error{Type: "t", Status: 503, Title: "away"}
	w.Records(execution("e1"), 3, &interp.RunRecord{
		Status: interp.StatusWaiting, WaitKind: interp.WaitRetry, Since: at(4), WaitUntil: &until, StepsTotal: 2,
		StepsDone: 1,
	}, []interp.StepRecord{
		{Number: 1, Path: "/do/0/a", Pointer: "/do/0/a", Task: "a", Kind: "set", Status: interp.StatusCompleted,
			StartedAt: at(2),
			EndedAt:   &ended, Input: []byte(`1`), Output: []byte(`2`)},
		{Number: 2, Path: "/do/1/b", Pointer: "/do/1/b", Task: "b", Kind: "call", Status: interp.StatusWaiting,
			WaitKind:  interp.WaitRetry,
			WaitUntil: &until, StartedAt: at(3), Error: problem, Deadline: &until, DeadlineBy: "/timeout",
			Taken:    []interp.TakenEvent{{Filter: 1, At: at(3)}},
			Attempts: []interp.AttemptRecord{{Number: 1, StartedAt: at(3), EndedAt: &ended, Error: problem}}},
	}, []flow.ProgramLog{{Step: 1, Task: "a", Attempt: 1, Stderr: flow.LogStream{Text: "x", SkippedBytes: 3}}}, nil)
	w.Records(execution("e1"), 5, &interp.RunRecord{
		Status: interp.StatusFailed, Since: at(9), Output: []byte(`null`), Error: problem, StepsTotal: 2, StepsDone: 2,
	}, nil, nil, []string{"planted-word"})
	require.NoError(t, w.complete("token", nil))
	require.Equal(t, []run.Update{{
		RunID: "run-e1", ExecutionID: "e1", Position: 5, Sensitive: []string{"planted-word"},
		Logs: []run.AttemptLog{{Step: 1, Task: "a", Attempt: 1, Stderr: run.LogStream{Text: "x", SkippedBytes: 3}}},
		State: &run.State{
			Status: run.Failed, Since: at(9), StartedAt: at(2), EndedAt: at(9), Output: []byte(`null`), Error: problem,
			StepsTotal: 2, StepsDone: 2,
		},
		Steps: []run.Step{
			{Number: 1, Path: "/do/0/a", Pointer: "/do/0/a", Task: "a", Kind: "set", Status: "completed", StartedAt: at(2),
				EndedAt: at(4),
				Input:   []byte(`1`), Output: []byte(`2`), Position: 3},
			{Number: 2, Path: "/do/1/b", Pointer: "/do/1/b", Task: "b", Kind: "call", Status: "waiting", WaitingKind: "retry",
				WaitUntil: until,
				StartedAt: at(3), Error: problem,
				Attempts: []run.Attempt{{Number: 1, StartedAt: at(3), EndedAt: &ended, Error: problem}}, Position: 3,
				Wait: &run.StepWait{Deadline: until, DeadlineBy: "/timeout", Taken: []run.TakenEvent{{Filter: 1, At: at(3)}}}},
		},
	}}, w.accepted)
}

func TestTasksWithoutRecordsAreNotPassedOn(t *testing.T) {
	t.Parallel()
	w := newWire()
	w.poll(t, "e1", "token")
	require.NoError(t, w.complete("token", nil))
	require.Empty(t, w.taken())
}

func TestStepsAloneKeepTheState(t *testing.T) {
	t.Parallel()
	w := newWire()
	w.poll(t, "e1", "token")
	w.Records(execution("e1"), 3, nil, []interp.StepRecord{one(1, interp.StatusRunning)}, nil, nil)
	require.NoError(t, w.complete("token", nil))
	require.Nil(t, w.accepted[0].State)
	require.Len(t, w.accepted[0].Steps, 1)
}

func TestRejectedTaskIsDropped(t *testing.T) {
	t.Parallel()
	refused := status.Error(codes.InvalidArgument, "unhandled command")
	w := newWire()
	w.poll(t, "e1", "token")
	w.record("e1", 3, one(1, interp.StatusRunning))
	require.ErrorIs(t, w.complete("token", refused), refused, "the caller receives the original error")
	// The SDK reports to Temporal that the task failed, and receives it again.
	require.NoError(t, w.call(&workflowservice.RespondWorkflowTaskFailedRequest{TaskToken: []byte("token")}, nil, nil))
	w.poll(t, "e1", "token-2")
	w.record("e1", 5, one(2, interp.StatusRunning))
	require.NoError(t, w.complete("token-2", nil))
	require.Equal(t, []string{"e1@5: 2 running"}, w.taken(), "what was refused never was")
}

func TestRetriedCompletionIsPassedOnOnce(t *testing.T) {
	t.Parallel()
	w := newWire()
	w.poll(t, "e1", "token")
	w.record("e1", 3, one(1, interp.StatusRunning))
	lost := status.Error(codes.Unavailable, "cut")
	require.ErrorIs(t, w.complete("token", lost), lost)
	require.ErrorIs(t, w.complete("token", lost), lost)
	require.Empty(t, w.taken())
	require.NoError(t, w.complete("token", nil))
	require.Equal(t, []string{"e1@3: 1 running"}, w.taken())
}

// The records of a completion with a lost response delay the repair of the row only while that response may still
// arrive.
func TestLostResponseDelaysRepairsBriefly(t *testing.T) {
	t.Parallel()
	lost := status.Error(codes.Unavailable, "cut")
	for name, tt := range map[string]struct {
		then   func(t *testing.T, w *wire)
		held   bool
		unsure []string
	}{
		"the request is about to be repeated": {func(_ *testing.T, w *wire) { w.later(5) }, true, nil},
		"Temporal has accepted it before": {func(t *testing.T, w *wire) {
			t.Helper()
			require.Error(t, w.complete("token", status.Error(codes.NotFound, "Workflow task not found.")))
		}, false, []string{"run-e1"}},
		"it is never repeated": {func(_ *testing.T, w *wire) { w.later(60) }, false, nil},
		"it is never repeated, and other tasks come": {func(t *testing.T, w *wire) {
			t.Helper()
			w.later(60)
			w.poll(t, "e2", "other")
		}, false, []string{"run-e1"}},
		"it was repeated a moment ago": {func(t *testing.T, w *wire) {
			t.Helper()
			w.later(55)
			require.Error(t, w.complete("token", lost))
			w.later(60)
		}, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWire()
			var unsure []string
			w.OnUnsure(func(runID string) { unsure = append(unsure, runID) })
			w.poll(t, "e1", "token")
			w.record("e1", 3, one(1, interp.StatusRunning))
			require.False(t, w.Holds("run-e1"), "it is not completed")
			require.Error(t, w.complete("token", lost))
			require.True(t, w.Holds("run-e1"))
			tt.then(t, w)
			require.Equal(t, tt.held, w.Holds("run-e1"))
			require.Equal(t, tt.unsure, unsure)
			require.Empty(t, w.taken())
		})
	}
}

// The records of an unanswered completion stay in memory only while its response may arrive.
func TestUnansweredCompletionIsDropped(t *testing.T) {
	t.Parallel()
	w := newWire()
	w.poll(t, "e1", "token")
	w.record("e1", 3, one(1, interp.StatusRunning))
	require.Error(t, w.complete("token", status.Error(codes.Unavailable, "cut")))
	w.later(60)
	w.poll(t, "e2", "other")
	require.NoError(t, w.complete("token", nil))
	require.Empty(t, w.taken())
}

func TestNextTaskRestoresTheRecordsOfALostResponse(t *testing.T) {
	t.Parallel()
	w := newWire()
	w.poll(t, "e1", "token")
	w.record("e1", 3, one(1, interp.StatusRunning))
	require.Error(t, w.complete("token", status.Error(codes.DeadlineExceeded, "no answer")))
	// Temporal has accepted it: the next task interprets from the beginning and creates all records again.
	w.poll(t, "e1", "token-2")
	w.record("e1", 3, one(1, interp.StatusRunning))
	w.record("e1", 9, one(1, interp.StatusCompleted))
	require.NoError(t, w.complete("token-2", nil))
	require.Equal(t, []string{"e1@9: 1 running 1 completed"}, w.taken())
}

func TestRecordsOfATimedOutTaskAreDropped(t *testing.T) {
	t.Parallel()
	w := newWire()
	w.poll(t, "e1", "stale")
	w.record("e1", 3, one(1, interp.StatusRunning))
	// This process received the task again before the first completion was sent.
	w.poll(t, "e1", "fresh")
	require.NoError(t, w.complete("stale", nil))
	require.Empty(t, w.taken(), "a stale token says nothing")
	w.record("e1", 3, one(7, interp.StatusRunning))
	require.NoError(t, w.complete("fresh", nil))
	require.Equal(t, []string{"e1@3: 7 running"}, w.taken())
}

func TestStaleFailureKeepsTheNextTask(t *testing.T) {
	t.Parallel()
	w := newWire()
	w.poll(t, "e1", "stale")
	w.poll(t, "e1", "fresh")
	w.record("e1", 3, one(1, interp.StatusRunning))
	require.NoError(t, w.call(&workflowservice.RespondWorkflowTaskFailedRequest{TaskToken: []byte("stale")}, nil, nil))
	require.NoError(t, w.complete("fresh", nil))
	require.Equal(t, []string{"e1@3: 1 running"}, w.taken())
}

func TestInlineNewTaskIsOpen(t *testing.T) {
	t.Parallel()
	w := newWire()
	w.poll(t, "e1", "token")
	w.record("e1", 3, one(1, interp.StatusRunning))
	reply := &workflowservice.RespondWorkflowTaskCompletedResponse{WorkflowTask: task("e1", "token-2")}
	require.NoError(t, w.call(&workflowservice.RespondWorkflowTaskCompletedRequest{TaskToken: []byte("token")}, reply,
		nil))
	w.record("e1", 7, one(2, interp.StatusRunning))
	require.NoError(t, w.complete("token-2", nil))
	require.Equal(t, []string{"e1@3: 1 running", "e1@7: 2 running"}, w.taken())
}

func TestEagerStartIsOpen(t *testing.T) {
	t.Parallel()
	w := newWire()
	require.NoError(t, w.call(&workflowservice.StartWorkflowExecutionRequest{},
		&workflowservice.StartWorkflowExecutionResponse{EagerWorkflowTask: task("e1", "token")}, nil))
	w.record("e1", 3, one(1, interp.StatusRunning))
	require.NoError(t, w.complete("token", nil))
	require.Equal(t, []string{"e1@3: 1 running"}, w.taken())
	// Most starts return no task.
	require.NoError(t, w.call(&workflowservice.StartWorkflowExecutionRequest{},
		&workflowservice.StartWorkflowExecutionResponse{}, nil))
	require.NoError(t, w.complete("", nil))
	require.Empty(t, w.taken())
}

func TestQueryLeavesNoRecords(t *testing.T) {
	t.Parallel()
	w := newWire()
	// A worker without the run in its cache interprets all of it to answer a query.
	w.poll(t, "e1", "query")
	w.record("e1", 3, one(1, interp.StatusRunning))
	require.NoError(t, w.call(&workflowservice.RespondQueryTaskCompletedRequest{TaskToken: []byte("query")}, nil, nil))
	w.poll(t, "e1", "token")
	require.NoError(t, w.complete("token", nil))
	require.Empty(t, w.taken())
}

func TestFailedCallsOpenNothing(t *testing.T) {
	t.Parallel()
	w := newWire()
	away := errors.New("away")
	require.ErrorIs(t, w.call(&workflowservice.PollWorkflowTaskQueueRequest{}, task("e1", "token"), away), away)
	w.record("e1", 3, one(1, interp.StatusRunning))
	require.NoError(t, w.complete("token", nil))
	require.Empty(t, w.taken())
	require.NoError(t, w.call(&workflowservice.DescribeNamespaceRequest{}, &workflowservice.DescribeNamespaceResponse{},
		nil))
}

func TestEmptyPollOpensNothing(t *testing.T) {
	t.Parallel()
	w := newWire()
	require.NoError(t, w.call(&workflowservice.PollWorkflowTaskQueueRequest{},
		&workflowservice.PollWorkflowTaskQueueResponse{}, nil))
	require.NoError(t, w.complete("", nil))
	require.Empty(t, w.taken())
}

func TestExecutionsOfOneRunAreSeparate(t *testing.T) {
	t.Parallel()
	w := newWire()
	first, second := flow.Execution{WorkflowID: "r", RunID: "e1"}, flow.Execution{WorkflowID: "r", RunID: "e2"}
	for token, e := range map[string]flow.Execution{"one": first, "two": second} {
		require.NoError(t, w.call(&workflowservice.PollWorkflowTaskQueueRequest{},
			&workflowservice.PollWorkflowTaskQueueResponse{
				TaskToken: []byte(token), WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: e.WorkflowID, RunId: e.RunID},
			}, nil))
	}
	w.Records(first, 3, nil, []interp.StepRecord{one(1, interp.StatusRunning)}, nil, nil)
	w.Records(second, 1<<32, nil, []interp.StepRecord{one(2, interp.StatusRunning)}, nil, nil)
	require.NoError(t, w.complete("two", nil))
	require.NoError(t, w.complete("one", nil))
	require.Equal(t, []string{"e2@4294967296: 2 running", "e1@3: 1 running"}, w.taken())
}

func TestManyExecutionsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWire()
	const executions, tasks = 40, 25
	var group sync.WaitGroup
	for i := range executions {
		id := fmt.Sprintf("e%d", i)
		group.Go(func() {
			for n := range tasks {
				token := fmt.Sprintf("%s-%d", id, n)
				if w.call(&workflowservice.PollWorkflowTaskQueueRequest{}, task(id, token), nil) != nil {
					t.Error("poll failed")
				}
				w.record(id, int64(n+1), one(int64(n+1), interp.StatusRunning))
				if n%5 == 4 {
					_ = w.complete(token, errors.New("lost"))
					continue
				}
				if w.complete(token, nil) != nil {
					t.Error("completion failed")
				}
			}
		})
	}
	group.Wait()
	last := map[string]int64{}
	require.Len(t, w.accepted, executions*tasks*4/5)
	for _, u := range w.accepted {
		require.Len(t, u.Steps, 1, "no record strays into another task")
		require.Equal(t, u.Position, u.Steps[0].Number)
		require.Greater(t, u.Position, last[u.ExecutionID])
		last[u.ExecutionID] = u.Position
	}
}

// A run whose first task takes long is running as soon as a worker has taken it; its records, which Temporal has not
// accepted yet, are not reported. A task that ends soon, or that a worker loses before it is reported, is reported by
// its records alone.
func TestLongFirstTaskIsReportedAsStarted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		polled := func(id, token string, previous int64) {
			response := task(id, token)
			response.StartedTime, response.PreviousStartedEventId = timestamppb.New(at(7)), previous
			require.NoError(t, w.call(&workflowservice.PollWorkflowTaskQueueRequest{}, response, nil))
			w.record(id, previous+3, one(1, interp.StatusRunning))
		}
		polled("long", "t1", 0)
		polled("short", "t2", 0)
		polled("failed", "t3", 0)
		polled("later", "t4", 30)
		require.NoError(t, w.complete("t2", nil))
		require.NoError(t, w.call(&workflowservice.RespondWorkflowTaskFailedRequest{TaskToken: []byte("t3")}, nil, nil))
		require.Equal(t, []string{"short@3: 1 running"}, w.taken())
		<-time.After(time.Second)
		synctest.Wait()
		require.Len(t, w.accepted, 1)
		started := w.accepted[0]
		require.Equal(t, &run.State{Status: run.Running, Since: at(7), StartedAt: at(7)}, started.State)
		require.Equal(t, []string{"long@1:"}, w.taken())
		require.NoError(t, w.complete("t1", nil))
		require.Equal(t, []string{"long@3: 1 running"}, w.taken(), "beyond the position of the report")
		require.NoError(t, w.complete("t4", nil))
	})
}
