package overview

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/internal/plan"
	"github.com/signalbox-dev/signalbox/dispatch/internal/supervisor"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/lease"
)

// Workers returns all processes ordered by server ID, and the errors of sources that could not be read. It fails only
// if neither heartbeats nor registrations can be read.
func (s Sources) Workers(ctx context.Context) ([]dispatchtype.Worker, []dispatchtype.PartError, error) {
	read, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var snapshot plan.Snapshot
	var open []supervisor.Listed
	var leases, temporal error
	var asking sync.WaitGroup
	asking.Go(func() { leases = supervisor.Entries(read, s.Leases, wire.WorkerPrefix, &snapshot) })
	asking.Go(func() { open, temporal = s.Temporal.List(read) })
	asking.Wait()
	if leases != nil && temporal != nil {
		return nil, nil, fmt.Errorf("%w; %w", leases, temporal)
	}
	all := seen{}
	all.failed(dispatchtype.PartLeases, leases)
	all.failed(dispatchtype.PartTemporal, temporal)
	workers := map[string]*dispatchtype.Worker{}
	for i := range snapshot.Entries {
		if server, ok := wire.ServerOf(snapshot.Entries[i].Key); ok {
			workers[server] = workerOf(server, &snapshot.Entries[i], s.Rules.StaleAfter)
		}
	}
	without := dispatchtype.WorkerSilent
	if leases != nil {
		without = dispatchtype.WorkerUnknown // a missing heartbeat proves nothing
	}
	registered, unasked := s.registrations(ctx, open)
	all.errors = append(all.errors, unasked...)
	for _, r := range registered {
		if workers[r.ServerID] == nil {
			workers[r.ServerID] = &dispatchtype.Worker{ServerID: r.ServerID, Status: without}
		}
		workers[r.ServerID].Registrations = append(workers[r.ServerID].Registrations, r)
	}
	list := make([]dispatchtype.Worker, 0, len(workers))
	for _, w := range workers {
		slices.SortFunc(w.Registrations, func(a, b dispatchtype.Registration) int { return a.Name.Compare(b.Name) })
		list = append(list, *w)
	}
	slices.SortFunc(list, func(a, b dispatchtype.Worker) int { return strings.Compare(a.ServerID, b.ServerID) })
	return list, all.errors, nil
}

// deadAfter is how many lifetimes of a heartbeat pass without one before a worker is reported as dead.
const deadAfter = 3

func workerOf(server string, e *lease.Entry, stale time.Duration) *dispatchtype.Worker {
	w := &dispatchtype.Worker{ServerID: server, HeartbeatAt: e.RenewedAt, Age: e.Age(), StaleIn: stale - e.Age()}
	switch e.State {
	case lease.Held:
		w.Status = dispatchtype.WorkerAlive
	case lease.Resigned:
		w.Status = dispatchtype.WorkerStopped
	default:
		w.Status = dispatchtype.WorkerLate
		if w.Age >= deadAfter*stale {
			w.Status = dispatchtype.WorkerDead
		}
	}
	if err := json.Unmarshal(e.Value, &w.Heartbeat); err != nil {
		w.Heartbeat = dispatchtype.Heartbeat{}
	}
	return w
}

// registrations queries dispatchers for their workers, as many as possible within the time limit.
func (s Sources) registrations(ctx context.Context,
	open []supervisor.Listed) ([]dispatchtype.Registration, []dispatchtype.PartError) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var mu sync.Mutex
	var list []dispatchtype.Registration
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
				list = append(list, dispatchtype.Registration{Name: l.Memo.Name, RegisteredWorker: w})
			}
		})
	}
	asking.Wait()
	var errs []dispatchtype.PartError
	if failures > 0 {
		errs = append(errs, dispatchtype.PartError{
			Part: dispatchtype.PartState,
			Err:  fmt.Errorf("the registrations with %d dispatchers could not be read: %w", failures, last)})
	}
	if more := len(open) - askMost; more > 0 {
		errs = append(errs, dispatchtype.PartError{
			Part: dispatchtype.PartState, Err: fmt.Errorf("the registrations with %d further dispatchers were not read", more)})
	}
	return list, errs
}
