package reconcile

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// restoreAfter is for how long no comparison has ended if the database may be one that was restored: several intervals
// of passes.
const restoreAfter = 2 * passEvery

// mayBeRestored reports whether the database may be a restored one: its last comparison is some time ago.
func (p *pass) mayBeRestored() bool {
	return !p.dry && !p.known.ComparedAt.IsZero() && p.r.opts.Now().Sub(p.known.ComparedAt) >= restoreAfter
}

// noteRestore is called for each execution of a run that has no row. In continuous operation there is none, because the
// row is written first. After a time without comparisons it proves that rows were lost: the maintenance mode begins,
// and the restore is stored.
func (p *pass) noteRestore(ctx context.Context) error {
	if !p.mayBeRestored() {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.restored {
		return nil
	}
	to := p.known.ComparedAt.UTC()
	if err := p.r.opts.Hold(ctx, fmt.Sprintf("the database was restored to its state of %s or later; see `signalbox "+
		"restore check`", to.Format(time.RFC3339))); err != nil {
		return err
	}
	if err := p.readOpenAgain(ctx); err != nil {
		return err
	}
	if err := p.r.store.MarkRestored(ctx, p.r.opts.Now(), to); err != nil {
		return err
	}
	p.restored = true
	logger.FromContext(ctx).WarnContext(ctx, "The database was restored from a backup: runs that were started later "+
		"have no row, and new ones do not start until the maintenance mode ends",
		"backup", to)
	return nil
}

// readOpenAgain has workers read the histories of all runs that are open on both sides: the restored database lacks the
// listeners that they committed since its backup. A row shows nothing of that once the run has had a workflow task
// after the restore, which brings the row up to date and does not commit the listeners again. Runs that are adopted are
// read anyway.
func (p *pass) readOpenAgain(ctx context.Context) error {
	var list []run.RepairRequest
	for id := range p.open {
		if p.partial || p.listed[id].Open {
			list = append(list, run.RepairRequest{
				RunID: id, Reason: "the database was restored, and may lack listeners of the run", Force: true})
		}
	}
	for part := range slices.Chunk(list, rowPage) {
		if err := p.r.store.RequestRepairs(ctx, part); err != nil {
			return err
		}
	}
	if len(list) > 0 {
		p.r.opts.Requested()
	}
	return nil
}

// markCompared stores that this pass has ended, so that the next one knows for how long the database was not in use. It
// does not while it is undecided whether the database was restored, because executions without a row are young or new
// runs could not be held: the next pass decides.
func (p *pass) markCompared(ctx context.Context) error {
	lost := p.report.Lost
	undecided := p.mayBeRestored() && !p.restored && lost.Open+lost.Ended+lost.Young > 0
	if p.dry || undecided || p.view.Placement() == run.PlacementElsewhere {
		return nil
	}
	return p.r.store.MarkCompared(ctx, p.r.opts.Now())
}

// addLost counts an execution of a run that has no row.
func (p *pass) addLost(x run.Execution) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report.Lost.Add(x, p.r.opts.Now())
}
