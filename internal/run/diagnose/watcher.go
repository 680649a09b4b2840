package diagnose

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

const (
	// passEvery is the longest time between two passes, and how often a process tries to take over from one that has
	// stopped.
	passEvery = 2 * time.Second
	// minInterval is the shortest time between two passes, where a run is about to be overdue: its verdict must follow
	// within a second.
	minInterval = passEvery / 4
	// disconnectedInterval is how long a process waits that has no connection, or one to another Temporal than the runs
	// have: a process that knows more takes over first.
	disconnectedInterval = 3 * passEvery
	// lockName is the name of the lock that elects the process.
	lockName = "stuck"
)

// ErrLimited is the cause of the error of a request to Temporal that the budget for diagnosis has refused.
var ErrLimited = errors.New("the budget for diagnosis is used up")

// Engine is the Temporal side. Its errors mean that Temporal did not answer, or that the request was not sent
// ([ErrLimited]).
type Engine interface {
	// Connection returns the state of the connection. It leaves DownSince zero; the caller sets it.
	Connection() Connection
	// Queue describes a project's task queue.
	Queue(ctx context.Context, project string) (QueueState, error)
	// Problems returns the runs for which Temporal reports problems, with the problem. It is empty where the server has no
	// such list.
	Problems(ctx context.Context) (map[string]string, error)
	// Execution describes the newest execution of a run.
	Execution(ctx context.Context, runID string) (Execution, error)
	// Behind reports whether the rows of a run are behind Temporal. It then has a worker repair them.
	Behind(ctx context.Context, project, runID string) (bool, error)
	// LacksPayload reports whether the history of a run refers to a large value that no store has.
	LacksPayload(ctx context.Context, runID string) (bool, error)
}

// QueueState is Temporal's description of a task queue.
type QueueState struct {
	Name string
	// Workflow and Activity are the states for workflow tasks and for activities.
	Workflow, Activity TaskTypeState
}

// TaskTypeState is the state of a queue for one kind of task: its pollers, the approximate number of tasks that wait,
// and the age of the oldest.
type TaskTypeState struct {
	Pollers []Poller
	Backlog int64
	Age     time.Duration
	// Measured reports that Temporal has reported the backlog.
	Measured bool
}

// Options configure when a run is stuck, and the callbacks.
type Options struct {
	// After is how long a run may make no progress until it is stuck.
	After time.Duration
	// PoisonAfter is how long a run's workflow task must fail, for a cause that lies in the run, until the run is poison.
	PoisonAfter time.Duration
	// Now is the clock.
	Now func() time.Time
	// Fingerprint returns the fingerprint that workers must match to take this process's runs.
	Fingerprint func() worker.Fingerprint
	// Elsewhere returns the Temporal that holds the runs, where that is not the one of this process; zero otherwise. It
	// must not block. nil: none.
	Elsewhere func() run.ClusterID
	// Suspended reports whether this process must not diagnose now, because it is short of memory. Another process takes
	// over. nil: never.
	Suspended func() bool
	// End terminates a run as the system actor; nil: poison runs are not ended.
	End func(ctx context.Context, project, id, reason string) error
	// Changes is notified of runs with a changed verdict.
	Changes *pubsub.Notifier
	// Committed is called for each project that got events; wake reports that its dispatcher is parked. It must not block.
	Committed func(ctx context.Context, project string, wake bool)
}

// Watcher finds the runs that are stuck.
type Watcher struct {
	*loop.Loop

	store    Store
	platform Platform
	engine   Engine
	opts     Options

	// The following fields are used by the loop alone.
	downSince    time.Time
	descriptions map[string]description
	workers      map[string]Worker // by identity, also those that have stopped
	levels       map[group]int     // the levels of groups that were announced last
	problems     map[string]string
	listedAt     time.Time
	purgedAt     time.Time
	lastPass     time.Time
	// nextAt is when the next run becomes overdue, where that is before the next regular pass; zero otherwise.
	nextAt time.Time

	// unclaimed: this process, which is connected to another Temporal than the runs have, was elected the last time.
	unclaimed bool

	mu     sync.Mutex
	counts map[string]int64 // nil while another process is elected
	// undecided is how many runs the last pass could not decide because of the budget for diagnosis.
	undecided int64
}

// New returns a watcher. It makes no pass before Start.
func New(store Store, platform Platform, engine Engine, opts Options) *Watcher {
	w := &Watcher{
		store: store, platform: platform, engine: engine, opts: opts, descriptions: map[string]description{},
		workers: map[string]Worker{}, levels: map[group]int{},
	}
	w.Loop = loop.New(w.poll)
	return w
}

// Counts returns how many runs are stuck, by code, zeros included. It returns false in a process that is not elected.
func (w *Watcher) Counts() (map[string]int64, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.counts), w.counts != nil
}

// Undecided returns how many runs without progress the last pass could not decide because the budget for diagnosis was
// used up: whether they are stuck is unknown. It returns false in a process that is not elected.
func (w *Watcher) Undecided() (int64, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.undecided, w.counts != nil
}

// poll makes passes while this process holds the lock, and tries to get the lock otherwise.
func (w *Watcher) poll(ctx, _ context.Context) time.Duration {
	ctx = auth.WithActor(ctx, auth.System())
	interval := passEvery
	if w.suspended() {
		return interval
	}
	astray, passes := w.astray(), w.passes
	if !w.connection().Usable || astray {
		interval = disconnectedInterval
	}
	if astray && !w.unclaimed {
		// A process with the runs' Temporal may be about to be elected again. Its verdicts are right.
		passes = func(context.Context) error { return nil }
	}
	elected, err := w.platform.Exclusive(ctx, lockName, passes)
	if err != nil && ctx.Err() == nil {
		logger.FromContext(ctx).DebugContext(ctx, "Stuck runs could not be diagnosed", "error", err)
	}
	w.unclaimed = astray && elected
	w.count(nil, 0)
	return interval
}

// astray reports whether this process is connected to another Temporal than the runs have.
func (w *Watcher) astray() bool {
	return w.opts.Elsewhere != nil && w.opts.Elsewhere() != (run.ClusterID{})
}

// passes makes passes until ctx ends, or until this process has no connection, is astray or suspended: another one may
// take over.
func (w *Watcher) passes(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := w.RunPass(ctx); err != nil {
			return err
		}
		if !w.connection().Usable || w.astray() || w.suspended() {
			return nil
		}
		loop.Sleep(ctx, w.interval())
	}
	return nil
}

func (w *Watcher) suspended() bool { return w.opts.Suspended != nil && w.opts.Suspended() }

// interval returns the time until the next pass.
func (w *Watcher) interval() time.Duration {
	if w.nextAt.IsZero() {
		return passEvery
	}
	// A run is overdue after that moment, and clocks may be coarse.
	return min(passEvery, max(minInterval, w.nextAt.Sub(w.opts.Now())+time.Millisecond))
}

// connection returns the current state of the connection, with DownSince set. A different failure of the same outage
// does not reset DownSince.
func (w *Watcher) connection() Connection {
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

func (w *Watcher) count(counts map[string]int64, undecided int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts, w.undecided = counts, undecided
}
