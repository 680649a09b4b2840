package dispatch

import (
	"context"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/internal/heartbeat"
	"github.com/signalbox-dev/signalbox/dispatch/internal/owner"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/internal/loop"
)

const (
	// reportsPerSecond limits the late signals and state queries that a process sends to its dispatchers.
	reportsPerSecond = 50
	// maxQueries is the number of state queries between two reads of the heartbeats. maxQueryPause is the longest pause
	// before a dispatcher is queried again.
	maxQueries    = 100
	maxQueryPause = 10 * time.Minute
	// maxUnfiltered is the number of late workers that are reported without a query for the dispatcher's list: a signal
	// stays in the history, a query does not.
	maxUnfiltered = 100
)

// lateReports is the state of the late signals to one dispatcher under one ownership.
type lateReports struct {
	epoch int64
	// reported has the workers that were reported.
	reported map[string]bool
	// unconfirmed are reported workers that the dispatcher may still list. It is queried for them when confirm is due.
	unconfirmed []string
	confirm     retry
	// list delays the next query for the dispatcher's list after a query has failed.
	list retry
}

// retry is the time of the next attempt. The pause doubles with each attempt.
type retry struct {
	due   time.Time
	pause time.Duration
}

func (r *retry) later(first time.Duration) {
	r.pause = min(max(2*r.pause, first), max(first, maxQueryPause))
	r.due = time.Now().Add(r.pause)
}

func (r *retry) isDue() bool { return !time.Now().Before(r.due) }

// watchWorkers reads the heartbeats, and signals late workers to the dispatchers that this process owns: a parked
// dispatcher checks its workers only after such a signal. Workers that it still lists later are reported again.
func (d *Dispatchers) watchWorkers(ctx context.Context) {
	reports := map[Name]*lateReports{}
	d.checkWorkers(ctx, reports)
	every(ctx, d.o.Timing.Heartbeat, func(ctx context.Context) { d.checkWorkers(ctx, reports) })
}

func (d *Dispatchers) checkWorkers(ctx context.Context, reports map[Name]*lateReports) {
	d.mu.Lock()
	known := d.processes
	d.mu.Unlock()
	owned := d.owned()
	for _, o := range owned {
		for _, w := range o.Workers {
			if _, ok := known[w.ServerID]; !ok {
				d.heartbeats.Hint(wire.WorkerKey(w.ServerID)) // its heartbeat may be newer than the last listing
			}
		}
	}
	bounded, cancel := context.WithTimeout(ctx, requestTimeout)
	processes, err := d.heartbeats.Processes(bounded)
	cancel()
	if err != nil {
		return // the heartbeat loop logs that the store cannot be reached
	}
	d.mu.Lock()
	d.processes = processes
	d.mu.Unlock()
	if !processes[d.o.ServerID].Alive {
		return // the store lost its data, or this process its heartbeat: a missing heartbeat proves nothing
	}
	d.reportLate(ctx, processes, owned, reports)
}

// reportLate signals the late workers to the owned dispatchers.
func (d *Dispatchers) reportLate(ctx context.Context, processes map[string]heartbeat.Process, owned []owner.Ownership,
	reports map[Name]*lateReports) {
	names := map[Name]bool{}
	queries := 0
	for _, o := range owned {
		names[o.Name] = true
		r := reports[o.Name]
		if r == nil || r.epoch != o.Owner.Epoch {
			r = &lateReports{epoch: o.Owner.Epoch, reported: map[string]bool{}}
			reports[o.Name] = r
		}
		late := lateWorkers(processes, o, r.reported)
		switch {
		case len(late) > maxUnfiltered:
			if queries >= maxQueries || !r.list.isDue() {
				continue
			}
			queries++
			var err error
			if late, err = d.filterListed(ctx, o.Name, r, late); err != nil {
				queries = maxQueries
			}
			r.confirm.pause = 0
		case len(late) > 0:
			r.confirm.pause = 0
		case queries < maxQueries && r.confirmationDue(processes):
			queries++
			var err error
			if late, err = d.stillListed(ctx, o.Name, r); err != nil {
				queries = maxQueries // the next query may take as long to fail
			}
		default:
			continue
		}
		if len(late) > 0 && d.temporal.Late(ctx, o.Name, late) == nil {
			r.markReported(late, d.o.Timing.CheckEvery)
		}
		loop.Sleep(ctx, time.Second/reportsPerSecond)
	}
	for name := range reports {
		if !names[name] {
			delete(reports, name)
		}
	}
}

// markReported records a signal that was sent. The dispatcher gets the time of one check before it is queried for the
// result.
func (r *lateReports) markReported(late []string, checkEvery time.Duration) {
	for _, id := range late {
		r.reported[id] = true
		if !slices.Contains(r.unconfirmed, id) {
			r.unconfirmed = append(r.unconfirmed, id)
		}
	}
	r.confirm.later(checkEvery)
}

// confirmationDue reports whether to query the dispatcher now. Workers that are alive again need no confirmation.
func (r *lateReports) confirmationDue(processes map[string]heartbeat.Process) bool {
	r.unconfirmed = slices.DeleteFunc(r.unconfirmed, func(id string) bool { return processes[id].Alive })
	return len(r.unconfirmed) > 0 && r.confirm.isDue()
}

// filterListed queries the dispatcher for its list, and returns the late workers that are on it. The others count as
// reported: after many restarts there are thousands of expired heartbeats, and the dispatcher lists none of them.
func (d *Dispatchers) filterListed(ctx context.Context, name Name, r *lateReports, late []string) ([]string, error) {
	state, err := d.temporal.State(ctx, name)
	if err != nil {
		r.list.later(d.o.Timing.CheckEvery)
		return nil, err
	}
	r.list = retry{}
	listed := serverIDs(state.Workers)
	return slices.DeleteFunc(late, func(id string) bool {
		if !listed[id] {
			r.reported[id] = true
		}
		return !listed[id]
	}), nil
}

// stillListed queries the dispatcher, and returns the reported workers that it still lists. A query leaves nothing in
// the history, so evicted workers are never reported twice. A dispatcher that is routing checks its workers by itself:
// for it, the result is empty.
func (d *Dispatchers) stillListed(ctx context.Context, name Name, r *lateReports) ([]string, error) {
	state, err := d.temporal.State(ctx, name)
	if err != nil || state.Phase != dispatchtype.Parked {
		r.confirm.later(d.o.Timing.CheckEvery)
		return nil, err
	}
	listed := serverIDs(state.Workers)
	r.unconfirmed = slices.DeleteFunc(r.unconfirmed, func(id string) bool { return !listed[id] })
	return slices.Clone(r.unconfirmed), nil
}

// serverIDs returns the set of the workers' server IDs.
func serverIDs(workers []dispatchtype.RegisteredWorker) map[string]bool {
	ids := make(map[string]bool, len(workers))
	for _, w := range workers {
		ids[w.ServerID] = true
	}
	return ids
}

// lateWorkers returns the workers of a dispatcher whose heartbeats are missing and that are not in reported, sorted. It
// removes from reported the workers that are alive, and those in neither the heartbeats nor the dispatcher's list: each
// start of a process has its own server ID.
func lateWorkers(processes map[string]heartbeat.Process, o owner.Ownership, reported map[string]bool) []string {
	listed := serverIDs(o.Workers)
	for id := range reported {
		if p, ok := processes[id]; p.Alive || !ok && !listed[id] {
			delete(reported, id)
		}
	}
	var late []string
	for id, p := range processes {
		// Serves comes last: there may be thousands of reported processes with hundreds of projects each.
		if !p.Alive && !reported[id] && p.Serves(o.Name.Project) {
			late = append(late, id)
		}
	}
	for id := range listed {
		if _, ok := processes[id]; !ok && !reported[id] {
			late = append(late, id)
		}
	}
	slices.Sort(late)
	return late
}
