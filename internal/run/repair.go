package run

import (
	"context"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/internal/logger"
)

const (
	// WriteLag is how long the projection may take to write what Temporal has accepted before a row counts as behind.
	WriteLag = 5 * time.Second
	// QuietAfter is how long a row must not have been written before it is compared with Temporal: a recent write means
	// that its writer is alive.
	QuietAfter = 3 * time.Second
)

// Behind records that the rows of a run show less than Temporal has accepted.
type Behind struct {
	// Since is when that was found.
	Since time.Time
	// Reason is how it was found, Failure why the last attempt at a repair failed; empty before the first failure. For
	// display.
	Reason, Failure string
}

// RepairRequest requests that a worker compares the rows of a run with Temporal and updates them.
type RepairRequest struct {
	RunID string
	// Reason is why, for display.
	Reason string
	// Behind is set where the rows are known to be behind; otherwise the worker finds out.
	Behind bool
	// Force rebuilds the rows also where their position equals that of Temporal: updates of the run were dropped.
	Force bool
	// Correction is the kind under which the repair is counted and audited when it changes the row; empty: none.
	Correction CorrectionKind
	// After delays the repair, so that ordinary updates arrive first.
	After time.Duration
}

// Repair is a request that a worker has claimed.
type Repair struct {
	RepairRequest

	Project string
	// Attempts counts the claims, including this one, without those that were postponed without a failure.
	Attempts int
	// Done is the newest execution whose records are all written; empty before the first.
	Done string
	// Claim and Generation identify this claim and the version of the request that it was made for.
	Claim, Generation int64
}

// RepairStore stores the requests for repairs, at most one per run. It uses the database's clock.
type RepairStore interface {
	RepairRows

	// PostponeRepair returns a claim and stores r.Done. failure is why the attempt failed; where it is empty, the
	// attempt does not count.
	PostponeRepair(ctx context.Context, r Repair, after time.Duration, failure string) error
}

// RepairRows is the part of a [RepairStore] that writes no values of runs.
type RepairRows interface {
	// RequestRepairs adds requests, and merges them with existing ones: a later request neither shortens the back-off
	// of an earlier one nor gets lost while that is being processed. Requests for runs that do not exist are ignored.
	RequestRepairs(ctx context.Context, list []RepairRequest) error
	// ClaimRepair returns the request that has been due for longest, and false when none is due. The request is due
	// again after the lease that lease returns for the attempt, counted from 1, unless the claim is held, returned or
	// ended before.
	ClaimRepair(ctx context.Context, lease func(attempt int) time.Duration) (Repair, bool, error)
	// HoldRepair extends a claim by the lease and stores r.Done. It returns false when the claim was lost.
	HoldRepair(ctx context.Context, r Repair, lease time.Duration) (bool, error)
	// EndRepair removes a request. A request that was made again since it was claimed is due at once.
	EndRepair(ctx context.Context, r Repair) error
}

// BehindBecause compares a row with Temporal's state of the run and returns, for display, how the row is behind; empty
// where it is not. A reset does not count: [RelationReset] replaces rows.
func BehindBecause(r Run, x Execution, now time.Time) string {
	switch {
	case x.Relation == RelationReset:
		return ""
	case !r.Status.Terminal() && !x.Open:
		if Recent(now, x.ClosedAt, WriteLag) {
			return ""
		}
		return fmt.Sprintf("the run ended in Temporal at %s, and its end is not written",
			x.ClosedAt.UTC().Format(time.RFC3339))
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

// Recent reports whether a time, which may come from another machine's clock, is less than a duration away from now. A
// time further in the future comes from a wrong clock: waiting until it has passed would leave rows behind for as long
// as that clock is ahead.
func Recent(now, at time.Time, within time.Duration) bool { return now.Sub(at).Abs() < within }

// Rebuilder rebuilds the rows of runs from their histories.
type Rebuilder interface {
	// Inspect is that of [Inspector].
	Inspect(ctx context.Context, r Run) (Execution, error)
	// Rebuild interprets the histories of a run's executions again, oldest first and one at a time, and passes the
	// records to w. after is the last execution that need not be read again; empty: there is none. Writing the same
	// records again changes nothing, so a rebuild may be interrupted at any point. It ends with ctx, and with
	// [ErrNotKnown] where Temporal has no such run.
	Rebuild(ctx context.Context, r Run, after string, w RebuildWriter) error
}

// RebuildWriter writes the results of a rebuild.
type RebuildWriter interface {
	// Write writes a part of bounded size.
	Write(ctx context.Context, part Update) error
	// Done is called when all records of an execution are written and later executions follow.
	Done(ctx context.Context, executionID string) error
}

// RepairRequests requests repairs of runs that are found to be behind Temporal.
type RepairRequests struct {
	Rows interface {
		RequestRepairs(ctx context.Context, requests []RepairRequest) error
	}
	// Requested is called after a repair was requested, so that a worker of this process starts it before its next
	// poll; may be nil. It must not block.
	Requested func()
}

// Request requests that a worker updates the rows of a run from Temporal. A failure is logged: the reconciler finds the
// run as well.
func (s RepairRequests) Request(ctx context.Context, request RepairRequest) {
	// A caller that disconnects may be the only one to have noticed it.
	ctx = context.WithoutCancel(ctx)
	if err := s.Rows.RequestRepairs(ctx, []RepairRequest{request}); err != nil {
		logger.FromContext(ctx).WarnContext(ctx, "Repair of a run could not be requested", "run_id", request.RunID,
			"error", err)
		return
	}
	if s.Requested != nil {
		s.Requested()
	}
}
