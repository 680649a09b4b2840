package flow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
)

// The SDK's test environment does not end the activities that a run had in flight when it continued as new.
func TestMain(m *testing.M) {
	const environment = "go.temporal.io/sdk/internal.(*testWorkflowEnvironmentImpl)."
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(environment+"executeActivityWithRetryForTest"),
		goleak.IgnoreAnyFunction(environment+"ExecuteActivity.func2"))
}

type documents map[string]*dsl.Document

func (l documents) Document(_ context.Context, hash string) (*dsl.Document, error) {
	if doc, ok := l[hash]; ok {
		return doc, nil
	}
	return nil, fmt.Errorf("no document %q", hash)
}

// recorder stores records like a database: the last one per step.
type recorder struct {
	mu        sync.Mutex
	positions []int64
	runs      []interp.RunRecord
	steps     map[int64]interp.StepRecord
	logs      []flow.ProgramLog
	sensitive []string
}

func (l *recorder) Records(_ flow.Execution, position int64, run *interp.RunRecord, steps []interp.StepRecord,
	logs []flow.ProgramLog, sensitive []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.logs = append(l.logs, logs...)
	l.sensitive = sensitive
	l.positions = append(l.positions, position)
	if run != nil {
		l.runs = append(l.runs, *run)
	}
	if l.steps == nil {
		l.steps = map[int64]interp.StepRecord{}
	}
	for _, s := range steps {
		l.steps[s.Number] = s
	}
}

// testRun is one run in the SDK's test environment.
type testRun struct {
	t        *testing.T
	env      *testsuite.TestWorkflowEnvironment
	docs     documents
	recorder *recorder
	limits   flow.Limits
	input    flow.Input

	mu       sync.Mutex
	requests []flow.HTTPRequest
	attaches []flow.AttachRequest
	attached func(ctx context.Context, r flow.AttachRequest) (flow.HTTPResponse, error)
	barriers int
	turns    turns
	late     []time.Duration
	longest  time.Duration // the time for which a run may compute without a pause; 0: unlimited
	listens  []flow.ListenRequest
	left     []string
	emits    []flow.EmitRequest
	quotas   []flow.QuotaRequest
	quota    func(ctx context.Context, r flow.QuotaRequest) (flow.QuotaGrant, error)
	children *fakeChildren
	// store returns the results of event activities, by name. nil: they succeed at once.
	store func(ctx context.Context, name string) error
	// began is called before each execution.
	began  func()
	origin func(ctx context.Context, r flow.HTTPRequest) (flow.HTTPResponse, error)
}

// turns counts the turns in use. The environment runs one workflow goroutine at a time.
type turns struct{ held, given atomic.Int64 }

func (s *turns) Enter(string, time.Time) flow.Place {
	s.held.Add(1)
	s.given.Add(1)
	return s
}

func (s *turns) Wait(time.Duration) bool { return true }
func (s *turns) Leave()                  { s.held.Add(-1) }

type quiet struct{ log.Logger }

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}

const workflowName = "run"

func newTestRun(t *testing.T, rest, input string) *testRun {
	t.Helper()
	doc, violations := dsl.Parse(
		[]byte("document: {dsl: '1.0.0', namespace: test, name: test, version: '1.0.0'}\n" + rest))
	require.False(t, violations.HasErrors(), "%v", violations)
	return &testRun{
		t: t, docs: documents{doc.Hash(): doc}, recorder: &recorder{}, limits: flow.DefaultLimits(),
		input: flow.Input{
			RunID: "run-1", Project: "p", Workflow: "test/test", Version: "1.0.0", DocumentHash: doc.Hash(),
			Input: json.RawMessage(input), Interpreter: interp.Version,
		},
	}
}

// start creates a new environment and runs one execution in it.
func (b *testRun) start() {
	b.t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(quiet{})
	b.env = suite.NewTestWorkflowEnvironment()
	// With the race detector, a busy machine is slower than a worker's limit of a second allows.
	b.env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute})
	b.env.SetStartTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	w := flow.New(b.t.Context(), b.docs, b.recorder,
		b.limits).Share(&b.turns).StopAfter(b.longest).Measure(func(_ context.Context, late time.Duration) {
		b.late = append(b.late, late)
	})
	b.env.RegisterWorkflowWithOptions(w.Run, workflow.RegisterOptions{Name: workflowName})
	b.env.RegisterActivityWithOptions(b.call, activity.RegisterOptions{Name: flow.HTTPActivity})
	b.env.RegisterActivityWithOptions(b.attach, activity.RegisterOptions{Name: flow.AttachActivity})
	b.env.RegisterActivityWithOptions(b.barrier, activity.RegisterOptions{Name: flow.BarrierActivity})
	b.env.RegisterActivityWithOptions(b.listen, activity.RegisterOptions{Name: flow.ListenActivity})
	b.env.RegisterActivityWithOptions(b.unlisten, activity.RegisterOptions{Name: flow.UnlistenActivity})
	b.env.RegisterActivityWithOptions(b.emit, activity.RegisterOptions{Name: flow.EmitActivity})
	b.env.RegisterActivityWithOptions(b.grant, activity.RegisterOptions{Name: flow.QuotaActivity})
	if b.children != nil {
		b.env.RegisterActivityWithOptions(b.children.start, activity.RegisterOptions{Name: flow.ChildActivity})
		b.env.RegisterActivityWithOptions(b.children.cancel, activity.RegisterOptions{Name: flow.CancelChildActivity})
	}
	if b.began != nil {
		b.began()
	}
}

func (b *testRun) listen(ctx context.Context, r flow.ListenRequest) error {
	err := b.callStore(ctx, flow.ListenActivity)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listens = append(b.listens, r)
	return err
}

func (b *testRun) unlisten(ctx context.Context, r flow.UnlistenRequest) error {
	err := b.callStore(ctx, flow.UnlistenActivity)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = append(b.left, r.Listener)
	return err
}

func (b *testRun) emit(ctx context.Context, r flow.EmitRequest) error {
	b.mu.Lock()
	b.emits = append(b.emits, r)
	b.mu.Unlock()
	return b.callStore(ctx, flow.EmitActivity)
}

func (b *testRun) grant(ctx context.Context, r flow.QuotaRequest) (flow.QuotaGrant, error) {
	b.mu.Lock()
	b.quotas = append(b.quotas, r)
	b.mu.Unlock()
	return b.quota(ctx, r)
}

func (b *testRun) callStore(ctx context.Context, name string) error {
	if b.store == nil {
		return nil
	}
	return b.store(ctx, name)
}

func (b *testRun) call(ctx context.Context, r flow.HTTPRequest) (flow.HTTPResponse, error) {
	b.mu.Lock()
	b.requests = append(b.requests, r)
	b.mu.Unlock()
	return b.origin(ctx, r)
}

func (b *testRun) attach(ctx context.Context, r flow.AttachRequest) (flow.HTTPResponse, error) {
	b.mu.Lock()
	b.attaches = append(b.attaches, r)
	b.mu.Unlock()
	return b.attached(ctx, r)
}

func (b *testRun) barrier(ctx context.Context) error {
	b.mu.Lock()
	b.barriers++
	assert.Zero(b.t, b.turns.held.Load(), "a run holds no turn during its barrier")
	b.mu.Unlock()
	return flow.Barrier(ctx)
}

// run runs the whole chain of executions and returns the run's output or error.
func (b *testRun) run() (json.RawMessage, error) {
	b.t.Helper()
	for range 1000 {
		b.start()
		output, err := b.once()
		var next *workflow.ContinueAsNewError
		if !errors.As(err, &next) {
			return output, err
		}
		var in flow.Input
		require.NoError(b.t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &in))
		require.Equal(b.t, b.input.Chain+1, in.Chain)
		require.Equal(b.t, workflowName, next.WorkflowType.Name)
		b.input = in
	}
	require.Fail(b.t, "the run does not end")
	return nil, nil
}

func (b *testRun) once() (json.RawMessage, error) {
	b.env.ExecuteWorkflow(workflowName, b.input)
	require.True(b.t, b.env.IsWorkflowCompleted())
	if err := b.env.GetWorkflowError(); err != nil {
		return nil, err
	}
	var output json.RawMessage
	require.NoError(b.t, b.env.GetWorkflowResult(&output))
	return output, nil
}

func (b *testRun) completes(want string) {
	b.t.Helper()
	got, err := b.run()
	require.NoError(b.t, err)
	require.JSONEq(b.t, want, string(got))
	last := b.recorder.runs[len(b.recorder.runs)-1]
	require.Equal(b.t, interp.StatusCompleted, last.Status)
	require.JSONEq(b.t, want, string(last.Output))
	require.IsNonDecreasing(b.t, b.recorder.positions)
}

func answer(v any) (flow.HTTPResponse, error) {
	content, err := json.Marshal(v)
	return flow.HTTPResponse{StatusCode: 200, Content: content}, err
}

func refuse(status int, category flow.Category) error {
	return flow.CallError(category, dsl.Error{
		Type: dsl.ErrorTypeCommunication, Status: status, Title: "Refused", Detail: "by the test",
	}, nil)
}

func TestPureRun(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `
input: {from: .order}
do:
  - a: {set: {n: '${ .n + 1 }'}}
  - b: {set: {n: '${ .n * 2 }', big: 9007199254740993}}`, `{"order": {"n": 20}}`)
	b.completes(`{"n": 42, "big": 9007199254740993}`)
	require.Len(t, b.recorder.steps, 2)
	require.Zero(t, b.barriers)
	require.Equal(t, "/do/1/b", b.recorder.steps[2].Path)
}

func TestTimersSkipTime(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `do: [{w: {wait: {days: 400}}}, {a: {set: {waited: '${ $context.x }'}}}]`, `{"x": 1}`)
	b.completes(`{"waited": 1}`)
	require.Equal(t, interp.StatusWaiting, b.recorder.runs[0].Status)
	require.Equal(t, interp.WaitTimer, b.recorder.runs[0].WaitKind)
	require.Equal(t, 400*24*time.Hour, b.recorder.steps[1].EndedAt.Sub(b.recorder.steps[1].StartedAt))
	require.Equal(t, []time.Duration{0}, b.late)
}

func TestSafeCallsAreLocalActivities(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `
do:
  - g: {call: http, with: {method: get, endpoint: 'http://x/{id}', headers: {A: b}}}
  - p: {call: http, timeout: {after: {seconds: 90}}, with: {method: post, endpoint: 'http://y', body: '${ . }', output: response}}
  - s: {set: '${ . }'}`, `{"id": 7}`)
	b.origin = func(_ context.Context, r flow.HTTPRequest) (flow.HTTPResponse, error) {
		if r.Method == http.MethodGet {
			return answer(map[string]any{"got": r.URL})
		}
		return flow.HTTPResponse{
			StatusCode: 201, Headers: map[string]string{"X": "y"}, Content: json.RawMessage(`"made"`),
			Request: &flow.SentRequest{Method: "POST", URI: "http://y", Headers: map[string]string{"H": "1"}},
		}, nil
	}
	b.completes(`{"request": {"method": "POST", "uri": "http://y", "headers": {"H": "1"}}, "statusCode": 201, "headers": {"X": "y"}, "content": "made"}`)
	require.Len(t, b.requests, 2)
	get, post := b.requests[0], b.requests[1]
	require.True(t, get.Local)
	require.Empty(t, get.IdempotencyKey)
	require.Equal(t, "http://x/7", get.URL)
	require.Equal(t, map[string]string{"A": "b"}, get.Headers)
	require.Equal(t, b.limits.LocalTimeout, get.Patience)
	require.Equal(t, b.limits.CallTimeout, get.Timeout)
	require.Equal(t, b.limits.LocalResult, get.Inline)
	require.Equal(t, b.limits.CallResult, get.MaxResponseBytes)
	require.Equal(t, flow.OutputContent, get.Output)
	require.False(t, post.Local)
	require.NotEmpty(t, post.IdempotencyKey)
	require.JSONEq(t, `{"got": "http://x/7"}`, string(post.Body))
	require.Equal(t, 92*time.Second, post.Timeout, "the timeout of the task comes first")
	require.Equal(t, flow.OutputResponse, post.Output)
}

func TestLocalActivitiesDelayNothing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		other string
		local bool
	}{
		"a timer soon":    {"{wait: {seconds: 1}}", false},
		"a timer later":   {"{wait: {hours: 1}}", true},
		"an activity":     {"{call: http, with: {method: post, endpoint: 'http://y'}}", false},
		"another of them": {"{call: http, with: {method: get, endpoint: 'http://y'}}", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTestRun(t, `
do: [{f: {fork: {branches: [{g: {call: http, with: {method: get, endpoint: 'http://x'}}}, {o: `+tt.other+`}]}}}]`, ``)
			b.origin = func(context.Context, flow.HTTPRequest) (flow.HTTPResponse, error) { return answer(1) }
			_, err := b.run()
			require.NoError(t, err)
			for _, r := range b.requests {
				if r.URL == "http://x" {
					require.Equal(t, tt.local, r.Local)
				}
			}
		})
	}
}

func TestFailedCall(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `do: [{o: {do: [{p: {call: http, with: {method: put, endpoint: 'http://x'}}}]}}]`, ``)
	b.origin = func(context.Context, flow.HTTPRequest) (flow.HTTPResponse, error) {
		return flow.HTTPResponse{}, refuse(503, flow.CategoryAnswered)
	}
	_, err := b.run()
	status, runError := flow.Failed(err)
	require.Equal(t, interp.StatusFailed, status)
	want := dsl.Error{Type: dsl.ErrorTypeCommunication, Status: 503, Title: "Refused", Detail: "by the test",
		Instance: "/do/0/o/do/0/p"}
	require.Equal(t, &want, runError)
	require.Len(t, b.requests, 1, "Temporal does not repeat an answered call")
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.Equal(t, dsl.ErrorTypeCommunication, app.Type())
	require.True(t, app.NonRetryable())
	require.Equal(t, &want, b.recorder.runs[len(b.recorder.runs)-1].Error)
}

func TestLostWorkerIsRetriedThenFailsTheCall(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `do: [{p: {call: http, with: {method: post, endpoint: 'http://x'}}}]`, ``)
	b.origin = func(context.Context, flow.HTTPRequest) (flow.HTTPResponse, error) {
		return flow.HTTPResponse{}, temporal.NewHeartbeatTimeoutError()
	}
	_, err := b.run()
	_, runError := flow.Failed(err)
	require.Equal(t, dsl.ErrorTypeCommunication, runError.Type)
	require.Equal(t, 504, runError.Status)
	require.Len(t, b.requests, int(b.limits.CallTries))
	attempts := b.recorder.steps[1].Attempts
	require.Len(t, attempts, len(b.requests))
	for i, a := range attempts {
		require.Equal(t, []any{i + 1, interp.OutcomeUnknown}, []any{a.Number, a.Outcome})
		require.NotNil(t, a.EndedAt)
	}
	require.Equal(t, runError, attempts[2].Error)
	require.Equal(t, b.requests[0].IdempotencyKey, b.requests[2].IdempotencyKey)
}

func TestBrokenActivityIsARuntimeError(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `do: [{p: {call: http, with: {method: get, endpoint: 'http://x'}}}]`, ``)
	b.origin = func(context.Context, flow.HTTPRequest) (flow.HTTPResponse, error) {
		return flow.HTTPResponse{}, errors.New("context canceled, it says")
	}
	_, err := b.run()
	status, runError := flow.Failed(err)
	require.Equal(t, interp.StatusFailed, status, "a text about cancellation is a failure")
	require.Equal(t, dsl.ErrorTypeRuntime, runError.Type)
}

func TestRetryByTheDocument(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `
do:
  - t:
      try: [{p: {call: http, with: {method: post, endpoint: 'http://x'}}}]
      catch: {errors: {with: {status: 503}}, retry: {delay: {hours: 1}, backoff: {exponential: {}}, limit: {attempt: {count: 3}}}}`, ``)
	b.origin = func(context.Context, flow.HTTPRequest) (flow.HTTPResponse, error) {
		if len(b.requests) < 4 {
			return flow.HTTPResponse{}, refuse(503, flow.CategoryTransport)
		}
		return answer("ok")
	}
	b.completes(`"ok"`)
	require.Len(t, b.requests, 4)
	require.Equal(t, b.requests[0].IdempotencyKey, b.requests[3].IdempotencyKey)
	s := b.recorder.steps[1]
	require.Len(t, s.Attempts, 4)
	require.GreaterOrEqual(t, s.EndedAt.Sub(s.StartedAt), 7*time.Hour)
	kinds := map[string]bool{}
	for _, r := range b.recorder.runs {
		kinds[string(r.Status)+r.WaitKind] = true
	}
	require.Equal(t, map[string]bool{"running": true, "waitingretry": true, "completed": true}, kinds)
}

func TestCancel(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `
do: [{t: {try: [{f: {fork: {branches: [{w: {wait: {days: 1}}}, {v: {wait: {days: 2}}}]}}}], catch: {do: [{h: {set: {no: 1}}}]}}}]`, ``)
	b.start()
	b.env.RegisterDelayedCallback(b.env.CancelWorkflow, time.Hour)
	_, err := b.once()
	status, runError := flow.Failed(err)
	require.Equal(t, interp.StatusCanceled, status)
	require.Nil(t, runError)
	require.Equal(t, interp.StatusCanceled, b.recorder.runs[len(b.recorder.runs)-1].Status)
	for _, s := range b.recorder.steps {
		require.Equal(t, interp.StatusCanceled, s.Status, s.Path)
		require.Equal(t, time.Hour, s.EndedAt.Sub(s.StartedAt))
	}
}

func TestWorkflowTimeout(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, "timeout: {after: {minutes: 1}}\ndo: [{w: {wait: {days: 1}}}]", ``)
	_, err := b.run()
	status, runError := flow.Failed(err)
	require.Equal(t, interp.StatusTimedOut, status)
	require.Equal(t, 408, runError.Status)
	require.Equal(t, dsl.ErrorTypeTimeout, runError.Type)
	require.Equal(t, interp.StatusTimedOut, b.recorder.runs[len(b.recorder.runs)-1].Status)
}

func TestUncaughtTaskTimeoutIsAFailure(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `do: [{w: {wait: {days: 1}, timeout: {after: {minutes: 1}}}}]`, ``)
	_, err := b.run()
	status, runError := flow.Failed(err)
	require.Equal(t, interp.StatusFailed, status)
	require.Equal(t, dsl.ErrorTypeTimeout, runError.Type)
}

func TestBarriers(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `
do: [{l: {for: {each: x, in: '[range(1000)]'}, do: [{g: {call: http, with: {method: get, endpoint: 'http://x'}}}]}}]`, ``)
	b.origin = func(context.Context, flow.HTTPRequest) (flow.HTTPResponse, error) { return answer(len(b.requests)) }
	b.completes(`1000`)
	require.Equal(t, 2, b.barriers, "after 400 and 800 local activities")

	b = newTestRun(t, `
do: [{l: {for: {each: x, in: '[range(60)]'}, do: [{g: {call: http, with: {method: get, endpoint: 'http://x'}}}]}}]`, ``)
	text := fmt.Sprintf("%050000d", 1)
	b.origin = func(context.Context, flow.HTTPRequest) (flow.HTTPResponse, error) { return answer(text) }
	b.completes(`"` + text + `"`)
	require.Equal(t, 2, b.barriers, "after 1 MiB and 2 MiB of results")
}

func TestRecordsEndAWorkflowTask(t *testing.T) {
	t.Parallel()
	const loop = `
do: [{l: {for: {in: '[range(2000)]'}, do: [{s: {set: {text: '${ "a" * 8000 }'}}}]}}]`
	b := newTestRun(t, loop, ``)
	b.completes(`{"text": "` + strings.Repeat("a", 8000) + `"}`)
	require.Equal(t, 4, b.barriers, "after each 500 steps of 16 kB: records are taken by 250")
}

func TestLongLoopsContinueAsNew(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `
do:
  - l: {for: {each: x, in: '[range(100000)]'}, do: [{a: {set: {n: '${ (.n // 0) + 1 }'}}}]}
  - m: {for: {each: x, in: '[range(300)]'}, do: [{p: {call: http, with: {method: post, endpoint: 'http://x', body: '${ $x }'}}}]}`, `{}`)
	b.limits.ExecutionFuel = 8_000_000
	b.limits.SoftEvents, b.limits.HardEvents = 500, 600
	b.origin = func(_ context.Context, r flow.HTTPRequest) (flow.HTTPResponse, error) { return answer(r.Body) }
	b.completes(`299`)
	require.Greater(t, b.input.Chain, 5)
	require.Len(t, b.requests, 300)
	require.Len(t, b.recorder.steps, 100_302)
	for n, s := range b.recorder.steps {
		require.Equal(t, interp.StatusCompleted, s.Status, n)
	}
}

func TestBranchesHoldForContinueAsNew(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `
do:
  - f:
      fork:
        branches:
          - a: {for: {each: x, in: '[range(100)]'}, do: [{p: {call: http, with: {method: post, endpoint: 'http://x'}}}]}
          - b: {for: {each: x, in: '[range(100)]'}, do: [{p: {call: http, with: {method: post, endpoint: 'http://x'}}}]}
          - c: {wait: {days: 1}, output: {as: '"c"'}}`, `{}`)
	b.limits.SoftEvents, b.limits.HardEvents = 100, 150
	b.origin = func(context.Context, flow.HTTPRequest) (flow.HTTPResponse, error) { return answer("p") }
	b.completes(`["p", "p", "c"]`)
	require.GreaterOrEqual(t, b.input.Chain, 2)
	require.Len(t, b.requests, 200)
	require.Equal(t, 24*time.Hour, b.recorder.steps[4].EndedAt.Sub(b.recorder.steps[4].StartedAt).Truncate(time.Hour),
		"deadlines are absolute")
}

func TestStateTooLargeToCarry(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `
do: [{l: {for: {each: x, in: '[range(1000)]'}, do: [{p: {call: http, with: {method: post, endpoint: 'http://x'}}}]}}]`, ``)
	b.limits.SoftEvents, b.limits.HardEvents, b.limits.LastEvents, b.limits.SnapshotBytes = 100, 200, 300, 10
	b.origin = func(context.Context, flow.HTTPRequest) (flow.HTTPResponse, error) { return answer("p") }
	_, err := b.run()
	_, runError := flow.Failed(err)
	require.Equal(t, dsl.ErrorTypeRuntime, runError.Type)
	require.Contains(t, runError.Detail, "over the limit of 10")
	require.Zero(t, b.input.Chain)
}

func TestWorkflowTasksReturnToTemporal(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*testRun){
		"a newer interpreter": func(b *testRun) { b.input.Interpreter = interp.Version + 1 },
		"no interpreter":      func(b *testRun) { b.input.Interpreter = 0 },
		"an unknown document": func(b *testRun) { b.input.DocumentHash = "sha256:none" },
		"a broken snapshot":   func(b *testRun) { b.input.Snapshot = []byte("x") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTestRun(t, `do: [{a: {set: {x: 1}}}]`, ``)
			change(b)
			_, err := b.run()
			var panicked *temporal.PanicError
			require.ErrorAs(t, err, &panicked, "a panic fails the workflow task, not the run")
			require.Empty(t, b.recorder.runs)
		})
	}
}

func TestInputOverTheLimits(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `do: [{a: {set: {x: 1}}}]`, strings.Repeat("[", 2000)+strings.Repeat("]", 2000))
	_, err := b.run()
	status, runError := flow.Failed(err)
	require.Equal(t, interp.StatusFailed, status)
	require.Equal(t, dsl.ErrorTypeValidation, runError.Type)
	require.Equal(t, "/input", runError.Instance)
	require.Len(t, b.recorder.runs, 1)
}

func TestFailedReadsAnyError(t *testing.T) {
	t.Parallel()
	status, runError := flow.Failed(nil)
	require.Equal(t, interp.StatusCompleted, status)
	require.Nil(t, runError)
	status, runError = flow.Failed(errors.New("terminated"))
	require.Equal(t, interp.StatusFailed, status)
	require.Equal(t, "terminated", runError.Detail)
	status, runError = flow.Failed(temporal.NewApplicationError("x", "y", "some detail"))
	require.Equal(t, interp.StatusFailed, status)
	require.Equal(t, dsl.ErrorTypeRuntime, runError.Type)
}
