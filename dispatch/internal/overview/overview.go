// Package overview tells what is known of dispatchers and workers, from all sides beside each other: the leases, the inbox, and
// Temporal. It changes nothing, and needs none of them in particular: what cannot be asked is said in its place.
package overview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/contract"
	"github.com/signalbox-dev/signalbox/dispatch/internal/plan"
	"github.com/signalbox-dev/signalbox/dispatch/internal/supervise"
	"github.com/signalbox-dev/signalbox/lease"
)

const (
	// askTimeout is how long dispatchers may take to answer, all of them together; askMost is how many are asked for what
	// concerns all, askAtOnce how many at a time.
	askTimeout = 2 * time.Second
	askMost    = 200
	askAtOnce  = 16
	// describeMost is how many that are not listed yet are asked for one by one.
	describeMost = 50
	// readTimeout bounds each of the other questions.
	readTimeout = 10 * time.Second
	// tokenShown is how much of a token is told: enough to compare by eye, too little to use.
	tokenShown = 8
)

// Temporal is what is asked of it.
type Temporal interface {
	List(ctx context.Context) ([]supervise.Listed, error)
	Describe(ctx context.Context, workflowID, runID string) (*supervise.Listed, error)
	State(ctx context.Context, workflowID, runID string) (contract.State, error)
}

// Inbox is what is asked of it.
type Inbox interface {
	Progress(ctx context.Context, names ...inbox.Name) ([]inbox.Progress, error)
}

// Sources are where it is read from.
type Sources struct {
	Leases   lease.Store
	Inbox    Inbox
	Temporal Temporal
	Rules    plan.Rules
	// Names returns the names that are listed even if no side knows a dispatcher of theirs; nil for none. They are rows beside the inbox: where
	// they cannot be read, that part is missing.
	Names func(ctx context.Context) ([]inbox.Name, error)
}

// Status is what a dispatcher is doing.
type Status string

// The statuses.
const (
	Routing Status = "routing" // it has work and does it, or looks out for some
	Parked  Status = "parked"  // it sleeps until its doorbell rings
	Stale   Status = "stale"   // nobody owns it or works for it; the supervisor ends it
	Missing Status = "missing" // nothing is open in Temporal
	Foreign Status = "foreign" // its ID is taken by what is none of ours
	// NoWorkers: no live worker serves its project, so nothing is routed.
	NoWorkers Status = "no_workers"
	Unknown   Status = "unknown" // a source that decides it could not be read
)

// Dispatcher is one dispatcher, seen from all sides.
type Dispatcher struct {
	Name       inbox.Name
	WorkflowID string
	Status     Status
	// Class and Why are what the supervisor makes of what is open; empty where nothing is.
	Class plan.Class
	Why   string
	// Lease is its owner's entry, Execution what is open under its ID, Progress what the inbox knows; nil where there is
	// none, or it could not be asked. Others are further open dispatchers of the same name, under IDs of older schemes.
	Lease     *Lease
	Execution *Execution
	Others    []Execution
	Progress  *inbox.Progress
	// State is what it answered when it was asked; nil in lists, and where it did not answer.
	State *contract.State
	// Errors say what could not be asked.
	Errors []Error

	superseded bool
}

// Lease is an owner's entry, by the clock of the store that keeps it.
type Lease struct {
	State lease.State
	// Owner is who holds it. Its epoch is 0 until the inbox has handed it out.
	Owner inbox.Owner
	// Token is the beginning of the acquisition's token.
	Token                 string
	AcquiredAt, RenewedAt time.Time
	// Remaining is how long it counts without a renewal; negative once it does not.
	Remaining time.Duration
}

// Execution is an open workflow.
type Execution struct {
	WorkflowID, RunID string
	StartedAt         time.Time
	// Owner is who adopted it last, by its memo; zero where that says nothing.
	Owner         inbox.Owner
	Interpreter   int
	HistoryLength int64
}

// Part is a side from which dispatchers are seen.
type Part string

// The parts.
const (
	PartLeases   Part = "leases"
	PartInbox    Part = "inbox"
	PartTemporal Part = "temporal"
	PartState    Part = "state" // the dispatcher itself
)

// Error is a part that could not be asked.
type Error struct {
	Part Part
	Err  error
}

// seen is what was read, and what could not be.
type seen struct {
	reading plan.Reading
	listed  map[string]supervise.Listed // by run ID
	named   []inbox.Name                // those of [Sources.Names]
	errors  []Error
}

func (s *seen) failed(part Part, err error) {
	if err != nil {
		s.errors = append(s.errors, Error{part, err})
	}
}

// List returns all dispatchers that any side knows and those of [Sources.Names], in the order of their names. It fails only where no side can
// be asked.
func (s Sources) List(ctx context.Context) ([]Dispatcher, error) {
	all := s.readAll(ctx)
	if len(all.errors) == 3 {
		var failed []error
		for _, e := range all.errors {
			failed = append(failed, e.Err)
		}
		return nil, errors.Join(failed...)
	}
	return s.judge(all, names(all)), nil
}

// readAll asks all sides at once.
func (s Sources) readAll(ctx context.Context) seen {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	out := seen{listed: map[string]supervise.Listed{}}
	var reading sync.WaitGroup
	var listed []supervise.Listed
	var leases, progress, temporal error
	reading.Go(func() {
		for _, prefix := range []string{contract.OwnerPrefix, contract.WorkerPrefix} {
			if leases = supervise.Entries(ctx, s.Leases, prefix, &out.reading); leases != nil {
				return
			}
		}
	})
	var rows []inbox.Progress
	reading.Go(func() {
		if rows, progress = s.Inbox.Progress(ctx); progress == nil && s.Names != nil {
			out.named, progress = s.Names(ctx)
		}
	})
	reading.Go(func() { listed, temporal = s.Temporal.List(ctx) })
	reading.Wait()
	out.reading.Progress = rows
	for i := range listed {
		out.add(listed[i])
	}
	out.failed(PartLeases, leases)
	out.failed(PartInbox, progress)
	out.failed(PartTemporal, temporal)
	if temporal == nil {
		s.describeUnlisted(ctx, &out)
	}
	return out
}

// describeUnlisted asks for the dispatchers that some side knows and that are not listed: Temporal's list lags behind what was just started,
// and does not have workflows of other types that have taken a dispatcher's ID.
func (s Sources) describeUnlisted(ctx context.Context, all *seen) {
	listed := make(map[string]bool, len(all.listed))
	for _, l := range all.listed {
		listed[l.WorkflowID] = true
	}
	unlisted := names(*all)
	unlisted = slices.DeleteFunc(unlisted, func(name inbox.Name) bool { return listed[name.DispatcherID()] })
	// Those with an owner come first, and then those that had one: they are what is most likely open.
	rank := map[inbox.Name]int{}
	for i := range all.reading.Progress {
		rank[all.reading.Progress[i].Name] = -1
	}
	for i := range all.reading.Entries {
		if name, ok := contract.NameOf(all.reading.Entries[i].Key); ok && all.reading.Entries[i].State == lease.Held {
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
	all.failed(PartTemporal, failure)
}

func (s *seen) add(l supervise.Listed) {
	s.listed[l.RunID] = l
	s.reading.Open = append(s.reading.Open, plan.Open{Execution: l.Execution})
}

// names are all that any side knows for certain, and those that are listed anyway, in order.
func names(all seen) []inbox.Name {
	list := slices.Clone(all.named)
	for i := range all.reading.Entries {
		if name, ok := contract.NameOf(all.reading.Entries[i].Key); ok {
			list = append(list, name)
		}
	}
	for i := range all.reading.Progress {
		list = append(list, all.reading.Progress[i].Name)
	}
	for _, l := range all.listed {
		if l.Memo != nil && !l.Unread && l.WorkflowID == l.Memo.Name.DispatcherID() {
			list = append(list, l.Memo.Name)
		}
	}
	slices.SortFunc(list, inbox.Name.Compare)
	return slices.Compact(list)
}

// judge puts together what is known of each name.
func (s Sources) judge(all seen, of []inbox.Name) []Dispatcher {
	found := make([]Dispatcher, len(of))
	at := make(map[inbox.Name]*Dispatcher, len(of))
	byID := make(map[string][]*Dispatcher, len(of))
	for i, name := range of {
		d := &found[i]
		*d = Dispatcher{Name: name, WorkflowID: name.DispatcherID(), Status: Missing, Errors: slices.Clone(all.errors)}
		at[name] = d
		byID[d.WorkflowID] = append(byID[d.WorkflowID], d)
	}
	for i := range all.reading.Entries {
		e := &all.reading.Entries[i]
		if name, ok := contract.NameOf(e.Key); ok && at[name] != nil {
			at[name].Lease = leaseOf(e)
		}
	}
	for i := range all.reading.Progress {
		if d := at[all.reading.Progress[i].Name]; d != nil {
			d.Progress = &all.reading.Progress[i]
		}
	}
	verdicts := plan.Make(all.reading, s.Rules).Verdicts
	for i := range verdicts {
		v := &verdicts[i]
		e := executionOf(all.listed[v.RunID])
		for _, taken := range byID[v.WorkflowID] {
			switch {
			case v.Belongs == contract.NotMine:
				taken.Status, taken.Why = Foreign, v.Why
			case taken.Name != v.Name:
				taken.Status = Foreign
				taken.Why = fmt.Sprintf("it is the dispatcher of project %q and task queue %q, which give the same ID", v.Name.Project, v.Name.TaskQueue)
			}
		}
		switch d := at[v.Name]; {
		case v.Belongs == contract.NotMine:
		case d == nil:
		case v.Belongs == contract.OlderScheme:
			d.Others = append(d.Others, e)
		default:
			d.Execution, d.Class, d.Why = &e, v.Class, v.Why
			d.superseded = v.Superseded
		}
	}
	workers := livingOf(all.reading.Entries)
	for i := range found {
		found[i].settle(workers)
	}
	return found
}

// living are the workers whose heartbeats are there.
type living struct {
	beats []contract.Beat
	// known is set where there are entries to judge by: a store that lost its data has none.
	known bool
}

func livingOf(entries []lease.Entry) living {
	found := living{known: len(entries) > 0}
	for i := range entries {
		e := &entries[i]
		if _, ok := contract.ServerOf(e.Key); !ok || e.State != lease.Held {
			continue
		}
		var beat contract.Beat
		if err := json.Unmarshal(e.Value, &beat); err != nil {
			beat.Serves = 1 // it lives, and may serve any project
		}
		found.beats = append(found.beats, beat)
	}
	return found
}

func (l living) serve(project string) bool {
	return slices.ContainsFunc(l.beats, func(b contract.Beat) bool {
		return b.Serves > len(b.Projects) || slices.Contains(b.Projects, project)
	})
}

// settle says what a dispatcher is doing. Without all sides, nobody can tell whether it is well.
func (d *Dispatcher) settle(workers living) {
	without := func(part Part) bool {
		return slices.ContainsFunc(d.Errors, func(e Error) bool { return e.Part == part })
	}
	switch {
	case d.Class == "":
	case without(PartLeases):
		d.Class, d.Why = plan.Unknown, "the leases cannot be asked"
	case without(PartInbox) && d.Class != plan.Healthy:
		d.Class, d.Why = plan.Unknown, "the inbox cannot be asked"
	default:
	}
	switch {
	case d.Status == Foreign && d.Execution == nil:
	case without(PartTemporal):
		d.Status = Unknown
	case !without(PartLeases) && !workers.known:
		d.Status = Unknown
		d.Why = "there is no heartbeat of any worker: none lives, or the store of leases lost its data"
	case !without(PartLeases) && !workers.serve(d.Name.Project) && (d.Class != plan.Stale || len(workers.beats) == 0):
		d.Status = NoWorkers
		d.Why = fmt.Sprintf("no live worker serves project %q; %d serve others", d.Name.Project, len(workers.beats))
		if len(workers.beats) == 0 {
			d.Why = "no worker is alive"
		}
	case d.Execution == nil:
		d.Status = Missing
	case d.Class == plan.Stale || d.superseded:
		d.Status = Stale
	case d.Progress == nil:
		d.Status = Unknown
	case d.Progress.Parked:
		d.Status = Parked
	default:
		d.Status = Routing
	}
}

func leaseOf(e *lease.Entry) *Lease {
	claim := claimOf(e)
	return &Lease{
		State: e.State, Owner: inbox.Owner{Epoch: claim.Epoch, Holder: e.Holder}, Token: e.Token[:min(len(e.Token), tokenShown)],
		AcquiredAt: e.AcquiredAt, RenewedAt: e.RenewedAt, Remaining: e.Remaining(),
	}
}

// claimOf is what an entry's value says; one that says nothing is no reason not to show the rest.
func claimOf(e *lease.Entry) contract.Claim {
	var claim contract.Claim
	if err := json.Unmarshal(e.Value, &claim); err != nil {
		return contract.Claim{}
	}
	return claim
}

func executionOf(l supervise.Listed) Execution {
	e := Execution{WorkflowID: l.WorkflowID, RunID: l.RunID, StartedAt: l.StartedAt, HistoryLength: l.HistoryLength}
	if l.Memo != nil {
		e.Owner, e.Interpreter = inbox.Owner{Epoch: l.Memo.Epoch, Holder: l.Memo.Owner}, l.Memo.Interpreter
	}
	return e
}

// Get returns one dispatcher, and asks it how it is. It fails only where no side can be asked.
func (s Sources) Get(ctx context.Context, name inbox.Name) (Dispatcher, error) {
	read, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	one := seen{listed: map[string]supervise.Listed{}}
	leases := supervise.Entries(read, s.Leases, contract.WorkerPrefix, &one.reading)
	if leases == nil {
		leases = supervise.Entry(read, s.Leases, contract.OwnerKey(name), &one.reading)
	}
	rows, progress := s.Inbox.Progress(read, name)
	one.reading.Progress = rows
	open, temporal := s.Temporal.Describe(read, name.DispatcherID(), "")
	if open != nil {
		one.add(*open)
	}
	one.failed(PartLeases, leases)
	one.failed(PartInbox, progress)
	one.failed(PartTemporal, temporal)
	if len(one.errors) == 3 {
		return Dispatcher{}, errors.Join(leases, progress, temporal)
	}
	d := s.judge(one, []inbox.Name{name})[0]
	if d.Execution == nil {
		return d, nil
	}
	ask, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	state, err := s.Temporal.State(ask, d.WorkflowID, d.Execution.RunID)
	if err != nil {
		d.Errors = append(d.Errors, Error{PartState, err})
		return d, nil
	}
	d.State = &state
	return d, nil
}
