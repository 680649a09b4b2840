package model

import (
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/plan"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/lease"
)

const (
	soon = time.Second
	long = time.Hour
	// deadEntry is the planner's result for an entry without a dispatcher.
	deadEntry = "dead entry"
)

// decisions caches the results of the product's functions.
type decisions struct {
	moves map[decisionInput]move
	plans map[planInput]string
}

// decisionInput is the input of a process's decision.
type decisionInput struct {
	before       sign
	open, legacy bool
	owner, own   pair
	silent       bool
}

type move struct {
	phase phase
	why   string
}

// decideBy calls plan.Decide.
func (m *decisions) decideBy(c decisionInput, interrupted bool) move {
	if known, ok := m.moves[c]; ok {
		return known
	}
	seen := plan.Observed{Open: c.open, Silent: c.silent}
	if c.open {
		seen.Belongs, seen.Owner, seen.Epoch = wire.Mine, server(c.owner.holder), int64(c.owner.epoch)
	}
	if c.legacy {
		seen.Belongs, seen.Owner = wire.Legacy, ""
	}
	previous := map[sign]plan.Previous{
		none: plan.PreviousUnknown, resigned: plan.Resigned, expired: plan.Crashed}[c.before]
	act := plan.Decide(previous, seen, inbox.Owner{Epoch: int64(c.own.epoch), Holder: server(c.own.holder)})
	if interrupted && act.Label == "interrupted" {
		act.Kind = plan.Adopt
	}
	phases := map[plan.ActKind]phase{
		plan.ColdStart: starting, plan.Adopt: adopting, plan.TakeOver: ending, plan.Keep: owning}
	phase, ok := phases[act.Kind]
	if !ok {
		phase = leaving
	}
	m.moves[c] = move{phase, fmt.Sprintf("%s, %s", act.Kind, act.Label)}
	return m.moves[c]
}

func server(holder int8) string { return fmt.Sprintf("s%d", holder) }

// planInput is the input of the supervisor's plan.
type planInput struct {
	lease        sign
	holder       int8
	open, legacy bool
	owner, fence pair
}

// plan calls plan.Make. The inbox and the dispatcher are in the worst state: work is due, there is no progress and no
// answer, and the owner's heartbeat expired long ago.
func (m *decisions) plan(s planInput) string {
	if known, ok := m.plans[s]; ok {
		return known
	}
	name := inbox.Name{Project: "p", TaskQueue: "q"}
	snapshot := plan.Snapshot{
		Entries: []lease.Entry{stored(wire.WorkerKey("supervisor"), "supervisor", held)},
		Progress: []inbox.Progress{
			{Name: name, Owner: inbox.Owner{Epoch: int64(s.fence.epoch)}, Due: true, SinceProgress: long, Lag: long}},
	}
	if s.lease != none {
		snapshot.Entries = append(snapshot.Entries, stored(wire.OwnerKey(name), server(s.holder), s.lease))
	}
	if s.open {
		e := wire.Execution{WorkflowID: name.DispatcherID(), RunID: "r", Type: wire.WorkflowType, TaskQueue: name.TaskQueue}
		if !s.legacy {
			e.Memo = &wire.Memo{Name: name, Owner: server(s.owner.holder), Epoch: int64(s.owner.epoch)}
		}
		snapshot.Open = append(snapshot.Open, plan.Open{Execution: e, Answer: plan.Silent})
	}
	// The thresholds are between the two ages of the model.
	p := plan.Make(snapshot, plan.Rules{StaleAfter: 20 * time.Second, Retention: 10 * time.Minute, MaxActions: 1})
	switch {
	case len(p.Terminate) > 0:
		m.plans[s] = "stale, " + string(p.Terminate[0].Kind)
	case len(p.Delete) > 0:
		m.plans[s] = deadEntry
	default:
		m.plans[s] = ""
	}
	return m.plans[s]
}

func stored(key, holder string, s sign) lease.Entry {
	age := long
	if s == held {
		age = soon
	}
	read := time.Unix(0, 0).Add(2 * long)
	return lease.Entry{
		Key: key, Holder: holder,
		State:      map[sign]lease.State{held: lease.Held, resigned: lease.Resigned, expired: lease.Expired}[s],
		AcquiredAt: read.Add(-long), RenewedAt: read.Add(-age), ReadAt: read,
	}
}
