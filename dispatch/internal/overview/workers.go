package overview

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/contract"
	"github.com/signalbox-dev/signalbox/dispatch/internal/plan"
	"github.com/signalbox-dev/signalbox/dispatch/internal/supervise"
	"github.com/signalbox-dev/signalbox/lease"
)

// WorkerStatus is what a worker's heartbeat says of it.
type WorkerStatus string

// The statuses of a worker.
const (
	Alive   WorkerStatus = "alive"   // its heartbeat is there
	Late    WorkerStatus = "late"    // its heartbeat did not come in time
	Stopped WorkerStatus = "stopped" // it said that it stops
	Silent  WorkerStatus = "silent"  // registered, and without a heartbeat
	// UnknownWorker is registered, and its heartbeat cannot be asked for.
	UnknownWorker WorkerStatus = "unknown"
)

// Worker is a process: its heartbeat, beside its registrations.
type Worker struct {
	ServerID string
	Status   WorkerStatus
	// Beat is what it says of itself; zero where there is no heartbeat, or it cannot be read.
	Beat contract.Beat
	// BeatAt is when it last gave a sign of life, by the store's clock, and Age how long that is ago. StaleIn is how long until it
	// is late; negative once it is.
	BeatAt        time.Time
	Age, StaleIn  time.Duration
	Registrations []Registration
}

// Registration says that a dispatcher knows a worker.
type Registration struct {
	Name inbox.Name
	contract.Worker
}

// Workers returns all processes in the order of their server IDs, and what could not be asked. It fails only where neither heartbeats
// nor registrations can be.
func (s Sources) Workers(ctx context.Context) ([]Worker, []Error, error) {
	read, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var reading plan.Reading
	var open []supervise.Listed
	var leases, temporal error
	var asking sync.WaitGroup
	asking.Go(func() { leases = supervise.Entries(read, s.Leases, contract.WorkerPrefix, &reading) })
	asking.Go(func() { open, temporal = s.Temporal.List(read) })
	asking.Wait()
	if leases != nil && temporal != nil {
		return nil, nil, fmt.Errorf("%w; %w", leases, temporal)
	}
	all := seen{}
	all.failed(PartLeases, leases)
	all.failed(PartTemporal, temporal)
	workers := map[string]*Worker{}
	for i := range reading.Entries {
		if server, ok := contract.ServerOf(reading.Entries[i].Key); ok {
			workers[server] = workerOf(server, &reading.Entries[i], s.Rules.StaleAfter)
		}
	}
	without := Silent
	if leases != nil {
		without = UnknownWorker // that no heartbeat was read proves nothing
	}
	registered, unasked := s.registrations(ctx, open)
	all.errors = append(all.errors, unasked...)
	for _, r := range registered {
		if workers[r.ServerID] == nil {
			workers[r.ServerID] = &Worker{ServerID: r.ServerID, Status: without}
		}
		workers[r.ServerID].Registrations = append(workers[r.ServerID].Registrations, r)
	}
	list := make([]Worker, 0, len(workers))
	for _, w := range workers {
		slices.SortFunc(w.Registrations, func(a, b Registration) int { return a.Name.Compare(b.Name) })
		list = append(list, *w)
	}
	slices.SortFunc(list, func(a, b Worker) int { return strings.Compare(a.ServerID, b.ServerID) })
	return list, all.errors, nil
}

func workerOf(server string, e *lease.Entry, stale time.Duration) *Worker {
	w := &Worker{ServerID: server, BeatAt: e.RenewedAt, Age: e.Age(), StaleIn: stale - e.Age()}
	switch e.State {
	case lease.Held:
		w.Status = Alive
	case lease.Resigned:
		w.Status = Stopped
	default:
		w.Status = Late
	}
	if err := json.Unmarshal(e.Value, &w.Beat); err != nil {
		w.Beat = contract.Beat{}
	}
	return w
}

// registrations asks dispatchers for their workers, as many as can be within the time.
func (s Sources) registrations(ctx context.Context, open []supervise.Listed) ([]Registration, []Error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var mu sync.Mutex
	var list []Registration
	var failures int
	var last error
	slots := make(chan struct{}, askAtOnce)
	var asking sync.WaitGroup
	for i := range open[:min(len(open), askMost)] {
		l := &open[i]
		if l.Memo == nil || l.Unread || l.WorkflowID != l.Memo.Name.DispatcherID() {
			continue
		}
		asking.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			state, err := s.Temporal.State(ctx, l.WorkflowID, l.RunID)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failures, last = failures+1, err
				return
			}
			for _, w := range state.Workers {
				list = append(list, Registration{l.Memo.Name, w})
			}
		})
	}
	asking.Wait()
	var errs []Error
	if failures > 0 {
		errs = append(errs, Error{PartState, fmt.Errorf("the registrations with %d dispatchers are not known: %w", failures, last)})
	}
	if more := len(open) - askMost; more > 0 {
		errs = append(errs, Error{PartState, fmt.Errorf("the registrations with %d further dispatchers were not asked for", more)})
	}
	return list, errs
}
