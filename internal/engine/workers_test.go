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
	"github.com/signalbox-dev/signalbox/internal/engine"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/project"
)

// PollWorkflowTaskQueue holds polls open, as Temporal does where there is nothing to do.
func (f *frontend) PollWorkflowTaskQueue(ctx context.Context, r *workflowservice.PollWorkflowTaskQueueRequest) (*workflowservice.PollWorkflowTaskQueueResponse, error) {
	f.note("poll %s", r.GetTaskQueue().GetName())
	<-ctx.Done()
	return &workflowservice.PollWorkflowTaskQueueResponse{}, nil
}

// PollActivityTaskQueue holds polls open too.
func (f *frontend) PollActivityTaskQueue(ctx context.Context, _ *workflowservice.PollActivityTaskQueueRequest) (*workflowservice.PollActivityTaskQueueResponse, error) {
	<-ctx.Done()
	return &workflowservice.PollActivityTaskQueueResponse{}, nil
}

// tenants are the projects there are.
type tenants struct {
	mu    sync.Mutex
	names []string
	err   error
}

func (p *tenants) ListProjects(_ context.Context, after string, limit int) ([]project.Project, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []project.Project
	for _, name := range p.names {
		if name > after && len(list) < limit {
			list = append(list, project.Project{Name: name})
		}
	}
	return list, p.err
}

func (p *tenants) be(err error, names ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.names, p.err = names, err
}

// noCalls are the calls of a process whose runs make none.
type noCalls struct{}

func (noCalls) Call(context.Context, flow.HTTPRequest) (flow.HTTPResponse, error) {
	return flow.HTTPResponse{}, errors.New("nothing calls")
}

func (noCalls) Attach(context.Context, flow.AttachRequest) (flow.HTTPResponse, error) {
	return flow.HTTPResponse{}, errors.New("nothing calls")
}

func (noCalls) Queue() string         { return "calls" }
func (noCalls) Drain(context.Context) {}

// work starts workers and stops them when the test ends.
func work(t *testing.T, e *engine.Engine, projects engine.Projects, only ...string) *engine.Workers {
	t.Helper()
	w := engine.NewWorkers(e, projects, noCalls{}, engine.WorkerOptions{
		Projects: only, WorkflowTasks: 4, Activities: 4, LocalActivities: 4, StopTimeout: time.Second,
	})
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, w.Start(ctx))
	cancel() // whoever started them may be gone
	whole := t.Context()
	t.Cleanup(func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(whole), time.Minute)
		defer cancel()
		require.NoError(t, w.Stop(stopping))
	})
	return w
}

// polled are the projects whose queues were polled, in order.
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

// requirePolled waits until the queues of these projects are polled, and no others.
func (f *frontend) requirePolled(t *testing.T, names ...string) {
	t.Helper()
	require.Eventually(t, func() bool { return len(f.polled()) >= len(names) }, time.Minute, 10*time.Millisecond)
	require.Equal(t, names, f.polled())
}

func ready(t *testing.T, w *engine.Workers) {
	t.Helper()
	require.Eventually(t, func() bool { return w.Check(t.Context()) == nil }, time.Minute, 10*time.Millisecond)
}

func TestWorkersServeEveryProject(t *testing.T) {
	t.Parallel()
	f, projects := serve(t), &tenants{names: []string{"default", "team-7"}}
	e, _ := connect(t, f.address, &shelf{})
	w := work(t, e, projects)
	ready(t, w)
	f.requirePolled(t, "default", "team-7")

	// A project that is made later is served too, and a store that is away does not stop what runs.
	projects.be(nil, "default", "later", "team-7")
	f.requirePolled(t, "default", "later", "team-7")
	ready(t, w)
	projects.be(errors.New("the store is away"))
	require.Eventually(t, func() bool { return w.Check(t.Context()) != nil }, time.Minute, 10*time.Millisecond)
	require.EqualError(t, w.Check(t.Context()), "the store is away")
}

// TestWorkersDoWhatElseThereIs has another part of the process put its own work on the workers of each project.
func TestWorkersDoWhatElseThereIs(t *testing.T) {
	t.Parallel()
	f := serve(t)
	e, _ := connect(t, f.address, &shelf{})
	var mu sync.Mutex
	var extended, served []string
	note := func(list *[]string, name string) {
		mu.Lock()
		defer mu.Unlock()
		*list = append(*list, name)
	}
	w := engine.NewWorkers(e, &tenants{names: []string{"default", "team-7"}}, noCalls{}, engine.WorkerOptions{
		WorkflowTasks: 4, Activities: 4, LocalActivities: 4, StopTimeout: time.Second,
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
	require.Equal(t, [][]string{{"default", "team-7"}, {"default", "team-7"}}, [][]string{slices.Compact(extended), served})
}

func TestWorkersServeOnlyWhatTheyAreToldTo(t *testing.T) {
	t.Parallel()
	f := serve(t)
	e, _ := connect(t, f.address, &shelf{})
	ready(t, work(t, e, &tenants{err: errors.New("not to be asked")}, "team-7"))
	f.requirePolled(t, "team-7")
}

func TestWorkersAreNotReadyWithoutProjects(t *testing.T) {
	t.Parallel()
	f := serve(t)
	e, _ := connect(t, f.address, &shelf{})
	w := work(t, e, &tenants{})
	require.EqualError(t, w.Check(t.Context()), "no project is served yet")
}

func TestWorkersWaitForTemporal(t *testing.T) {
	t.Parallel()
	f := serve(t)
	f.namespace = func(context.Context) error { return serviceerror.NewNamespaceNotFound("ns") }
	e, _, m := reach(t, f.address, &shelf{})
	w := work(t, e, &tenants{names: []string{"default"}})
	require.Eventually(t, func() bool { return m.Status().Kind == conn.NamespaceMissing }, time.Minute, 10*time.Millisecond)
	require.Eventually(t, func() bool { return len(m.Status().Workers) == 2 }, time.Minute, 10*time.Millisecond)
	requireFault(t, w.Check(t.Context()), fault.Unavailable, fault.EngineUnavailable, `has no namespace "ns"`)
	require.Empty(t, f.polled())

	f.set(func() { f.namespace = nil })
	ready(t, w)
	f.requirePolled(t, "default")
}

func TestWorkersStopWhereNobodyListens(t *testing.T) {
	t.Parallel()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	e, _, _ := reach(t, listener.Addr().String(), &shelf{})
	w := work(t, e, &tenants{names: []string{"default"}})
	require.Error(t, w.Check(t.Context()))
}
