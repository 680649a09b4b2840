package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/conn/conntest"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/engine"
	"github.com/signalbox-dev/signalbox/internal/engine/codec"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/stopwatch"
)

func requireError(t *testing.T, err error, class apperror.Class, reason, says string) {
	t.Helper()
	f, ok := apperror.From(err)
	require.True(t, ok, "not a fault: %v", err)
	require.Equal(t, []any{class, reason}, []any{f.Class, f.Reason})
	require.Contains(t, f.Error(), says)
}

func aRun() run.Run {
	return run.Run{
		ID: "r1", Project: "team-7", Workflow: "examples/hello", Version: "1.0.0", DocumentHash: "sha256:aa",
		Input: json.RawMessage(`{"name":"Ada"}`), Interpreter: 1,
		RequestID: "order-7", RequestDigest: "key:digest", Trigger: run.TriggerParent, Actor: "ada", CreatedAt: noon(),
		Labels: map[string]string{"order": "7"},
		Parent: run.Parent{RunID: "r0", Path: "/do/0", Depth: 1, Key: "k", Awaited: true},
	}
}

func TestCheckReportsTheProblem(t *testing.T) {
	t.Parallel()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	nobody := listener.Addr().String()
	require.NoError(t, listener.Close())

	hung := serve(t)
	hung.namespace = func(ctx context.Context) error {
		<-ctx.Done()
		return serviceerror.NewDeadlineExceeded("late")
	}
	empty := serve(t)
	empty.namespace = func(context.Context) error { return serviceerror.NewNamespaceNotFound("ns") }
	denied := serve(t)
	denied.namespace = func(context.Context) error { return serviceerror.NewPermissionDenied("no", "") }

	for name, tt := range map[string]struct{ address, kind, says string }{
		"nobody listens": {nobody, "unreachable", "temporal cannot be used (unreachable)"},
		"hung":           {hung.address, "hung", "it accepts connections but does not answer"},
		"no namespace": {empty.address, "namespace_missing",
			`has no namespace "ns"; create it, or correct temporal.namespace`},
		"denied": {denied.address, "auth_failed", "it rejects the credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, _, m := reach(t, tt.address, nil)
			require.Eventually(t, func() bool { return m.Status().State == conn.Down }, time.Minute, 10*time.Millisecond)
			watch := stopwatch.Start(t)
			err := e.Check(t.Context())
			require.Less(t, watch.Elapsed(), 100*time.Millisecond, "it sends no request")
			requireError(t, err, apperror.Unavailable, apperror.EngineUnavailable, tt.says)
			found, _ := apperror.From(err)
			require.Positive(t, found.RetryAfter)
			require.Error(t, found.Cause)
			require.Equal(t, map[string]string{
				"state": "down", "kind": tt.kind, "since": m.Status().Since.UTC().Format(time.RFC3339),
			}, found.Facts)
			_, err = e.Start(t.Context(), aRun())
			requireError(t, err, apperror.Unavailable, apperror.EngineUnavailable, tt.says)
		})
	}
}

// TestStartThatIsNeverSent stops Temporal before the connection has noticed it: the start request finds no server.
func TestStartThatIsNeverSent(t *testing.T) {
	t.Parallel()
	frontend := conntest.Run(t, conntest.Options{Namespaces: []string{"ns"}})
	e, _, m := reach(t, frontend.Addr(), nil)
	require.NoError(t, m.Await(t.Context()))
	frontend.Stop()
	require.Eventually(t, func() bool { return m.Status().LastError != "" }, time.Minute, time.Millisecond)
	require.NoError(t, e.Check(t.Context()), "one missed check decides nothing")
	watch := stopwatch.Start(t)
	_, err := e.Start(t.Context(), aRun())
	requireError(t, err, apperror.Unavailable, apperror.EngineUnavailable, "nothing was started")
	require.NotErrorIs(t, err, run.ErrUnknownOutcome)
	require.Less(t, watch.Elapsed(), 2*time.Second)
}

func TestStartSendsWhatWorkersNeed(t *testing.T) {
	t.Parallel()
	f := serve(t)
	e, _ := connect(t, f.address, nil, func(o *engine.Options) {
		o.MaxSteps = func(_ context.Context, project string) (int64, error) {
			require.Equal(t, "team-7", project)
			return 5000, nil
		}
	})
	var got *workflowservice.StartWorkflowExecutionRequest
	f.start = func(r *workflowservice.StartWorkflowExecutionRequest) (*workflowservice.StartWorkflowExecutionResponse,
		error) {
		got = r
		return &workflowservice.StartWorkflowExecutionResponse{RunId: "execution-7"}, nil
	}
	id, err := e.Start(t.Context(), aRun())
	require.NoError(t, err)
	require.Equal(t, "execution-7", id)
	require.Equal(t, []string{"ns", "r1", "signalbox.run", "signalbox-team-7", "server-1"}, []string{
		got.GetNamespace(), got.GetWorkflowId(), got.GetWorkflowType().GetName(), got.GetTaskQueue().GetName(),
		got.GetIdentity(),
	})
	require.Equal(t, enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE, got.GetWorkflowIdReusePolicy())
	var input flow.Input
	require.NoError(t, codec.Converter(testKeys(t)).FromPayloads(got.GetInput(), &input))
	require.Equal(t, flow.Input{
		RunID: "r1", Project: "team-7", Workflow: "examples/hello", Version: "1.0.0", DocumentHash: "sha256:aa",
		Input: json.RawMessage(`{"name":"Ada"}`), Interpreter: 1, MaxSteps: 5000,
	}, input)
	memo := got.GetMemo().GetFields()["signalbox.identity"]
	require.NotContains(t, string(memo.GetData()), "order-7", "it is sealed")
	var identity run.Identity
	require.NoError(t, codec.For(testKeys(t), "r1").FromPayload(memo, &identity))
	require.Equal(t, aRun().Identity(), identity)
}

// An execution of which the row was lost answers the same request, and refuses another one with its request ID.
func TestStartOfALostRow(t *testing.T) {
	t.Parallel()
	f := serve(t)
	f.start = func(*workflowservice.StartWorkflowExecutionRequest) (*workflowservice.StartWorkflowExecutionResponse,
		error) {
		return nil, serviceerror.NewWorkflowExecutionAlreadyStarted("started", "request", "execution-3")
	}
	e, _ := connect(t, f.address, nil)
	memo, err := codec.For(testKeys(t), "r1").ToPayload(aRun().Identity())
	require.NoError(t, err)
	f.set(func() {
		f.info["r1"] = &workflowpb.WorkflowExecutionInfo{
			Memo: &commonpb.Memo{Fields: map[string]*commonpb.Payload{"signalbox.identity": memo}}}
	})
	for digest, accepted := range map[string]bool{"key:digest": true, "key:another": false, "newer-key:another": true} {
		r := aRun()
		r.RequestDigest = digest
		id, err := e.Start(t.Context(), r)
		if accepted {
			require.NoError(t, err, digest)
			require.Equal(t, "execution-3", id)
			continue
		}
		requireError(t, err, apperror.Exists, apperror.RequestIDReused, `request ID "order-7" was used before`)
	}
}

// patience is the time limit of a call: a minute, for a busy machine, and less if the call must fail, because the SDK
// retries until the limit.
func patience(fails bool) time.Duration {
	if fails {
		return time.Second
	}
	return time.Minute
}

func TestStartAnswers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		answer error
		id     string
		class  apperror.Class // zero: the outcome is unknown
		reason string
	}{
		{"started already", serviceerror.NewWorkflowExecutionAlreadyStarted("started", "request", "execution-3"),
			"execution-3", 0, ""},
		{"invalid", serviceerror.NewInvalidArgument("blob too large"), "", apperror.Refused, apperror.EngineRefused},
		{"denied", serviceerror.NewPermissionDenied("no", ""), "", apperror.Refused, apperror.EngineRefused},
		{"no namespace", serviceerror.NewNamespaceNotFound("ns"), "", apperror.Unavailable, apperror.EngineUnavailable},
		{"over its rate", serviceerror.NewResourceExhausted(enumspb.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT, "rps"), "",
			apperror.Exhausted, apperror.EngineRefused},
		{"cut", serviceerror.NewUnavailable("cut"), "", 0, ""},
		{"broken", serviceerror.NewInternal("panic"), "", 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := serve(t)
			f.start = func(*workflowservice.StartWorkflowExecutionRequest) (*workflowservice.StartWorkflowExecutionResponse,
				error) {
				return nil, tt.answer
			}
			e, _ := connect(t, f.address, nil)
			ctx, cancel := context.WithTimeout(t.Context(), patience(tt.id == "" && tt.class == 0))
			defer cancel()
			id, err := e.Start(ctx, aRun())
			require.Equal(t, tt.id, id)
			switch {
			case tt.id != "":
				require.NoError(t, err)
			case tt.class == 0:
				require.ErrorIs(t, err, run.ErrUnknownOutcome)
				_, isFault := apperror.From(err)
				require.False(t, isFault)
			default:
				requireError(t, err, tt.class, tt.reason, "temporal ")
				found, _ := apperror.From(err)
				require.NotContains(t, found.Message, f.address, "the message is for callers")
				require.ErrorContains(t, err, f.address, "the log has the address")
				require.NotErrorIs(t, err, run.ErrUnknownOutcome)
			}
		})
	}
}

// TestStartThatIsRejectedOnce rejects one request because of rate limits: the SDK's second try starts the run.
func TestStartThatIsRejectedOnce(t *testing.T) {
	t.Parallel()
	f := serve(t)
	var tries atomic.Int64
	f.start = func(*workflowservice.StartWorkflowExecutionRequest) (*workflowservice.StartWorkflowExecutionResponse,
		error) {
		if tries.Add(1) == 1 {
			return nil, serviceerror.NewResourceExhausted(enumspb.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT, "rps")
		}
		return &workflowservice.StartWorkflowExecutionResponse{RunId: "execution-2"}, nil
	}
	e, _ := connect(t, f.address, nil)
	id, err := e.Start(t.Context(), aRun())
	require.NoError(t, err)
	require.Equal(t, "execution-2", id)
}

// TestStartThatIsRejectedAfterAnUnknownOutcome rejects every try but the first, which may have arrived.
func TestStartThatIsRejectedAfterAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]error{
		"over its rate": serviceerror.NewResourceExhausted(enumspb.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT, "rps"),
		"denied":        serviceerror.NewPermissionDenied("no", ""),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t)
			var tries atomic.Int64
			f.start = func(*workflowservice.StartWorkflowExecutionRequest) (*workflowservice.StartWorkflowExecutionResponse,
				error) {
				if tries.Add(1) == 1 {
					return nil, serviceerror.NewUnavailable("persistence")
				}
				return nil, refusal
			}
			e, _ := connect(t, f.address, nil)
			_, err := e.Start(t.Context(), aRun())
			require.ErrorIs(t, err, run.ErrUnknownOutcome)
			_, isFault := apperror.From(err)
			require.False(t, isFault)
		})
	}
}

func TestStartWhoseResponseIsLost(t *testing.T) {
	t.Parallel()
	f := serve(t)
	e, _ := connect(t, f.address, nil)
	ctx, cancel := context.WithCancel(t.Context())
	f.start = func(*workflowservice.StartWorkflowExecutionRequest) (*workflowservice.StartWorkflowExecutionResponse,
		error) {
		cancel()
		return &workflowservice.StartWorkflowExecutionResponse{RunId: "execution-1"}, nil
	}
	_, err := e.Start(ctx, aRun())
	if err != nil { // the response may have arrived first
		require.ErrorIs(t, err, run.ErrUnknownOutcome)
	}
	_, err = e.Start(ctx, aRun())
	requireError(t, err, apperror.Unavailable, apperror.EngineUnavailable, "nothing was started") // and nothing was sent
}

func TestCancelAnswers(t *testing.T) {
	t.Parallel()
	missing := serviceerror.NewNotFound("no open execution")
	tests := []struct {
		name   string
		answer error
		known  bool
		want   error
		fault  bool
	}{
		{"taken", nil, true, nil, false},
		{"never known", missing, false, run.ErrNotKnown, false},
		{"ended", missing, true, run.ErrClosed, false},
		{"denied", serviceerror.NewPermissionDenied("no", ""), true, nil, true},
		{"away", serviceerror.NewUnavailable("cut"), true, nil, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := serve(t)
			f.cancel = func(r *workflowservice.RequestCancelWorkflowExecutionRequest) error {
				if r.GetRequestId() == "" || r.GetIdentity() != "server-1" || r.GetNamespace() != "ns" {
					return serviceerror.NewInternal("wrong request")
				}
				return tt.answer
			}
			if tt.known {
				f.info["r1"] = &workflowpb.WorkflowExecutionInfo{Status: enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED}
			}
			e, _ := connect(t, f.address, nil)
			ctx, stop := context.WithTimeout(t.Context(), patience(tt.name == "away"))
			defer stop()
			err := e.Cancel(ctx, aRun(), "too slow")
			require.Equal(t, "cancel r1 too slow", f.called()[0])
			switch {
			case tt.fault:
				requireError(t, err, apperror.Unavailable, apperror.EngineUnavailable, "did not accept the cancellation of run r1")
			case tt.want != nil:
				require.ErrorIs(t, err, tt.want)
			default:
				require.NoError(t, err)
			}
			require.Equal(t, tt.want != nil, errors.Is(err, run.ErrNotKnown) || errors.Is(err, run.ErrClosed))
		})
	}
}
