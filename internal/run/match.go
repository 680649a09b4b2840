package run

import (
	"slices"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
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
		between(r.CreatedAt, f.Since, f.Until) && f.hasEnded(r) && f.hasError(r) && f.hasProblem(r) && f.hasLabels(r)
}

// BeyondRow reports whether the filter has conditions on what the row of a run does not contain: only the store
// evaluates them.
func (f Filter) BeyondRow() bool {
	return f.NotReplayed || f.FailureGroup != "" || f.ParentRunID != "" || f.ReplayOf != "" || f.BatchID != "" || f.StartedByBatchID != ""
}

// between compares times as the store keeps them, in microseconds. A bound that is zero does not apply.
func between(at, since, until time.Time) bool {
	micros := at.UnixMicro()
	return (since.IsZero() || micros >= since.UnixMicro()) && (until.IsZero() || micros < until.UnixMicro())
}

// EndsMatter reports whether the filter has a condition on the time of the end.
func (f Filter) EndsMatter() bool { return !f.EndedSince.IsZero() || !f.EndedUntil.IsZero() }

func (f Filter) hasEnded(r Run) bool {
	return !f.EndsMatter() || !r.EndedAt.IsZero() && between(r.EndedAt, f.EndedSince, f.EndedUntil)
}

// ErrorTypes returns the types of errors that a type of a filter selects: a URI itself, and a name as the last part of a type of
// Signalbox or of the specification.
func ErrorTypes(name string) []string {
	if strings.ContainsAny(name, "/:") {
		return []string{name}
	}
	return []string{name, errorTypeBase + name, dsl.ErrorTypeBase + name}
}

func (f Filter) hasError(r Run) bool {
	return f.ErrorType == "" || r.Error != nil && slices.Contains(ErrorTypes(f.ErrorType), r.Error.Type)
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
