package engine

import (
	"context"
	"sync"
	"time"

	"github.com/jellydator/ttlcache/v3"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/signalbox-dev/signalbox/internal/backoff"
)

const (
	// minWithheld is the time for which a run is withheld after its second expensive failure. Each further failure doubles
	// it, up to maxDelay.
	minWithheld, maxWithheld = 30 * time.Second, 5 * time.Minute
	// maxWithheldRuns bounds the number of runs for which delays are stored.
	maxWithheldRuns = 10_000
)

// AttemptGuardOptions configure a guard.
type AttemptGuardOptions struct {
	Now func() time.Time
	// Expensive reports whether a failed attempt occupied the processor, as a deadlock does.
	Expensive func(*workflowservice.RespondWorkflowTaskFailedRequest) bool
}

// AttemptGuard observes every attempt at a workflow task, and withholds runs from the worker whose attempts repeatedly
// occupy the processor. It is safe for concurrent use.
//
// The SDK reports the failure of the first attempt at a task to Temporal. It lets later attempts time out, so that
// Temporal spaces them. The reasons of the later failures are visible only inside the SDK. The guard is a client
// interceptor: it makes the SDK report each failure, and drops the reports that must not reach Temporal. Interceptors
// that precede it in the chain see all reports.
//
// A consequence: the SDK's log lines show attempt 1 for every attempt.
type AttemptGuard struct {
	opts AttemptGuardOptions

	mu sync.Mutex
	// later holds the workflow IDs of this process's tasks after their first attempt, by token. open holds their tokens
	// by workflow ID.
	later  map[string]string
	open   map[string]string
	delays *ttlcache.Cache[string, withheldRun]
}

// withheldRun holds until when a run is withheld, and how often its task has failed.
type withheldRun struct {
	failures int
	until    time.Time
}

// NewAttemptGuard returns a guard without observations.
func NewAttemptGuard(opts AttemptGuardOptions) *AttemptGuard {
	return &AttemptGuard{
		opts: opts, later: map[string]string{}, open: map[string]string{},
		delays: ttlcache.New(ttlcache.WithCapacity[string, withheldRun](maxWithheldRuns)),
	}
}

// Intercept is the client's unary interceptor.
func (g *AttemptGuard) Intercept(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	switch request := req.(type) {
	case *workflowservice.RespondWorkflowTaskFailedRequest:
		if g.failed(request) {
			return nil // this attempt times out in Temporal
		}
	case *workflowservice.RespondWorkflowTaskCompletedRequest:
		err := invoke(ctx, method, req, reply, cc, opts...)
		if err == nil {
			g.completed(string(request.GetTaskToken()))
		}
		return err
	}
	err := invoke(ctx, method, req, reply, cc, opts...)
	if task, ok := reply.(*workflowservice.PollWorkflowTaskQueueResponse); ok && err == nil && g.polled(task) {
		// An empty response means that the poll found no task. The task times out, and Temporal dispatches it again.
		proto.Reset(task)
	}
	return err
}

// polled records a received task, and reports whether it must be withheld from the worker.
func (g *AttemptGuard) polled(task *workflowservice.PollWorkflowTaskQueueResponse) (drop bool) {
	token, id := string(task.GetTaskToken()), task.GetWorkflowExecution().GetWorkflowId()
	if token == "" || task.GetQuery() != nil || task.GetAttempt() <= 1 {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.later, g.open[id])
	delete(g.open, id)
	if d := g.delays.Get(id); d != nil && g.opts.Now().Before(d.Value().until) {
		return true
	}
	g.later[token], g.open[id] = id, token
	task.Attempt = 1
	return false
}

// failed records a failure, and reports whether its report must not reach Temporal, because the attempt is not the
// first.
func (g *AttemptGuard) failed(request *workflowservice.RespondWorkflowTaskFailedRequest) (withhold bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	id, later := g.forget(string(request.GetTaskToken()))
	if !later {
		return false
	}
	if !g.opts.Expensive(request) {
		g.delays.Delete(id)
		return true
	}
	failures := 1
	if before := g.delays.Get(id); before != nil {
		failures += before.Value().failures
	}
	until := g.opts.Now().Add(backoff.Delay(minWithheld, maxWithheld, failures))
	g.delays.Set(id, withheldRun{failures, until}, ttlcache.NoTTL)
	return true
}

func (g *AttemptGuard) completed(token string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if id, later := g.forget(token); later {
		g.delays.Delete(id)
	}
}

// forget removes a task, and returns its workflow ID if its attempt is not the first.
func (g *AttemptGuard) forget(token string) (id string, later bool) {
	id, later = g.later[token]
	delete(g.later, token)
	if g.open[id] == token {
		delete(g.open, id)
	}
	return id, later
}
