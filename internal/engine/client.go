package engine

import (
	"context"
	"log/slog"
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

	"github.com/signalbox-dev/signalbox/internal/engine/attempts"
	"github.com/signalbox-dev/signalbox/internal/engine/claimcheck"
	"github.com/signalbox-dev/signalbox/internal/engine/payload"
	"github.com/signalbox-dev/signalbox/internal/engine/projection"
	"github.com/signalbox-dev/signalbox/internal/engine/symptom"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/run/problem"
	"github.com/signalbox-dev/signalbox/internal/seal"
)

// ClientOptions completes the options of every client that the engine uses: who we are, where the SDK logs, the keys that
// seal what Temporal keeps, the storage of what is too large for it, the hook that writes rows after Temporal has accepted what they show,
// the watch on workflow tasks that were given out before, and the watch on starts that were never sent or that Temporal refuses.
func ClientOptions(
	base client.Options, serverID string, keys *seal.Ring, payloads *claimcheck.Storage, log *slog.Logger, tap *projection.Tap, repeated *Repeated,
) client.Options {
	base.Identity = serverID
	base.Logger = logger.ForTemporal(log)
	base.DataConverter, base.FailureConverter = payload.Converter(keys), payload.FailureConverter(keys)
	base.ExternalStorage = payloads.External()
	read := base.FailureConverter
	guard := attempts.New(attempts.Options{Now: time.Now, Expensive: func(r *workflowservice.RespondWorkflowTaskFailedRequest) bool {
		return symptom.Cause(r.GetCause(), r.GetFailure(), symptom.Text(read, r.GetFailure())) == problem.Deadlock
	}})
	base.ConnectionOptions.DialOptions = append(slices.Clip(base.ConnectionOptions.DialOptions),
		// The guard changes the attempt that a task has: what needs the true one comes after it.
		grpc.WithChainUnaryInterceptor(watchStart, tap.Intercept, guard.Intercept, repeated.Intercept), grpc.WithStatsHandler(sendings{}))
	return base
}

// refusedFor is how long a start is tried again that Temporal refuses because it is over its limits: a burst of requests may be over soon.
const refusedFor = 500 * time.Millisecond

// sending is what is known of the sending of one start, over all tries of the SDK.
type sending struct {
	sent   atomic.Bool
	giveUp context.CancelFunc
	began  time.Time
	// limited reports whether most requests are refused at the moment.
	limited func() bool

	mu sync.Mutex
	// refusal is the last answer that Temporal is over its limits. doubt is whether a try was sent that may have arrived.
	refusal error
	doubt   bool
}

// note takes the end of a try, and ends the SDK's further ones where they are of no use: when a try found no connection to send it over, the
// caller can be answered at once and for certain, and a Temporal that stays over its limits needs no more requests.
func (s *sending) note(err error) {
	switch code := status.Code(err); {
	case err == nil:
	case code == codes.ResourceExhausted:
		s.mu.Lock()
		s.refusal = serviceerror.FromStatus(status.Convert(err))
		s.mu.Unlock()
		if s.limited() || time.Since(s.began) >= refusedFor {
			s.giveUp()
		}
	case !s.sent.Load():
		if code == codes.Unavailable {
			s.giveUp()
		}
	case !definite(serviceerror.FromStatus(status.Convert(err))):
		s.mu.Lock()
		s.doubt = true
		s.mu.Unlock()
	}
}

// outcome returns whether a try may have arrived, and the refusal over Temporal's limits, if there was one.
func (s *sending) outcome() (doubt bool, refusal error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.doubt, s.refusal
}

// sendingKey holds the sending of a call and of all requests that the SDK makes for it; startKey that of the start alone.
type (
	sendingKey struct{}
	startKey   struct{}
)

// withSending makes a context in which it is noted whether the request to start an execution has left the process.
func withSending(ctx context.Context, limited func() bool) (context.Context, *sending) {
	ctx, cancel := context.WithCancel(ctx)
	s := &sending{giveUp: cancel, began: time.Now(), limited: limited}
	return context.WithValue(ctx, sendingKey{}, s), s
}

// watchStart notes the end of each of the SDK's tries to start an execution.
func watchStart(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	err := invoke(ctx, method, req, reply, cc, opts...)
	if s, ok := ctx.Value(sendingKey{}).(*sending); ok {
		s.note(err)
	}
	return err
}

// sendings notes which starts were handed to a connection.
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
