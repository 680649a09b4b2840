package stuck

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run/stuck/verdict"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

// Candidate is an open run that may be overdue.
type Candidate struct {
	verdict.Row

	Workflow, Version string
	// Failure is the last failed workflow task of which a worker has told; nil without one.
	Failure *verdict.Failure
}

// Cursor is a place among candidates, which come in the order of the times of their statuses.
type Cursor struct {
	StatusAt time.Time
	ID       string
}

// Given is a verdict that is kept with its run.
type Given struct {
	verdict.Verdict

	RunID, Project string
	// Workflow, Version and Status are the run's, empty where its row is gone.
	Workflow, Version, Status string
	CheckedAt                 time.Time
	// Sequence is the run's when the verdict was given: it means nothing for a run that has moved since.
	Sequence int64
	// Moved tells that the run has.
	Moved bool
}

// Change is a verdict that is given, changed or taken back.
type Change struct {
	RunID string
	// Sequence is the run's as it was judged. A verdict is not given to a run that has moved since.
	Sequence int64
	// To is nil for one that is taken back.
	To *verdict.Verdict
	// Events tell of it; they are committed with it, or not at all. Their IDs end with the run's new sequence.
	Events []event.Event
}

// Changed is what became of changes.
type Changed struct {
	// Runs are those whose verdict was changed.
	Runs []string
	// Wake tells that the project's dispatcher is parked, and has events to deliver.
	Wake bool
}

// TaskFailure is a workflow task that failed, as a worker tells.
type TaskFailure struct {
	RunID string
	At    time.Time
	Text  string
	// Cause is one of [problem.Causes], Build names the worker's binary.
	Cause, Build string
}

// Store keeps verdicts, and knows the runs.
type Store interface {
	Rows

	// ChangeVerdicts makes changes of one project, all in one transaction; those that come too late are passed over. A run whose
	// verdict was changed has a new sequence.
	ChangeVerdicts(ctx context.Context, project string, at time.Time, changes []Change) (Changed, error)
	// NoteFailures keeps the failures of runs that are open; a later one takes the place of an earlier.
	NoteFailures(ctx context.Context, failures []TaskFailure) error
}

// Rows is the part of a [Store] to which no values of runs are written.
type Rows interface {
	// Overdue returns up to limit runs beyond the cursor that are queued or running, have had their status since before or longer,
	// and may be overdue; the oldest status first.
	Overdue(ctx context.Context, before time.Time, after Cursor, limit int) ([]Candidate, error)
	// OverdueWaits returns up to limit waiting runs that a timer was to wake before the given time; those that were due first
	// come first.
	OverdueWaits(ctx context.Context, before time.Time, limit int) ([]Candidate, error)
	// Suspects returns up to limit waiting runs that somebody has asked to be canceled, or at which a workflow task failed since then.
	Suspects(ctx context.Context, since time.Time, limit int) ([]Candidate, error)
	// Waiting returns those of the runs that wait.
	Waiting(ctx context.Context, ids []string) ([]Candidate, error)
	// Verdicts returns up to limit verdicts of runs with IDs above after, in order.
	Verdicts(ctx context.Context, after string, limit int) ([]Given, error)
	// CheckVerdicts notes that verdicts were confirmed.
	CheckVerdicts(ctx context.Context, runIDs []string, at time.Time) error
	// ReserveEndings grants the runs of a request where they and those granted since its beginning are within the limit, and grants no
	// further run otherwise: then it commits the event. All processes share one count.
	ReserveEndings(ctx context.Context, r EndingRequest) (Endings, error)
	// ForgetFailures drops those of runs that have ended.
	ForgetFailures(ctx context.Context) error
}

// Platform is what the watcher needs of the rest of the store.
type Platform interface {
	// ListWorkers is that of [worker.Store].
	ListWorkers(ctx context.Context, within time.Duration, limit int) ([]worker.Worker, error)
	// GetProject is that of [project.Store].
	GetProject(ctx context.Context, name string) (project.Project, error)
	// Exclusive runs fn unless somebody else runs work of that name.
	Exclusive(ctx context.Context, name string, fn func(context.Context) error) (ran bool, err error)
}
