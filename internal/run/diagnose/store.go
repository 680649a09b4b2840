package diagnose

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/project"
)

// Candidate is an open run that may be overdue.
type Candidate struct {
	Row

	Workflow, Version string
	// Failure is the last failed workflow task that a worker reported; nil where there is none.
	Failure *Failure
}

// Cursor is a position in the list of candidates, which is ordered by StatusAt and ID.
type Cursor struct {
	StatusAt time.Time
	ID       string
}

// StoredVerdict is a verdict that is stored with its run.
type StoredVerdict struct {
	Verdict

	RunID, Project string
	// Workflow, Version and Status are the run's, empty where its row no longer exists.
	Workflow, Version, Status string
	CheckedAt                 time.Time
	// Sequence is the run's sequence number when the verdict was stored: the verdict is void once the run has changed.
	Sequence int64
	// Moved reports that the run has changed since.
	Moved bool
}

// Change sets, changes or clears a verdict.
type Change struct {
	RunID string
	// Sequence is the run's sequence number at the decision. A verdict is not stored for a run that has changed since.
	Sequence int64
	// To is the new verdict; nil to clear it.
	To *Verdict
	// Events announce the change; they are committed with it, or not at all. Their IDs end with the run's new sequence
	// number.
	Events []event.Event
}

// Changed is the result of changes.
type Changed struct {
	// Runs are the IDs of the runs with a changed verdict.
	Runs []string
	// Wake reports that the project's dispatcher is parked and has events to deliver.
	Wake bool
}

// TaskFailure is a failed workflow task that a worker reports.
type TaskFailure struct {
	RunID string
	At    time.Time
	Text  string
	// Cause is one of [run.Causes], Build names the worker's binary.
	Cause, Build string
}

// Store stores verdicts, and reads the runs that may be stuck.
type Store interface {
	Rows

	// ChangeVerdicts makes the changes of one project in one transaction. It skips runs that have changed since the
	// decision. A changed verdict increases the run's sequence number.
	ChangeVerdicts(ctx context.Context, project string, at time.Time, changes []Change) (Changed, error)
	// NoteFailures stores the failures of open runs. A later failure of a run replaces an earlier one.
	NoteFailures(ctx context.Context, failures []TaskFailure) error
}

// Rows has the methods of a [Store] that write no values of runs.
type Rows interface {
	// Overdue returns up to limit runs beyond the cursor that are queued or running, have had their status since before or
	// longer, and may be overdue; the oldest status first.
	Overdue(ctx context.Context, before time.Time, after Cursor, limit int) ([]Candidate, error)
	// OverdueWaits returns up to limit waiting runs with a timer that was due before the given time, the earliest first.
	OverdueWaits(ctx context.Context, before time.Time, limit int) ([]Candidate, error)
	// Suspects returns up to limit waiting runs with a requested cancellation, or with a failed workflow task since then.
	Suspects(ctx context.Context, since time.Time, limit int) ([]Candidate, error)
	// Left returns up to limit open runs that an adoption has left in another Temporal.
	Left(ctx context.Context, limit int) ([]Candidate, error)
	// Waiting returns those of the runs that have the status waiting.
	Waiting(ctx context.Context, ids []string) ([]Candidate, error)
	// Verdicts returns up to limit verdicts of runs with IDs above after, in order.
	Verdicts(ctx context.Context, after string, limit int) ([]StoredVerdict, error)
	// CheckVerdicts stores the time at which verdicts were confirmed.
	CheckVerdicts(ctx context.Context, runIDs []string, at time.Time) error
	// ReserveEndings grants the runs of a request where they and those granted since r.Since are within the limit.
	// Otherwise it grants no further run and commits the event. All processes share one count.
	ReserveEndings(ctx context.Context, r EndingRequest) (Endings, error)
	// ForgetFailures deletes the failures of runs that have ended.
	ForgetFailures(ctx context.Context) error
}

// Platform is what the watcher requires of the rest of the store.
type Platform interface {
	Registry
	// GetProject is GetProject of [project.Store].
	GetProject(ctx context.Context, name string) (project.Project, error)
	// Exclusive runs fn unless another process runs work of that name.
	Exclusive(ctx context.Context, name string, fn func(context.Context) error) (ran bool, err error)
}
