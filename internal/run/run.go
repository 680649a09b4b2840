// Package run holds what a run is, its states and rules, and the service that starts, finds and watches runs. What people do
// to a run that is there is package control's.
//
// Rows follow Temporal. This package writes only `queued`; everything after that is written by the projection of what
// Temporal has accepted, through [Store.ApplyUpdates], which never leaves a terminal state and never goes back.
package run

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/redact"
)

// Status is where a run is in its life.
type Status string

// The states of a run.
const (
	Queued     Status = "queued"
	Running    Status = "running"
	Waiting    Status = "waiting"
	Completed  Status = "completed"
	Failed     Status = "failed"
	Canceled   Status = "canceled"
	Terminated Status = "terminated"
	TimedOut   Status = "timed_out"
)

// Statuses returns all states in the order of a run's life.
func Statuses() []Status {
	return []Status{Queued, Running, Waiting, Completed, Failed, Canceled, Terminated, TimedOut}
}

// Terminal tells whether a run in this state has ended.
func (s Status) Terminal() bool {
	switch s {
	case Completed, Failed, Canceled, Terminated, TimedOut:
		return true
	case Queued, Running, Waiting:
		return false
	}
	return false
}

// Known tells whether s is one of the states.
func (s Status) Known() bool {
	return slices.Contains(Statuses(), s)
}

// Why a run is queued.
const (
	// QueuedStarting: it is being handed over to Temporal, or the outcome of that is not known yet.
	QueuedStarting = "starting"
	// QueuedEngine: Temporal is away; it is handed over, in order of acceptance, when Temporal is back.
	QueuedEngine = "engine"
	// QueuedWorker: Temporal has it and no worker has picked it up.
	QueuedWorker = "worker"
	// QueuedAdmission: it waits for one of its project's places.
	QueuedAdmission = "admission"
)

// What a run waits for.
const (
	WaitingEvent  = "event"
	WaitingTimer  = "timer"
	WaitingRetry  = "retry"
	WaitingQuota  = "quota"
	WaitingChild  = "child"
	WaitingPaused = "paused"
)

// WaitingKinds returns what a run may wait for.
func WaitingKinds() []string {
	return []string{WaitingEvent, WaitingTimer, WaitingRetry, WaitingQuota, WaitingChild, WaitingPaused}
}

// PausableSince is the first version of the interpreter whose runs can be paused, and resumed in spite of a quota.
const PausableSince = 3

// What started a run.
const (
	// TriggerAPI: a call of StartRun.
	TriggerAPI = "api"
	// TriggerEvent: events that its workflow's schedule.on asks for.
	TriggerEvent = "event"
	// TriggerSchedule: the clock, as its workflow's schedule says.
	TriggerSchedule = "schedule"
	// TriggerReplay: somebody replayed an earlier run.
	TriggerReplay = "replay"
	// TriggerParent: a task of another run.
	TriggerParent = "parent"
	// TriggerImport: it ran on another engine, and is here to be read.
	TriggerImport = "import"
)

// Triggers returns all of them.
func Triggers() []string {
	return []string{TriggerAPI, TriggerEvent, TriggerSchedule, TriggerReplay, TriggerParent, TriggerAdopted, TriggerImport}
}

// Problem is an error in the shape of Problem Details, as the language defines it.
type Problem = dsl.Error

// Run is one execution of one version of a workflow.
type Run struct {
	ID      string
	Project string
	// Workflow is "namespace/name".
	Workflow     string
	Version      string
	DocumentHash string
	Status       Status
	// QueuedReason is set while Status is Queued, WaitingKind while it is Waiting.
	QueuedReason string
	WaitingKind  string
	// StatusAt is since when the run has this status.
	StatusAt        time.Time
	CancelRequested bool
	CancelReason    string
	RequestID       string
	// RequestDigest is a keyed digest of what was asked with the request ID, as [Digests] make it; empty where nothing is compared.
	RequestDigest string
	Trigger       string
	Actor         string
	CreatedAt     time.Time
	// StartedAt is when it was first executed; zero before.
	StartedAt time.Time
	// EndedAt is zero while it is open.
	EndedAt               time.Time
	StepsTotal, StepsDone int64
	// Input and Output are JSON; nil where a list leaves them out or there is none yet.
	Input, Output json.RawMessage
	Error         *Problem
	// Sequence grows with every change of the run or its steps.
	Sequence int64
	// Position is how far of Temporal's history the row shows (see [Update]).
	Position int64
	// Interpreter is the version of the interpreter that it started with.
	Interpreter int
	// QueuePosition is the place of a run that is queued for the engine, or for admission in its project, from 1; zero otherwise,
	// and in lists.
	QueuePosition int64
	// ExpiresAt is when a run that is queued for the engine fails instead of being started; zero otherwise.
	ExpiresAt time.Time
	// ExecutionID is Temporal's own run ID of the newest execution; empty until Temporal has answered.
	ExecutionID string
	// Stuck is why it makes no progress although it should; nil when there is nothing to tell.
	Stuck *Stuck
	// Redacted tells that marks stand for sensitive values in the input, the output, the error or steps. Not in lists.
	Redacted bool
	// Behind is in what the rows are known to be behind Temporal; nil where they are not.
	Behind *Behind
	// Originals are to be kept with a run that is inserted; empty in what is read.
	Originals []Original
	// Secrecy is given with a run that is inserted or started, and never read from its row.
	Secrecy redact.Inherited

	// LegacyEngine is the engine that an imported run ran on; empty for every other run, and where the source named none.
	LegacyEngine string

	// What follows is not in lists.

	// WrittenAt is when the projection last wrote the row; zero before, and for rows of earlier releases.
	WrittenAt time.Time
	// Legacy is what an imported run's source had of it beside what is here: its row, waits and snapshots, as JSON.
	Legacy json.RawMessage
	// Metered tells that it asks for the steps that it enters: its project had a quota of steps when it was accepted.
	Metered bool
	// Quota is set while it waits for steps.
	Quota *QuotaUsage
	// ReplayOf is the run whose input it began with, Replays are the newest of its own replays.
	ReplayOf string
	Replays  []string
	// Parent is zero for a run that no other run started. Children are the newest of those that it started.
	Parent   Parent
	Children []string
}

// QuotaUsage is how much of a project's steps per period is used.
type QuotaUsage struct {
	Used, Limit int64
	// ResetAt is when the next period begins.
	ResetAt time.Time
}

// Parent is the run that started a run.
type Parent struct {
	RunID string
	// Path is that of the entry into the task which started it.
	Path string
	// Depth is how many runs are above the one that was started, from 1.
	Depth int
	// Key names the request that made the run, and Awaited tells that the parent waits for its end. Both are only given, never read.
	Key     string
	Awaited bool
}

// Attempt is one real try of a step.
type Attempt struct {
	Number    int        `json:"number"`
	StartedAt time.Time  `json:"startedAt"`
	EndedAt   *time.Time `json:"endedAt,omitempty"`
	Error     *Problem   `json:"error,omitempty"`
	// Outcome is how a request of a call ended: answered, failed or unknown; empty while it goes on, and for other tasks.
	Outcome string `json:"outcome,omitempty"`
	// HTTPStatus is that of the answer; 0: none.
	HTTPStatus int `json:"httpStatus,omitempty"`
}

// Step is one entry into one task of a run.
type Step struct {
	// Number is the order of entry in the run, from 1.
	Number int64
	// Path is the entry's path with loop indices, Pointer the task's place in the document.
	Path       string
	Pointer    string
	Task, Kind string
	// Status is running, waiting, completed, failed, skipped or canceled.
	Status        string
	WaitingKind   string
	WaitUntil     time.Time
	StartedAt     time.Time
	EndedAt       time.Time
	Input, Output json.RawMessage
	Error         *Problem
	Attempts      []Attempt
	// Sequence is the run's sequence at which the step last changed.
	Sequence int64
	// Position is the place in Temporal's history that it was last written from.
	Position int64
	// InputShown and OutputShown, where they are not nil, may be shown in place of Input and Output: beginnings of what is too large to be
	// kept, in which nothing could be found any more. They are given, and never read.
	InputShown, OutputShown json.RawMessage
	// Original is to be kept with a step that is written; nil in what is read, and where nothing was hidden.
	Original *Original
	// Kept marks a step whose row stays when the steps around it are only summarized (see [StepSummary]).
	Kept bool
}

// Update is what one workflow task, once accepted by Temporal, made of a run.
//
// Position grows along the run's life (number of the execution in its chain, then length of the history), so that
// an update that comes late or twice changes nothing.
type Update struct {
	RunID       string
	ExecutionID string
	Position    int64
	// State is nil when only steps changed.
	State *State
	// Steps carry their own positions.
	Steps []Step
	// Summary is what changed about the steps without rows; nil when nothing did. The rows that it replaces are deleted.
	Summary *StepSummary
	// Partial marks an update whose rest follows with the same position: it writes steps and leaves the run's own row where it is.
	Partial bool
	// Sensitive are the texts that have stood at sensitive places of the run, as its interpretation has found them so far: the same from
	// the same history, in whatever process.
	Sensitive []string
	// Taint is what was found sensitive, to be kept in any case; nil where nothing new was.
	Taint *Original
}

// chainBits is how many bits of a position are the length of the history.
const chainBits = 32

// Chain is the number of the execution in its run's chain, from 0, that a position lies in, and HistoryLength the length
// of that execution's history.
func Chain(position int64) int64 { return position >> chainBits }

// HistoryLength is the other half of a position (see [Chain]).
func HistoryLength(position int64) int64 { return position & (1<<chainBits - 1) }

// State is the run-level part of an update.
type State struct {
	Status      Status
	WaitingKind string
	Since       time.Time
	// StartedAt is written only where the row has none yet or a later one: an update that comes late in a run's life
	// does not know it.
	StartedAt time.Time
	// EndedAt is set with a terminal status.
	EndedAt               time.Time
	Output                json.RawMessage
	Error                 *Problem
	StepsTotal, StepsDone int64
	// EndsSteps ends the open steps of the run as canceled, also where the row has ended already.
	EndsSteps bool
	// Original is to be kept with the state; nil where nothing was hidden.
	Original *Original
}

// Cursor is a place in a list of runs.
type Cursor struct {
	CreatedAt time.Time `json:"at"`
	ID        string    `json:"id"`
}

// StepCursor is a place among a run's steps in the order of their changes.
type StepCursor struct {
	Sequence int64
	Number   int64
}

// Filter says which runs to list. Zero fields match everything.
type Filter struct {
	Project   string
	Statuses  []Status
	Workflow  string
	Version   string
	RequestID string
	// Since is inclusive, Until exclusive, both on the time of creation.
	Since time.Time
	Until time.Time
	// Problems are codes of [Stuck], or [AnyProblem].
	Problems []string
	// Trigger is what started them.
	Trigger string
	// Text is what their ID or request ID begins with.
	Text string
	// NotReplayed leaves out runs of which there is a replay.
	NotReplayed bool
	// OldestFirst turns the order round.
	OldestFirst bool
	After       *Cursor
	Limit       int
}

// AnyProblem stands for all codes of [Stuck] in a [Filter].
const AnyProblem = "any"

// AnyProblem tells whether runs are wanted that are stuck for whatever reason.
func (f Filter) AnyProblem() bool { return slices.Contains(f.Problems, AnyProblem) }

// Counts are how many runs there are.
type Counts struct {
	// Statuses is by status, Problems by code of [Stuck]; what there is none of is left out.
	Statuses, Problems map[string]int64
	// More are the statuses of which there are more than the [MaxCount] that Statuses has of them. Only ended runs are not all counted.
	More []Status
}

// MaxCount is up to how many ended runs of a status are counted: with each, a count reads an entry of an index.
const MaxCount = 10_000

// Store keeps runs. Missing runs are [fault.NotFound].
type Store interface {
	QueueStore
	RepairStore
	Rows

	// InsertRun adds a run that is queued, as `queued: admission` where its project has no place for it (see [AdmissionStore]).
	// When the project has a run with the same request ID, it returns that one and false, and changes nothing.
	InsertRun(ctx context.Context, r Run, e audit.Entry) (Run, bool, error)
	// RemoveUnstarted deletes a run that is still `queued: starting` and of which nobody was told, and writes e; it
	// returns false when the run is no longer that.
	RemoveUnstarted(ctx context.Context, id string, e audit.Entry) (bool, error)
	// FinishMissing ends an open run that Temporal does not know, with the given status and problem.
	FinishMissing(ctx context.Context, id string, status Status, p *Problem, at time.Time, e audit.Entry) (bool, error)
	// ApplyUpdates writes what Temporal has accepted, all in one transaction: a run's row and steps change only where the
	// update's (for steps: the step's) position is beyond the stored one, a terminal row keeps its state, sequences
	// grow by one per run and call. A step that a stored summary replaces is not written. Updates of unknown runs are passed over. It returns the runs that changed to a
	// status that they did not have, for counting.
	ApplyUpdates(ctx context.Context, updates []Update) ([]Transition, error)
}

// Rows is the part of a [Store] to which no values of runs are written.
type Rows interface {
	QueueRows
	RepairRows

	// TellRun returns the run to be told of: from then on, RemoveUnstarted leaves it.
	TellRun(ctx context.Context, project, id string) (Run, error)
	// MarkHandedOver turns `queued: starting` into `queued: worker`; any other state is left as it is.
	MarkHandedOver(ctx context.Context, id, executionID string, at time.Time) error
	// GetRun returns one run with input and output.
	GetRun(ctx context.Context, project, id string) (Run, error)
	// ListRuns returns runs without input and output.
	ListRuns(ctx context.Context, f Filter) ([]Run, error)
	// CountRuns counts the runs of a project, where the filter says so of one workflow or of a time.
	CountRuns(ctx context.Context, f Filter) (Counts, error)
	// ListSteps returns up to limit steps with numbers above after, in order.
	ListSteps(ctx context.Context, project, id string, after int64, limit int) ([]Step, error)
	// StepSummary returns what is known of the steps without rows: the tasks that changed after a sequence. It is nil when all steps
	// have rows, or none of the tasks changed since.
	StepSummary(ctx context.Context, project, id string, after int64) (*StepSummary, error)
	// ChangedSteps returns up to limit steps beyond the cursor and up to the sequence upTo, in order of sequence and
	// then number.
	ChangedSteps(ctx context.Context, id string, after StepCursor, upTo int64, limit int) ([]Step, error)
	// MarkCancelRequested sets the flag on a run that is open, or canceled already: the end that a request brought about
	// may be written before the request is. It returns the run as it then is. The flag and e are written only when the
	// run is in one of these states and the flag was not set.
	MarkCancelRequested(ctx context.Context, project, id, reason string, e audit.Entry) (Run, error)
	// WriteAudit writes an entry for what changed in Temporal alone.
	WriteAudit(ctx context.Context, e audit.Entry) error
}

// Transition is a run's change from one status to another.
type Transition struct {
	RunID   string
	Project string
	From    Status
	To      Status
	// CreatedAt and StartedAt are the run's, for latencies.
	CreatedAt time.Time
	StartedAt time.Time
}
