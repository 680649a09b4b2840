// Package repair brings rows up to Temporal that are behind: a process died between what Temporal accepted and its write, or a
// database was away for so long that updates were dropped.
//
//	repairs := repair.New(rows, engine, repair.Options{…})
//	err := repairs.Start(ctx)   // in processes with the worker role
//	repairs.Wake()              // a repair was requested in this process
//
// Requests are rows (see [run.RepairStore]): the process that finds a run behind makes one and goes on. A repairer claims one at a time with
// each of its workers, compares the run with Temporal, and rebuilds its rows only when they are behind. Each attempt has a
// deadline; what it has written stays, and the next attempt goes on behind the last execution that is written as a whole. Attempts
// that fail are repeated ever later, so that a run that cannot be rebuilt keeps no other one waiting.
package repair

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/notice"
	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	// lookEvery is how soon a request of another process is taken up.
	lookEvery = time.Second
	// A rebuild looks every suspendEvery whether it is to go on, and extends its claim each holdEvery-th time.
	suspendEvery = 200 * time.Millisecond
	holdEvery    = 25
	// DefaultAtOnce is how many rebuilds are under way in one process. Each holds one history in memory.
	DefaultAtOnce = 2
	// again is when a run is looked at again that is about to be written.
	again = run.QuietAfter
	// maxProblem bounds what is kept of a failure, in bytes.
	maxProblem = 300
)

// Outcomes of a repair, for the metric.
const (
	// Rebuilt: the history was interpreted again, and the rows show it.
	Rebuilt = "rebuilt"
	// Failed: it could not be, and is tried again later.
	Failed = "failed"
	// Canceled: it was cut off, by its deadline, by the end of the process or because another process took it over.
	Canceled = "canceled"
)

// Outcomes returns all of them.
func Outcomes() []string { return []string{Rebuilt, Failed, Canceled} }

// Store is what the repairer asks of a store.
type Store interface {
	run.RepairStore
	GetRun(ctx context.Context, project, id string) (run.Run, error)
	ApplyUpdates(ctx context.Context, updates []run.Update) ([]run.Transition, error)
	CorrectRun(ctx context.Context, u run.Update, e *audit.Entry) (bool, error)
}

// Metrics counts.
type Metrics interface {
	// Rebuilt adds n rebuilds by their outcome (signalbox_rebuilds_total).
	Rebuilt(ctx context.Context, outcome string, n int64)
	// Corrected adds a correction of the kind (signalbox_reconcile_corrections_total).
	Corrected(ctx context.Context, kind string)
}

// Options say how to repair, and what is notified.
type Options struct {
	// AtOnce is how many rebuilds are under way at a time; 0 means [DefaultAtOnce].
	AtOnce int
	// Suspended reports that nothing is to be begun, for want of memory; what is under way is cut off.
	Suspended func() bool
	// Holds reports whether this process has records of a run that are not written yet.
	Holds func(runID string) bool
	// Permanent reports whether an error means that another attempt fails in the same way until something is deployed.
	Permanent func(err error) bool
	// Changed receives the changes of status that were written.
	Changed func(ctx context.Context, transitions []run.Transition)
	// Changes is notified of runs that were repaired.
	Changes *notice.Board
	Metrics Metrics
	Now     func() time.Time
}

// Repairer repairs runs in one process. Any number of processes may each have one.
type Repairer struct {
	store  Store
	engine run.Rebuilder
	opts   Options
	wake   chan struct{}

	cancel context.CancelFunc
	joined sync.WaitGroup
}

// New returns a repairer. Nothing is repaired before Start.
func New(store Store, engine run.Rebuilder, opts Options) *Repairer {
	if opts.AtOnce == 0 {
		opts.AtOnce = DefaultAtOnce
	}
	return &Repairer{store: store, engine: engine, opts: opts, wake: make(chan struct{}, opts.AtOnce), cancel: func() {}}
}

// Start begins to repair. It waits for nothing.
func (r *Repairer) Start(ctx context.Context) error {
	ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	for _, outcome := range Outcomes() {
		r.opts.Metrics.Rebuilt(ctx, outcome, 0) // so that each series is there from the start
	}
	for range r.opts.AtOnce {
		r.joined.Go(func() { r.loop(auth.WithActor(ctx, auth.System())) })
	}
	return nil
}

// Stop cuts off what is under way and joins it. What was claimed is repaired later, by any process.
func (r *Repairer) Stop(context.Context) error {
	r.cancel()
	r.joined.Wait()
	return nil
}

// Wake has the repairer look for requests at once. It never blocks.
func (r *Repairer) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *Repairer) loop(ctx context.Context) {
	for ctx.Err() == nil {
		found, err := r.next(ctx)
		if err != nil && ctx.Err() == nil {
			logger.FromContext(ctx).DebugContext(ctx, "Repairs could not be taken up", "error", err)
		}
		if !found || err != nil {
			r.sleep(ctx)
		}
	}
}

// sleep waits for the next look, or until the repairer is woken.
func (r *Repairer) sleep(ctx context.Context) {
	timer := time.NewTimer(lookEvery)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.wake:
	case <-ctx.Done():
	}
}

// returned has a claim ended or postponed, also after the store was away: one that is only left would count as an attempt, and the next
// attempt comes later for each. A claim that was lost meanwhile is not touched.
func (r *Repairer) returned(ctx context.Context, give func(ctx context.Context) error) error {
	for {
		err := give(ctx)
		if f, ok := fault.From(err); !ok || f.Reason != fault.StoreUnavailable || ctx.Err() != nil {
			return err
		}
		r.sleep(ctx)
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

// repair brings one run up to Temporal, or says when to try again. The error is the store's.
func (r *Repairer) repair(ctx context.Context, claimed run.Repair) error {
	row, err := r.store.GetRun(ctx, claimed.Project, claimed.RunID)
	if f, ok := fault.From(err); ok && f.Class == fault.NotFound {
		return r.end(ctx, claimed)
	}
	if err != nil {
		return errors.Join(err, r.giveBack(ctx, claimed, again))
	}
	if r.opts.Holds(row.ID) {
		return r.postpone(ctx, claimed, again, "")
	}
	x, err := r.engine.Look(ctx, row)
	switch {
	case errors.Is(err, run.ErrNotKnown):
		return r.end(ctx, claimed) // what becomes of such a run is the reconciler's to decide
	case err != nil:
		return r.failed(ctx, claimed, err)
	}
	switch next := decide(claimed, row, x, r.opts.Now()); next {
	case leave:
		return r.end(ctx, claimed)
	case wait:
		return r.postpone(ctx, claimed, again, "")
	default:
		return r.rebuild(ctx, claimed, row)
	}
}

// decision is what to do about a request.
type decision int

const (
	rebuild decision = iota
	// leave: the rows are not behind.
	leave
	// wait: what is missing may be on its way.
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

// rebuild makes the rows again within a deadline.
func (r *Repairer) rebuild(ctx context.Context, claimed run.Repair, row run.Run) error {
	bounded, cancel := context.WithTimeout(ctx, allowed(claimed.Attempts))
	defer cancel()
	held, lose := context.WithCancelCause(bounded)
	defer lose(nil)
	w := &writer{r: r, claimed: claimed, row: row}
	var holding sync.WaitGroup
	holding.Go(func() { w.hold(held, lose) })
	began := time.Now()
	err := r.engine.Rebuild(held, row, claimed.Done, w)
	if err == nil {
		err = context.Cause(held) // an end that came with the last part
	}
	cause := context.Cause(held)
	lose(nil)
	holding.Wait()
	claimed.Done = w.done()
	r.opts.Changes.Notify(row.ID)
	log := logger.FromContext(ctx).With("run_id", row.ID, "project", row.Project, "attempt", claimed.Attempts, "took", time.Since(began))
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
		return r.postpone(ctx, claimed, backOff(claimed.Attempts, false), "this worker had not enough memory for the rebuild of the rows, which goes on later")
	case errors.Is(cause, errLost):
		r.opts.Metrics.Rebuilt(ctx, Canceled, 1)
		return nil // it is another process's now
	case ctx.Err() != nil:
		r.opts.Metrics.Rebuilt(ctx, Canceled, 1)
		return r.giveBack(ctx, claimed, 0)
	case bounded.Err() != nil:
		r.opts.Metrics.Rebuilt(ctx, Canceled, 1)
		log.WarnContext(ctx, "Rebuild of a run was cut off by its deadline and goes on later", "allowed", allowed(claimed.Attempts))
		return r.postpone(ctx, claimed, backOff(claimed.Attempts, false), "the rebuild of the rows took too long and goes on later")
	default:
		r.opts.Metrics.Rebuilt(ctx, Failed, 1)
		return r.failed(ctx, claimed, err)
	}
}

// failed notes why an attempt failed, and when the next one is due.
func (r *Repairer) failed(ctx context.Context, claimed run.Repair, err error) error {
	if ctx.Err() != nil {
		return r.giveBack(ctx, claimed, 0)
	}
	if f, ok := fault.From(err); ok && f.Class == fault.Unavailable {
		// That Temporal does not answer is nothing about the run, so it is no attempt: back-off would keep the run waiting long after
		// Temporal is back. The error has the loop wait, instead of meeting the same with the next request.
		return errors.Join(err, r.giveBack(ctx, claimed, again))
	}
	permanent := r.opts.Permanent(err)
	after, problem := backOff(claimed.Attempts, permanent), shortened(err)
	logger.FromContext(ctx).WarnContext(ctx, "Rows of a run could not be rebuilt", "run_id", claimed.RunID, "attempt", claimed.Attempts,
		"again_in", after, "error", problem)
	return r.postpone(ctx, claimed, after, problem)
}

func (r *Repairer) end(ctx context.Context, claimed run.Repair) error {
	return r.returned(ctx, func(ctx context.Context) error { return r.store.EndRepair(ctx, claimed) })
}

func (r *Repairer) postpone(ctx context.Context, claimed run.Repair, after time.Duration, problem string) error {
	return r.returned(ctx, func(ctx context.Context) error { return r.store.PostponeRepair(ctx, claimed, after, problem) })
}

// giveBack returns a claim that is to count as no attempt, although ctx may have ended.
func (r *Repairer) giveBack(ctx context.Context, claimed run.Repair, after time.Duration) error {
	if ctx.Err() == nil {
		return r.postpone(ctx, claimed, after, "")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	return r.store.PostponeRepair(ctx, claimed, after, "")
}

// corrected counts and logs what the reconciler asked for.
func (r *Repairer) corrected(ctx context.Context, claimed run.Repair, changed bool) {
	if claimed.Correction == "" || !changed {
		return
	}
	r.opts.Metrics.Corrected(ctx, string(claimed.Correction))
	logger.FromContext(ctx).InfoContext(ctx, "Run differed from Temporal", "kind", claimed.Correction, "run_id", claimed.RunID,
		"project", claimed.Project, "applied", true, "detail", claimed.Reason)
}

// shortened is the first line of an error, of bounded length. What a replayer adds are stack traces.
func shortened(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	if len(text) > maxProblem {
		text = strings.ToValidUTF8(text[:maxProblem], "") + "…"
	}
	return text
}
