package engine

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

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
// the watch on workflow tasks that were given out before, and the watch on starts that were never sent.
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
		grpc.WithChainUnaryInterceptor(giveUpUnsent, tap.Intercept, guard.Intercept, repeated.Intercept), grpc.WithStatsHandler(sendings{}))
	return base
}

// sending is what is known of the sending of one start, over all tries of the SDK.
type sending struct {
	sent   atomic.Bool
	giveUp context.CancelFunc
}

// sendingKey holds the sending of a call and of all requests that the SDK makes for it; startKey that of the start alone.
type (
	sendingKey struct{}
	startKey   struct{}
)

// withSending makes a context in which it is noted whether the request to start an execution has left the process.
func withSending(ctx context.Context) (context.Context, *sending) {
	ctx, cancel := context.WithCancel(ctx)
	s := &sending{giveUp: cancel}
	return context.WithValue(ctx, sendingKey{}, s), s
}

// giveUpUnsent ends the SDK's tries to start an execution when one of them finds nobody to send it to: the caller can be
// told at once and for certain that nothing was started.
func giveUpUnsent(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	err := invoke(ctx, method, req, reply, cc, opts...)
	if s, ok := ctx.Value(sendingKey{}).(*sending); ok && !s.sent.Load() && status.Code(err) == codes.Unavailable {
		s.giveUp()
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
