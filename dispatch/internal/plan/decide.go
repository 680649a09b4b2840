package plan

import (
	"fmt"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
)

// Previous is how the previous owner ended.
type Previous string

// The ways in which a previous owner ends.
const (
	// PreviousUnknown: there is no entry, or its state proves nothing, because the store was failing or lost its data.
	PreviousUnknown Previous = "unknown"
	// Resigned: it resigned the lease.
	Resigned Previous = "resigned"
	// Crashed: it did not renew its lease although the store was available.
	Crashed Previous = "crashed"
)

// Observed is the dispatcher as Temporal and the inbox show it. The zero value means that none is open.
type Observed struct {
	Open    bool
	Belongs wire.Belonging
	Owner   string
	Epoch   int64
	// Silent reports that it makes no progress although work is due.
	Silent bool
	// Unanswered reports that it did not answer this owner.
	Unanswered bool
}

// ActKind is the kind of an action.
type ActKind string

// The actions of a new owner.
const (
	ColdStart ActKind = "cold_start" // start one
	Adopt     ActKind = "adopt"      // make this process the owner of the open one
	TakeOver  ActKind = "take_over"  // terminate the open one by its run ID, and start a new one
	Keep      ActKind = "keep"       // nothing: this process owns it already
	StepDown  ActKind = "step_down"  // resign the lease: another owner has a higher epoch
	Refuse    ActKind = "refuse"     // resign the lease: the open workflow is foreign
)

// Act is an action: Label is the reason in a word, Reason a text for operators.
type Act struct {
	Kind          ActKind
	Label, Reason string
}

// Ending returns the state of a terminated dispatcher for operators: the kind in a word, then the reason.
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

// Labels returns the labels of the actions that terminate.
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

// Decide returns the action of a new owner, from the end of the previous owner, the dispatcher as seen after the lease
// was acquired, and the new ownership.
func Decide(previous Previous, seen Observed, own inbox.Owner) Act {
	switch {
	case !seen.Open:
		return Act{ColdStart, "absent", "no dispatcher is open"}
	case seen.Belongs == wire.Legacy:
		return Act{TakeOver, labelLegacy, "it was started by a release without epochs"}
	case seen.Belongs != wire.Mine:
		return Act{Refuse, "foreign", "a foreign workflow has its ID"}
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
		// A process with an epoch in between may have decided to terminate this run and be slow: an adopted dispatcher would
		// then be terminated during its work. The exploration in dispatch/internal/model shows how.
		return Act{TakeOver, labelInterrupted, "a later owner was given an epoch and has not completed"}
	case previous == Resigned:
		return Act{Adopt, "resigned", "its owner resigned"}
	default:
		return Act{Adopt, "unowned", "it has no known owner"}
	}
}
