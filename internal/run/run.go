// Package run defines runs, their states and rules, and the interfaces that the packages below it need: start, read,
// control, child, reconcile and diagnose.
//
// Rows follow Temporal. Package start writes only `queued`. The projection of what Temporal has accepted writes
// everything later, through [Store.ApplyUpdates], which never leaves a terminal state and never moves a row backwards.
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

// Status is the state of a run.
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

// EndedStatuses returns the states of runs that have ended.
func EndedStatuses() []Status {
	return slices.DeleteFunc(Statuses(), func(s Status) bool { return !s.Terminal() })
}

// Terminal reports whether a run in this state has ended.
func (s Status) Terminal() bool {
	switch s {
	case Completed, Failed, Canceled, Terminated, TimedOut:
		return true
	case Queued, Running, Waiting:
		return false
	}
	return false
}

// Known reports whether s is one of the states.
func (s Status) Known() bool {
	return slices.Contains(Statuses(), s)
}

// The reasons for which a run is queued.
const (
	// QueuedStarting: the run is being handed over to Temporal, or the outcome of that is not known yet.
	QueuedStarting = "starting"
	// QueuedEngine: Temporal is unavailable; the run is handed over, in order of acceptance, when Temporal is available
	// again.
	QueuedEngine = "engine"
	// QueuedWorker: Temporal has the run, and no worker has picked it up.
	QueuedWorker = "worker"
	// QueuedAdmission: the run waits for a slot of its project's concurrency limit.
	QueuedAdmission = "admission"
)

// QueuedReasons returns all reasons for which a run is queued.
func QueuedReasons() []string {
	return []string{QueuedEngine, QueuedAdmission, QueuedStarting, QueuedWorker}
}

// What a run waits for.
const (
	WaitingEvent  = "event"
	WaitingTimer  = "timer"
	WaitingRetry  = "retry"
	WaitingQuota  = "quota"
	WaitingChild  = "child"
	WaitingPaused = "paused"
)

// WaitingKinds returns everything that a run may wait for.
func WaitingKinds() []string {
	return []string{WaitingEvent, WaitingTimer, WaitingRetry, WaitingQuota, WaitingChild, WaitingPaused}
}

// What started a run.
const (
	// TriggerAPI: a call of StartRun.
	TriggerAPI = "api"
	// TriggerEvent: events that match the schedule.on of the run's workflow.
	TriggerEvent = "event"
	// TriggerSchedule: the clock, according to the schedule of the run's workflow.
	TriggerSchedule = "schedule"
	// TriggerReplay: a replay of an earlier run.
	TriggerReplay = "replay"
	// TriggerParent: a task of another run.
	TriggerParent = "parent"
	// TriggerImport: the run was executed by another engine, and its row is read-only.
	TriggerImport = "import"
)

// Triggers returns all triggers.
func Triggers() []string {
	return []string{TriggerAPI, TriggerEvent, TriggerSchedule, TriggerReplay, TriggerParent, TriggerImport}
}

// Error is an error of a run in the shape of Problem Details, as the language defines it.
type Error = dsl.Error

// WarningEventsNotSearched means that a listen task has not looked through all events that were accepted since the
// run's start, so that it may wait for an event that has arrived.
const WarningEventsNotSearched = "EVENTS_NOT_SEARCHED"

// WarningInputFormat means that texts of the input are not of the formats that the schema names. JSON Schema does not
// require it.
const WarningInputFormat = "INPUT_FORMAT"

// WarningInputMissing means that the database lost the run's input, which was too large for Temporal, with the run's
// row.
const WarningInputMissing = "INPUT_MISSING"

// Warning is something that a run could not do completely. It changes no status.
type Warning struct {
	Code, Detail string
	At           time.Time
}

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
	// StatusAt is when the run entered this status.
	StatusAt        time.Time
	CancelRequested bool
	CancelReason    string
	RequestID       string
	// RequestDigest is a keyed digest of the arguments given with the request ID, as made by [start.Digests]; empty where
	// nothing is compared.
	RequestDigest string
	Trigger       string
	Actor         string
	CreatedAt     time.Time
	// StartedAt is when the run was first executed; zero before.
	StartedAt time.Time
	// EndedAt is zero while the run is open.
	EndedAt               time.Time
	StepsTotal, StepsDone int64
	// Input and Output are JSON; nil where a list omits them or there is none yet.
	Input, Output json.RawMessage
	Error         *Error
	// Sequence grows with every change of the run or its steps.
	Sequence int64
	// Position is the point in Temporal's history up to which the row is written (see [Update]).
	Position int64
	// Interpreter is the version of the interpreter that the run started with.
	Interpreter int
	// QueuePosition counts from 1 and is the position of a run in the queue for the engine, or in its project's queue
	// for admission; zero for all other runs, and in lists.
	QueuePosition int64
	// ExpiresAt is when a run that is queued for the engine fails instead of being started; zero otherwise.
	ExpiresAt time.Time
	// ExecutionID is Temporal's own run ID of the newest execution; empty until Temporal has answered.
	ExecutionID string
	// Stuck explains why the run makes no progress although it should; nil while there is no such finding.
	Stuck *Stuck
	// Redacted reports that the input, the output, the error or steps contain redaction marks for sensitive values. Not in
	// lists. InputRedacted and EndRedacted report the same of the input, and of the output or the error: each has an
	// original.
	Redacted, InputRedacted, EndRedacted bool
	// Behind describes how the rows are known to lag behind Temporal; nil where they are not known to lag.
	Behind *Behind
	// Originals are stored with a run that is inserted; empty in runs that are read.
	Originals []Original
	// Secrecy is given with a run that is inserted or started, and is never read from its row.
	Secrecy redact.Inherited
	// AfterFailure reports that events that report a failure started the run.
	AfterFailure bool
	// Lineage is what the run descends from. Not in lists.
	Lineage Lineage
	// Warnings are given with a run that is read on its own, the first of each code.
	Warnings []Warning
	// Labels are values by key; nil where there are none. They never change.
	Labels map[string]string
	// MissingLabels are the reasons why labels of the document have no value, by key. They are given with a run that is
	// inserted, and are in the audit entry of its start.
	MissingLabels map[string]string

	// LegacyEngine is the engine that executed an imported run; empty for every other run, and where the source named
	// none.
	LegacyEngine string

	// The fields below are not in lists.

	// WrittenAt is when the projection last wrote the row; zero before.
	WrittenAt time.Time
	// Legacy is what the source of an imported run had in addition: its row, waits and snapshots, as JSON.
	Legacy json.RawMessage
	// Metered reports that the run requests a grant for the steps that it enters: its project had a quota of steps when
	// it was accepted.
	Metered bool
	// Quota is set while the run waits for steps.
	Quota *QuotaUsage
	// ReplayOf is the run whose input this run began with; Replays are the newest of its own replays.
	ReplayOf string
	Replays  []string
	// Parent is zero for a run that no other run started. Children are the newest of the runs that this one started.
	Parent   Parent
	Children []string
	// FailedStep is the step whose error ended a failed run; nil where the rows of its steps do not contain it.
	FailedStep *FailedStep
	// Summarized reports whether the run has steps without rows, in its [StepSummary].
	Summarized bool
}

// FailedStep is the step whose error ended a run.
type FailedStep struct {
	Number              int64
	Pointer, Path, Task string
	// Attempts is the number of recorded attempts.
	Attempts int
}

// QuotaUsage is the used part of a project's quota of steps per period.
type QuotaUsage struct {
	Used, Limit int64
	// ResetAt is when the next period begins.
	ResetAt time.Time
}

// Parent is the run that started a run.
type Parent struct {
	RunID string `json:"runId"`
	// Path is the path of the entry into the task that started the run.
	Path string `json:"path"`
	// Depth is the number of ancestors of the run, from 1.
	Depth int `json:"depth"`
	// Awaited reports that the parent waits for the run's end and was not notified of it yet; Key then identifies the
	// request that made the run.
	Key     string `json:"key,omitempty"`
	Awaited bool   `json:"awaited,omitempty"`
}

// Attempt is one actual attempt at a step.
type Attempt struct {
	Number    int        `json:"number"`
	StartedAt time.Time  `json:"startedAt"`
	EndedAt   *time.Time `json:"endedAt,omitempty"`
	Error     *Error     `json:"error,omitempty"`
	// Outcome is how a request of a call ended: answered, failed or unknown; empty while it is in progress, and for
	// other tasks.
	Outcome string `json:"outcome,omitempty"`
	// HTTPStatus is the status of the response; 0: none.
	HTTPStatus int `json:"httpStatus,omitempty"`
	// Method and Host are those of the request of a call: its method, and the host and port of its URL. They are empty
	// where they are unknown, and for other tasks.
	Method string `json:"method,omitempty"`
	Host   string `json:"host,omitempty"`
	// RetryAfter is the delay before the next attempt that the response asks for; 0: none.
	RetryAfter time.Duration `json:"retryAfter,omitempty"`
}

// StepWait describes what an open step waits for, as far as only the interpreter can report it.
type StepWait struct {
	// Deadline is when the earliest of the applicable timeouts ends the step, and DeadlineBy the pointer of the task
	// with that timeout, or /timeout for the timeout of the run. They are set where an expression defines the length of
	// one of these timeouts.
	Deadline   time.Time `json:"deadline,omitzero"`
	DeadlineBy string    `json:"deadlineBy,omitempty"`
	// Taken are the filters already satisfied of a listen task that needs an event for each of several filters.
	Taken []TakenEvent `json:"taken,omitempty"`
}

// TakenEvent is an event that a listen task has taken for one of its filters.
type TakenEvent struct {
	// Filter is the index of the filter among those of the task, followed by those of its until.
	Filter int `json:"filter"`
	// At is when the run took it; zero where the time is not known.
	At time.Time `json:"at,omitzero"`
}

// Step is one entry into one task of a run.
type Step struct {
	// Number is the order of entry in the run, from 1.
	Number int64
	// Path is the entry's path with loop indices, Pointer the task's JSON pointer in the document.
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
	Error         *Error
	Attempts      []Attempt
	// Sequence is the run's sequence at which the step last changed.
	Sequence int64
	// Position is the position in Temporal's history that the step was last written from.
	Position int64
	// InputSize and OutputSize are the sizes in bytes of JSON of values that are too large to be stored, and of which
	// Input and Output are shortened forms of the same types; 0 for values that are whole.
	InputSize, OutputSize int64
	// InputShown and OutputShown, where they are not nil, are safe to show in place of Input and Output: shortened forms
	// of values that are too large to be stored, and in which sensitive values can no longer be located. They are only
	// written, never read.
	InputShown, OutputShown json.RawMessage
	// Original is stored with a step that is written; nil in steps that are read, and where nothing was redacted.
	Original *Original
	// Redacted reports, in steps that are read with their values, that the step has an original.
	Redacted bool
	// Wait describes an open step; nil where there is nothing to report. It is read only where waits are explained.
	Wait *StepWait
	// Kept marks a step whose row stays when the steps around it are only summarized (see [StepSummary]).
	Kept bool
	// Caught reports, for a failed step that is read, whether it is inside of a try that has completed; nil where that is
	// unknown.
	Caught *bool
}

// Update is the change of a run made by one workflow task, once Temporal has accepted it.
//
// Position grows along the run's life (number of the execution in its chain, then length of the history), so that a
// late or repeated update changes nothing.
type Update struct {
	RunID       string
	ExecutionID string
	Position    int64
	// State is nil when only steps changed.
	State *State
	// Steps carry their own positions.
	Steps []Step
	// Summary is the change of the steps without rows; nil when nothing changed. The rows that it replaces are deleted.
	Summary *StepSummary
	// Partial marks an update whose rest follows with the same position: it writes steps and leaves the run's own row
	// unchanged.
	Partial bool
	// Sensitive are the texts found so far at sensitive locations of the run. They are the same for the same history,
	// in every process.
	Sensitive []string
	// Secrets holds the sensitive texts found since the last update, sealed; nil where there are none. They are stored in
	// any case.
	Secrets *Original
	// Logs are those of programs that have ended.
	Logs []AttemptLog
}

// chainBits is how many bits of a position hold the length of the history.
const chainBits = 32

// Chain returns the number, from 0, of the execution in its run's chain that a position belongs to. HistoryLength
// returns the length of that execution's history.
func Chain(position int64) int64 { return position >> chainBits }

// HistoryLength returns the other half of a position (see [Chain]).
func HistoryLength(position int64) int64 { return position & (1<<chainBits - 1) }

// State is the run-level part of an update.
type State struct {
	Status      Status
	WaitingKind string
	Since       time.Time
	// StartedAt is written only where the row has none yet or a later one: an update late in a run's life does not
	// contain it.
	StartedAt time.Time
	// EndedAt is set with a terminal status.
	EndedAt               time.Time
	Output                json.RawMessage
	Error                 *Error
	StepsTotal, StepsDone int64
	// EndsSteps ends the open steps of the run as canceled, also where the row has ended already.
	EndsSteps bool
	// Original is stored with the state; nil where nothing was redacted.
	Original *Original
}

// Cursor is a position in a list of runs.
type Cursor struct {
	CreatedAt time.Time `json:"at"`
	ID        string    `json:"id"`
}

// StepCursor is a position among a run's steps in the order of their changes.
type StepCursor struct {
	Sequence int64
	Number   int64
}

// ChangedFilter selects the changed steps of a run: up to Limit of them, beyond the cursor After and up to the sequence
// UpTo.
type ChangedFilter struct {
	After StepCursor
	UpTo  int64
	Limit int
	// Heads omits inputs and outputs.
	Heads bool
}

// StepFilter selects the steps of a run to list. Zero fields match everything.
type StepFilter struct {
	// After is the number of the last step of the previous page; 0 on the first page.
	After int64
	// Limit is the maximum number of steps of the page.
	Limit int
	// Pointer is the JSON pointer of the steps' task.
	Pointer string
	// ParentPath is the path of the step that contains the steps directly, or of one of its iterations; [TopLevel] for
	// the steps of the document's own list.
	ParentPath string
	Statuses   []string
	// Text is contained in the name of the task, the title or detail of the error, or the JSON text of the stored input or
	// output. The case of the letters a to z does not matter. A page reads at most [MaxScan] steps to find it.
	Text string
	// Basic omits inputs, outputs and attempts.
	Basic bool
	// NewestFirst reverses the order.
	NewestFirst bool
	// Caught selects the failed steps whose error was caught, or was not; nil selects all steps.
	Caught *bool
}

// TopLevel is the ParentPath of the steps of the document's own list.
const TopLevel = "/"

// MaxScan is the maximum number of steps that one page reads to search for a text.
const MaxScan = 2000

// StepPage is one page of steps.
type StepPage struct {
	Steps []Step
	// Last is the number after which the next page begins; 0 if this is the last page. A page that searches for a text may
	// have fewer steps than its limit, or none, and not be the last one.
	Last int64
	// Searched is the number of steps that were searched for the text of the filter, up to where the next page begins.
	Searched int64
}

// TaskTotals are totals of the steps of one task of a run, those without rows included.
type TaskTotals struct {
	Pointer, Task, Kind string
	// Statuses has the number of steps by status.
	Statuses map[string]int64
	// FirstStart is the start of the first step, LastEnd the end of the last one that has ended; both of the steps with
	// rows.
	FirstStart, LastEnd time.Time
	// Attempts is the number of attempts of the steps with rows; Summarized is the number of steps without rows.
	Attempts, Summarized int64
	// Total and Longest are durations of the steps that have ended.
	Total, Longest time.Duration
	// FirstFailed is the number of the first failed step; 0 if none has failed.
	FirstFailed int64
}

// RowVersion is the sequence of a run's row.
type RowVersion struct {
	ID       string
	Sequence int64
}

// Counts are numbers of runs.
type Counts struct {
	// Statuses is by status, Stuck by code of [Stuck]; keys with a count of zero are omitted.
	Statuses, Stuck map[string]int64
	// More are the statuses with more runs than the [MaxCount] that Statuses contains. Only counts of ended runs are
	// limited.
	More []Status
	// Buckets are the requested ones, in order of time.
	Buckets []Bucket
}

// Bucket is the number of runs by status that were created in one interval of time; keys with a count of zero are
// omitted.
type Bucket struct {
	Start    time.Time
	Statuses map[string]int64
}

// MaxBuckets limits the buckets of a count, MinBucket is their shortest length.
const (
	MaxBuckets = 200
	MinBucket  = time.Second
)

// MaxCount limits the count of ended runs of a status: each counted run reads an entry of an index.
const MaxCount = 10_000

// Store stores runs. Missing runs are [apperror.NotFound].
type Store interface {
	QueueStore
	RepairStore
	Rows

	// InsertRun adds a queued run, as `queued: admission` where its project has no free slot (see
	// [start.AdmissionStore]). When the project has a run with the same request ID, it returns that one and false, and
	// changes nothing. For a child of a canceled run it returns [ErrAncestorCanceled] and changes nothing.
	InsertRun(ctx context.Context, r Run, e audit.Entry) (Run, bool, error)
	// RemoveUnstarted deletes a run that is still `queued: starting` and not disclosed (see [Rows.MarkDisclosed]), and
	// writes e; it returns false when the run is not in that state.
	RemoveUnstarted(ctx context.Context, id string, e audit.Entry) (bool, error)
	// FinishMissing ends an open run that Temporal does not have, with the given status and error.
	FinishMissing(ctx context.Context, id string, status Status, p *Error, at time.Time, e audit.Entry) (bool, error)
	// ApplyUpdates writes what Temporal has accepted, all in one transaction: a run's row and steps change only where
	// the update's (for steps: the step's) position is beyond the stored one, a terminal row keeps its state, and
	// sequences grow by one per run and call. A step that a stored summary replaces is not written. Updates of unknown
	// runs are ignored. It returns the runs that changed to another status, for counting.
	ApplyUpdates(ctx context.Context, updates []Update) ([]Transition, error)
}

// Rows is the part of a [Store] that writes no values of runs.
type Rows interface {
	QueueRows
	RepairRows
	StepRows

	// MarkDisclosed returns the run and prevents its removal by RemoveUnstarted.
	MarkDisclosed(ctx context.Context, project, id string) (Run, error)
	// MarkHandedOver changes `queued: starting` into `queued: worker`; any other state stays unchanged.
	MarkHandedOver(ctx context.Context, id, executionID string, at time.Time) error
	// GetRun returns one run with input and output, and all that belongs to it.
	GetRun(ctx context.Context, project, id string) (Run, error)
	// ListRuns returns runs without input and output.
	ListRuns(ctx context.Context, f Filter) ([]Run, error)
	// RowVersions returns the IDs and sequences of the runs that ListRuns returns.
	RowVersions(ctx context.Context, f Filter) ([]RowVersion, error)
	// CountRuns counts the runs that match the filter.
	CountRuns(ctx context.Context, f Filter) (Counts, error)
	// CountBuckets counts the runs that match the filter by intervals of the time of creation, from the filter's Since
	// to its Until; it includes empty ones.
	CountBuckets(ctx context.Context, f Filter, length time.Duration) ([]Bucket, error)
	// MarkCancelRequested sets the flag on a run that is open or already canceled: the end caused by a request may be
	// written before the request. It returns the run as it is afterwards. The flag and e are written only when the run
	// is in one of these states and the flag was not set.
	MarkCancelRequested(ctx context.Context, project, id, reason string, e audit.Entry) (Run, error)
	// WriteAudit writes an entry for a change made in Temporal only.
	WriteAudit(ctx context.Context, e audit.Entry) error
}

// StepRows is the part of a [Store] that reads the steps of runs.
type StepRows interface {
	// ListSteps returns a page of the steps of a run by number.
	ListSteps(ctx context.Context, project, id string, f StepFilter) (StepPage, error)
	// SumSteps returns totals of the steps of a run by task, in the order of the first step of each.
	SumSteps(ctx context.Context, project, id string) ([]TaskTotals, error)
	// StepSummary returns the summary of the steps without rows: the tasks that changed after a sequence. It is nil
	// when all steps have rows, or none of the tasks changed since.
	StepSummary(ctx context.Context, project, id string, after int64) (*StepSummary, error)
	// ChangedSteps returns steps that changed, in order of sequence and then number.
	ChangedSteps(ctx context.Context, id string, f ChangedFilter) ([]Step, error)
	// CaughtSteps returns the numbers of the failed steps inside of those of the given steps that are completed tries.
	CaughtSteps(ctx context.Context, id string, steps []Step) ([]int64, error)
}

// Transition is a run's change from one status to another.
type Transition struct {
	RunID   string
	Project string
	From    Status
	To      Status
	// CreatedAt and StartedAt are those of the run, for latencies.
	CreatedAt time.Time
	StartedAt time.Time
}
