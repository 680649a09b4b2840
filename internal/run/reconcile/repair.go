package reconcile

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	// claimEvery is the interval at which requests of other processes are claimed.
	claimEvery = time.Second
	// A rebuild checks for suspension every suspendEvery, and extends its claim at each holdEvery-th check.
	suspendEvery = 200 * time.Millisecond
	holdEvery    = 25
	// DefaultAtOnce is how many rebuilds run concurrently in one process. Each holds one history in memory.
	DefaultAtOnce = 2
	// repairAgainAfter is the delay before a run that is about to be written is compared again.
	repairAgainAfter = run.QuietAfter
	// maxFailure limits the stored text of a failure, in bytes.
	maxFailure = 300
)

// Outcomes of a repair, for the metric.
const (
	// Rebuilt: the history was interpreted again, and the rows show it.
	Rebuilt = "rebuilt"
	// Failed: the rebuild failed, and is retried later.
	Failed = "failed"
	// Canceled: the rebuild was interrupted by its deadline, by the end of the process or because another process
	// claimed it.
	Canceled = "canceled"
)

// RepairOutcomes returns all outcomes.
func RepairOutcomes() []string { return []string{Rebuilt, Failed, Canceled} }

// RepairerStore is the store that the repairer requires.
type RepairerStore interface {
	run.RepairStore
	GetRun(ctx context.Context, project, id string) (run.Run, error)
	ApplyUpdates(ctx context.Context, updates []run.Update) ([]run.Transition, error)
	CorrectRun(ctx context.Context, u run.Update, e *audit.Entry) (bool, error)
}

// RepairerMetrics counts repairs.
type RepairerMetrics interface {
	// Rebuilt adds n rebuilds by their outcome (signalbox_rebuilds_total).
	Rebuilt(ctx context.Context, outcome string, n int64)
	// Corrected adds a correction of the kind (signalbox_reconcile_corrections_total).
	Corrected(ctx context.Context, kind string)
}

// RepairerOptions configure a repairer.
type RepairerOptions struct {
	// AtOnce is how many rebuilds run concurrently; 0 means [DefaultAtOnce].
	AtOnce int
	// Suspended reports that memory is short: no repair starts, and those in progress are interrupted.
	Suspended func() bool
	// Holds reports whether this process has records of a run that are not written yet.
	Holds func(runID string) bool
	// Permanent reports whether an error means that another attempt fails in the same way until something is deployed.
	Permanent func(err error) bool
	// Changed receives the changes of status that were written.
	Changed func(ctx context.Context, transitions []run.Transition)
	// Changes is notified of repaired runs.
	Changes *pubsub.Notifier
	Metrics RepairerMetrics
	Now     func() time.Time
}

// Repairer repairs runs in one process. Any number of processes may each have one.
type Repairer struct {
	*loop.Loop

	store  RepairerStore
	engine run.Rebuilder
	opts   RepairerOptions
}

// NewRepairer returns a repairer. Nothing is repaired before Start.
func NewRepairer(store RepairerStore, engine run.Rebuilder, opts RepairerOptions) *Repairer {
	if opts.AtOnce == 0 {
		opts.AtOnce = DefaultAtOnce
	}
	r := &Repairer{store: store, engine: engine, opts: opts}
	r.Loop = loop.NewParallel(opts.AtOnce, r.poll)
	return r
}

// Start starts the repairs. It does not block.
func (r *Repairer) Start(ctx context.Context) error {
	for _, outcome := range RepairOutcomes() {
		r.opts.Metrics.Rebuilt(ctx, outcome, 0) // so that each series exists from the start
	}
	return r.Loop.Start(ctx)
}

// poll repairs one run. Stop interrupts the repairs in progress: any process repairs the claimed runs later.
func (r *Repairer) poll(ctx, _ context.Context) time.Duration {
	ctx = auth.WithActor(ctx, auth.System())
	found, err := r.next(ctx)
	if err != nil && ctx.Err() == nil {
		logger.FromContext(ctx).DebugContext(ctx, "Repairs could not be taken up", "error", err)
	}
	if found && err == nil {
		return 0
	}
	return claimEvery
}

// returned calls give to end or postpone a claim, and retries while the store is unavailable: an abandoned claim would
// count as an attempt, and each attempt delays the next one. A claim that was lost meanwhile is not changed.
func (r *Repairer) returned(ctx context.Context, give func(ctx context.Context) error) error {
	for {
		err := give(ctx)
		if f, ok := apperror.From(err); !ok || f.Reason != apperror.StoreUnavailable || ctx.Err() != nil {
			return err
		}
		r.Pause(ctx, claimEvery)
	}
}

// next repairs the run that has been due for longest, and reports whether there was one.
func (r *Repairer) next(ctx context.Context) (bool, error) {
	if r.opts.Suspended() {
		return false, nil
	}
	claimed, ok, err := r.store.ClaimRepair(ctx, leaseOf)
	if err != nil || !ok {
		return false, err
	}
	return true, r.repair(ctx, claimed)
}

// repair updates one run from Temporal, or postpones the request. The error is the store's.
func (r *Repairer) repair(ctx context.Context, claimed run.Repair) error {
	row, err := r.store.GetRun(ctx, claimed.Project, claimed.RunID)
	if f, ok := apperror.From(err); ok && f.Class == apperror.NotFound {
		return r.end(ctx, claimed)
	}
	if err != nil {
		return errors.Join(err, r.giveBack(ctx, claimed, repairAgainAfter))
	}
	if r.opts.Holds(row.ID) {
		return r.postpone(ctx, claimed, repairAgainAfter, "")
	}
	x, err := r.engine.Inspect(ctx, row)
	switch {
	case errors.Is(err, run.ErrNotKnown):
		return r.end(ctx, claimed) // the reconciler decides about such a run
	case err != nil:
		return r.failed(ctx, claimed, err)
	}
	switch next := decide(claimed, row, x, r.opts.Now()); next {
	case leave:
		return r.end(ctx, claimed)
	case wait:
		return r.postpone(ctx, claimed, repairAgainAfter, "")
	default:
		return r.rebuild(ctx, claimed, row)
	}
}

// decision is how a request is handled.
type decision int

const (
	rebuild decision = iota
	// leave: the rows are not behind.
	leave
	// wait: the missing records may be on their way.
	wait
)

// decide compares a row with Temporal.
func decide(claimed run.Repair, row run.Run, x run.Execution, now time.Time) decision {
	switch {
	case claimed.Force:
		return rebuild
	case x.Relation == run.RelationReset:
		return leave
	case run.BehindBecause(row, x, now) != "":
		if run.Recent(now, row.WrittenAt, run.QuietAfter) {
			return wait
		}
		return rebuild
	case !row.Status.Terminal() && !x.Open, x.Accepted > run.HistoryLength(row.Position):
		return wait
	default:
		return leave
	}
}

// rebuild rebuilds the rows within a deadline.
func (r *Repairer) rebuild(ctx context.Context, claimed run.Repair, row run.Run) error {
	bounded, cancel := context.WithTimeout(ctx, allowed(claimed.Attempts))
	defer cancel()
	held, lose := context.WithCancelCause(bounded)
	defer lose(nil)
	w := &rebuildWriter{r: r, claimed: claimed, row: row}
	var holding sync.WaitGroup
	holding.Go(func() { w.hold(held, lose) })
	began := time.Now()
	err := r.engine.Rebuild(held, row, claimed.Done, w)
	if err == nil {
		err = context.Cause(held) // the claim may have ended during the last part
	}
	cause := context.Cause(held)
	lose(nil)
	holding.Wait()
	claimed.Done = w.done()
	r.opts.Changes.Notify(row.ID)
	log := logger.FromContext(ctx).With("run_id", row.ID, "project", row.Project, "attempt", claimed.Attempts,
		"took", time.Since(began))
	switch {
	case err == nil:
		r.opts.Metrics.Rebuilt(ctx, Rebuilt, 1)
		r.corrected(ctx, claimed, w.changed)
		log.InfoContext(ctx, "Rows of a run were rebuilt from its history", "reason", claimed.Reason)
		return r.end(ctx, claimed)
	case errors.Is(err, run.ErrNotKnown):
		return r.end(ctx, claimed)
	case errors.Is(cause, errSuspended):
		r.opts.Metrics.Rebuilt(ctx, Canceled, 1)
		log.WarnContext(ctx, "Rebuild of a run was cut off for want of memory and goes on later")
		return r.postpone(ctx, claimed, backOff(claimed.Attempts, false),
			"this worker had not enough memory for the rebuild of the rows, which goes on later")
	case errors.Is(cause, errLost):
		r.opts.Metrics.Rebuilt(ctx, Canceled, 1)
		return nil // another process has the claim now
	case ctx.Err() != nil:
		r.opts.Metrics.Rebuilt(ctx, Canceled, 1)
		return r.giveBack(ctx, claimed, 0)
	case bounded.Err() != nil:
		r.opts.Metrics.Rebuilt(ctx, Canceled, 1)
		log.WarnContext(ctx, "Rebuild of a run was cut off by its deadline and goes on later",
			"allowed", allowed(claimed.Attempts))
		return r.postpone(ctx, claimed, backOff(claimed.Attempts, false),
			"the rebuild of the rows took too long and goes on later")
	default:
		r.opts.Metrics.Rebuilt(ctx, Failed, 1)
		return r.failed(ctx, claimed, err)
	}
}

// failed records why an attempt failed, and when the next one is due.
func (r *Repairer) failed(ctx context.Context, claimed run.Repair, err error) error {
	if ctx.Err() != nil {
		return r.giveBack(ctx, claimed, 0)
	}
	if f, ok := apperror.From(err); ok && f.Class == apperror.Unavailable {
		// An unavailable Temporal does not concern the run, so it does not count as an attempt: back-off would delay
		// the run long after Temporal is available again. The error makes the loop sleep, instead of failing in the
		// same way with the next request.
		return errors.Join(err, r.giveBack(ctx, claimed, repairAgainAfter))
	}
	permanent := r.opts.Permanent(err)
	after, failure := backOff(claimed.Attempts, permanent), shortened(err)
	logger.FromContext(ctx).WarnContext(ctx, "Rows of a run could not be rebuilt", "run_id", claimed.RunID,
		"attempt", claimed.Attempts,
		"again_in", after, "error", failure)
	return r.postpone(ctx, claimed, after, failure)
}

func (r *Repairer) end(ctx context.Context, claimed run.Repair) error {
	return r.returned(ctx, func(ctx context.Context) error { return r.store.EndRepair(ctx, claimed) })
}

func (r *Repairer) postpone(ctx context.Context, claimed run.Repair, after time.Duration, failure string) error {
	return r.returned(ctx, func(ctx context.Context) error { return r.store.PostponeRepair(ctx, claimed, after, failure) })
}

// giveBack returns a claim without counting an attempt, although ctx may have ended.
func (r *Repairer) giveBack(ctx context.Context, claimed run.Repair, after time.Duration) error {
	if ctx.Err() == nil {
		return r.postpone(ctx, claimed, after, "")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	return r.store.PostponeRepair(ctx, claimed, after, "")
}

// corrected counts and logs a correction that the reconciler requested.
func (r *Repairer) corrected(ctx context.Context, claimed run.Repair, changed bool) {
	if claimed.Correction == "" || !changed {
		return
	}
	r.opts.Metrics.Corrected(ctx, string(claimed.Correction))
	logger.FromContext(ctx).InfoContext(ctx, "Run differed from Temporal", "kind", claimed.Correction,
		"run_id", claimed.RunID,
		"project", claimed.Project, "applied", true, "detail", claimed.Reason)
}

// shortened returns the first line of an error, of limited length. Errors of the replayer contain stack traces.
func shortened(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	if len(text) > maxFailure {
		text = strings.ToValidUTF8(text[:maxFailure], "") + "…"
	}
	return text
}
