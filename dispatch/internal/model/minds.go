package model

import (
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/contract"
	"github.com/signalbox-dev/signalbox/dispatch/internal/decide"
	"github.com/signalbox-dev/signalbox/dispatch/internal/plan"
	"github.com/signalbox-dev/signalbox/lease"
)

var (
	name = inbox.Name{Project: "p", TaskQueue: "q"}
	// rules have thresholds between the two ages that there are here.
	rules = plan.Rules{StaleAfter: 20 * time.Second, Retention: 10 * time.Minute, Most: 1}
)

const (
	soon = time.Second
	long = time.Hour
	// deadEntry is what the planner found when it is no dispatcher.
	deadEntry = "dead entry"
)

// minds remember what the product's functions said, which is the same each time.
type minds struct {
	choices map[choice]move
	sights  map[sight]string
}

// choice is what a process decides by.
type choice struct {
	before       sign
	open, legacy bool
	owner, own   pair
	silent       bool
}

type move struct {
	phase phase
	why   string
}

// table asks the product's table.
func (m *minds) table(c choice, interrupted bool) move {
	if known, ok := m.choices[c]; ok {
		return known
	}
	seen := decide.Seen{Open: c.open, Silent: c.silent}
	if c.open {
		seen.Belongs, seen.Owner, seen.Epoch = contract.Mine, server(c.owner.holder), int64(c.owner.epoch)
	}
	if c.legacy {
		seen.Belongs, seen.Owner = contract.Legacy, ""
	}
	previous := map[sign]decide.Previous{none: decide.Unknown, resigned: decide.Resigned, expired: decide.Crashed}[c.before]
	act := decide.What(previous, seen, inbox.Owner{Epoch: int64(c.own.epoch), Holder: server(c.own.holder)})
	if interrupted && act.Label == "interrupted" {
		act.Kind = decide.Adopt
	}
	phases := map[decide.Kind]phase{decide.ColdStart: starting, decide.Adopt: adopting, decide.TakeOver: ending, decide.Keep: owning}
	phase, ok := phases[act.Kind]
	if !ok {
		phase = leaving
	}
	m.choices[c] = move{phase, fmt.Sprintf("%s, %s", act.Kind, act.Label)}
	return m.choices[c]
}

func server(holder int8) string { return fmt.Sprintf("s%d", holder) }

// sight is what the supervisor plans by.
type sight struct {
	lease        sign
	holder       int8
	open, legacy bool
	owner, fence pair
}

// plan asks the product's planner. What the inbox and the dispatcher say of themselves is the worst that they could: that
// work is due, that nothing moves, no answer, and that the owner's heartbeat is long gone.
func (m *minds) plan(s sight) string {
	if known, ok := m.sights[s]; ok {
		return known
	}
	reading := plan.Reading{
		Entries:  []lease.Entry{stored(contract.WorkerKey("supervisor"), "supervisor", held)},
		Progress: []inbox.Progress{{Name: name, Owner: inbox.Owner{Epoch: int64(s.fence.epoch)}, Due: true, SinceProgress: long, Lag: long}},
	}
	if s.lease != none {
		reading.Entries = append(reading.Entries, stored(contract.OwnerKey(name), server(s.holder), s.lease))
	}
	if s.open {
		e := contract.Execution{WorkflowID: name.DispatcherID(), RunID: "r", Type: contract.WorkflowType, TaskQueue: name.TaskQueue}
		if !s.legacy {
			e.Memo = &contract.Memo{Name: name, Owner: server(s.owner.holder), Epoch: int64(s.owner.epoch)}
		}
		reading.Open = append(reading.Open, plan.Open{Execution: e, Answer: plan.Silent})
	}
	p := plan.Make(reading, rules)
	switch {
	case len(p.Terminate) > 0:
		m.sights[s] = "stale, " + string(p.Terminate[0].Kind)
	case len(p.Delete) > 0:
		m.sights[s] = deadEntry
	default:
		m.sights[s] = ""
	}
	return m.sights[s]
}

func stored(key, holder string, s sign) lease.Entry {
	age := long
	if s == held {
		age = soon
	}
	read := time.Unix(0, 0).Add(2 * long)
	return lease.Entry{
		Key: key, Holder: holder, State: map[sign]lease.State{held: lease.Held, resigned: lease.Resigned, expired: lease.Expired}[s],
		AcquiredAt: read.Add(-long), RenewedAt: read.Add(-age), ReadAt: read,
	}
}
