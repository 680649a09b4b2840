package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// errLost ends a rebuild that another process has claimed.
var errLost = errors.New("another process has taken the repair over")

// errSuspended ends a rebuild in a process that is short of memory.
var errSuspended = errors.New("the process is short of memory")

// rebuildWriter writes the results of one rebuild, and holds its claim.
type rebuildWriter struct {
	r   *Repairer
	row run.Run
	// changed reports whether the row was changed. Only the goroutine of the rebuild uses it.
	changed bool

	mu      sync.Mutex
	claimed run.Repair
}

var _ run.RebuildWriter = (*rebuildWriter)(nil)

// Write implements [run.RebuildWriter].
func (w *rebuildWriter) Write(ctx context.Context, part run.Update) error {
	if w.claimed.Correction != "" && part.State != nil && part.State.Status.Terminal() {
		return w.finish(ctx, part)
	}
	transitions, err := w.r.store.ApplyUpdates(ctx, []run.Update{part})
	if err != nil {
		return err
	}
	w.changed = w.changed || part.Position > w.row.Position
	w.r.opts.Changed(ctx, transitions)
	return nil
}

// finish writes the end of a run that the reconciler has found, with its entry in the audit log.
func (w *rebuildWriter) finish(ctx context.Context, part run.Update) error {
	detail := fmt.Sprintf("%s: %s", w.claimed.Reason, part.State.Status)
	entry := audit.NewEntry(ctx, w.r.opts.Now(), audit.RunFinish, w.row.Project, w.row.ID, detail)
	before, err := w.r.store.GetRun(ctx, w.row.Project, w.row.ID)
	if err != nil {
		return err
	}
	changed, err := w.r.store.CorrectRun(ctx, part, &entry)
	if err != nil || !changed {
		return err
	}
	w.changed = true
	if !before.Status.Terminal() {
		w.r.opts.Changed(ctx, []run.Transition{{
			RunID: before.ID, Project: before.Project, From: before.Status, To: part.State.Status,
			CreatedAt: before.CreatedAt, StartedAt: before.StartedAt,
		}})
	}
	return nil
}

// Done implements [run.RebuildWriter]. The next extension of the claim stores it.
func (w *rebuildWriter) Done(_ context.Context, executionID string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.claimed.Done = executionID
	return nil
}

func (w *rebuildWriter) done() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.claimed.Done
}

// hold extends the claim until ctx ends, and calls lose when another process has the claim, or when this process is
// short of memory. A short outage of the store does not end the claim.
func (w *rebuildWriter) hold(ctx context.Context, lose context.CancelCauseFunc) {
	ticker := time.NewTicker(suspendEvery)
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if w.r.opts.Suspended() {
			lose(errSuspended)
			return
		}
		if n%holdEvery != 0 {
			continue
		}
		w.mu.Lock()
		claimed := w.claimed
		w.mu.Unlock()
		if held, err := w.r.store.HoldRepair(ctx, claimed, firstLease); err == nil && !held {
			lose(errLost)
			return
		}
	}
}
