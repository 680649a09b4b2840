package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/fairshare"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/kin"
	"github.com/signalbox-dev/signalbox/internal/project"
)

const (
	// refreshEvery is how soon a new project is served.
	refreshEvery = 3 * time.Second
	// maxAttached is how many handed over calls a process waits for at once: more than it can have.
	maxAttached = 10_000
	// longestCompute is how long a run may compute without a pause: a little less than the second of the SDK's deadlock detector.
	longestCompute = 950 * time.Millisecond
	// projectPage is how many projects are read at a time.
	projectPage = 500
)

// Calls performs the calls that runs make.
type Calls interface {
	// Call implements flow.HTTPActivity and flow.CredentialsActivity.
	Call(ctx context.Context, request flow.HTTPRequest) (flow.HTTPResponse, error)
	// Attach implements flow.AttachActivity, on the task queue Queue.
	Attach(ctx context.Context, request flow.AttachRequest) (flow.HTTPResponse, error)
	Queue() string
	// Drain waits until what was handed over has ended, and cancels what has not when ctx ends.
	Drain(ctx context.Context)
}

// Projects lists what there is to serve.
type Projects interface {
	ListProjects(ctx context.Context, after string, limit int) ([]project.Project, error)
}

// WorkerOptions shape the workers of a process.
type WorkerOptions struct {
	// Projects to serve; empty: all there are.
	Projects []string
	// The bounds of each project's worker.
	WorkflowTasks, Activities, LocalActivities int
	// StopTimeout is how long activities may go on when the process stops.
	StopTimeout time.Duration
	// Events is for what runs listen to and emit; where it is nil they do neither.
	Events Events
	// Children starts runs on behalf of others; where it is nil no run may.
	Children kin.Children
	// Quota grants steps; where it is nil no run may have a quota of them.
	Quota flow.Quota
	// Extend adds what else the worker of a project's task queue does, each time one is made; may be nil.
	Extend func(project string, r worker.Registry)
	// Served is told of each project that is served from now on; may be nil. It must not block.
	Served func(project string)
}

// Workers are this process's workers: one worker set per project, on the project's task queue. The connection starts them,
// replaces them and knows whether they poll.
type Workers struct {
	engine   *Engine
	projects Projects
	calls    Calls
	opts     WorkerOptions
	shares   *fairshare.Scheduler

	mu      sync.Mutex
	serving map[string]bool
	taking  bool // calls that local activities hand over
	listErr error

	life   context.Context //nolint:containedctx // the workers' lifetime, which bounds the loading of documents
	cancel context.CancelFunc
	done   chan struct{}
}

// NewWorkers returns the workers; none polls before Start.
func NewWorkers(engine *Engine, projects Projects, calls Calls, opts WorkerOptions) *Workers {
	return &Workers{
		engine: engine, projects: projects, calls: calls, opts: opts, shares: fairshare.New(runtime.GOMAXPROCS(0)),
		serving: map[string]bool{}, done: make(chan struct{}),
	}
}

// Start begins to serve. It waits neither for Temporal nor for the database.
func (w *Workers) Start(ctx context.Context) error {
	loopCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w.life, w.cancel = context.WithoutCancel(ctx), cancel
	go w.loop(loopCtx)
	return nil
}

// Stop stops polling and lets running activities finish within their budget. The worker that takes over calls is the last to stop: until
// then the others hand calls over.
func (w *Workers) Stop(ctx context.Context) error {
	w.cancel()
	<-w.done
	begun := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	var (
		group sync.WaitGroup
		errs  = make([]error, len(w.serving))
		i     = 0
	)
	for name := range w.serving {
		at := &errs[i]
		group.Go(func() { *at = w.engine.conn.Unregister(ctx, name) })
		i++
	}
	group.Wait()
	w.serving = map[string]bool{}
	if w.taking {
		draining, cancel := context.WithDeadline(ctx, begun.Add(w.opts.StopTimeout))
		w.calls.Drain(draining)
		cancel()
		errs = append(errs, w.engine.conn.Unregister(ctx, contract.HandedOverCalls))
		w.taking = false
	}
	return errors.Join(errs...)
}

// Check tells what keeps a project from being served from here, or nil.
func (w *Workers) Check(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listErr != nil {
		return w.listErr
	}
	if len(w.serving) == 0 {
		return errors.New("no project is served yet")
	}
	if _, err := w.engine.temporal(); err != nil {
		return err
	}
	for _, set := range w.engine.conn.Status().Workers {
		switch {
		case !w.serving[set.Name] || set.Polling:
		case set.Error != "":
			return fmt.Errorf("the task queue of project %q is not polled: %s", set.Name, set.Error)
		default:
			return fmt.Errorf("the task queue of project %q is not polled yet", set.Name)
		}
	}
	return nil
}

func (w *Workers) loop(ctx context.Context) {
	defer close(w.done)
	ticker := time.NewTicker(refreshEvery)
	defer ticker.Stop()
	for {
		w.refresh(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// refresh sees to it that every project has a worker set.
func (w *Workers) refresh(ctx context.Context) {
	names, err := w.wanted(ctx)
	if ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listErr = err; err != nil {
		w.engine.log.WarnContext(ctx, "Projects could not be listed", "error", err)
		return
	}
	if !w.taking {
		if w.listErr = w.engine.conn.Register(contract.HandedOverCalls, w.buildCalls); w.listErr != nil {
			return
		}
		w.taking = true
	}
	for _, name := range names {
		if w.serving[name] {
			continue
		}
		if err := w.engine.conn.Register(name, func(c client.Client) (worker.Worker, error) { return w.build(c, name) }); err != nil {
			w.listErr = err
			continue
		}
		w.serving[name] = true
		if w.opts.Served != nil {
			w.opts.Served(name)
		}
	}
}

func (w *Workers) wanted(ctx context.Context) ([]string, error) {
	if len(w.opts.Projects) > 0 {
		return w.opts.Projects, nil
	}
	var names []string
	for after := ""; ; {
		page, err := w.projects.ListProjects(ctx, after, projectPage)
		if err != nil {
			return nil, err
		}
		for _, p := range page {
			names = append(names, p.Name)
		}
		if len(page) < projectPage {
			return names, nil
		}
		after = page[len(page)-1].Name
	}
}

// buildCalls makes the worker that takes over calls from the local activities of this process.
func (w *Workers) buildCalls(c client.Client) (worker.Worker, error) {
	fresh := worker.New(c, w.calls.Queue(), worker.Options{
		DisableWorkflowWorker:              true,
		MaxConcurrentActivityExecutionSize: maxAttached,
		MaxHeartbeatThrottleInterval:       flow.HeartbeatsWithin,
		WorkerStopTimeout:                  w.opts.StopTimeout,
	})
	fresh.RegisterActivityWithOptions(w.calls.Attach, activity.RegisterOptions{Name: flow.AttachActivity})
	return fresh, nil
}

// tuner bounds what the worker of a project does at a time.
func (w *Workers) tuner(name string) (worker.WorkerTuner, error) {
	workflowTasks, err := w.shares.Slots(name, w.opts.WorkflowTasks)
	if err != nil {
		return nil, err
	}
	fixed := func(size int) worker.SlotSupplier {
		supplier, fixedErr := worker.NewFixedSizeSlotSupplier(size)
		err = errors.Join(err, fixedErr)
		return supplier
	}
	options := worker.CompositeTunerOptions{
		WorkflowSlotSupplier: workflowTasks, ActivitySlotSupplier: fixed(w.opts.Activities),
		LocalActivitySlotSupplier: fixed(w.opts.LocalActivities),
		// Nothing of ours uses these two; a tuner needs them.
		NexusSlotSupplier: fixed(1), SessionActivitySlotSupplier: fixed(1),
	}
	if err != nil {
		return nil, fmt.Errorf("making the slots of project %q: %w", name, err)
	}
	return worker.NewCompositeTuner(options) //nolint:wrapcheck // it checks the options above
}

func (w *Workers) build(c client.Client, name string) (worker.Worker, error) {
	tuner, err := w.tuner(name)
	if err != nil {
		return nil, err
	}
	fresh := worker.New(c, contract.TaskQueue(name), worker.Options{
		Tuner: tuner, MaxHeartbeatThrottleInterval: flow.HeartbeatsWithin, WorkerStopTimeout: w.opts.StopTimeout,
	})
	interpreter := flow.New(w.life, w.engine.documents, w.engine.tap, w.engine.limits).Share(w.shares).StopAfter(longestCompute)
	fresh.RegisterWorkflowWithOptions(interpreter.Run, workflow.RegisterOptions{Name: contract.RunWorkflow})
	fresh.RegisterActivityWithOptions(w.calls.Call, activity.RegisterOptions{Name: flow.HTTPActivity})
	fresh.RegisterActivityWithOptions(w.calls.Call, activity.RegisterOptions{Name: flow.CredentialsActivity})
	fresh.RegisterActivityWithOptions(flow.Barrier, activity.RegisterOptions{Name: flow.BarrierActivity})
	if w.opts.Events != nil {
		RegisterEvents(fresh, w.opts.Events)
	}
	if w.opts.Children != nil {
		kin.Register(fresh, w.opts.Children)
	}
	if w.opts.Quota != nil {
		fresh.RegisterActivityWithOptions(w.opts.Quota, activity.RegisterOptions{Name: flow.QuotaActivity})
	}
	if w.opts.Extend != nil {
		w.opts.Extend(name, fresh)
	}
	return fresh, nil
}
