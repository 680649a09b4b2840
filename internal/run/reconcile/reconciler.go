package reconcile

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	// passEvery is the interval of passes. restartEvery is how often runs without a known start outcome are searched for,
	// and how often a process tries to take over from one that has stopped.
	passEvery    = 30 * time.Second
	restartEvery = 5 * time.Second
	// retryAfter is the time until the next pass after one that could fail no run because Temporal had changed.
	retryAfter = 10 * time.Second
	// requestedPassLimit is the time after which a requested pass no longer compares runs in turn.
	requestedPassLimit = 10 * time.Second
	// lockName is the name of the lock that elects the process.
	lockName = "reconciler"
)

// Starter starts stored runs in Temporal, as [start.Service] does.
type Starter interface {
	StartAccepted(ctx context.Context, r run.Run) error
}

// errElsewhere ends the election of a process that is connected to another Temporal than the one that holds the runs.
var errElsewhere = errors.New("the runs are in another Temporal")

// Options configure decisions and callbacks.
type Options struct {
	// StartTimeout is how long a start may wait for Temporal: a run without an outcome is started again after it.
	StartTimeout time.Duration
	// Now is the clock.
	Now func() time.Time
	// Metrics counts corrections.
	Metrics run.ReconcileMetrics
	// Imports stores the runs that other engines executed.
	Imports run.ImportedRows
	// Changes is notified of corrected runs.
	Changes *pubsub.Notifier
	// Hold prevents that new runs start, for a reason, until an administrator permits it. It is called when a restored
	// database is found.
	Hold func(ctx context.Context, reason string) error
	// Requested is called when a repair was requested; it must not block.
	Requested func()
}

// Reconciler compares rows with Temporal and corrects differences.
type Reconciler struct {
	*loop.Loop

	store   run.ReconcileStore
	engine  run.Inspector
	starter Starter
	opts    Options

	// busy holds a value while a pass is in progress. waiting counts callers that wait for the next one; a background pass
	// then stops comparing in turn.
	busy    chan struct{}
	waiting atomic.Int32

	memory memory
	// imports is the open imported run at which the last pass ended; only the pass in progress uses it.
	imports string

	mu     sync.Mutex
	last   run.Report
	lastAt time.Time
	err    error
}

// New returns a reconciler. It makes no pass before Start or Reconcile is called.
func New(store run.ReconcileStore, engine run.Inspector, starter Starter, opts Options) *Reconciler {
	r := &Reconciler{store: store, engine: engine, starter: starter, opts: opts, busy: make(chan struct{}, 1),
		memory: newMemory()}
	r.Loop = loop.New(r.poll)
	return r
}

// Last returns the report of this process's last pass that was not a dry run, when it ended, and an error where it was
// incomplete or left runs unchanged because they may be in another Temporal. The time is zero before the first pass,
// also in a process that is never elected.
func (r *Reconciler) Last() (run.Report, time.Time, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last, r.lastAt, r.err
}

// Reconcile makes one pass now. It compares all rows with Temporal's list, then each run that differs, and as many of
// the others as ten seconds allow. A run that cannot be compared is counted, and prevents nothing. A dry run changes
// nothing and reports what would be done. Otherwise the pass acts as ctx's actor, except for what workers write from
// histories. Reconcile waits for a pass that is in progress in this process. It returns [apperror.Unavailable] while
// Temporal is unavailable.
func (r *Reconciler) Reconcile(ctx context.Context, dryRun bool) (run.Report, error) {
	r.waiting.Add(1)
	defer r.waiting.Add(-1)
	select {
	case r.busy <- struct{}{}:
		defer func() { <-r.busy }()
	case <-ctx.Done():
		return run.Report{}, apperror.New(apperror.Unavailable, apperror.EngineUnavailable,
			"runs are being compared with Temporal just now; try again in a moment").WithRetry(retryAfter).WithCause(ctx.Err())
	}
	begun := time.Now()
	p, err := r.pass(ctx, dryRun, func() bool { return time.Since(begun) >= requestedPassLimit })
	return p.report, err
}

// poll makes passes while this process holds the lock, and tries to get the lock otherwise. Where the runs are in
// another Temporal it waits long enough for a process that is connected to that Temporal to take over.
func (r *Reconciler) poll(ctx, _ context.Context) time.Duration {
	ctx = auth.WithActor(ctx, auth.System())
	switch _, err := r.store.Exclusive(ctx, lockName, r.passes); {
	case errors.Is(err, errElsewhere):
		return passEvery
	case err != nil && ctx.Err() == nil:
		logger.FromContext(ctx).DebugContext(ctx, "Runs could not be compared with Temporal", "error", err)
	}
	return restartEvery
}

// passes makes passes until ctx ends, or until Temporal is unavailable here or is not the one that holds the runs:
// another process may still reach it.
func (r *Reconciler) passes(ctx context.Context) error {
	var due time.Time
	for ctx.Err() == nil {
		if time.Now().Before(due) {
			if err := r.restartStale(ctx); err != nil && apperror.Is(err, apperror.EngineUnavailable) {
				return err
			}
		} else {
			next, err := r.background(ctx)
			if err != nil {
				return err
			}
			due = next
		}
		if r.Pause(ctx, min(restartEvery, max(0, time.Until(due)))) {
			due = time.Time{}
		}
	}
	return nil
}

// background makes a pass and returns when the next one is due. It returns an error where Temporal is unavailable, or
// is not the one that holds the runs; other failures are logged.
func (r *Reconciler) background(ctx context.Context) (time.Time, error) {
	select {
	case r.busy <- struct{}{}:
		defer func() { <-r.busy }()
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
	begun := time.Now()
	p, err := r.pass(ctx, false, func() bool { return len(r.Woken()) > 0 || r.waiting.Load() > 0 })
	if err != nil && apperror.Is(err, apperror.EngineUnavailable) {
		return time.Time{}, err
	}
	if err = cmp.Or(err, p.failed); err != nil && ctx.Err() == nil {
		logger.FromContext(ctx).WarnContext(ctx, "Not all runs could be compared with Temporal, will try again", "error", err)
	}
	if p.view.Placement() == run.PlacementElsewhere {
		return time.Time{}, errElsewhere
	}
	if p.moved {
		return begun.Add(retryAfter), nil
	}
	if !p.report.SearchedUntil.IsZero() {
		return begun, nil // the next pass continues the search
	}
	return begun.Add(passEvery), nil
}

// restartStale starts the runs again that have no known start outcome.
func (r *Reconciler) restartStale(ctx context.Context) error {
	select {
	case r.busy <- struct{}{}:
		defer func() { <-r.busy }()
	default:
		return nil // the pass in progress does it
	}
	return r.newPass(false, func() bool { return false }).restartStale(ctx)
}

func (r *Reconciler) newPass(dryRun bool, enough func() bool) *pass {
	return &pass{r: r, dry: dryRun, enough: enough, fast: rate.NewLimiter(comparesPerSecond, 1),
		slow: rate.NewLimiter(inTurnPerSecond, 1), lacking: map[[2]string]lack{}, foreign: map[foreignKey]*run.ForeignRuns{}}
}

// pass makes one full pass and stores its report.
func (r *Reconciler) pass(ctx context.Context, dryRun bool, enough func() bool) (*pass, error) {
	begun := time.Now()
	p := r.newPass(dryRun, enough)
	err := p.run(ctx)
	p.report.DryRun, p.report.Took = dryRun, time.Since(begun)
	if !dryRun {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.last, r.lastAt, r.err = p.report, r.opts.Now(), err
		switch {
		case err != nil:
		case p.failed != nil:
			r.err = p.failed
		case p.report.Withheld > 0:
			r.err = withheldError(p.report)
		}
	}
	return p, err
}
