package engine_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/engine"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
)

// PollWorkflowTaskQueue holds polls open, like Temporal without tasks.
func (f *frontend) PollWorkflowTaskQueue(ctx context.Context,
	r *workflowservice.PollWorkflowTaskQueueRequest) (*workflowservice.PollWorkflowTaskQueueResponse, error) {
	f.note("poll %s", r.GetTaskQueue().GetName())
	<-ctx.Done()
	return &workflowservice.PollWorkflowTaskQueueResponse{}, nil
}

// PollActivityTaskQueue holds polls open too.
func (f *frontend) PollActivityTaskQueue(ctx context.Context,
	_ *workflowservice.PollActivityTaskQueueRequest) (*workflowservice.PollActivityTaskQueueResponse, error) {
	<-ctx.Done()
	return &workflowservice.PollActivityTaskQueueResponse{}, nil
}

// fakeProjects lists the projects that are to be served.
type fakeProjects struct {
	mu    sync.Mutex
	names []string
	err   error
}

func (p *fakeProjects) Served(context.Context) ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.names), p.err
}

func (p *fakeProjects) set(err error, names ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.names, p.err = names, err
}

// noCalls implements the calls of a process without calls.
type noCalls struct{}

func (noCalls) Call(context.Context, flow.HTTPRequest) (flow.HTTPResponse, error) {
	return flow.HTTPResponse{}, errors.New("nothing calls")
}

func (noCalls) Attach(context.Context, flow.AttachRequest) (flow.HTTPResponse, error) {
	return flow.HTTPResponse{}, errors.New("nothing calls")
}

func (noCalls) Queue() string         { return "calls" }
func (noCalls) Drain(context.Context) {}

// startWorkers starts workers and stops them when the test ends.
func startWorkers(t *testing.T, e *engine.Engine, projects engine.Projects, only ...string) *engine.Workers {
	t.Helper()
	return startWith(t, e, projects, engine.WorkerOptions{
		Projects: only, WorkflowTasks: 4, Activities: 4, LocalActivities: 4, StopTimeout: time.Second,
	})
}

// startWith is startWorkers with other options.
func startWith(t *testing.T, e *engine.Engine, projects engine.Projects, o engine.WorkerOptions) *engine.Workers {
	t.Helper()
	o.Turns = engine.NewTurns(1)
	w := engine.NewWorkers(e, projects, noCalls{}, o)
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, w.Start(ctx))
	cancel() // the workers outlive the context of their start
	whole := t.Context()
	t.Cleanup(func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(whole), time.Minute)
		defer cancel()
		require.NoError(t, w.Stop(stopping))
	})
	return w
}

// polled returns the projects with polled queues, in order.
func (f *frontend) polled() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	for _, call := range f.calls {
		if name, ok := strings.CutPrefix(call, "poll signalbox-"); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// requirePolled waits until exactly the queues of these projects are polled.
func (f *frontend) requirePolled(t *testing.T, names ...string) {
	t.Helper()
	require.Eventually(t, func() bool { return len(f.polled()) >= len(names) }, time.Minute, 10*time.Millisecond)
	require.Equal(t, names, f.polled())
}

func ready(t *testing.T, w *engine.Workers) {
	t.Helper()
	require.Eventually(t, func() bool { return w.Check(t.Context()) == nil }, time.Minute, 10*time.Millisecond)
}

// A worker with one slot for activities is not busy while it executes none.
func TestIdleWorkerIsNotBusy(t *testing.T) {
	t.Parallel()
	f, projects := serve(t), &fakeProjects{names: []string{"default"}}
	e, _ := connect(t, f.address, &fakeSource{})
	w := startWith(t, e, projects,
		engine.WorkerOptions{WorkflowTasks: 4, Activities: 1, LocalActivities: 4, StopTimeout: time.Second})
	ready(t, w)
	f.requirePolled(t, "default")
	require.Never(t, func() bool { return len(w.Busy()) > 0 }, 300*time.Millisecond, 5*time.Millisecond)
}

func TestWorkersServeEveryProject(t *testing.T) {
	t.Parallel()
	f, projects := serve(t), &fakeProjects{names: []string{"default", "team-7"}}
	e, _ := connect(t, f.address, &fakeSource{})
	w := startWorkers(t, e, projects)
	ready(t, w)
	f.requirePolled(t, "default", "team-7")

	// A project that is created later is served too, and an unavailable store does not stop running workers.
	projects.set(nil, "default", "later", "team-7")
	f.requirePolled(t, "default", "later", "team-7")
	ready(t, w)
	projects.set(errors.New("the store is away"))
	require.Eventually(t, func() bool { return w.Check(t.Context()) != nil }, time.Minute, 10*time.Millisecond)
	require.EqualError(t, w.Check(t.Context()), "the store is away")
}

// TestWorkersExtend registers further work on the workers of each project.
func TestWorkersExtend(t *testing.T) {
	t.Parallel()
	f := serve(t)
	e, _ := connect(t, f.address, &fakeSource{})
	var mu sync.Mutex
	var extended, served []string
	note := func(list *[]string, name string) {
		mu.Lock()
		defer mu.Unlock()
		*list = append(*list, name)
	}
	w := engine.NewWorkers(e, &fakeProjects{names: []string{"default", "team-7"}}, noCalls{}, engine.WorkerOptions{
		WorkflowTasks: 4, Activities: 4, LocalActivities: 4, StopTimeout: time.Second, Turns: engine.NewTurns(1),
		Extend: func(name string, r worker.Registry) {
			r.RegisterActivityWithOptions(func(context.Context) error { return nil }, activity.RegisterOptions{Name: "extra"})
			note(&extended, name)
		},
		Served: func(name string) { note(&served, name) },
	})
	require.NoError(t, w.Start(t.Context()))
	ctx := t.Context()
	t.Cleanup(func() { require.NoError(t, w.Stop(context.WithoutCancel(ctx))) })
	ready(t, w)
	mu.Lock()
	defer mu.Unlock()
	slices.Sort(extended)
	require.Equal(t, [][]string{{"default", "team-7"}, {"default", "team-7"}},
		[][]string{slices.Compact(extended), served})
}

func TestWorkersServeOnlyTheConfiguredProjects(t *testing.T) {
	t.Parallel()
	f := serve(t)
	e, _ := connect(t, f.address, &fakeSource{})
	ready(t, startWorkers(t, e, &fakeProjects{names: []string{"default", "team-7"}}, "team-7"))
	f.requirePolled(t, "team-7")
}

// All projects may be parked.
func TestWorkersAreReadyWithoutProjects(t *testing.T) {
	t.Parallel()
	f := serve(t)
	e, _ := connect(t, f.address, &fakeSource{})
	projects := &fakeProjects{err: errors.New("the store is away")}
	w := startWorkers(t, e, projects)
	require.Error(t, w.Check(t.Context()), "the projects to serve are not known")
	projects.set(nil)
	ready(t, w)
	require.Empty(t, f.polled())
}

// A parked project is not polled, and its dispatcher is ended. The process serves it again when it is woken.
func TestWorkersLeaveParkedProjects(t *testing.T) {
	t.Parallel()
	f, projects := serve(t), &fakeProjects{names: []string{"default", "team-7"}}
	e, _, m := reach(t, f.address, &fakeSource{})
	served, retired := make(chan string, 10), make(chan string, 10)
	unreachable := make(chan error, 1)
	unreachable <- errors.New("no connection")
	w := startWith(t, e, projects, engine.WorkerOptions{
		WorkflowTasks: 4, Activities: 4, LocalActivities: 4, StopTimeout: time.Second,
		Served: func(name string) { served <- name },
		Owns:   func(string) bool { return true },
		Retire: func(_ context.Context, name string) error {
			select {
			case err := <-unreachable:
				return err
			default:
				retired <- name
				return nil
			}
		},
	})
	ready(t, w)
	require.ElementsMatch(t, []string{"default", "team-7"}, []string{<-served, <-served})
	projects.set(nil, "default")
	require.Equal(t, "team-7", <-retired, "after an error it is tried again")
	require.Eventually(t, func() bool {
		return len(m.Status().Workers) == 2 // that of the other project, and that of handed-over calls
	}, time.Minute, 10*time.Millisecond)
	ready(t, w)
	projects.set(nil, "default", "team-7")
	w.Wake()
	require.Equal(t, "team-7", <-served)
	require.Eventually(t, func() bool { return m.Polling("team-7") }, time.Minute, 10*time.Millisecond)
	require.Empty(t, retired)
}

func TestWorkersWaitForTemporal(t *testing.T) {
	t.Parallel()
	f := serve(t)
	f.namespace = func(context.Context) error { return serviceerror.NewNamespaceNotFound("ns") }
	e, _, m := reach(t, f.address, &fakeSource{})
	w := startWorkers(t, e, &fakeProjects{names: []string{"default"}})
	require.Eventually(t, func() bool {
		return m.Status().Kind == conn.NamespaceMissing
	}, time.Minute, 10*time.Millisecond)
	require.Eventually(t, func() bool { return len(m.Status().Workers) == 2 }, time.Minute, 10*time.Millisecond)
	requireError(t, w.Check(t.Context()), apperror.Unavailable, apperror.EngineUnavailable, `has no namespace "ns"`)
	require.Empty(t, f.polled())

	f.set(func() { f.namespace = nil })
	ready(t, w)
	f.requirePolled(t, "default")
}

func TestWorkersStopWithoutTemporal(t *testing.T) {
	t.Parallel()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	e, _, _ := reach(t, listener.Addr().String(), &fakeSource{})
	w := startWorkers(t, e, &fakeProjects{names: []string{"default"}})
	require.Error(t, w.Check(t.Context()))
}
