package diagnose

import (
	"context"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/internal/worker"
)

// Registry lists the worker processes.
type Registry interface {
	// ListWorkers returns up to limit workers whose last heartbeat is within that time.
	ListWorkers(ctx context.Context, within time.Duration, limit int) ([]worker.Worker, error)
}

// ReadWorkers returns the registered workers, of which dead ones are listed for ten minutes. Own is the fingerprint that compatible ones
// match.
func ReadWorkers(ctx context.Context, registry Registry, own worker.Fingerprint) ([]Worker, error) {
	listed, err := registry.ListWorkers(ctx, workerRetention, maxWorkers)
	if err != nil {
		return nil, err
	}
	live, err := registry.ListWorkers(ctx, worker.AliveFor, maxWorkers)
	workers := make([]Worker, len(listed))
	for i, w := range listed {
		workers[i] = Worker{
			Identity: w.ServerID, Registered: w, Compatible: !own.Differs(w.Fingerprint), Fingerprint: w.Fingerprint.String(),
			Live: slices.ContainsFunc(live, func(l worker.Worker) bool { return l.ServerID == w.ServerID }),
		}
	}
	return workers, err
}

// Pollers counts the pollers of a project's queue for both kinds of tasks.
func (s QueueState) Pollers(project string, workers []Worker, now time.Time) (workflow, activity Pollers) {
	count := func(state TaskTypeState, since func(worker.Busy) time.Time) Pollers {
		of := slices.Clone(workers)
		for i := range of {
			of[i].BusySince = since(of[i].Registered.BusyWith(project))
		}
		p := CountPollers(state.Pollers, of, now)
		p.Backlog, p.Age = state.Backlog, state.Age
		return p
	}
	return count(s.Workflow, func(b worker.Busy) time.Time { return b.WorkflowTasks }),
		count(s.Activity, func(b worker.Busy) time.Time { return b.Activities })
}
