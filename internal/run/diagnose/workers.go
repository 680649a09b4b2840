package diagnose

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/worker"
)

// Registry lists the worker processes.
type Registry interface {
	// ListWorkers returns up to limit workers whose last heartbeat is within that time.
	ListWorkers(ctx context.Context, within time.Duration, limit int) ([]worker.Worker, error)
}

// ReadWorkers returns the registered workers, of which dead ones are listed for ten minutes. Own is the fingerprint
// that compatible ones match.
func ReadWorkers(ctx context.Context, registry Registry, own worker.Fingerprint) ([]Worker, error) {
	listed, err := registry.ListWorkers(ctx, workerRetention, maxWorkers)
	if err != nil {
		return nil, err
	}
	alive, err := registry.ListWorkers(ctx, worker.AliveFor, maxWorkers)
	live := make(map[string]bool, len(alive))
	for _, w := range alive {
		live[w.ServerID] = true
	}
	workers := make([]Worker, len(listed))
	for i, w := range listed {
		workers[i] = Worker{
			Identity: w.ServerID, Registered: w, Live: live[w.ServerID], Compatible: !own.Differs(w.Fingerprint),
			Fingerprint: w.Fingerprint.String(),
		}
	}
	return workers, err
}
