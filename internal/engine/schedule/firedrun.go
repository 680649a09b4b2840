package schedule

import (
	"context"
	"fmt"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// FiredRun implements [State].
func (r *Reconciler) FiredRun(ctx context.Context, project, workflow string, position int64) (id string, ended bool,
	err error) {
	e, err := r.opts.Events.GetEvent(ctx, project, position)
	if err != nil {
		return "", false, err
	}
	if e.Status == event.Pending {
		return "", false, nil
	}
	deliveries, err := r.opts.Events.ListDeliveries(ctx, project, position)
	if err != nil {
		return "", false, fmt.Errorf("reading the deliveries: %w", err)
	}
	for _, d := range deliveries {
		if d.Kind != event.Start || d.Workflow != workflow {
			continue
		}
		if d.Status != event.DeliveryDone {
			return "", d.Status == event.DeliveryDead, nil
		}
		runs, err := r.opts.Store.ListRuns(ctx, run.Filter{Project: project, IDs: []string{d.RunID}, Limit: 1})
		if err != nil {
			return "", false, fmt.Errorf("reading run %s: %w", d.RunID, err)
		}
		return d.RunID, len(runs) == 0 || runs[0].Status.Terminal(), nil // retention deletes ended runs only
	}
	return "", true, nil
}
