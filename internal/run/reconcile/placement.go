package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// readPlacement compares the current Temporal with the one that holds the runs, and reads which runs were left in
// another one.
func (p *pass) readPlacement(ctx context.Context) (err error) {
	if p.view, err = run.ReadPlacement(ctx, p.r.engine, p.r.store); err != nil {
		return err
	}
	p.left, err = p.r.store.LeftRuns(ctx)
	return err
}

// placement compares the current Temporal with the one that holds a run, and reports whether the run was left in
// another one.
func (p *pass) placement(id string) (placement run.Placement, left bool) {
	view := p.view
	view.Left, left = p.left[id]
	return view.Placement(), left && run.DifferentCluster(view.Left, view.Here)
}

// recordPlacement records this Temporal before a pass acts: as the first one that holds the runs, or as another address
// of the same one.
func (p *pass) recordPlacement(ctx context.Context) error {
	switch {
	case p.dry || p.view.Recorded.ClusterID == p.view.Here:
		return nil
	case p.view.Recorded.ClusterID == (run.ClusterID{}):
		return p.move(ctx, p.r.opts.Now())
	case p.view.Recorded.NamespaceID == p.view.Here.NamespaceID:
		return p.move(ctx, p.view.Recorded.Since)
	}
	return nil
}

// recordMove records this Temporal after a pass in which no open run was left in the previous one: either Temporal lost
// its data and all lost runs were failed, or all open runs are here. It does not while live workers are connected to
// the previous one, because runs may still start there.
func (p *pass) recordMove(ctx context.Context) error {
	if p.dry || p.moved || p.report.Failed > 0 || p.report.Withheld > 0 ||
		p.view.Recorded.NamespaceID == p.view.Here.NamespaceID {
		return nil
	}
	for _, w := range p.view.Workers {
		if p.view.Placement() == run.PlacementElsewhere && w.NamespaceID == p.view.Recorded.NamespaceID {
			return nil
		}
	}
	return p.move(ctx, p.r.opts.Now())
}

// move records this Temporal as the one that holds the runs, unless another process has recorded a different one.
func (p *pass) move(ctx context.Context, since time.Time) error {
	to := run.RunsCluster{ClusterID: p.view.Here, Since: since}
	moved, err := p.r.store.MoveRunsCluster(ctx, p.view.Recorded.ClusterID, to)
	if err != nil || !moved {
		return err
	}
	if p.view.Recorded.NamespaceID != "" && p.view.Recorded.NamespaceID != p.view.Here.NamespaceID {
		logger.FromContext(ctx).InfoContext(ctx, "The runs are in another Temporal from now on",
			"before", run.ClusterName(p.view.Recorded.ClusterID), "now", run.ClusterName(p.view.Here))
	}
	p.view.Recorded = to
	return nil
}

// addWithheld counts runs that are not changed because they may be in another Temporal.
func (p *pass) addWithheld(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report.Withheld += n
}

// reportWithheld reports why runs were not changed: in the report, and in the log once until the reason changes.
func (p *pass) reportWithheld(ctx context.Context) {
	why := ""
	if p.report.Withheld > 0 {
		why = p.withheldReason()
	}
	p.report.WithheldBecause = why
	if p.dry || !p.r.memory.reasonChanged(why) {
		return
	}
	logger.FromContext(ctx).ErrorContext(ctx,
		"Open runs are not known to this Temporal and are left alone: they may be in another one",
		"runs", p.report.Withheld, "detail", why)
}

// withheldReason returns why runs were not changed, and what an operator can do.
func (p *pass) withheldReason() string {
	if p.view.Placement() == run.PlacementElsewhere {
		return "they are " + p.view.Explanation() + ". Point temporal.address and temporal.namespace back there, " +
			"or, if the move is meant, terminate the runs that were left behind"
	}
	return "they are " + p.view.Explanation() + ". Make temporal.address and temporal.namespace the same " +
		"in all processes; workers that stopped count for a few seconds more"
}

// withheldError returns an error about the runs that were not changed.
func withheldError(report run.Report) error {
	if report.Withheld == 1 {
		return fmt.Errorf("1 open run was left alone: %s", report.WithheldBecause)
	}
	return fmt.Errorf("%d open runs were left alone: %s", report.Withheld, report.WithheldBecause)
}
