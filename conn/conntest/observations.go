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
	Sticky   int // of the workers' sticky queues
	Activity int
	Nexus    int
}

// Total returns the number of polls of all kinds.
func (p Polls) Total() int { return p.Workflow + p.Sticky + p.Activity + p.Nexus }

// Connections returns the number of open connections. Those of LoseConnections and Mute count until their clients close
// them.
func (f *Frontend) Connections() int { return f.port.Connections() }

// Accepted returns the number of connections accepted since New.
func (f *Frontend) Accepted() int { return f.port.Accepted() }

// Calls returns the number of calls of a method since New, refused ones included. A method is named as for Fail; "" is
// all.
func (f *Frontend) Calls(method string) int {
	f.observations.mu.Lock()
	defer f.observations.mu.Unlock()
	n := 0
	for full, count := range f.observations.calls {
		if method == "" || method == full || method == path.Base(full) {
			n += count
		}
	}
	return n
}

// Pollers returns the number of open polls of a task queue, in all namespaces.
func (f *Frontend) Pollers(taskQueue string) Polls {
	f.observations.mu.Lock()
	defer f.observations.mu.Unlock()
	return f.observations.polls[taskQueue]
}

// Starts returns the requests to start a workflow that were not stopped by a fault, in order of arrival. A request that
// was sent twice is listed twice. Requests that Temporal refuses are listed too.
func (f *Frontend) Starts() []*workflowservice.StartWorkflowExecutionRequest {
	f.observations.mu.Lock()
	defer f.observations.mu.Unlock()
	return slices.Clone(f.observations.starts)
}

// Await waits until a condition on the counts of the other methods holds. The condition is evaluated after every change
// of a count, and must not block.
func (f *Frontend) Await(ctx context.Context, condition func() bool) error {
	for {
		changed := f.observations.changes.next()
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

// AwaitCalls waits until at least n calls of a method, named as for Fail, have arrived since New.
func (f *Frontend) AwaitCalls(ctx context.Context, method string, n int) error {
	if err := f.Await(ctx, func() bool { return f.Calls(method) >= n }); err != nil {
		return fmt.Errorf("await %d calls of %q, there were %d: %w", n, method, f.Calls(method), err)
	}
	return nil
}

// observations counts calls and polls.
type observations struct {
	changes broadcast

	mu     sync.Mutex
	calls  map[string]int // by full method
	polls  map[string]Polls
	starts []*workflowservice.StartWorkflowExecutionRequest
}

// recordArrival counts a call.
func (o *observations) recordArrival(method string) {
	o.mu.Lock()
	if o.calls == nil {
		o.calls = map[string]int{}
	}
	o.calls[method]++
	o.mu.Unlock()
	o.changes.fire()
}

// recordAdmission records a call that is executed. The function that it returns must be called at the end of the call.
func (o *observations) recordAdmission(request proto.Message) (ended func()) {
	if start, ok := request.(*workflowservice.StartWorkflowExecutionRequest); ok {
		o.mu.Lock()
		o.starts = append(o.starts, start)
		o.mu.Unlock()
		o.changes.fire()
	}
	queue, kind := pollOf(request)
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

// pollOf returns the task queue that a request polls and the counter of its kind; nil if it is no poll.
func pollOf(request proto.Message) (string, func(*Polls) *int) {
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

// normalName returns the queue that a sticky queue belongs to.
func normalName(queue *taskqueuepb.TaskQueue) string {
	if name := queue.GetNormalName(); name != "" {
		return name
	}
	return queue.GetName()
}

// broadcast wakes any number of waiters. Its zero value is ready to use.
type broadcast struct {
	mu sync.Mutex
	ch chan struct{}
}

// next returns a channel that the next fire closes.
func (s *broadcast) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *broadcast) fire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}
