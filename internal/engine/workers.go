package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/schedule"
	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/internal/quota"
	"github.com/signalbox-dev/signalbox/internal/semaphore"
	registry "github.com/signalbox-dev/signalbox/internal/worker"
)

// runBytes is what the state of an open run with small values needs in a worker on average: 10,300 runs that wait need
// 700 MB (docs/sizing.md).
const runBytes = 72 << 10

// CachedRuns returns how many open runs a cache of so many bytes has.
func CachedRuns(bytes int64) int { return int(max(1, bytes/runBytes)) }

const (
	// maxAttached is the number of handed over calls that a process waits for at once. It cannot have as many.
	maxAttached = 10_000
	// longestCompute is the processor time for which a run may compute without a pause.
	longestCompute = 950 * time.Millisecond
	// longestTask is the time by the clock for which a run may occupy its workflow goroutine: what a workflow task's ten
	// seconds leave after its transfer. Besides computing, a run encodes several values of up to 16 MiB, which takes a
	// second of a processor, and several seconds where the process gets a quarter of one.
	longestTask = 9 * time.Second
	// firePollers is the maximum number of pollers of each kind for the fires of schedules, of all projects together.
	firePollers = 4
)

// Calls performs the calls of runs.
type Calls interface {
	// Call implements flow.HTTPActivity and flow.CredentialsActivity.
	Call(ctx context.Context, request flow.HTTPRequest) (flow.HTTPResponse, error)
	// Attach implements flow.AttachActivity, on the task queue Queue.
	Attach(ctx context.Context, request flow.AttachRequest) (flow.HTTPResponse, error)
	Queue() string
	// Drain waits until the calls that were handed over have ended, and cancels the rest when ctx ends.
	Drain(ctx context.Context)
}

// Quota grants steps of the quotas of projects.
type Quota interface {
	Grant(ctx context.Context, r quota.Request) (quota.Grant, error)
}

// WorkerOptions configure the workers of a process.
type WorkerOptions struct {
	// Projects to serve. Empty: all projects.
	Projects []string
	// Limits of each project's worker.
	WorkflowTasks, Activities, LocalActivities int
	// StopTimeout is the time for which activities may continue when the process stops.
	StopTimeout time.Duration
	// Events implements listening and emitting. nil: runs do neither.
	Events Events
	// Publisher publishes the events of schedules. nil: none fire.
	Publisher schedule.Publisher
	// Children starts child runs. nil: runs start none.
	Children Children
	// Turns are those of the process.
	Turns *Turns
	// Quota grants steps. nil: runs have no quota of steps.
	Quota Quota
	// Runners returns the programs that a project may execute. nil: none.
	Runners func(ctx context.Context, project string) (PermittedPrograms, error)
	// Timers measures the timers of runs. nil: they are not measured. It must not block.
	Timers flow.Timers
	// Extend registers further workflows and activities on each new worker of a project's task queue. May be nil.
	Extend func(project string, r worker.Registry)
	// Served is called for each project when its service starts. May be nil. It must not block.
	Served func(project string)
	// Owns reports whether this process owns the dispatcher of a project. Retire ends the dispatcher if it does, and
	// reverses Served; after an error, the project is served until the next attempt. Both may be nil.
	Owns   func(project string) bool
	Retire func(ctx context.Context, project string) error
}

// Workers are this process's workers: one worker set per project, on the project's task queue. The connection starts
// and replaces them, and reports whether they poll.
type Workers struct {
	*loop.Loop
	served

	engine   *Engine
	projects Projects
	calls    Calls
	opts     WorkerOptions
	shared   bool // whether the worker sets that belong to no project are registered; guarded as the projects

	using sync.Mutex        // guards usage alone: workers are built while the other one is held
	usage map[string]*usage // of the running workers, by project

	life context.Context //nolint:containedctx // the workers' lifetime, which bounds the loading of documents; the root of activities
}

// NewWorkers returns the workers. None polls before Start.
func NewWorkers(engine *Engine, projects Projects, calls Calls, opts WorkerOptions) *Workers {
	w := &Workers{
		engine: engine, projects: projects, calls: calls, opts: opts,
		served: newServed(engine.manager, "", "the task queue", func() error {
			_, err := engine.temporal()
			return err
		}),
		usage: map[string]*usage{},
	}
	w.Loop = loop.New(func(ctx, work context.Context) time.Duration {
		w.refresh(ctx, work)
		return refreshEvery
	})
	return w
}

// Start starts the workers. It waits neither for Temporal nor for the database.
func (w *Workers) Start(ctx context.Context) error {
	w.life = context.WithoutCancel(ctx)
	return w.Loop.Start(ctx)
}

// Stop stops polling and lets running activities finish within StopTimeout. The worker for handed over calls stops
// last, because the others hand calls over until they stop.
func (w *Workers) Stop(ctx context.Context) error {
	if err := w.Loop.Stop(ctx); err != nil {
		return err
	}
	begun := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.unregister(ctx)
	if w.shared {
		draining, cancel := context.WithDeadline(ctx, begun.Add(w.opts.StopTimeout))
		w.calls.Drain(draining)
		cancel()
		if w.opts.Publisher != nil {
			err = errors.Join(err, w.engine.manager.Unregister(ctx, contract.Fires))
		}
		err = errors.Join(err, w.engine.manager.Unregister(ctx, contract.HandedOverCalls))
		w.shared = false
	}
	return err
}

// refresh registers a worker set for every project that is to be served and has none, and unregisters those of the
// others.
func (w *Workers) refresh(ctx, work context.Context) {
	names, err := list(ctx, w.opts.Projects, w.projects)
	if ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listErr = err; err != nil {
		w.engine.log.WarnContext(ctx, "Projects could not be listed", "error", err)
		return
	}
	if !w.shared {
		w.listErr = w.engine.manager.Register(contract.HandedOverCalls, w.buildCalls)
		if w.opts.Publisher != nil {
			w.listErr = errors.Join(w.listErr, w.engine.manager.Register(contract.Fires, w.buildFires))
		}
		w.shared = true
	}
	owns := w.opts.Owns
	if owns == nil {
		owns = func(string) bool { return false }
	}
	now := time.Now()
	begin, cease := changes(w.serving, names, owns, now)
	for _, name := range begin {
		fresh := w.register(name, now, func(c client.Client) (worker.Worker, error) { return w.build(c, name) })
		if fresh && w.opts.Served != nil {
			w.opts.Served(name)
		}
	}
	w.listed = true
	for _, name := range cease {
		w.Go(func() { w.cease(work, name) })
	}
}

// cease ceases to serve a parked project.
func (w *Workers) cease(ctx context.Context, name string) {
	left, err := w.leave(ctx, name, w.opts.Retire)
	if err != nil && ctx.Err() == nil {
		w.engine.log.WarnContext(ctx, "Parked project could not be left completely", "project", name, "left", left,
			"error", err)
	}
	if left {
		w.using.Lock()
		delete(w.usage, name)
		w.using.Unlock()
		w.Wake() // it may have been woken meanwhile
	}
}

// buildCalls returns the worker that continues the calls which local activities of this process hand over.
func (w *Workers) buildCalls(c client.Client) (worker.Worker, error) {
	fresh := worker.New(c, w.calls.Queue(), worker.Options{
		DisableWorkflowWorker:              true,
		MaxConcurrentActivityExecutionSize: maxAttached,
		MaxHeartbeatThrottleInterval:       flow.HeartbeatsWithin,
		WorkerStopTimeout:                  w.opts.StopTimeout,
		BackgroundActivityContext:          w.life,
		Interceptors:                       []interceptor.WorkerInterceptor{&activityLog{}},
	})
	fresh.RegisterActivityWithOptions(w.calls.Attach, activity.RegisterOptions{Name: flow.AttachActivity})
	return fresh, nil
}

// buildFires returns the worker for the fires of schedules, of all projects: a fire wakes its project if that is parked.
func (w *Workers) buildFires(c client.Client) (worker.Worker, error) {
	pollers := func(most int) worker.PollerBehavior {
		return worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{
			InitialNumberOfPollers: 1, MinimumNumberOfPollers: 1, MaximumNumberOfPollers: most})
	}
	fresh := worker.New(c, contract.FireQueue, worker.Options{
		WorkflowTaskPollerBehavior: pollers(firePollers), ActivityTaskPollerBehavior: pollers(firePollers),
		WorkerStopTimeout: w.opts.StopTimeout, BackgroundActivityContext: w.life,
		Interceptors: []interceptor.WorkerInterceptor{&activityLog{}},
	})
	schedule.Register(fresh, w.opts.Publisher, w.engine.schedules, w.opts.Children)
	return fresh, nil
}

// grant is the activity in which runs request steps.
func (w *Workers) grant(ctx context.Context, r flow.QuotaRequest) (flow.QuotaGrant, error) {
	g, err := w.opts.Quota.Grant(ctx,
		quota.Request{Project: r.Project, RunID: r.RunID, Granted: r.Granted, Entered: r.Used})
	return quotaGrant(g), err
}

// usage is the use of the slots of one worker.
type usage struct{ workflowTasks, activities slotUsage }

// BusySince is when its pollers of one kind began to wait for a free slot; zero while none do.
func (u *usage) BusySince() time.Time {
	if since := u.workflowTasks.BusySince(); !since.IsZero() {
		return since
	}
	return u.activities.BusySince()
}

// busyWorker is a worker that reports whether it is busy, for its connection.
type busyWorker struct {
	worker.Worker
	*usage
}

// Busy returns the projects for which the pollers of this process wait for a free slot.
func (w *Workers) Busy() []registry.Busy {
	w.using.Lock()
	defer w.using.Unlock()
	var list []registry.Busy
	for _, name := range slices.Sorted(maps.Keys(w.usage)) {
		b := registry.Busy{Project: name, WorkflowTasks: w.usage[name].workflowTasks.BusySince(),
			Activities: w.usage[name].activities.BusySince()}
		if !b.WorkflowTasks.IsZero() || !b.Activities.IsZero() {
			list = append(list, b)
		}
	}
	return list
}

// tuner limits the concurrent work of a project's worker.
func (w *Workers) tuner(name string, used *usage) (worker.WorkerTuner, error) {
	var err error
	fixed := func(size int) worker.SlotSupplier {
		supplier, fixedErr := worker.NewFixedSizeSlotSupplier(size)
		err = errors.Join(err, fixedErr)
		return supplier
	}
	held := func(size int, until *semaphore.Shared, longest time.Duration) worker.SlotSupplier {
		return &heldSlots{fixed(size), until, name, longest}
	}
	options := worker.CompositeTunerOptions{
		WorkflowSlotSupplier:      used.workflowTasks.Of(held(w.opts.WorkflowTasks, w.opts.Turns.compute, longestWait)),
		ActivitySlotSupplier:      used.activities.Of(held(w.opts.Activities, w.opts.Turns.requests, anyWait)),
		LocalActivitySlotSupplier: fixed(w.opts.LocalActivities),
		// Signalbox does not use these two, but a tuner requires them.
		NexusSlotSupplier: fixed(1), SessionActivitySlotSupplier: fixed(1),
	}
	if err != nil {
		return nil, fmt.Errorf("making the slots of project %q: %w", name, err)
	}
	return worker.NewCompositeTuner(options) //nolint:wrapcheck // it checks the options above
}

// activityPollers is the SDK's default number of pollers for activities. More pollers than slots would wait for a slot,
// as those of a busy worker do, while the worker executes nothing.
const activityPollers = 2

// workflowPollers is the maximum number of pollers of each kind for workflow tasks: one kind polls for tasks of new
// runs, the other for those of the runs that the process caches. The SDK's simple pollers all take cached runs as long
// as some wait: new runs would not start, and the task queue would look in Temporal as if no worker polled it.
const workflowPollers = 2

func (w *Workers) build(c client.Client, name string) (worker.Worker, error) {
	used := &usage{}
	tuner, err := w.tuner(name, used)
	if err != nil {
		return nil, err
	}
	fresh := worker.New(c, contract.TaskQueue(name), worker.Options{
		Tuner: tuner, MaxHeartbeatThrottleInterval: flow.HeartbeatsWithin, WorkerStopTimeout: w.opts.StopTimeout,
		MaxConcurrentActivityTaskPollers: min(activityPollers, w.opts.Activities),
		WorkflowTaskPollerBehavior: worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{
			InitialNumberOfPollers: 1, MinimumNumberOfPollers: 1, MaximumNumberOfPollers: workflowPollers,
		}),
		DeadlockDetectionTimeout: longestTask, BackgroundActivityContext: w.life,
		Interceptors: []interceptor.WorkerInterceptor{&activityLog{project: name}},
	})
	interpreter := flow.New(w.life, w.engine.documents, w.engine.tap,
		w.engine.limits).Share(computeTurns{w.opts.Turns.compute}).StopAfter(longestCompute).Measure(w.opts.Timers)
	fresh.RegisterWorkflowWithOptions(interpreter.Run, workflow.RegisterOptions{Name: contract.RunWorkflow})
	fresh.RegisterActivityWithOptions(w.calls.Call, activity.RegisterOptions{Name: flow.HTTPActivity})
	fresh.RegisterActivityWithOptions(w.calls.Call, activity.RegisterOptions{Name: flow.CredentialsActivity})
	fresh.RegisterActivityWithOptions(flow.Barrier, activity.RegisterOptions{Name: flow.BarrierActivity})
	if w.opts.Events != nil {
		RegisterEvents(fresh, sharedEvents{w.opts.Events, w.opts.Turns})
	}
	if w.opts.Children != nil {
		registerChildActivities(fresh, sharedChildren{w.opts.Children, w.opts.Turns})
	}
	if w.opts.Quota != nil {
		fresh.RegisterActivityWithOptions(w.grant, activity.RegisterOptions{Name: flow.QuotaActivity})
	}
	if w.opts.Runners != nil {
		fresh.RegisterActivityWithOptions(w.permit, activity.RegisterOptions{Name: flow.PermitActivity})
	}
	if w.opts.Extend != nil {
		w.opts.Extend(name, fresh)
	}
	w.using.Lock()
	defer w.using.Unlock()
	w.usage[name] = used
	return busyWorker{fresh, used}, nil
}
