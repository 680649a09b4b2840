package run

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/apperror"
)

// Filter selects the runs to list. Zero fields match everything. Batches and views store its conditions as JSON,
// without the project and what belongs to one list.
type Filter struct {
	Project   string `json:"project,omitempty"`
	RequestID string `json:"requestId,omitempty"`
	// IDs selects among these runs. The list is not limited to a page then, and an unknown project matches nothing.
	IDs []string `json:"ids,omitempty"`

	Statuses []Status `json:"statuses,omitempty"`
	// Workflow is "namespace/name".
	Workflow string `json:"workflow,omitempty"`
	Version  string `json:"version,omitempty"`
	// Since is inclusive, Until exclusive; both apply to the time of creation.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Stuck are codes of [Stuck], or [AnyCode].
	Stuck []string `json:"stuck,omitempty"`
	// Retrying is the name or the pointer of a try task that the runs attempt again after a failure, or [AnyTask]. Paused
	// runs attempt nothing.
	Retrying string `json:"retrying,omitempty"`
	// Trigger is what started the runs.
	Trigger string `json:"trigger,omitempty"`
	// NotReplayed omits runs that have a replay.
	NotReplayed bool `json:"notReplayed,omitempty"`
	// FailureGroup is a key as [FailureGroup] returns it.
	FailureGroup string `json:"failureGroup,omitempty"`
	// Text is a prefix of their ID or request ID, or the end of their ID: see [EndsID].
	Text string `json:"text,omitempty"`
	// ParentRunID selects the runs that a run started, ReplayOf the replays of a run, BatchID the runs that a batch
	// selected, StartedByBatchID the runs that it started: the newest replay of each.
	ParentRunID      string `json:"parentRunId,omitempty"`
	ReplayOf         string `json:"replayOf,omitempty"`
	BatchID          string `json:"batchId,omitempty"`
	StartedByBatchID string `json:"startedByBatchId,omitempty"`
	// Labels are all among those of the runs.
	Labels map[string]string `json:"labels,omitempty"`
	// EndedSince is inclusive, EndedUntil exclusive; both apply to the time of the end, which open runs do not have.
	EndedSince time.Time `json:"endedSince,omitzero"`
	EndedUntil time.Time `json:"endedUntil,omitzero"`
	// ErrorType is that of the error of the runs, one of [ErrorTypes].
	ErrorType string `json:"errorType,omitempty"`
	// ErrorText are beginnings of words of their error, see [ErrorWords].
	ErrorText string `json:"errorText,omitempty"`
	// FailedTask is the name of the task that their error is from, in any case.
	FailedTask string `json:"failedTask,omitempty"`
	// Words are beginnings of words, one of which at least is among [StartWords] or [ErrorWords]; the others may be parts
	// of the name of the workflow or of the key of a label.
	Words string `json:"words,omitempty"`
	// Waiting is what the runs wait for, one of [WaitingKinds].
	Waiting string `json:"waiting,omitempty"`
	// Cause is that of the verdict on stuck runs.
	Cause string `json:"cause,omitempty"`

	// OldestFirst reverses the order.
	OldestFirst bool    `json:"oldestFirst,omitempty"`
	After       *Cursor `json:"after,omitempty"`
	Limit       int     `json:"limit,omitempty"`
}

// AnyCode stands for all codes of [Stuck] in a [Filter].
const AnyCode = "any"

// AnyTask stands for all tasks in the condition Retrying of a [Filter].
const AnyTask = "any"

// AnyCode reports whether the filter selects stuck runs regardless of the code.
func (f Filter) AnyCode() bool { return slices.Contains(f.Stuck, AnyCode) }

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
		(strings.HasPrefix(r.ID, f.Text) || strings.HasPrefix(r.RequestID, f.Text) || EndsID(f.Text, r.ID)) &&
		(f.FailureGroup == "" || r.Status == Failed || r.Status == TimedOut) &&
		(f.Waiting == "" || r.WaitingKind == f.Waiting) && f.hasWords(r) &&
		between(r.CreatedAt, f.Since, f.Until) && f.hasEnded(r) && f.hasError(r) && f.isStuck(r) && f.hasLabels(r)
}

// The runs of a minute have IDs with the same beginning, so that people know a run by the end of its ID. An ID has
// IDLength characters, and the last EndLength of them are random.
const (
	IDLength  = 36
	EndLength = 8
)

// EndsID reports whether a text is the end of an ID, and long enough to select it.
func EndsID(text, id string) bool {
	return len(text) >= EndLength && len(id) == IDLength && strings.HasSuffix(id, text)
}

// BeyondRow reports whether the filter has conditions on what the row of a run does not contain: only the store
// evaluates them.
func (f Filter) BeyondRow() bool {
	return f.NotReplayed || f.Retrying != "" || f.FailureGroup != "" || f.ParentRunID != "" || f.ReplayOf != "" || f.BatchID != "" ||
		f.StartedByBatchID != ""
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

// ErrorTypes returns the types of errors that a type of a filter selects: a URI itself, and a name as the last part of
// a type of Signalbox or of the specification.
func ErrorTypes(name string) []string {
	if strings.ContainsAny(name, "/:") {
		return []string{name}
	}
	return []string{name, errorTypeBase + name, dsl.ErrorTypeBase + name}
}

func (f Filter) hasError(r Run) bool {
	return f.ErrorType == "" || r.Error != nil && slices.Contains(ErrorTypes(f.ErrorType), r.Error.Type)
}

func (f Filter) isStuck(r Run) bool {
	switch {
	case len(f.Stuck) == 0 && f.Cause == "":
		return true
	case r.Stuck == nil || f.Cause != "" && r.Stuck.Cause != f.Cause:
		return false
	}
	return len(f.Stuck) == 0 || f.AnyCode() || slices.Contains(f.Stuck, r.Stuck.Code)
}

func (f Filter) hasLabels(r Run) bool {
	for key, value := range f.Labels {
		if r.Labels[key] != value { // no label has an empty value
			return false
		}
	}
	return true
}

// maxErrorType is the maximum length of the type of an error in a filter, in bytes.
const maxErrorType = 1000

// Check returns an error for a condition that no run can fulfil, and for a version without a workflow. A period of no
// time is not an error.
func (f Filter) Check() error {
	for _, status := range f.Statuses {
		if !status.Known() {
			return apperror.New(apperror.Invalid, apperror.InvalidArgument, "unknown run status %q; use one of %v", status,
				Statuses()).
				WithField("statuses", "unknown status %q", status)
		}
	}
	for _, code := range f.Stuck {
		if code != AnyCode && !slices.Contains(Codes(), code) {
			return apperror.New(apperror.Invalid, apperror.InvalidArgument, "unknown code %q of stuck runs; use %q or one of %v",
				code, AnyCode, Codes()).
				WithField("stuck", "unknown code %q", code)
		}
	}
	if f.Version != "" && f.Workflow == "" { // it would have to be searched among all runs of the project
		return apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"version %q without a workflow: name the workflow as well", f.Version).
			WithField("workflow", "is required with version")
	}
	if f.Trigger != "" && !slices.Contains(Triggers(), f.Trigger) {
		return apperror.New(apperror.Invalid, apperror.InvalidArgument, "unknown trigger %q; use one of %v", f.Trigger,
			Triggers()).
			WithField("trigger", "unknown trigger %q", f.Trigger)
	}
	if len(f.ErrorType) > maxErrorType {
		return apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"the type of an error has %d bytes: at most %d are allowed", len(f.ErrorType), maxErrorType).
			WithField("error_type", "is too long")
	}
	if f.Waiting != "" && !slices.Contains(WaitingKinds(), f.Waiting) {
		return apperror.New(apperror.Invalid, apperror.InvalidArgument, "unknown kind of wait %q; use one of %v", f.Waiting,
			WaitingKinds()).
			WithField("waiting", "unknown kind %q", f.Waiting)
	}
	if f.Cause != "" && !slices.Contains(Causes(), f.Cause) {
		return apperror.New(apperror.Invalid, apperror.InvalidArgument, "unknown cause %q; use one of %v", f.Cause, Causes()).
			WithField("cause", "unknown cause %q", f.Cause)
	}
	if err := cmp.Or(CheckWords("words", f.Words), CheckWords("error_text", f.ErrorText)); err != nil {
		return err
	}
	if err := CheckLabels(f.Labels); err != nil {
		return err
	}
	return checkFailureGroup(f.FailureGroup)
}

// CheckPeriods returns an error for a period that does not begin before it ends, so that no run is in it.
func (f Filter) CheckPeriods() error {
	for _, period := range []struct {
		since, until         time.Time
		sinceName, untilName string
	}{{f.Since, f.Until, "since", "until"}, {f.EndedSince, f.EndedUntil, "ended_since", "ended_until"}} {
		if !period.since.IsZero() && !period.until.IsZero() && !period.since.Before(period.until) {
			return apperror.New(apperror.Invalid, apperror.InvalidArgument, "%s %s is not after %s %s: no run matches",
				period.untilName, period.until.Format(time.RFC3339), period.sinceName, period.since.Format(time.RFC3339)).
				WithField(period.untilName, "must be after %s", period.sinceName)
		}
	}
	return nil
}
