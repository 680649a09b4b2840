package run

import (
	"context"
	"fmt"
	"time"
)

const (
	// WriteLag is how long the projection may take to write what Temporal has accepted before a row counts as behind.
	WriteLag = 5 * time.Second
	// QuietAfter is how long a row must not have been written before it is compared with Temporal: while it is written, its
	// writer is alive.
	QuietAfter = 3 * time.Second
)

// Behind says that the rows of a run show less than Temporal has accepted.
type Behind struct {
	// Since is when that was found.
	Since time.Time
	// Reason is how it was found, Problem why the last attempt to repair it failed; empty before the first failure. For people.
	Reason, Problem string
}

// RepairRequest asks for the rows of a run to be compared with Temporal and brought up to it, by a worker.
type RepairRequest struct {
	RunID string
	// Reason is why, for people.
	Reason string
	// Behind is set where the rows are known to be behind; otherwise the worker finds that out.
	Behind bool
	// Force rebuilds the rows also where their position is that of Temporal: updates of the run were dropped.
	Force bool
	// Correction is what the repair counts as, and is audited as, when it changes the row; empty: nothing.
	Correction CorrectionKind
	// After delays the repair, so that ordinary updates arrive first.
	After time.Duration
}

// Repair is a request that a worker has claimed.
type Repair struct {
	RepairRequest

	Project string
	// Attempts counts the claims, this one included, but for those that were postponed without a problem.
	Attempts int
	// Done is the newest execution all of whose records are written; empty before the first.
	Done string
	// Claim and Generation identify this claim and the request that it has seen.
	Claim, Generation int64
}

// RepairStore keeps the requests for repairs, one per run at most. The time is the store's own.
type RepairStore interface {
	RepairRows

	// PostponeRepair returns a claim and keeps r.Done. problem says why the attempt failed; where it is empty, the attempt does
	// not count.
	PostponeRepair(ctx context.Context, r Repair, after time.Duration, problem string) error
}

// RepairRows is the part of a [RepairStore] to which no values of runs are written.
type RepairRows interface {
	// RequestRepairs adds requests, and merges them with those that there are: a later one neither shortens the back-off of an
	// earlier one nor gets lost while that is worked on. Requests for runs that do not exist are passed over.
	RequestRepairs(ctx context.Context, list []RepairRequest) error
	// ClaimRepair returns the request that has been due for longest, and false when none is due. It is due again after the
	// lease that the attempt, counted from 1, is given, unless the claim is held, returned or ended before.
	ClaimRepair(ctx context.Context, lease func(attempt int) time.Duration) (Repair, bool, error)
	// HoldRepair extends a claim by the lease and keeps r.Done. It returns false when the claim was lost.
	HoldRepair(ctx context.Context, r Repair, lease time.Duration) (bool, error)
	// EndRepair removes a request. One that was made again since it was claimed is due at once.
	EndRepair(ctx context.Context, r Repair) error
}

// BehindBecause compares a row with what Temporal has of the run and says for people in what the row is behind; it is empty
// where the row is not. A reset is none: [RelationReset] replaces rows.
func BehindBecause(r Run, x Execution, now time.Time) string {
	switch {
	case x.Relation == RelationReset:
		return ""
	case !r.Status.Terminal() && !x.Open:
		if Recent(now, x.ClosedAt, WriteLag) {
			return ""
		}
		return fmt.Sprintf("the run ended in Temporal at %s, and its end is not written", x.ClosedAt.UTC().Format(time.RFC3339))
	case Recent(now, x.StartedAt, WriteLag) || Recent(now, x.AcceptedAt, WriteLag):
		return ""
	case x.Relation == RelationSuccessor && x.Accepted > 0:
		return "a later execution of the run is not written"
	case x.Accepted > HistoryLength(r.Position):
		return fmt.Sprintf("what Temporal accepted at %s is not written", x.AcceptedAt.UTC().Format(time.RFC3339))
	default:
		return ""
	}
}

// Recent reports whether a time, which may be of another machine's clock, is less than a duration away from now. A time further ahead
// than that is of a clock that is wrong: waiting until it has passed would leave rows behind for as long as that clock is ahead.
func Recent(now, at time.Time, within time.Duration) bool { return now.Sub(at).Abs() < within }

// Rebuilder makes the rows of runs again from their histories.
type Rebuilder interface {
	// Look is that of [Inspector].
	Look(ctx context.Context, r Run) (Execution, error)
	// Rebuild interprets the histories of a run's executions again, oldest first and one at a time, and gives w what they
	// recorded. after is the last execution that need not be read again; empty: there is none. Writing the same again changes
	// nothing, so a rebuild may be cut off at any point. It ends with ctx, and with [ErrNotKnown] where Temporal has no such run.
	Rebuild(ctx context.Context, r Run, after string, w RebuildWriter) error
}

// RebuildWriter takes what a rebuild makes.
type RebuildWriter interface {
	// Write writes a part, whose size is bounded.
	Write(ctx context.Context, part Update) error
	// Done is called when all that an execution recorded is written and later ones are to come.
	Done(ctx context.Context, executionID string) error
}
