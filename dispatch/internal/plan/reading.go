package plan

import (
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/contract"
	"github.com/signalbox-dev/signalbox/lease"
)

// Answer is whether a worker answers for a dispatcher.
type Answer int

// The answers.
const (
	Unasked  Answer = iota // it was not asked
	Answered               // a worker gave an answer, be it a refusal
	Silent                 // nobody did within the time
	Unclear                // it could not be asked
)

// Open is an open workflow of the dispatchers' type.
type Open struct {
	contract.Execution
	Answer Answer
}

// Reading is what there is to judge by. It is complete: a part that could not be read makes no reading.
type Reading struct {
	// Entries are those of all prefixes that dispatchers use, in any order. How long the store remembers is told by the
	// oldest acquisition among them: a store that lost its data has only young ones.
	Entries []lease.Entry
	// Malformed are the keys whose entries cannot be read.
	Malformed []string
	// Progress is of all dispatchers that the inbox knows.
	Progress []inbox.Progress
	Open     []Open
}

// Rules are the thresholds.
type Rules struct {
	// StaleAfter is how long a sign of life counts.
	StaleAfter time.Duration
	// Retention is how long entries stay readable after their leases.
	Retention time.Duration
	// Most bounds the terminations of a plan, and its deletions.
	Most int
	// LegacyIDs are patterns of IDs of older schemes.
	LegacyIDs []string
}

// Class is what is made of a dispatcher.
type Class string

// The classes.
const (
	Healthy Class = "healthy" // it has an owner, or is respected until it has one
	Stale   Class = "stale"   // there is evidence that nobody owns it or works for it
	Unknown Class = "unknown" // there is evidence for neither; it is left alone
)

// Kind is why a dispatcher is stale, in one word.
type Kind string

// The kinds.
const (
	OwnerGone   Kind = "owner_gone"  // its owner's lease ran out, and so did the owner's heartbeat
	NoProgress  Kind = "no_progress" // nobody owns it, and work has been due for long
	Orphaned    Kind = "orphaned"    // nobody has owned it for longer than entries are kept
	LegacyKind  Kind = "legacy"      // it tells nothing of itself, and nobody owns its name
	OlderScheme Kind = "older_scheme"
)

// Kinds are all of them.
func Kinds() []Kind { return []Kind{OwnerGone, NoProgress, Orphaned, LegacyKind, OlderScheme} }

// Verdict is what is made of one open workflow.
type Verdict struct {
	Open
	// Name is whose dispatcher it is, empty for one that is not ours.
	Name    inbox.Name
	Belongs contract.Belonging
	Class   Class
	// Kind is set for stale ones. Why is for people.
	Kind Kind
	Why  string
	// Entry is its owner's entry, nil where there is none.
	Entry *lease.Entry
	// Superseded: its name has a later owner, which has not replaced or adopted it in time. It may claim nothing, and is the owner's to end.
	Superseded bool
	// Quiet is for how long there has been no sign of life, as far as that is known.
	Quiet time.Duration
}

// Deletion is an entry to remove if it is still the one that was read.
type Deletion struct {
	Name     inbox.Name
	Key      string
	Holder   string
	Token    string
	Revision int64
}

// Trouble is a kind of alert.
type Trouble string

// The troubles.
const (
	NotMine   Trouble = "not_mine"  // a dispatcher that is not ours, or of which it cannot be told
	Duplicate Trouble = "duplicate" // several open dispatchers of one name
	Malformed Trouble = "malformed" // an entry that cannot be read
	Ahead     Trouble = "ahead"     // a dispatcher whose epoch the inbox has not handed out
	NoKeys    Trouble = "no_keys"   // dispatchers run and the store has nothing at all
	Masses    Trouble = "masses"    // more are stale than may be terminated at once
)

// Alert is something for people to look at.
type Alert struct {
	Trouble Trouble
	// Project is empty where it cannot be told.
	Project string
	// Subject is a workflow ID or a key, Text says it in a sentence.
	Subject, Text string
}

// Plan is what to do. All lists are in an order that depends on the reading alone.
type Plan struct {
	// Verdicts are on all open workflows, in the order of their IDs and run IDs.
	Verdicts []Verdict
	// Terminate are stale dispatchers, those quiet for longest first; Postponed are more of them, for the next cycle.
	Terminate, Postponed []Verdict
	// Delete are the entries of owners that are gone, of dispatchers that are gone as well; Later are more of them, for the next cycle.
	Delete, Later []Deletion
	Alerts        []Alert
	// Duplicates counts, by project, the open dispatchers beyond the first of a name. Only projects with a dispatcher are in it.
	Duplicates map[string]int
	// Next is the shortest time after which one may be found stale that is not so yet; 0 where none comes closer by
	// waiting alone.
	Next time.Duration
}
