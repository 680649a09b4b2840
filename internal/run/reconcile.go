package run

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/project"
)

// TriggerAdopted is the trigger of a run whose row was lost and made again from what Temporal had of it.
const TriggerAdopted = "adopted"

// ErrorTypeExecutionMissing is the type of the problem with which a run ends that Temporal has lost.
const ErrorTypeExecutionMissing = "https://signalbox.dev/errors/execution_missing"

// CorrectionKind says what was, or would be, put right.
type CorrectionKind string

// The kinds of corrections.
const (
	// CorrectionHandedOver: a run whose start had no known outcome was handed over.
	CorrectionHandedOver CorrectionKind = "handed_over"
	// CorrectionNotStarted: such a run was refused by Temporal, and failed.
	CorrectionNotStarted CorrectionKind = "not_started"
	// CorrectionFinished: a run had ended in Temporal, and its row had not.
	CorrectionFinished CorrectionKind = "finished"
	// CorrectionCaughtUp: the row of an open run was behind. It is counted and not audited: nothing was decided.
	CorrectionCaughtUp CorrectionKind = "caught_up"
	// CorrectionExecutionMissing: Temporal does not know the run, which failed.
	CorrectionExecutionMissing CorrectionKind = "execution_missing"
	// CorrectionResetFollowed: the run was reset in Temporal, and its row shows the new execution.
	CorrectionResetFollowed CorrectionKind = "reset_followed"
	// CorrectionReopened: a run that has ended here is open in Temporal. Nothing is changed: an end is final.
	CorrectionReopened CorrectionKind = "reopened_in_temporal"
	// CorrectionAdopted: an execution had no row, and got one.
	CorrectionAdopted CorrectionKind = "adopted"
	// CorrectionEngineGone: an imported run was open on an engine that is gone, and was canceled.
	CorrectionEngineGone CorrectionKind = "engine_gone"
	// CorrectionForeign: an execution has no row and names nothing that is known here. Nothing is changed.
	CorrectionForeign CorrectionKind = "foreign_execution"
)

// CorrectionKinds returns all kinds.
func CorrectionKinds() []CorrectionKind {
	return []CorrectionKind{
		CorrectionHandedOver, CorrectionNotStarted, CorrectionFinished, CorrectionCaughtUp, CorrectionExecutionMissing,
		CorrectionResetFollowed, CorrectionReopened, CorrectionAdopted, CorrectionForeign, CorrectionEngineGone,
	}
}

// Correction is one difference between the rows and Temporal.
type Correction struct {
	Kind    CorrectionKind
	RunID   string
	Project string
	// Detail is one line for people.
	Detail string
	// Applied is false in a dry run, and for kinds that are only reported.
	Applied bool
}

// Report is what one pass of the reconciler found.
type Report struct {
	// Checked counts the rows that Temporal was asked about, Open the executions that Temporal lists as open.
	Checked, Open int
	// Corrections are the first of them; Total counts all.
	Corrections []Correction
	Total       int
	// Failed counts runs that could not be compared; the next pass tries them again.
	Failed int
	// Withheld counts open runs that Temporal does not know and that were left alone, because they may be in another
	// one; WithheldBecause names both places and what to do, for people.
	Withheld        int
	WithheldBecause string
	Took            time.Duration
	DryRun          bool
}

// ReconcileMetrics counts corrections.
type ReconcileMetrics interface {
	// Corrected adds a correction of the kind (signalbox_reconcile_corrections_total).
	Corrected(ctx context.Context, kind string)
	// Count adds a run that came into a status.
	Count(ctx context.Context, project, status string)
}

// Place is where Temporal keeps runs. A namespace that was deleted and made again, or lost with its data, has another
// NamespaceID.
type Place struct{ Address, Namespace, NamespaceID string }

// Home is the place where the runs are, and since when. It is zero before the first comparison.
type Home struct {
	Place

	Since time.Time
}

// Relation is what an execution has to do with the one that a row shows.
type Relation int

// The relations.
const (
	// RelationSame: it is that one, or the row shows none yet.
	RelationSame Relation = iota + 1
	// RelationSuccessor: that one was continued by it.
	RelationSuccessor
	// RelationReset: it took that one's place when the run was reset in Temporal.
	RelationReset
)

// Execution is what Temporal has of a run's newest execution.
type Execution struct {
	RunID       string
	ExecutionID string
	Open        bool
	StartedAt   time.Time
	// ClosedAt is zero while it is open.
	ClosedAt time.Time

	// What follows is known to [Inspector.Look] alone.

	Relation Relation
	// Left are the executions that the row may have followed and that the reset left behind, with [RelationReset].
	Left []string
	// Accepted is how long the history was at the start of the last workflow task that Temporal accepted, and AcceptedAt
	// when that was; zero when there was none, and of executions that come from a reset.
	Accepted   int64
	AcceptedAt time.Time
}

// Origin is what a run was started with, as its history tells.
type Origin struct {
	Project, Workflow, Version, DocumentHash string
	Input                                    json.RawMessage
	Interpreter                              int
	StartedAt                                time.Time
}

// Inspector looks at runs in Temporal. Its errors are [fault.Unavailable] when Temporal does not answer.
type Inspector interface {
	// Place asks Temporal where it is, now.
	Place(ctx context.Context) (Place, error)
	// Executions lists the open executions of runs, and those that have ended since. The list is a hint: it may lag
	// behind by seconds.
	Executions(ctx context.Context, closedSince time.Time) iter.Seq2[Execution, error]
	// Look tells what Temporal has of a run now, compared with the row; [ErrNotKnown] when it has nothing. The row must
	// have been read before.
	Look(ctx context.Context, r Run) (Execution, error)
	// Origin reads what a run was started with; [ErrNotKnown] when Temporal has no such run, or its execution is none
	// of a run's.
	Origin(ctx context.Context, runID string) (Origin, error)
}

// ReconcileStore is what the reconciler asks of a store.
type ReconcileStore interface {
	Store
	ReconcileRows

	// CorrectRun applies one update, and writes e, which may be nil, when that changed anything.
	CorrectRun(ctx context.Context, u Update, e *audit.Entry) (bool, error)
	// FollowExecution replaces the row and the steps of an open run that shows the execution from by what u says,
	// although its position may be lower, and writes e. From then on, updates of the executions in left are passed over.
	// u has a state. It returns false, and changes nothing, when the run has ended or shows another execution.
	FollowExecution(ctx context.Context, u Update, from string, left []string, e audit.Entry) (bool, error)
}

// ReconcileRows is the part of a [ReconcileStore] to which no values of runs are written.
type ReconcileRows interface {
	Rows
	audit.Store
	// OpenRuns returns up to limit open runs of all projects with IDs above after, in order, without input and output.
	OpenRuns(ctx context.Context, after string, limit int) ([]Run, error)
	// StartingRuns is OpenRuns for those that have been `queued: starting` since until or longer.
	StartingRuns(ctx context.Context, until time.Time, after string, limit int) ([]Run, error)
	// FindRuns returns those of the runs that there are, of any project and in any order, without input and output.
	FindRuns(ctx context.Context, ids []string) ([]Run, error)
	// WriteAudit adds an entry for what changed no row.
	WriteAudit(ctx context.Context, e audit.Entry) error
	// RunsHome returns what was recorded as the place where the runs are.
	RunsHome(ctx context.Context) (Home, error)
	// MoveHome records another one, unless the recorded one is not from any more: then it returns false. A zero from
	// records the first.
	MoveHome(ctx context.Context, from Place, to Home) (bool, error)
	// WorkerPlaces returns where the live workers are connected; those that have never been are left out.
	WorkerPlaces(ctx context.Context) ([]Place, error)
	// GetProject returns one project.
	GetProject(ctx context.Context, name string) (project.Project, error)
	// Document returns the canonical form with this hash.
	Document(ctx context.Context, hash string) ([]byte, error)
	// Exclusive runs fn unless somebody else runs work of that name.
	Exclusive(ctx context.Context, name string, fn func(context.Context) error) (ran bool, err error)
}
