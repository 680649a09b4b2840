package run

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/redact"
)

// errorTypeBase begins the types of Signalbox's own errors.
const errorTypeBase = "https://signalbox.dev/errors/"

// ErrorTypeExecutionMissing is the type of the error of a run that ended because Temporal lost it.
const ErrorTypeExecutionMissing = errorTypeBase + "execution_missing"

// CorrectionKind is the kind of a correction that was made, or would be.
type CorrectionKind string

// The kinds of corrections.
const (
	// CorrectionHandedOver: a run whose start had an unknown outcome was handed over.
	CorrectionHandedOver CorrectionKind = "handed_over"
	// CorrectionNotStarted: Temporal rejected such a run, and it failed.
	CorrectionNotStarted CorrectionKind = "not_started"
	// CorrectionFinished: a run had ended in Temporal, and its row was open.
	CorrectionFinished CorrectionKind = "finished"
	// CorrectionCaughtUp: the row of an open run was behind. It is counted and not audited: nothing was decided.
	CorrectionCaughtUp CorrectionKind = "caught_up"
	// CorrectionExecutionMissing: Temporal does not have the run, which failed.
	CorrectionExecutionMissing CorrectionKind = "execution_missing"
	// CorrectionResetFollowed: the run was reset in Temporal, and its row shows the new execution.
	CorrectionResetFollowed CorrectionKind = "reset_followed"
	// CorrectionReopened: a run that has ended by its row is open in Temporal. Nothing is changed: an end is final.
	CorrectionReopened CorrectionKind = "reopened_in_temporal"
	// CorrectionAdopted: an execution had no row, and a row was created.
	CorrectionAdopted CorrectionKind = "adopted"
	// CorrectionEngineGone: an imported run was open on an engine that no longer exists, and was canceled.
	CorrectionEngineGone CorrectionKind = "engine_gone"
	// CorrectionForgotten: executions ended that Temporal no longer has, after the last ones that were searched for lost
	// rows. Nothing is changed: runs among them have no row.
	CorrectionForgotten CorrectionKind = "forgotten_executions"
	// CorrectionForeign: an execution has no row and cannot be adopted, see [ForeignRuns]. It is counted once, and is not
	// among the corrections of a report: nothing is changed, and the next pass finds it again.
	CorrectionForeign CorrectionKind = "foreign_execution"
)

// CorrectionKinds returns all kinds.
func CorrectionKinds() []CorrectionKind {
	return []CorrectionKind{
		CorrectionHandedOver, CorrectionNotStarted, CorrectionFinished, CorrectionCaughtUp, CorrectionExecutionMissing,
		CorrectionResetFollowed, CorrectionReopened, CorrectionAdopted, CorrectionForgotten, CorrectionForeign,
		CorrectionEngineGone,
	}
}

// OnlyReported reports whether nothing is changed for corrections of the kind.
func (k CorrectionKind) OnlyReported() bool {
	return k == CorrectionReopened || k == CorrectionForgotten
}

// Correction is one difference between the rows and Temporal.
type Correction struct {
	Kind    CorrectionKind
	RunID   string
	Project string
	// Detail is one line of text for display.
	Detail string
	// Applied is false in a dry run, and for kinds that are only reported.
	Applied bool
}

// Report is the result of one pass of the reconciler.
type Report struct {
	// Checked counts the rows that were compared with Temporal, Open the executions that Temporal lists as open.
	Checked, Open int
	// Corrections are the first ones; Total counts all.
	Corrections []Correction
	Total       int
	// Counts are all corrections by kind.
	Counts map[CorrectionKind]int
	// Lost describes the executions of runs that had no row, as after the restore of an older database.
	Lost Lost
	// Foreign are the executions that have no row and cannot be adopted.
	Foreign []ForeignRuns
	// Failed counts runs that could not be compared; the next pass retries them. FailedBecause names the first one and
	// why, for display.
	Failed        int
	FailedBecause string
	// Withheld counts open runs that this Temporal does not have and that were left unchanged, because another one may
	// have them; WithheldBecause names both clusters and the remedy, for display.
	Withheld        int
	WithheldBecause string
	// SearchedUntil is set while ended executions remain to be searched for ones without a row: those that ended before it
	// were searched.
	SearchedUntil time.Time
	Took          time.Duration
	DryRun        bool
}

// Lost counts executions without a row, by the age of their start and in all.
type Lost struct {
	Open, Ended              int
	UpToHour, UpToDay, Older int
	// Newest is the start of the newest one; zero if there is none.
	Newest time.Time
	// Young counts, apart from the others, executions without a row that are too young to decide whether it is lost.
	Young int
	// ForgottenFrom and ForgottenUntil are the period in which executions ended that were not compared and that Temporal
	// no longer has: runs among them have no row, and cannot be counted. Zero if there is none.
	ForgottenFrom, ForgottenUntil time.Time
}

// Add counts one execution.
func (l *Lost) Add(x Execution, now time.Time) {
	if x.Open {
		l.Open++
	} else {
		l.Ended++
	}
	switch age := now.Sub(x.StartedAt); {
	case age <= time.Hour:
		l.UpToHour++
	case age <= 24*time.Hour: //nolint:mnd // a day
		l.UpToDay++
	default:
		l.Older++
	}
	if x.StartedAt.After(l.Newest) {
		l.Newest = x.StartedAt
	}
}

// ForeignRuns are executions in Temporal that have no row and cannot be adopted, for the same reason.
type ForeignRuns struct {
	// Project, Workflow and Version are what the runs belong to; empty where Signalbox did not start them, or Temporal
	// does not know it.
	Project  string `json:"project,omitempty"`
	Workflow string `json:"workflow,omitempty"`
	Version  string `json:"version,omitempty"`
	// NoProject reports that the project does not exist; otherwise the document of the version is not stored.
	NoProject bool `json:"noProject,omitempty"`
	// Why is the reason, for display.
	Why string `json:"why"`
	// Count is the number of executions, Open of those that are open in Temporal.
	Count int `json:"count"`
	Open  int `json:"open"`
	// RunIDs are the first ones, at most [ForeignSamples], in the order of IDs.
	RunIDs []string `json:"runIds"`
	// Since is when the first of them was started.
	Since time.Time `json:"since,omitzero"`
}

// ForeignSamples is how many IDs of foreign runs are reported of each kind.
const ForeignSamples = 5

// ForeignCount returns the number of executions that have no row and cannot be adopted.
func (r Report) ForeignCount() (n int) {
	for _, f := range r.Foreign {
		n += f.Count
	}
	return n
}

// ReconcileMetrics counts corrections.
type ReconcileMetrics interface {
	// Corrected adds a correction of the kind (signalbox_reconcile_corrections_total).
	Corrected(ctx context.Context, kind string)
	// Count adds a run that entered a status.
	Count(ctx context.Context, project, status string)
}

// ClusterID identifies the Temporal namespace that holds runs. A namespace that was deleted and created again, or lost
// with its data, has another NamespaceID.
type ClusterID struct {
	Address     string `json:"address"`
	Namespace   string `json:"namespace"`
	NamespaceID string `json:"namespaceId"`
}

// RunsCluster is the recorded Temporal that holds the runs, and since when. It is zero before the first comparison.
type RunsCluster struct {
	ClusterID

	Since time.Time
}

// Comparisons is what all processes know of the comparisons of the runs with Temporal. A time is zero if there is none.
type Comparisons struct {
	// SearchedUntil is the time before which all ended executions were searched for ones without a row.
	SearchedUntil time.Time
	// ComparedAt is when the last comparison ended. The database was in use then.
	ComparedAt time.Time
	// RestoredAt is when a comparison found that the database was restored from a backup, and RestoredTo is ComparedAt of
	// the backup: rows that were written later were lost.
	RestoredAt, RestoredTo time.Time
}

// Relation is how an execution relates to the one that a row shows.
type Relation int

// The relations.
const (
	// RelationSame: it is that execution, or the row shows none yet.
	RelationSame Relation = iota + 1
	// RelationSuccessor: it continues that execution.
	RelationSuccessor
	// RelationReset: it replaced that execution when the run was reset in Temporal.
	RelationReset
)

// Execution is Temporal's state of a run's newest execution.
type Execution struct {
	RunID       string
	ExecutionID string
	Open        bool
	StartedAt   time.Time
	// ClosedAt is zero while the execution is open.
	ClosedAt time.Time

	// Only [Inspector.Inspect] sets the fields below.

	Relation Relation
	// Left are the executions that the row may have followed and that the reset abandoned, with [RelationReset].
	Left []string
	// Accepted is the length of the history at the start of the last workflow task that Temporal accepted, and
	// AcceptedAt the time of that; zero when there was none, and for executions created by a reset.
	Accepted   int64
	AcceptedAt time.Time
}

// Identity is what a run is, except for its input. The memo of the execution has it, so that a lost row can be inserted
// again, also if the input is lost.
type Identity struct {
	Project       string            `json:"project"`
	Workflow      string            `json:"workflow"`
	Version       string            `json:"version"`
	DocumentHash  string            `json:"documentHash"`
	Interpreter   int               `json:"interpreter"`
	RequestID     string            `json:"requestId"`
	RequestDigest string            `json:"requestDigest,omitempty"`
	Trigger       string            `json:"trigger"`
	Actor         string            `json:"actor"`
	CreatedAt     time.Time         `json:"createdAt"`
	Labels        map[string]string `json:"labels,omitempty"`
	ReplayOf      string            `json:"replayOf,omitempty"`
	Parent        Parent            `json:"parent,omitzero"`
	AfterFailure  bool              `json:"afterFailure,omitempty"`
	Lineage       Lineage           `json:"lineage,omitzero"`
}

// Identity returns the run's identity.
func (r Run) Identity() Identity {
	return Identity{
		Project: r.Project, Workflow: r.Workflow, Version: r.Version, DocumentHash: r.DocumentHash,
		Interpreter: r.Interpreter,
		RequestID:   r.RequestID, RequestDigest: r.RequestDigest, Trigger: r.Trigger, Actor: r.Actor, CreatedAt: r.CreatedAt,
		Labels:   r.Labels,
		ReplayOf: r.ReplayOf, Parent: r.Parent, AfterFailure: r.AfterFailure, Lineage: r.Lineage,
	}
}

// Origin is what a run was started with, according to Temporal.
type Origin struct {
	Identity

	StartedAt time.Time
	// Input is nil where InputMissing says why it cannot be read, and never will be.
	Input        json.RawMessage
	InputMissing string
	// Secrecy selects the values to redact beside those that the document selects.
	Secrecy redact.Inherited
}

// Row returns the row of the run, as its start inserted it and Temporal accepted it.
func (o Origin) Row(x Execution) Run {
	r := Run{
		ID: x.RunID, Project: o.Project, Workflow: o.Workflow, Version: o.Version, DocumentHash: o.DocumentHash,
		Status: Queued, QueuedReason: QueuedWorker, StatusAt: o.StartedAt, CreatedAt: o.CreatedAt,
		RequestID: o.RequestID, RequestDigest: o.RequestDigest, Trigger: o.Trigger, Actor: o.Actor, Labels: o.Labels,
		ReplayOf: o.ReplayOf, Parent: o.Parent, AfterFailure: o.AfterFailure, Lineage: o.Lineage,
		Input: o.Input, Interpreter: o.Interpreter, Secrecy: o.Secrecy, ExecutionID: x.ExecutionID,
	}
	if o.InputMissing != "" {
		r.Warnings = []Warning{{Code: WarningInputMissing, Detail: o.InputMissing, At: o.StartedAt}}
	}
	return r
}

// Inspector reads the state of runs in Temporal. Its errors are [apperror.Unavailable] when Temporal does not answer.
type Inspector interface {
	// ClusterID asks Temporal for its current identity.
	ClusterID(ctx context.Context) (ClusterID, error)
	// Executions lists the open executions of runs, and those that have ended since. The list is a hint: it may lag by
	// seconds.
	Executions(ctx context.Context, closedSince time.Time) iter.Seq2[Execution, error]
	// EndedExecutions lists the executions of runs that ended in [from, to).
	EndedExecutions(ctx context.Context, from, to time.Time) iter.Seq2[Execution, error]
	// Retention returns how long Temporal keeps an execution that has ended.
	Retention(ctx context.Context) (time.Duration, error)
	// Inspect returns Temporal's current state of a run, compared with the row; [ErrNotKnown] when Temporal has none.
	// The row must have been read before.
	Inspect(ctx context.Context, r Run) (Execution, error)
	// Origin reads what a run was started with; [ErrNotKnown] when Temporal has no such run, or its execution is not
	// one of a run.
	Origin(ctx context.Context, runID string) (Origin, error)
}

// ReconcileStore is the store that the reconciler requires.
type ReconcileStore interface {
	Store
	ReconcileRows

	// CorrectRun applies one update, and writes e, which may be nil, when that changed the row.
	CorrectRun(ctx context.Context, u Update, e *audit.Entry) (bool, error)
	// FollowExecution replaces the row and the steps of an open run that shows the execution from by the content of u,
	// although its position may be lower, and writes e. From then on, updates of the executions in left are ignored. u
	// has a state. It returns false, and changes nothing, when the run has ended or shows another execution.
	FollowExecution(ctx context.Context, u Update, from string, left []string, e audit.Entry) (bool, error)
}

// ReconcileRows is the part of a [ReconcileStore] that writes no values of runs.
type ReconcileRows interface {
	Rows
	audit.Store
	// OpenRuns returns up to limit open runs of all projects with IDs above after, in order, without input and output.
	OpenRuns(ctx context.Context, after string, limit int) ([]Run, error)
	// StartingRuns is OpenRuns for runs that have been `queued: starting` since until or longer.
	StartingRuns(ctx context.Context, until time.Time, after string, limit int) ([]Run, error)
	// FindRuns returns the existing ones of the given runs, of any project and in any order, without input and output.
	FindRuns(ctx context.Context, ids []string) ([]Run, error)
	// WriteAudit adds an entry for a change that changed no row.
	WriteAudit(ctx context.Context, e audit.Entry) error
	// RunsCluster returns the recorded Temporal that holds the runs.
	RunsCluster(ctx context.Context) (RunsCluster, error)
	// MoveRunsCluster records another one and returns true; when the recorded one is no longer from, it returns false.
	// A zero from records the first. Runs that were left in the other one belong to it again.
	MoveRunsCluster(ctx context.Context, from ClusterID, to RunsCluster) (bool, error)
	// Comparisons returns what all processes know of the comparisons.
	Comparisons(ctx context.Context) (Comparisons, error)
	// MarkSearched stores SearchedUntil. It returns false, and changes nothing, where the stored one is no longer from.
	MarkSearched(ctx context.Context, from, until time.Time) (bool, error)
	// MarkCompared stores ComparedAt.
	MarkCompared(ctx context.Context, at time.Time) error
	// MarkRestored stores RestoredAt and RestoredTo.
	MarkRestored(ctx context.Context, at, to time.Time) error
	// RecordForeign stores the foreign runs that are open, in place of those stored before.
	RecordForeign(ctx context.Context, list []ForeignRuns) error
	// LeftRuns returns the open runs that an adoption has left in another Temporal than the recorded one, with theirs.
	LeftRuns(ctx context.Context) (map[string]ClusterID, error)
	// WorkerClusters returns the Temporals that the live workers are connected to; it omits workers that were never
	// connected.
	WorkerClusters(ctx context.Context) ([]ClusterID, error)
	// GetProject returns one project.
	GetProject(ctx context.Context, name string) (project.Project, error)
	// Document returns the canonical document with this hash.
	Document(ctx context.Context, hash string) ([]byte, error)
	// Exclusive runs fn unless work of that name is already running, in any process.
	Exclusive(ctx context.Context, name string, fn func(context.Context) error) (ran bool, err error)
}
