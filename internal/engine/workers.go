package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/project"
)

const (
	// refreshEvery is how soon a new project is served, and a worker that broke is replaced.
	refreshEvery = 3 * time.Second
	// startBackoffMost bounds the pace at which a worker is tried that cannot start.
	startBackoffMost = 30 * time.Second
	// projectPage is how many projects are read at a time.
	projectPage = 500
)

// HTTPCall performs the calls that runs make.
type HTTPCall func(ctx context.Context, request flow.HTTPRequest) (flow.HTTPResponse, error)

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
}

// Workers are this process's workers: one per project, on the project's task queue.
type Workers struct {
	engine   *Engine
	projects Projects
	call     HTTPCall
	opts     WorkerOptions
	log      *slog.Logger

	mu      sync.Mutex
	running map[string]*projectWorker
	listErr error

	life   context.Context //nolint:containedctx // the workers' lifetime, which bounds the loading of documents
	cancel context.CancelFunc
	done   chan struct{}
}

// projectWorker is the worker of one project, or the attempts to have one.
type projectWorker struct {
	worker  worker.Worker
	broken  chan error // gets the error of a worker that has died
	err     error      // why there is none
	retryAt time.Time
	backoff time.Duration
}

// NewWorkers returns the workers; none polls before Start.
func NewWorkers(engine *Engine, projects Projects, call HTTPCall, opts WorkerOptions) *Workers {
	return &Workers{engine: engine, projects: projects, call: call, opts: opts, log: engine.log, running: map[string]*projectWorker{}, done: make(chan struct{})}
}

// Start begins to serve. It does not wait for Temporal: a worker that cannot start is tried again until it can.
func (w *Workers) Start(ctx context.Context) error {
	loopCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w.life, w.cancel = context.WithoutCancel(ctx), cancel
	go w.loop(loopCtx)
	return nil
}

// Stop stops polling, lets running activities finish within their budget, and joins everything.
func (w *Workers) Stop(ctx context.Context) error {
	w.cancel()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-w.done // a worker that is being started against a silent Temporal may take its time
		w.stopAll()
	}()
	select {
	case <-stopped:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stopping the workers: %w", ctx.Err())
	}
}

// Check tells what keeps a project from being served from here, or nil.
func (w *Workers) Check(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listErr != nil {
		return w.listErr
	}
	if len(w.running) == 0 {
		return errors.New("no project is served yet")
	}
	for name, pw := range w.running {
		if pw.worker == nil {
			return fmt.Errorf("the worker of project %q has not started: %w", name, pw.err)
		}
		if err := w.engine.pollers.check(contract.TaskQueue(name)); err != nil {
			return err
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

// refresh sees to it that every project has a worker.
func (w *Workers) refresh(ctx context.Context) {
	names, err := w.wanted(ctx)
	w.mu.Lock()
	w.listErr = err
	w.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil {
			w.log.WarnContext(ctx, "Projects could not be listed", "error", err)
		}
		return
	}
	for _, name := range names {
		if ctx.Err() != nil {
			return
		}
		w.ensure(ctx, name)
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

// ensure starts the worker of one project unless it runs, and replaces one that has died.
func (w *Workers) ensure(ctx context.Context, name string) {
	w.mu.Lock()
	pw := w.running[name]
	if pw == nil {
		pw = &projectWorker{}
		w.running[name] = pw
	}
	now := w.engine.now()
	if pw.worker != nil {
		select {
		case err := <-pw.broken:
			w.log.ErrorContext(ctx, "Worker has died, replacing it", "project", name, "error", err)
			pw.worker, pw.err = nil, err
		default:
			w.mu.Unlock()
			return
		}
	}
	due := !now.Before(pw.retryAt)
	w.mu.Unlock()
	if !due {
		return
	}
	// A worker that failed to start keeps its failure, so each attempt is a new one.
	fresh, broken := w.build(name)
	err := fresh.Start()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		pw.worker, pw.broken, pw.err, pw.backoff, pw.retryAt = fresh, broken, nil, 0, time.Time{}
		w.log.InfoContext(ctx, "Worker started", "project", name, "task_queue", contract.TaskQueue(name))
		return
	}
	if pw.err == nil {
		w.log.WarnContext(ctx, "Failed to start worker", "project", name, "error", err)
	}
	pw.backoff = min(max(2*pw.backoff, time.Second), startBackoffMost)
	pw.err, pw.retryAt = err, w.engine.now().Add(pw.backoff)
}

func (w *Workers) build(name string) (worker.Worker, chan error) {
	broken := make(chan error, 1)
	fresh := worker.New(w.engine.client, contract.TaskQueue(name), worker.Options{
		MaxConcurrentWorkflowTaskExecutionSize:  w.opts.WorkflowTasks,
		MaxConcurrentActivityExecutionSize:      w.opts.Activities,
		MaxConcurrentLocalActivityExecutionSize: w.opts.LocalActivities,
		WorkerStopTimeout:                       w.opts.StopTimeout,
		OnFatalError: func(err error) {
			select {
			case broken <- err:
			default:
			}
		},
	})
	interpreter := flow.New(w.life, w.engine.documents, w.engine.tap, w.engine.limits)
	fresh.RegisterWorkflowWithOptions(interpreter.Run, workflow.RegisterOptions{Name: contract.RunWorkflow})
	fresh.RegisterActivityWithOptions(w.call, activity.RegisterOptions{Name: flow.HTTPActivity})
	fresh.RegisterActivityWithOptions(flow.Barrier, activity.RegisterOptions{Name: flow.BarrierActivity})
	return fresh, broken
}

func (w *Workers) stopAll() {
	w.mu.Lock()
	var workers []worker.Worker
	for _, pw := range w.running {
		if pw.worker != nil {
			workers = append(workers, pw.worker)
		}
	}
	w.mu.Unlock()
	var group sync.WaitGroup
	for _, one := range workers {
		group.Go(one.Stop)
	}
	group.Wait()
}
