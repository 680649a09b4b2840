package engine

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/signalbox-dev/signalbox/internal/engine/codec"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// clientOptions completes the options of a client: the identity, the SDK's logger, the keys that seal payloads, the
// storage of large payloads, and the interceptors. These write rows after Temporal has accepted the workflow tasks that
// they show, record repeated workflow tasks, count billable actions, observe starts that were never sent or that
// Temporal rejected, and measure for the budget of diagnosis how fast Temporal is.
func (e *Engine) clientOptions(base client.Options) client.Options {
	base.Identity = e.serverID
	base.Logger = logger.ForTemporal(e.log)
	base.DataConverter, base.FailureConverter = codec.Converter(e.keys), e.failures
	base.ExternalStorage = e.payloads.External()
	guard := NewAttemptGuard(AttemptGuardOptions{
		Now: time.Now, Expensive: func(r *workflowservice.RespondWorkflowTaskFailedRequest) bool {
			text := TaskFailureText(e.failures, r.GetFailure())
			return TaskFailureCause(r.GetCause(), r.GetFailure(), text) == run.Deadlock
		}})
	base.ConnectionOptions.DialOptions = append(slices.Clip(base.ConnectionOptions.DialOptions),
		// The guard changes the attempt number of a task. Interceptors that require the original number follow it.
		grpc.WithChainUnaryInterceptor(watchStart, e.tap.Intercept, guard.Intercept, e.repeated.Intercept,
			e.actions.Intercept, e.budget.Intercept),
		grpc.WithStatsHandler(sendings{}))
	return base
}

// rateLimitedFor is how long a start is retried that Temporal rejects because of its rate limits. A burst of requests
// may end within this time.
const rateLimitedFor = 500 * time.Millisecond

// sending is the state of sending one start request, over all tries of the SDK.
type sending struct {
	sent   atomic.Bool
	giveUp context.CancelFunc
	began  time.Time
	// limited reports whether most requests are refused at the moment.
	limited func() bool

	mu sync.Mutex
	// rejection is the last response that reported Temporal's rate limits. uncertain reports whether a try was sent
	// that may have arrived.
	rejection error
	uncertain bool
}

// record records the result of a try, and ends the SDK's retries if they are useless. If a try found no connection, the
// caller gets a definite error at once. If Temporal stays over its limits, further requests only add load.
func (s *sending) record(err error) {
	switch code := status.Code(err); {
	case err == nil:
	case code == codes.ResourceExhausted:
		s.mu.Lock()
		s.rejection = serviceerror.FromStatus(status.Convert(err))
		s.mu.Unlock()
		if s.limited() || time.Since(s.began) >= rateLimitedFor {
			s.giveUp()
		}
	case !s.sent.Load():
		if code == codes.Unavailable {
			s.giveUp()
		}
	case !definite(serviceerror.FromStatus(status.Convert(err))):
		s.mu.Lock()
		s.uncertain = true
		s.mu.Unlock()
	}
}

// outcome returns whether a try may have arrived, and the rejection because of rate limits, if any.
func (s *sending) outcome() (uncertain bool, rejection error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.uncertain, s.rejection
}

// sendingKey is the context key of the sending state of a call and of all requests that the SDK sends for it. startKey
// is that of the start request alone.
type (
	sendingKey struct{}
	startKey   struct{}
)

// withSending returns a context in which requests to start an execution are recorded in the returned sending.
func withSending(ctx context.Context, limited func() bool) (context.Context, *sending) {
	ctx, cancel := context.WithCancel(ctx)
	s := &sending{giveUp: cancel, began: time.Now(), limited: limited}
	return context.WithValue(ctx, sendingKey{}, s), s
}

// watchStart records the result of each of the SDK's tries to start an execution.
func watchStart(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	err := invoke(ctx, method, req, reply, cc, opts...)
	if s, ok := ctx.Value(sendingKey{}).(*sending); ok {
		s.record(err)
	}
	return err
}

// sendings records which start requests were passed to a connection.
type sendings struct{}

var _ stats.Handler = sendings{}

// TagRPC implements stats.Handler.
func (sendings) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	s, ok := ctx.Value(sendingKey{}).(*sending)
	if !ok || info.FullMethodName != workflowservice.WorkflowService_StartWorkflowExecution_FullMethodName {
		return ctx
	}
	return context.WithValue(ctx, startKey{}, s)
}

// HandleRPC implements stats.Handler.
func (sendings) HandleRPC(ctx context.Context, event stats.RPCStats) {
	if _, out := event.(*stats.OutHeader); !out {
		return
	}
	if s, ok := ctx.Value(startKey{}).(*sending); ok {
		s.sent.Store(true)
	}
}

// TagConn implements stats.Handler.
func (sendings) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (sendings) HandleConn(context.Context, stats.ConnStats) {}
