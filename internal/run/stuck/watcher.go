package stuck

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/notice"
	"github.com/signalbox-dev/signalbox/internal/pause"
	"github.com/signalbox-dev/signalbox/internal/run/stuck/verdict"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

const (
	// lookEvery is the longest time between two looks at the runs, and how soon another process takes over from one that has stopped.
	lookEvery = 2 * time.Second
	// leastRest is how soon they are looked at again where one is about to be overdue: its verdict is to be there a second after.
	leastRest = lookEvery / 4
	// standAside is how long a process without a connection waits instead, so that one that has one comes first.
	standAside = 3 * lookEvery
	// exclusively is the name under which one process looks.
	exclusively = "stuck"
)

// Engine is the Temporal side. Its errors mean that Temporal did not answer.
type Engine interface {
	// Connection tells how the connection is; DownSince is left to the caller.
	Connection() verdict.Connection
	// Queue describes a project's task queue.
	Queue(ctx context.Context, project string) (QueueState, error)
	// Problems lists the runs that Temporal itself reports problems of, and what they are. It is empty where the server has no
	// such list.
	Problems(ctx context.Context) (map[string]string, error)
	// Execution describes the newest execution of a run.
	Execution(ctx context.Context, runID string) (verdict.Execution, error)
	// Behind reports whether the rows of a run are behind Temporal and a worker is about to repair them.
	Behind(ctx context.Context, project, runID string) (bool, error)
}

// QueueState is what Temporal says of a task queue.
type QueueState struct {
	Name string
	// Workflow and Activity are the pollers for the one kind of task and the other, and how much waits for them: about how many
	// tasks, and for how long the oldest.
	Workflow, Activity Line
}

// Line is what is known of one kind of task of a queue.
type Line struct {
	Pollers []verdict.Poller
	Backlog int64
	Age     time.Duration
}

// Options say when a run is stuck, and whom to tell.
type Options struct {
	// After is how long a run may make no progress.
	After time.Duration
	// PoisonAfter is how long its workflow task may fail for a cause that lies in the run before it is poison.
	PoisonAfter time.Duration
	// Now is the clock.
	Now func() time.Time
	// Fingerprint is what the workers of this process's runs must agree about.
	Fingerprint func() worker.Fingerprint
	// Suspended reports whether this process may not diagnose now, for want of memory; nil: it always may. Another process takes over.
	Suspended func() bool
	// End terminates a run, in the name of the platform; nil: runs that are poison stay.
	End func(ctx context.Context, project, id, reason string) error
	// Changes is told of runs whose verdict was changed.
	Changes *notice.Board
	// Committed is told of each project that got events; wake tells that its dispatcher is parked. It must not block.
	Committed func(ctx context.Context, project string, wake bool)
}

// Watcher finds the runs that are stuck.
type Watcher struct {
	store    Store
	platform Platform
	engine   Engine
	opts     Options

	// What follows belongs to the loop alone.
	downSince time.Time
	looks     map[string]look
	known     map[string]verdict.Worker
	problems  map[string]string
	listedAt  time.Time
	forgotAt  time.Time
	lookedAt  time.Time
	// nextAt is when the next run is overdue, as far as that comes before the next look; zero where none is.
	nextAt time.Time

	mu     sync.Mutex
	counts map[string]int64 // nil while another process looks

	cancel context.CancelFunc
	joined sync.WaitGroup
}

// New returns a watcher. Nothing is looked at before Start.
func New(store Store, platform Platform, engine Engine, opts Options) *Watcher {
	return &Watcher{
		store: store, platform: platform, engine: engine, opts: opts, looks: map[string]look{}, known: map[string]verdict.Worker{},
	}
}

// Start begins to look, in whichever process does so at a time. It waits for nothing.
func (w *Watcher) Start(ctx context.Context) error {
	ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	w.joined.Go(func() { w.loop(auth.WithActor(ctx, auth.System())) })
	return nil
}

// Stop ends the looking and joins it.
func (w *Watcher) Stop(context.Context) error {
	w.cancel()
	w.joined.Wait()
	return nil
}

// Counts returns how many runs are stuck, by code, zeros included; false in a process that leaves the looking to another one.
func (w *Watcher) Counts() (map[string]int64, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.counts), w.counts != nil
}

// loop has this process look whenever no other one does.
func (w *Watcher) loop(ctx context.Context) {
	for ctx.Err() == nil {
		rest := lookEvery
		if w.suspended() {
			pause.For(ctx, rest)
			continue
		}
		if !w.connection().Usable {
			rest = standAside
		}
		if _, err := w.platform.Exclusive(ctx, exclusively, w.act); err != nil && ctx.Err() == nil {
			logger.FromContext(ctx).DebugContext(ctx, "Runs that are stuck could not be looked for", "error", err)
		}
		w.count(nil)
		pause.For(ctx, rest)
	}
}

// act looks until ctx ends, or until this process has no connection: another one may have.
func (w *Watcher) act(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := w.Look(ctx); err != nil {
			return err
		}
		if !w.connection().Usable || w.suspended() {
			return nil
		}
		pause.For(ctx, w.rest())
	}
	return nil
}

func (w *Watcher) suspended() bool { return w.opts.Suspended != nil && w.opts.Suspended() }

// rest is how long to wait for the next look.
func (w *Watcher) rest() time.Duration {
	if w.nextAt.IsZero() {
		return lookEvery
	}
	// A run is overdue after that moment, and clocks may be coarse.
	return min(lookEvery, max(leastRest, w.nextAt.Sub(w.opts.Now())+time.Millisecond))
}

// connection is how the connection is now, and since when it is not usable. Attempts that fail in another way do not count anew.
func (w *Watcher) connection() verdict.Connection {
	c := w.engine.Connection()
	switch {
	case c.Usable:
		w.downSince = time.Time{}
	case w.downSince.IsZero():
		w.downSince = w.opts.Now()
	}
	c.DownSince = w.downSince
	return c
}

func (w *Watcher) count(counts map[string]int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts = counts
}
