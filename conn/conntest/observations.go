package conntest

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"
)

// Polls counts the polls of a task queue that are open.
type Polls struct {
	Workflow int // of the queue itself
	Sticky   int // of the queues that workers have beside it for the workflows they hold in memory
	Activity int
	Nexus    int
}

// Total is the number of polls of all kinds.
func (p Polls) Total() int { return p.Workflow + p.Sticky + p.Activity + p.Nexus }

// Connections counts the connections open now, those of Forget and Mute included until their clients have left.
func (f *Frontend) Connections() int { return f.port.Connections() }

// Accepted counts the connections there ever were.
func (f *Frontend) Accepted() int { return f.port.Accepted() }

// Calls counts the calls of a method that have ever arrived, refused ones included. A method is named as for Fail; "" is all.
func (f *Frontend) Calls(method string) int {
	f.seen.mu.Lock()
	defer f.seen.mu.Unlock()
	n := 0
	for full, count := range f.seen.calls {
		if method == "" || method == full || method == path.Base(full) {
			n += count
		}
	}
	return n
}

// Pollers counts the polls of a task queue that are open now, in whatever namespace.
func (f *Frontend) Pollers(taskQueue string) Polls {
	f.seen.mu.Lock()
	defer f.seen.mu.Unlock()
	return f.seen.polls[taskQueue]
}

// Starts lists the requests to start a workflow that no fault kept from Temporal, in their order. One that was sent twice is listed
// twice, and so is one that Temporal refuses.
func (f *Frontend) Starts() []*workflowservice.StartWorkflowExecutionRequest {
	f.seen.mu.Lock()
	defer f.seen.mu.Unlock()
	return slices.Clone(f.seen.starts)
}

// Await waits until a condition on what the other methods count holds. It is asked again after every change of it, and must not wait.
func (f *Frontend) Await(ctx context.Context, condition func() bool) error {
	for {
		changed := f.seen.changes.next()
		if condition() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-f.ended:
			return errors.New("the frontend is closed")
		}
	}
}

// AwaitPollers waits until a task queue has at least n open polls of any kind.
func (f *Frontend) AwaitPollers(ctx context.Context, taskQueue string, n int) error {
	if err := f.Await(ctx, func() bool { return f.Pollers(taskQueue).Total() >= n }); err != nil {
		return fmt.Errorf("await %d polls of %q, there are %+v: %w", n, taskQueue, f.Pollers(taskQueue), err)
	}
	return nil
}

// AwaitCalls waits until at least n calls of a method, named as for Fail, have ever arrived.
func (f *Frontend) AwaitCalls(ctx context.Context, method string, n int) error {
	if err := f.Await(ctx, func() bool { return f.Calls(method) >= n }); err != nil {
		return fmt.Errorf("await %d calls of %q, there were %d: %w", n, method, f.Calls(method), err)
	}
	return nil
}

// observations are what calls have told.
type observations struct {
	changes signal

	mu     sync.Mutex
	calls  map[string]int // by full method
	polls  map[string]Polls
	starts []*workflowservice.StartWorkflowExecutionRequest
}

// arrived counts a call.
func (o *observations) arrived(method string) {
	o.mu.Lock()
	if o.calls == nil {
		o.calls = map[string]int{}
	}
	o.calls[method]++
	o.mu.Unlock()
	o.changes.fire()
}

// admitted notes a call that is being carried out; the function returned is for its end.
func (o *observations) admitted(request proto.Message) (ended func()) {
	if start, ok := request.(*workflowservice.StartWorkflowExecutionRequest); ok {
		o.mu.Lock()
		o.starts = append(o.starts, start)
		o.mu.Unlock()
		o.changes.fire()
	}
	queue, kind := polled(request)
	if kind == nil {
		return func() {}
	}
	count := func(n int) {
		o.mu.Lock()
		if o.polls == nil {
			o.polls = map[string]Polls{}
		}
		polls := o.polls[queue]
		*kind(&polls) += n
		o.polls[queue] = polls
		o.mu.Unlock()
		o.changes.fire()
	}
	count(1)
	return func() { count(-1) }
}

// polled tells which task queue a request polls, and as what; nil if it is no poll.
func polled(request proto.Message) (string, func(*Polls) *int) {
	switch r := request.(type) {
	case *workflowservice.PollWorkflowTaskQueueRequest:
		if r.GetTaskQueue().GetKind() == enumspb.TASK_QUEUE_KIND_STICKY {
			return normalName(r.GetTaskQueue()), func(p *Polls) *int { return &p.Sticky }
		}
		return r.GetTaskQueue().GetName(), func(p *Polls) *int { return &p.Workflow }
	case *workflowservice.PollActivityTaskQueueRequest:
		return r.GetTaskQueue().GetName(), func(p *Polls) *int { return &p.Activity }
	case *workflowservice.PollNexusTaskQueueRequest:
		return r.GetTaskQueue().GetName(), func(p *Polls) *int { return &p.Nexus }
	}
	return "", nil
}

// normalName is the queue that a sticky one belongs to.
func normalName(queue *taskqueuepb.TaskQueue) string {
	if name := queue.GetNormalName(); name != "" {
		return name
	}
	return queue.GetName()
}

// signal tells any number of waiters that something has changed. Its zero value is ready.
type signal struct {
	mu sync.Mutex
	ch chan struct{}
}

// next is closed by the next fire.
func (s *signal) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *signal) fire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}
