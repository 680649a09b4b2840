package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

// pollGrace is how long after a failed poll the pollers count as not polling, unless another succeeds: a failed one is
// tried again within seconds.
const pollGrace = 10 * time.Second

// pollers knows whether workers in this process really poll, from the answers to their polls.
type pollers struct {
	now func() time.Time

	mu     sync.Mutex
	queues map[string]*queue
}

type queue struct {
	waiting  int // polls that Temporal holds open
	answered time.Time
	failed   time.Time
	err      error
}

func newPollers(now func() time.Time) *pollers {
	return &pollers{now: now, queues: map[string]*queue{}}
}

func (p *pollers) intercept(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	poll, ok := req.(*workflowservice.PollWorkflowTaskQueueRequest)
	if !ok {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	name := poll.GetTaskQueue().GetNormalName()
	if name == "" {
		name = poll.GetTaskQueue().GetName()
	}
	p.change(name, func(q *queue) { q.waiting++ })
	err := invoke(ctx, method, req, reply, cc, opts...)
	p.change(name, func(q *queue) {
		q.waiting--
		switch {
		case err == nil:
			q.answered = p.now()
		case ctx.Err() == nil || !errors.Is(ctx.Err(), context.Canceled):
			q.failed, q.err = p.now(), err
		}
	})
	return err
}

func (p *pollers) change(name string, fn func(*queue)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.queues[name]
	if q == nil {
		q = &queue{}
		p.queues[name] = q
	}
	fn(q)
}

// check returns why a task queue is not polled from here, or nil.
func (p *pollers) check(name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.queues[name]
	switch {
	case q == nil || (q.waiting == 0 && q.answered.IsZero() && q.err == nil):
		return fmt.Errorf("task queue %q is not polled yet", name)
	case q.err != nil && q.failed.After(q.answered) && p.now().Sub(q.failed) < pollGrace:
		return fmt.Errorf("polling task queue %q: %w", name, q.err)
	case q.waiting == 0 && p.now().Sub(q.answered) > pollGrace:
		return fmt.Errorf("task queue %q has not been polled for %s", name, p.now().Sub(q.answered).Round(time.Second))
	default:
		return nil
	}
}
