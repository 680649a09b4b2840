package plan

import (
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/lease"
)

// Answer is the result of asking a dispatcher.
type Answer int

// The answers.
const (
	Unasked  Answer = iota // it was not asked
	Answered               // a worker answered, possibly with a rejection
	Silent                 // no worker answered within the time
	Unclear                // it could not be asked
)

// Open is an open workflow of the dispatchers' type.
type Open struct {
	wire.Execution
	Answer Answer
}

// Snapshot is the input of a plan. It is complete: if a part cannot be read, there is no snapshot.
type Snapshot struct {
	// Entries are the entries with all prefixes that dispatchers use, in any order. The oldest acquisition among them
	// shows how far back the store's data reaches: a store that lost its data has only young entries.
	Entries []lease.Entry
	// Malformed are the keys of entries that cannot be decoded.
	Malformed []string
	// Progress is the progress of all dispatchers in the inbox.
	Progress []inbox.Progress
	Open     []Open
}

// Rules are the thresholds.
type Rules struct {
	// StaleAfter is the time without a sign of life after which a process counts as dead.
	StaleAfter time.Duration
	// Retention is how long entries stay readable after their leases have ended.
	Retention time.Duration
	// MaxActions is the limit of terminations in a plan, and of deletions.
	MaxActions int
	// LegacyIDs are patterns of IDs of older schemes.
	LegacyIDs []string
}

// Kind is the reason why a dispatcher is stale, in one word.
type Kind string

// The kinds.
const (
	OwnerGone   Kind = "owner_gone"  // its owner's lease and heartbeat expired
	NoProgress  Kind = "no_progress" // it has no owner, and work has been due for long
	Orphaned    Kind = "orphaned"    // it has had no owner for longer than entries are kept
	LegacyKind  Kind = "legacy"      // it has no memo, and its name has no owner
	OlderScheme Kind = "older_scheme"
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{OwnerGone, NoProgress, Orphaned, LegacyKind, OlderScheme} }

// Verdict is the classification of one open workflow.
type Verdict struct {
	Open
	// Name is the name of the dispatcher; empty for a foreign workflow.
	Name    inbox.Name
	Belongs wire.Belonging
	Class   dispatchtype.Class
	// Kind is set for stale ones. Reason is a text for operators.
	Kind   Kind
	Reason string
	// Entry is its owner's entry, nil if there is none.
	Entry *lease.Entry
	// Superseded: its name has a later owner, which has not replaced or adopted it in time. Its claims are rejected, and
	// its owner must terminate it.
	Superseded bool
	// SilentFor is the time since the last sign of life, as far as known.
	SilentFor time.Duration
}

// Deletion is an entry to delete if it has not changed since it was read.
type Deletion struct {
	Name     inbox.Name
	Key      string
	Holder   string
	Token    string
	Revision int64
}

// AlertKind is the kind of an alert.
type AlertKind string

// The troubles.
const (
	Foreign      AlertKind = "foreign"        // a foreign dispatcher, or one that cannot be attributed
	Duplicate    AlertKind = "duplicate"      // several open dispatchers with one name
	Malformed    AlertKind = "malformed"      // an entry that cannot be read
	Ahead        AlertKind = "ahead"          // a dispatcher whose epoch the inbox has not allocated
	NoKeys       AlertKind = "no_keys"        // dispatchers are open and the store is empty
	TooManyStale AlertKind = "too_many_stale" // more are stale than one cycle may terminate
)

// Alert is a condition for operators to look at.
type Alert struct {
	Kind AlertKind
	// Project is empty if it cannot be determined.
	Project string
	// Subject is a workflow ID or a key. Text describes the condition.
	Subject, Text string
}

// Plan is the result of [Make]. The order of all lists depends only on the snapshot.
type Plan struct {
	// Verdicts has all open workflows, ordered by workflow ID and run ID.
	Verdicts []Verdict
	// Terminate are stale dispatchers, the longest silent ones first. TerminateLater are those beyond the limit, for the
	// next cycle.
	Terminate, TerminateLater []Verdict
	// Delete are the entries of dead owners whose dispatchers are closed. DeleteLater are those beyond the limit, for the
	// next cycle.
	Delete, DeleteLater []Deletion
	Alerts              []Alert
	// Duplicates counts, by project, the open dispatchers beyond the first of a name. It includes only projects with a
	// dispatcher.
	Duplicates map[string]int
	// Next is the shortest time after which another dispatcher may become stale; 0 if none becomes stale by waiting alone.
	Next time.Duration
}
