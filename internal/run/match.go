package run

import (
	"slices"
	"strings"
	"time"
)

// Matches reports whether a run from a list matches the conditions of the filter that its row shows: all except those
// that [Filter.BeyondRow] reports. The order, the cursor and the limit are not conditions.
func (f Filter) Matches(r Run) bool {
	return (f.Project == "" || r.Project == f.Project) &&
		(f.Workflow == "" || r.Workflow == f.Workflow) &&
		(f.Version == "" || r.Version == f.Version) &&
		(f.RequestID == "" || r.RequestID == f.RequestID) &&
		(f.Trigger == "" || r.Trigger == f.Trigger) &&
		(len(f.Statuses) == 0 || slices.Contains(f.Statuses, r.Status)) &&
		(len(f.IDs) == 0 || slices.Contains(f.IDs, r.ID)) &&
		(strings.HasPrefix(r.ID, f.Text) || strings.HasPrefix(r.RequestID, f.Text)) &&
		(f.FailureGroup == "" || r.Status == Failed || r.Status == TimedOut) &&
		f.inPeriod(r.CreatedAt) && f.hasProblem(r) && f.hasLabels(r)
}

// BeyondRow reports whether the filter has conditions on what the row of a run does not contain: only the store
// evaluates them.
func (f Filter) BeyondRow() bool {
	return f.NotReplayed || f.FailureGroup != "" || f.ParentRunID != "" || f.ReplayOf != "" || f.BatchID != "" || f.StartedByBatchID != ""
}

// inPeriod compares times as the store keeps them, in microseconds.
func (f Filter) inPeriod(at time.Time) bool {
	micros := at.UnixMicro()
	return (f.Since.IsZero() || micros >= f.Since.UnixMicro()) && (f.Until.IsZero() || micros < f.Until.UnixMicro())
}

func (f Filter) hasProblem(r Run) bool {
	switch {
	case len(f.Problems) == 0:
		return true
	case r.Stuck == nil:
		return false
	}
	return f.AnyProblem() || slices.Contains(f.Problems, r.Stuck.Code)
}

func (f Filter) hasLabels(r Run) bool {
	for key, value := range f.Labels {
		if r.Labels[key] != value { // no label has an empty value
			return false
		}
	}
	return true
}
