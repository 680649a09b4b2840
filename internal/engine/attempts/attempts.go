// Package attempts observes every attempt at a workflow task, and keeps a run that occupies the processor in each of them from the worker.
//
// The SDK answers Temporal when the first attempt at a task fails, and lets later ones time out, so that Temporal spaces them. Nothing
// outside of the SDK sees why those fail. [Guard] is an interceptor of the client: it makes the SDK answer each failure, and does not pass on
// the answers that Temporal is not to have. What is nearer to the caller in the chain of interceptors sees all of them.
//
//	grpc.WithChainUnaryInterceptor(tap.Intercept, attempts.New(options).Intercept)
//
// A consequence: the SDK's log lines name attempt 1 for every attempt.
package attempts

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

const (
	// leastDelay is how long a run is kept away after its second expensive failure; each further one doubles it, up to mostDelay.
	leastDelay, mostDelay = 30 * time.Second, 5 * time.Minute
	// mostRuns bounds the runs that are remembered.
	mostRuns = 10_000
)

// Options say what a guard needs.
type Options struct {
	Now func() time.Time
	// Expensive reports whether a failure has occupied the processor, as a deadlock does.
	Expensive func(*workflowservice.RespondWorkflowTaskFailedRequest) bool
}

// Guard observes attempts. It is safe for concurrent use.
type Guard struct {
	opts Options

	mu sync.Mutex
	// later are the tasks in this process whose attempt is not the first, by token; open their tokens by workflow ID.
	later map[string]string
	open  map[string]string
	away  map[string]delay
}

// delay is how long a run is kept away, and how often its task has failed.
type delay struct {
	failures int
	until    time.Time
}

// New returns a guard that has observed nothing.
func New(opts Options) *Guard {
	return &Guard{opts: opts, later: map[string]string{}, open: map[string]string{}, away: map[string]delay{}}
}

// Intercept is the client's unary interceptor.
func (g *Guard) Intercept(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	switch request := req.(type) {
	case *workflowservice.RespondWorkflowTaskFailedRequest:
		if g.failed(request) {
			return nil // Temporal lets this attempt time out
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
		// An empty answer is that of a poll that has found nothing. The task times out, and comes again.
		proto.Reset(task)
	}
	return err
}

// polled notes a task that came, and reports whether the worker is not to have it.
func (g *Guard) polled(task *workflowservice.PollWorkflowTaskQueueResponse) (drop bool) {
	token, id := string(task.GetTaskToken()), task.GetWorkflowExecution().GetWorkflowId()
	if token == "" || task.GetQuery() != nil || task.GetAttempt() <= 1 {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.later, g.open[id])
	delete(g.open, id)
	if g.opts.Now().Before(g.away[id].until) {
		return true
	}
	g.later[token], g.open[id] = id, token
	task.Attempt = 1
	return false
}

// failed notes a failure, and reports whether Temporal is not to have the answer: that of an attempt which is not the first.
func (g *Guard) failed(request *workflowservice.RespondWorkflowTaskFailedRequest) (withhold bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	id, later := g.forget(string(request.GetTaskToken()))
	if !later {
		return false
	}
	if !g.opts.Expensive(request) {
		delete(g.away, id)
		return true
	}
	now := g.opts.Now()
	if len(g.away) >= mostRuns {
		for run, d := range g.away {
			if now.After(d.until) {
				delete(g.away, run)
			}
		}
	}
	if d, known := g.away[id]; known || len(g.away) < mostRuns {
		d.failures++
		d.until = now.Add(min(mostDelay, leastDelay<<min(d.failures-1, 8))) //nolint:mnd // far beyond mostDelay, and no overflow
		g.away[id] = d
	}
	return true
}

func (g *Guard) completed(token string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if id, later := g.forget(token); later {
		delete(g.away, id)
	}
}

// forget removes a task, and returns its workflow ID where its attempt is not the first.
func (g *Guard) forget(token string) (id string, later bool) {
	id, later = g.later[token]
	delete(g.later, token)
	if g.open[id] == token {
		delete(g.open, id)
	}
	return id, later
}
