// Package overview reads the state of dispatchers and workers from the leases, the inbox and Temporal, and shows them
// side by side. It changes nothing. A source that cannot be read is reported in place of its data.
package overview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/plan"
	"github.com/signalbox-dev/signalbox/dispatch/internal/supervisor"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/lease"
)

const (
	// askTimeout limits the answers of dispatchers, of all together. askMost is how many are queried for a list, askAtOnce
	// how many at a time.
	askTimeout = 2 * time.Second
	askMost    = 200
	askAtOnce  = 16
	// describeMost is how many unlisted dispatchers are described one by one.
	describeMost = 50
	// readTimeout limits the other requests.
	readTimeout = 10 * time.Second
	// tokenShown is the length of the shown part of a token: enough to compare by eye, too little to use.
	tokenShown = 8
)

// Temporal is the part of Temporal that the overview uses.
type Temporal interface {
	List(ctx context.Context) ([]supervisor.Listed, error)
	Describe(ctx context.Context, workflowID, runID string) (*supervisor.Listed, error)
	State(ctx context.Context, workflowID, runID string) (dispatchtype.State, error)
}

// Inbox is the part of the inbox that the overview uses.
type Inbox interface {
	Progress(ctx context.Context, names ...inbox.Name) ([]inbox.Progress, error)
}

// Sources are the sources of an overview.
type Sources struct {
	Leases   lease.Store
	Inbox    Inbox
	Temporal Temporal
	Rules    plan.Rules
	// Names returns names to list even if no source has a dispatcher for them, and those of them that no process serves
	// for lack of work; nil means none. They belong to the inbox: where they cannot be read, the inbox counts as not read.
	Names func(ctx context.Context) (all, unserved []inbox.Name, err error)
}

// seen is the data that was read, and the errors.
type seen struct {
	snapshot plan.Snapshot
	listed   map[string]supervisor.Listed // by run ID
	named    []inbox.Name                 // those of [Sources.Names]
	unserved map[inbox.Name]bool
	errors   []dispatchtype.PartError
}

func (s *seen) failed(part dispatchtype.Part, err error) {
	if err != nil {
		s.errors = append(s.errors, dispatchtype.PartError{Part: part, Err: err})
	}
}

// List returns all dispatchers of all sources and of [Sources.Names], ordered by name. It fails only if no source can
// be read.
func (s Sources) List(ctx context.Context) ([]dispatchtype.Dispatcher, error) {
	all := s.readAll(ctx)
	if len(all.errors) == 3 {
		var failed []error
		for _, e := range all.errors {
			failed = append(failed, e.Err)
		}
		return nil, errors.Join(failed...)
	}
	return s.merge(all, names(all)), nil
}

// readAll reads all sources concurrently.
func (s Sources) readAll(ctx context.Context) seen {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	out := seen{listed: map[string]supervisor.Listed{}}
	var snapshot sync.WaitGroup
	var listed []supervisor.Listed
	var leases, progress, temporal error
	snapshot.Go(func() {
		for _, prefix := range []string{wire.OwnerPrefix, wire.WorkerPrefix} {
			if leases = supervisor.Entries(ctx, s.Leases, prefix, &out.snapshot); leases != nil {
				return
			}
		}
	})
	var rows []inbox.Progress
	snapshot.Go(func() { rows, progress = s.readInbox(ctx, &out) })
	snapshot.Go(func() { listed, temporal = s.Temporal.List(ctx) })
	snapshot.Wait()
	out.snapshot.Progress = rows
	for i := range listed {
		out.add(listed[i])
	}
	out.failed(dispatchtype.PartLeases, leases)
	out.failed(dispatchtype.PartInbox, progress)
	out.failed(dispatchtype.PartTemporal, temporal)
	if temporal == nil {
		s.describeUnlisted(ctx, &out)
	}
	return out
}

// readInbox returns the progress of all dispatchers in the inbox, and of the listed names that have pending events. It
// reads the names.
func (s Sources) readInbox(ctx context.Context, into *seen) (rows []inbox.Progress, err error) {
	if rows, err = s.Inbox.Progress(ctx); err != nil {
		return rows, err
	}
	if err := s.readNames(ctx, into); err != nil {
		return rows, err
	}
	has := make(map[inbox.Name]bool, len(rows))
	for i := range rows {
		has[rows[i].Name] = true
	}
	never := slices.DeleteFunc(slices.Clone(into.named), func(name inbox.Name) bool {
		return has[name] || into.unserved[name]
	})
	if len(never) == 0 {
		return rows, nil
	}
	waiting, err := s.Inbox.Progress(ctx, never...)
	return append(rows, waiting...), err
}

// readNames reads the names to list.
func (s Sources) readNames(ctx context.Context, into *seen) error {
	if s.Names == nil {
		return nil
	}
	all, unserved, err := s.Names(ctx)
	if err != nil {
		return err
	}
	into.named, into.unserved = all, make(map[inbox.Name]bool, len(unserved))
	for _, name := range unserved {
		into.unserved[name] = true
	}
	return nil
}

// describeUnlisted describes the dispatchers that some source has and that Temporal does not list: the list lags behind
// starts, and does not include foreign workflow types with a dispatcher's ID.
func (s Sources) describeUnlisted(ctx context.Context, all *seen) {
	listed := make(map[string]bool, len(all.listed))
	for _, l := range all.listed {
		listed[l.WorkflowID] = true
	}
	unlisted := names(*all)
	unlisted = slices.DeleteFunc(unlisted, func(name inbox.Name) bool {
		return listed[name.DispatcherID()] || all.unserved[name]
	})
	// Those with an owner come first, then those that had one: they are the most likely to be open.
	rank := map[inbox.Name]int{}
	for i := range all.snapshot.Progress {
		rank[all.snapshot.Progress[i].Name] = -1
	}
	for i := range all.snapshot.Entries {
		if name, ok := wire.NameOf(all.snapshot.Entries[i].Key); ok && all.snapshot.Entries[i].State == lease.Held {
			rank[name] = -2
		}
	}
	slices.SortStableFunc(unlisted, func(a, b inbox.Name) int { return rank[a] - rank[b] })
	var mu sync.Mutex
	var failure error
	slots := make(chan struct{}, askAtOnce)
	var asking sync.WaitGroup
	for _, name := range unlisted[:min(len(unlisted), describeMost)] {
		asking.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			open, err := s.Temporal.Describe(ctx, name.DispatcherID(), "")
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failure = err
			} else if open != nil {
				all.add(*open)
			}
		})
	}
	asking.Wait()
	all.failed(dispatchtype.PartTemporal, failure)
}

func (s *seen) add(l supervisor.Listed) {
	s.listed[l.RunID] = l
	s.snapshot.Open = append(s.snapshot.Open, plan.Open{Execution: l.Execution})
}

// names returns the names that are certain, and the listed ones, sorted.
func names(all seen) []inbox.Name {
	list := slices.Clone(all.named)
	for i := range all.snapshot.Entries {
		if name, ok := wire.NameOf(all.snapshot.Entries[i].Key); ok {
			list = append(list, name)
		}
	}
	for i := range all.snapshot.Progress {
		list = append(list, all.snapshot.Progress[i].Name)
	}
	for _, l := range all.listed {
		if l.Memo != nil && !l.Unread && l.WorkflowID == l.Memo.Name.DispatcherID() {
			list = append(list, l.Memo.Name)
		}
	}
	slices.SortFunc(list, inbox.Name.Compare)
	return slices.Compact(list)
}

// merge combines the data by name.
func (s Sources) merge(all seen, of []inbox.Name) []dispatchtype.Dispatcher {
	found := make([]dispatchtype.Dispatcher, len(of))
	at := make(map[inbox.Name]*dispatchtype.Dispatcher, len(of))
	byID := make(map[string][]*dispatchtype.Dispatcher, len(of))
	byQueue := make(map[string][]*dispatchtype.Dispatcher, len(of))
	for i, name := range of {
		d := &found[i]
		*d = dispatchtype.Dispatcher{
			Name: name, WorkflowID: name.DispatcherID(), Status: dispatchtype.Missing, Errors: slices.Clone(all.errors)}
		at[name] = d
		byID[d.WorkflowID] = append(byID[d.WorkflowID], d)
		byQueue[name.TaskQueue] = append(byQueue[name.TaskQueue], d)
	}
	for i := range all.snapshot.Entries {
		e := &all.snapshot.Entries[i]
		if name, ok := wire.NameOf(e.Key); ok && at[name] != nil {
			at[name].Lease = leaseOf(e)
		}
	}
	for i := range all.snapshot.Progress {
		if d := at[all.snapshot.Progress[i].Name]; d != nil {
			d.Progress = &all.snapshot.Progress[i]
		}
	}
	superseded := map[inbox.Name]bool{}
	verdicts := plan.Make(all.snapshot, s.Rules).Verdicts
	for i := range verdicts {
		v := &verdicts[i]
		e := executionOf(all.listed[v.RunID])
		for _, taken := range byID[v.WorkflowID] {
			switch {
			case v.Belongs == wire.Foreign:
				taken.Status, taken.Reason = dispatchtype.Foreign, v.Reason
			case taken.Name != v.Name:
				taken.Status = dispatchtype.Foreign
				taken.Reason = fmt.Sprintf("it is the dispatcher of project %q and task queue %q, which give the same ID",
					v.Name.Project, v.Name.TaskQueue)
			}
		}
		if v.Belongs == wire.Foreign && v.Type == wire.WorkflowType && len(byID[v.WorkflowID]) == 0 {
			for _, d := range byQueue[v.TaskQueue] {
				d.Unknown = append(d.Unknown, e)
			}
		}
		d := at[v.Name]
		if v.Belongs == wire.Foreign || d == nil {
			continue
		}
		if v.Class == dispatchtype.ClassStale || v.Superseded {
			d.Stale++
		}
		if v.Belongs == wire.OlderScheme {
			d.Others = append(d.Others, e)
		} else {
			d.Execution, d.Class, d.Reason = &e, v.Class, v.Reason
			superseded[v.Name] = v.Superseded
		}
	}
	workers := liveWorkersOf(all.snapshot.Entries)
	for i := range found {
		if d := &found[i]; all.unserved[d.Name] && d.Status != dispatchtype.Foreign {
			d.Status, d.Reason, d.Unserved = dispatchtype.Parked, unservedReason, true
			continue
		}
		setStatus(&found[i], superseded[found[i].Name], workers)
	}
	for _, name := range all.named {
		if d := at[name]; d != nil && d.Progress == nil && !without(d, dispatchtype.PartInbox) {
			d.Progress = &inbox.Progress{Name: name, SinceProgress: -1} // it never had an event
		}
	}
	return found
}

// unservedReason is the reason of the status of a dispatcher that no process serves for lack of work.
const unservedReason = "its project is parked: nothing happens in it, and no worker serves it until the first start " +
	"or event"

// liveWorkers are the workers with current heartbeats.
type liveWorkers struct {
	beats []dispatchtype.Heartbeat
	// known is set if there are any entries: a store that lost its data has none.
	known bool
}

func liveWorkersOf(entries []lease.Entry) liveWorkers {
	found := liveWorkers{known: len(entries) > 0}
	for i := range entries {
		e := &entries[i]
		if _, ok := wire.ServerOf(e.Key); !ok || e.State != lease.Held {
			continue
		}
		var beat dispatchtype.Heartbeat
		if err := json.Unmarshal(e.Value, &beat); err != nil {
			beat.Serves = 1 // it is alive, and may serve any project
		}
		found.beats = append(found.beats, beat)
	}
	return found
}

func (l liveWorkers) serve(project string) bool {
	return slices.ContainsFunc(l.beats, func(b dispatchtype.Heartbeat) bool {
		return b.Serves > len(b.Projects) || slices.Contains(b.Projects, project)
	})
}

// setStatus sets the status of a dispatcher. If a source is missing, its class is unknown.
func setStatus(d *dispatchtype.Dispatcher, superseded bool, workers liveWorkers) {
	switch {
	case d.Class == "":
	case without(d, dispatchtype.PartLeases):
		d.Class, d.Reason = dispatchtype.ClassUnknown, "the leases cannot be read"
	case without(d, dispatchtype.PartInbox) && d.Class != dispatchtype.ClassHealthy:
		d.Class, d.Reason = dispatchtype.ClassUnknown, "the inbox cannot be read"
	default:
	}
	switch {
	case d.Status == dispatchtype.Foreign && d.Execution == nil:
	case without(d, dispatchtype.PartTemporal):
		d.Status = dispatchtype.Unknown
	case !without(d, dispatchtype.PartLeases) && !workers.known:
		d.Status = dispatchtype.Unknown
		d.Reason = "there is no heartbeat of any worker: none is alive, or the lease store lost its data"
	case !without(d, dispatchtype.PartLeases) && !workers.serve(d.Name.Project) &&
		(d.Class != dispatchtype.ClassStale || len(workers.beats) == 0):
		d.Status = dispatchtype.NoWorkers
		d.Reason = fmt.Sprintf("no live worker serves project %q; %d serve others", d.Name.Project, len(workers.beats))
		if len(workers.beats) == 0 {
			d.Reason = "no worker is alive"
		}
	case d.Execution == nil:
		d.Status = dispatchtype.Missing
	case d.Class == dispatchtype.ClassStale || superseded:
		d.Status = dispatchtype.Stale
	case d.Progress == nil:
		d.Status = dispatchtype.Unknown
	case d.Progress.Parked:
		d.Status = dispatchtype.Parked
	default:
		d.Status = dispatchtype.Routing
	}
}

// without reports whether a side could not be asked.
func without(d *dispatchtype.Dispatcher, part dispatchtype.Part) bool {
	return slices.ContainsFunc(d.Errors, func(e dispatchtype.PartError) bool { return e.Part == part })
}

func leaseOf(e *lease.Entry) *dispatchtype.Lease {
	claim := claimOf(e)
	return &dispatchtype.Lease{
		State: e.State, Owner: inbox.Owner{Epoch: claim.Epoch, Holder: e.Holder},
		Token:      e.Token[:min(len(e.Token), tokenShown)],
		AcquiredAt: e.AcquiredAt, RenewedAt: e.RenewedAt, Remaining: e.Remaining(),
	}
}

// claimOf returns the value of an entry; an undecodable value must not hide the rest.
func claimOf(e *lease.Entry) wire.Claim {
	var claim wire.Claim
	if err := json.Unmarshal(e.Value, &claim); err != nil {
		return wire.Claim{}
	}
	return claim
}

func executionOf(l supervisor.Listed) dispatchtype.Execution {
	e := dispatchtype.Execution{
		WorkflowID: l.WorkflowID, RunID: l.RunID, StartedAt: l.StartedAt, HistoryLength: l.HistoryLength}
	if l.Memo != nil {
		e.Owner, e.Interpreter = inbox.Owner{Epoch: l.Memo.Epoch, Holder: l.Memo.Owner}, l.Memo.Interpreter
	}
	return e
}

// Get returns one dispatcher with its answer to a state query. It fails only if no source can be read.
func (s Sources) Get(ctx context.Context, name inbox.Name) (dispatchtype.Dispatcher, error) {
	read, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	one := seen{listed: map[string]supervisor.Listed{}, named: []inbox.Name{name}}
	leases := supervisor.Entries(read, s.Leases, wire.WorkerPrefix, &one.snapshot)
	if leases == nil {
		leases = supervisor.Entry(read, s.Leases, wire.OwnerKey(name), &one.snapshot)
	}
	rows, progress := s.Inbox.Progress(read, name)
	one.snapshot.Progress = rows
	if progress == nil {
		progress = s.readNames(read, &one)
		one.named = []inbox.Name{name}
	}
	open, temporal := s.Temporal.Describe(read, name.DispatcherID(), "")
	if open != nil {
		one.add(*open)
	}
	if temporal == nil {
		temporal = s.addOlder(read, &one)
	}
	one.failed(dispatchtype.PartLeases, leases)
	one.failed(dispatchtype.PartInbox, progress)
	one.failed(dispatchtype.PartTemporal, temporal)
	if len(one.errors) == 3 {
		return dispatchtype.Dispatcher{}, errors.Join(leases, progress, temporal)
	}
	d := s.merge(one, []inbox.Name{name})[0]
	if d.Execution == nil || one.unserved[name] {
		return d, nil // no worker could answer
	}
	ask, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	state, err := s.Temporal.State(ask, d.WorkflowID, d.Execution.RunID)
	if err != nil {
		d.Errors = append(d.Errors, dispatchtype.PartError{Part: dispatchtype.PartState, Err: err})
		return d, nil
	}
	d.State = &state
	return d, nil
}

// addOlder adds the dispatchers with IDs of older schemes, which only a list finds. Without patterns of older schemes
// there are none.
func (s Sources) addOlder(ctx context.Context, one *seen) error {
	if len(s.Rules.LegacyIDs) == 0 {
		return nil
	}
	listed, err := s.Temporal.List(ctx)
	for _, l := range listed {
		if l.Memo == nil || l.WorkflowID != l.Memo.Name.DispatcherID() {
			one.add(l)
		}
	}
	return err
}
