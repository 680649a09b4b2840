package supervisor

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/plan"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/lease"
)

// observe reads everything. Temporal comes first: a later change of owner then shows in the lease.
func (s *Supervisor) observe(ctx context.Context) (plan.Snapshot, error) {
	open, err := s.o.Temporal.List(ctx)
	if err != nil {
		return plan.Snapshot{}, dispatchtype.PartError{Part: dispatchtype.PartTemporal, Err: err}
	}
	snapshot := plan.Snapshot{Open: make([]plan.Open, 0, len(open))}
	for i := range open {
		snapshot.Open = append(snapshot.Open, plan.Open{Execution: open[i].Execution})
	}
	if snapshot.Progress, err = s.progress(ctx); err != nil {
		return plan.Snapshot{}, err
	}
	for _, prefix := range []string{wire.OwnerPrefix, wire.WorkerPrefix, wire.HandoverPrefix} {
		if err := Entries(ctx, s.o.Leases, prefix, &snapshot); err != nil {
			return plan.Snapshot{}, err
		}
	}
	s.o.Listed(snapshot.Entries)
	return snapshot, nil
}

// Entries adds the entries with a prefix to a snapshot.
func Entries(ctx context.Context, store lease.Store, prefix string, into *plan.Snapshot) error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	for e, err := range store.List(ctx, prefix) {
		if err := add(into, e, err); err != nil {
			return dispatchtype.PartError{Part: dispatchtype.PartLeases, Err: fmt.Errorf("list entries %q: %w", prefix+"*", err)}
		}
	}
	return nil
}

// Entry adds the entry of a key to a snapshot, if it exists.
func Entry(ctx context.Context, store lease.Store, key string, into *plan.Snapshot) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	e, err := store.Get(ctx, key)
	if err := add(into, e, err); err != nil {
		return dispatchtype.PartError{Part: dispatchtype.PartLeases, Err: fmt.Errorf("read entry %q: %w", key, err)}
	}
	return nil
}

// add adds an entry that was read. A malformed entry and a missing one are no errors.
func add(into *plan.Snapshot, e lease.Entry, err error) error {
	malformed, bad := errors.AsType[*lease.MalformedError](err)
	switch {
	case bad:
		into.Malformed = append(into.Malformed, malformed.Key)
	case errors.Is(err, lease.ErrNotFound):
	case err != nil:
		return err
	default:
		into.Entries = append(into.Entries, e)
	}
	return nil
}

func (s *Supervisor) progress(ctx context.Context, names ...inbox.Name) ([]inbox.Progress, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	rows, err := s.o.Inbox.Progress(ctx, names...)
	if err != nil {
		return nil, dispatchtype.PartError{
			Part: dispatchtype.PartInbox, Err: fmt.Errorf("read the progress of dispatchers: %w", err)}
	}
	return rows, nil
}

// suspects are the dispatchers of a first plan's actions.
type suspects struct {
	names []inbox.Name
	// open are all their open workflows, under any ID, in the order of the plan.
	open []plan.Open
	// ask has the run IDs whose answer decides.
	ask map[string]bool // by run ID
}

func suspectsOf(p plan.Plan) suspects {
	found := suspects{ask: map[string]bool{}}
	meant := map[inbox.Name]bool{}
	note := func(name inbox.Name) {
		if !meant[name] {
			meant[name], found.names = true, append(found.names, name)
		}
	}
	for i := range p.Terminate {
		note(p.Terminate[i].Name)
		if p.Terminate[i].Kind != plan.OlderScheme {
			found.ask[p.Terminate[i].RunID] = true
		}
	}
	for _, d := range p.Delete {
		note(d.Name)
	}
	for i := range p.Verdicts {
		if v := &p.Verdicts[i]; v.Belongs != wire.Foreign && meant[v.Name] {
			found.open = append(found.open, v.Open)
		}
	}
	return found
}

// confirm reads the suspects a second time, after the confirmation time. Meanwhile the suspects are asked for an
// answer.
func (s *Supervisor) confirm(ctx context.Context, of suspects) (plan.Snapshot, error) {
	asked := make(chan map[string]plan.Answer, 1)
	go func() { asked <- s.ask(ctx, of) }()
	waited := loop.Sleep(ctx, s.o.Rules.Confirm)
	answers := <-asked
	if !waited {
		return plan.Snapshot{}, context.Cause(ctx)
	}
	var snapshot plan.Snapshot
	for i := range of.open {
		if err := s.describe(ctx, &snapshot, of.open[i].WorkflowID, of.open[i].RunID, answers); err != nil {
			return plan.Snapshot{}, err
		}
	}
	for _, name := range of.names {
		// The newest run under the ID, which may have started in the meantime or be missing from the list.
		if err := s.describe(ctx, &snapshot, name.DispatcherID(), "", answers); err != nil {
			return plan.Snapshot{}, err
		}
	}
	var err error
	if snapshot.Progress, err = s.progress(ctx, of.names...); err != nil {
		return plan.Snapshot{}, err
	}
	// All heartbeats: they are few, and they show how far back the store's data reaches by now.
	if err := Entries(ctx, s.o.Leases, wire.WorkerPrefix, &snapshot); err != nil {
		return plan.Snapshot{}, err
	}
	for _, name := range of.names {
		if err := Entry(ctx, s.o.Leases, wire.OwnerKey(name), &snapshot); err != nil {
			return plan.Snapshot{}, err
		}
	}
	return snapshot, nil
}

// describe adds a run to a snapshot if it is open and not in the snapshot.
func (s *Supervisor) describe(ctx context.Context, into *plan.Snapshot, workflowID, runID string,
	answers map[string]plan.Answer) error {
	if err := s.o.Pace.Wait(ctx); err != nil {
		return err
	}
	found, err := s.o.Temporal.Describe(ctx, workflowID, runID)
	if err != nil {
		return dispatchtype.PartError{Part: dispatchtype.PartTemporal, Err: err}
	}
	if found == nil {
		return nil
	}
	for i := range into.Open {
		if into.Open[i].RunID == found.RunID {
			return nil
		}
	}
	into.Open = append(into.Open, plan.Open{Execution: found.Execution, Answer: answers[found.RunID]})
	return nil
}

// ask asks the suspects concurrently.
func (s *Supervisor) ask(ctx context.Context, of suspects) map[string]plan.Answer {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var mu sync.Mutex
	var asking sync.WaitGroup
	answers := map[string]plan.Answer{}
	for i := range of.open {
		o := &of.open[i]
		if !of.ask[o.RunID] {
			continue
		}
		asking.Go(func() {
			a := s.o.Temporal.Ask(ctx, o.WorkflowID, o.RunID)
			mu.Lock()
			defer mu.Unlock()
			answers[o.RunID] = a
		})
	}
	asking.Wait()
	return answers
}
