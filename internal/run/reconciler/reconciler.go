package reconciler

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/cutover"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/notice"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/home"
	"github.com/signalbox-dev/signalbox/internal/run/reconciler/pace"
)

const (
	// passEvery is how often rows and Temporal are compared, settleEvery how often runs are looked for whose start has
	// no known outcome, and how soon another process takes over from one that has stopped.
	passEvery   = 30 * time.Second
	settleEvery = 5 * time.Second
	// soonAfter is when a pass is done again that could conclude nothing because Temporal was another place than before.
	soonAfter = 10 * time.Second
	// askedMost is how long a pass that somebody waits for goes on asking about runs that are probably well.
	askedMost = 10 * time.Second
	// exclusively is the name under which one process acts.
	exclusively = "reconciler"
)

// Engine is the Temporal side.
type Engine interface {
	run.Inspector
	// Start is that of [run.Engine].
	Start(ctx context.Context, r run.Run) (executionID string, err error)
}

// errElsewhere ends the acting of a process that sees another Temporal than the one where the runs are.
var errElsewhere = errors.New("the runs are in another Temporal")

// Options say how to judge, and whom to tell.
type Options struct {
	// StartTimeout is how long the start of a run waits for Temporal.
	StartTimeout time.Duration
	// Now is the clock.
	Now func() time.Time
	// Metrics is told of corrections.
	Metrics run.ReconcileMetrics
	// Imports has the runs that other engines ran.
	Imports cutover.Rows
	// Changes is told of runs that were corrected.
	Changes *notice.Board
	// Requested is called when a repair was requested; it must not block.
	Requested func()
}

// Reconciler compares rows with Temporal and puts right what differs.
type Reconciler struct {
	store  run.ReconcileStore
	engine Engine
	opts   Options

	wake chan struct{}
	// busy holds a value while a pass is under way; waiting counts who wants the next one, for which a background pass
	// cuts its round short.
	busy    chan struct{}
	waiting atomic.Int32

	memory memory
	// imports is the open imported run at which the last pass ended; the pass that is under way has it for itself.
	imports string

	mu     sync.Mutex
	last   run.Report
	lastAt time.Time
	err    error

	cancel context.CancelFunc
	joined sync.WaitGroup
}

// New returns a reconciler. Nothing is compared before Start, or without Reconcile.
func New(store run.ReconcileStore, engine Engine, opts Options) *Reconciler {
	return &Reconciler{
		store: store, engine: engine, opts: opts, wake: make(chan struct{}, 1), busy: make(chan struct{}, 1), memory: newMemory(),
	}
}

// Start begins to compare, in whichever process does so at a time.
func (r *Reconciler) Start(ctx context.Context) error {
	ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	r.joined.Go(func() { r.loop(auth.WithActor(ctx, auth.System())) })
	return nil
}

// Stop ends the comparing and joins it.
func (r *Reconciler) Stop(context.Context) error {
	r.cancel()
	r.joined.Wait()
	return nil
}

// Wake has the next pass begin at once. It never blocks.
func (r *Reconciler) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Last returns what the last pass that was no dry run found in this process, when it ended, and why it could not be
// completed, or had to leave runs alone. The time is zero before the first one; it stays so in a process that leaves the work to another one.
func (r *Reconciler) Last() (run.Report, time.Time, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last, r.lastAt, r.err
}

// Reconcile makes one pass now: all rows and executions are compared by what Temporal lists, all that differ are looked
// at, and as many of the others as ten seconds allow. A dry run changes nothing and lists what would be done; another one
// acts on behalf of ctx's actor, but for what workers write from histories. It is refused as [fault.Unavailable] while Temporal is away, and waits for a pass that is under way
// in this process.
func (r *Reconciler) Reconcile(ctx context.Context, dryRun bool) (run.Report, error) {
	r.waiting.Add(1)
	defer r.waiting.Add(-1)
	select {
	case r.busy <- struct{}{}:
		defer func() { <-r.busy }()
	case <-ctx.Done():
		return run.Report{}, fault.New(fault.Unavailable, fault.EngineUnavailable,
			"runs are being compared with Temporal just now; try again in a moment").WithRetry(soonAfter).WithCause(ctx.Err())
	}
	begun := time.Now()
	p, err := r.pass(ctx, dryRun, func() bool { return time.Since(begun) >= askedMost })
	return p.report, err
}

// loop has this process act whenever no other one does. Where the runs are in another Temporal it waits long enough for one
// that sees that Temporal to take over.
func (r *Reconciler) loop(ctx context.Context) {
	for ctx.Err() == nil {
		rest := settleEvery
		switch _, err := r.store.Exclusive(ctx, exclusively, r.act); {
		case errors.Is(err, errElsewhere):
			rest = passEvery
		case err != nil && ctx.Err() == nil:
			logger.FromContext(ctx).DebugContext(ctx, "Runs could not be compared with Temporal", "error", err)
		}
		r.sleep(ctx, rest)
	}
}

// act compares until ctx ends, or until Temporal is away from here, or is another one than that of the runs: another process
// may still reach it.
func (r *Reconciler) act(ctx context.Context) error {
	var due time.Time
	for ctx.Err() == nil {
		if time.Now().Before(due) {
			if err := r.settle(ctx); err != nil && fault.Is(err, fault.EngineUnavailable) {
				return err
			}
		} else {
			next, err := r.background(ctx)
			if err != nil {
				return err
			}
			due = next
		}
		if r.sleep(ctx, min(settleEvery, max(0, time.Until(due)))) {
			due = time.Time{}
		}
	}
	return nil
}

// sleep waits for a while, and tells whether it was woken before.
func (r *Reconciler) sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-r.wake:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// background makes a pass and returns when the next one is due. A pass with failures that Temporal survived is one.
func (r *Reconciler) background(ctx context.Context) (time.Time, error) {
	select {
	case r.busy <- struct{}{}:
		defer func() { <-r.busy }()
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
	begun := time.Now()
	p, err := r.pass(ctx, false, func() bool { return len(r.wake) > 0 || r.waiting.Load() > 0 })
	if err != nil && fault.Is(err, fault.EngineUnavailable) {
		return time.Time{}, err
	}
	if err != nil && ctx.Err() == nil {
		logger.FromContext(ctx).WarnContext(ctx, "Not all runs could be compared with Temporal, will try again", "error", err)
	}
	if p.view.Standing() == home.Elsewhere {
		return time.Time{}, errElsewhere
	}
	if p.moved {
		return begun.Add(soonAfter), nil
	}
	return begun.Add(passEvery), nil
}

// settle hands over the runs whose start has no known outcome.
func (r *Reconciler) settle(ctx context.Context) error {
	select {
	case r.busy <- struct{}{}:
		defer func() { <-r.busy }()
	default:
		return nil // the pass that is under way does it
	}
	p := &pass{r: r, enough: func() bool { return false }}
	return p.starting(ctx)
}

// pass makes one whole pass and keeps its report.
func (r *Reconciler) pass(ctx context.Context, dryRun bool, enough func() bool) (*pass, error) {
	begun := time.Now()
	p := &pass{r: r, dry: dryRun, enough: enough, slow: pace.Pace{Every: time.Second / walksPerSecond}, fast: pace.Pace{Every: time.Second / looksPerSecond}}
	err := p.run(ctx)
	p.report.DryRun, p.report.Took = dryRun, time.Since(begun)
	if !dryRun {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.last, r.lastAt, r.err = p.report, r.opts.Now(), err
		if err == nil && p.report.Withheld > 0 {
			r.err = leftAlone(p.report)
		}
	}
	return p, err
}
