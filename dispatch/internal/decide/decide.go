// Package decide is the table by which the winner of a lease finds out what to do about the dispatcher that it now owns: a pure
// function of what it saw. It acts on nothing.
package decide

import (
	"fmt"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/contract"
)

// Previous is what became of the owner before.
type Previous string

// What may have become of it.
const (
	// Unknown: there is no entry, or its state proves nothing, because the store was away or lost its memory.
	Unknown Previous = "unknown"
	// Resigned: it gave the dispatcher up in an orderly way.
	Resigned Previous = "resigned"
	// Crashed: it did not renew its lease although it could have.
	Crashed Previous = "crashed"
)

// Seen is the dispatcher as Temporal and the inbox show it. The zero value: nothing is open.
type Seen struct {
	Open    bool
	Belongs contract.Belonging
	Owner   string
	Epoch   int64
	// Silent tells that it makes no progress although there is work.
	Silent bool
	// Unanswered tells that it did not answer this owner.
	Unanswered bool
}

// Kind is what to do.
type Kind string

// What there is to do.
const (
	ColdStart Kind = "cold_start" // start one
	Adopt     Kind = "adopt"      // tell the one that is open who owns it
	TakeOver  Kind = "take_over"  // terminate the one that is open, by its run ID, and start another
	Keep      Kind = "keep"       // nothing: it is owned already
	StepDown  Kind = "step_down"  // give up the lease: somebody else was later
	Refuse    Kind = "refuse"     // give up the lease: what is open is somebody else's altogether
)

// Act is what to do, and why: Label in a word, Reason for people.
type Act struct {
	Kind          Kind
	Label, Reason string
}

// Ending says for people what had become of a dispatcher that was terminated: the kind in a word, then the reason.
func (a Act) Ending() string {
	kind := a.Label
	switch a.Label {
	case labelUnanswered, labelSilent:
		kind = "frozen"
	case labelInterrupted:
		kind = "stale"
	}
	return kind + ": " + a.Reason
}

// Labels are the labels of the acts that terminate.
func Labels() []string {
	return []string{labelLegacy, labelCrashed, labelUnanswered, labelSilent, labelInterrupted}
}

const (
	labelLegacy      = "legacy"
	labelCrashed     = "crashed"
	labelUnanswered  = "unanswered"
	labelSilent      = "silent"
	labelInterrupted = "interrupted"
)

// What decides, from the owner before, what was seen after winning the lease, and the own ownership.
func What(previous Previous, seen Seen, own inbox.Owner) Act {
	switch {
	case !seen.Open:
		return Act{ColdStart, "absent", "no dispatcher is open"}
	case seen.Belongs == contract.Legacy:
		return Act{TakeOver, labelLegacy, "it was started by a release that knows no epochs"}
	case seen.Belongs != contract.Mine:
		return Act{Refuse, "foreign", "a workflow with this ID is open that belongs to somebody else"}
	case seen.Epoch == own.Epoch && seen.Owner == own.Holder:
		return Act{Keep, "owned", "it has this owner"}
	case seen.Epoch >= own.Epoch:
		return Act{StepDown, "outrun", fmt.Sprintf("it belongs to %q with epoch %d", seen.Owner, seen.Epoch)}
	case previous == Crashed:
		return Act{TakeOver, labelCrashed, "its owner did not renew its lease"}
	case seen.Unanswered && seen.Silent:
		return Act{TakeOver, labelUnanswered, "it makes no progress although there is work, and did not answer"}
	case seen.Unanswered:
		return Act{TakeOver, labelUnanswered, "it did not answer"}
	case seen.Silent:
		return Act{TakeOver, labelSilent, "it makes no progress although there is work"}
	case seen.Epoch != own.Epoch-1:
		// Whoever was given the epochs between may have decided to terminate this very run, and be slow about it: what is adopted
		// would then be lost in the middle of its work. The exploration in dispatch/internal/model shows how.
		return Act{TakeOver, labelInterrupted, "somebody who was to own it after its owner has not come to an end"}
	case previous == Resigned:
		return Act{Adopt, "resigned", "its owner resigned"}
	default:
		return Act{Adopt, "unowned", "nobody is known to own it"}
	}
}
