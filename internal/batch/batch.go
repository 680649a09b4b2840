// Package batch applies one action to many runs, as a durable job: cancel, terminate or replay, by run IDs or by a
// filter.
//
//	s := batch.NewService(store, workflows, runner.Wake, time.Now)
//	b, created, err := s.Start(ctx, batch.StartRequest{Project: "default", Action: batch.Replay, RunIDs: ids, Reason: "fixed"})
//	r := batch.NewRunner(store, controls, time.Now)
//	err = r.Start(ctx)
//
// [Service.Start] records the selected runs, and [Runner] processes them: in one elected process, at the batch's rate,
// a few at a time. The result of each run and the counts are written in one transaction. When a process dies, only its
// items in flight stay unrecorded; the next process retries them. A retry has no second effect: a replay has a request
// ID of its own, and a run that was canceled or terminated stays so.
//
// While Temporal is unavailable, a batch waits and reports the reason. The package makes no decisions about runs:
// [start.Service] refuses what a run's state does not allow.
package batch

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/control"
)

// Action is the operation on each run.
type Action string

// The actions.
const (
	Cancel    Action = "cancel"
	Terminate Action = "terminate"
	Replay    Action = "replay"
)

// Actions returns all actions.
func Actions() []Action { return []Action{Cancel, Terminate, Replay} }

// Latest as the version of a replay is the newest published version.
const Latest = "latest"

// Status is the state of a batch.
type Status string

// The statuses of a batch.
const (
	// Selecting: the runs are still being recorded. No action starts before all are.
	Selecting Status = "selecting"
	Running   Status = "running"
	Paused    Status = "paused"
	// RunsOpen: every run was replayed, and some of the new runs have not ended.
	RunsOpen  Status = "started"
	Completed Status = "completed"
)

// ItemStatus is the state of one run of a batch.
type ItemStatus string

// The statuses of an item.
const (
	Pending   ItemStatus = "pending"
	Succeeded ItemStatus = "succeeded"
	// Started: the run was replayed. [Item.Outcome] is that of the new run.
	Started ItemStatus = "started"
	// Refused: the run's state does not allow the action, or the run does not exist. A retry would have the same result.
	Refused ItemStatus = "refused"
	Failed  ItemStatus = "failed"
)

// ItemStatuses returns all item statuses.
func ItemStatuses() []ItemStatus { return []ItemStatus{Pending, Succeeded, Started, Refused, Failed} }

// Bounds of a batch.
const (
	// MaxIDs is the maximum number of run IDs in a request.
	MaxIDs = 10_000
	// Page is the number of runs that the transaction of the call records for a filter; further pages of the same size
	// follow later.
	Page = 10_000
	// DefaultRate, MinRate and MaxRate are in items per second.
	DefaultRate = 50.0
	MinRate     = 0.1
	MaxRate     = 500.0
)

// Batch is one action on many runs.
type Batch struct {
	ID      string
	Project string
	Action  Action
	Status  Status
	Reason  string
	// Rate is in items per second.
	Rate float64
	// Version is the version to replay: empty for each run's own, "latest" for the newest one.
	Version string
	// Total counts the runs recorded so far; the others count its items by status. Succeeded includes those that are
	// [Started].
	Total, Succeeded, Refused, Failed int64
	// Ended counts the runs that a batch of replays started and that have ended; RunsEndedAt is zero while one is open.
	Ended       Outcomes
	RunsEndedAt time.Time
	// Waiting is the reason why the batch makes no progress; empty while it does.
	Waiting string
	// Actor started the batch; its actions are done in the actor's name.
	Actor     auth.Actor
	RequestID string
	// Fingerprint distinguishes the request from others with the same request ID.
	Fingerprint string
	CreatedAt   time.Time
	// EndedAt is zero while the batch is not completed.
	EndedAt time.Time
	// Filter is nil where the request named the runs.
	Filter *run.Filter
	// Expected is the number of runs that the filter must select, for a stop of a workflow the maximum; nil for any
	// number. It is only written, never read.
	Expected *int64
}

// Runs returns the filter for the store of runs: the selected runs that existed when the batch was started, the oldest
// first.
func (b Batch) Runs() run.Filter {
	f := *b.Filter
	f.Project, f.OldestFirst = b.Project, true
	if f.Until.IsZero() || f.Until.After(b.CreatedAt) {
		f.Until = b.CreatedAt
	}
	return f
}

// Pending is the number of items without a result.
func (b Batch) Pending() int64 { return b.Total - b.Succeeded - b.Refused - b.Failed }

// Started is the number of runs that the batch started.
func (b Batch) Started() int64 {
	if b.Action != Replay {
		return 0
	}
	return b.Succeeded
}

// OpenRuns is the number of runs that the batch started and that have not ended.
func (b Batch) OpenRuns() int64 {
	left := b.Started()
	for _, n := range b.Ended {
		left -= n
	}
	return max(left, 0)
}

// Item is one run of a batch.
type Item struct {
	// Number is its position in the batch, from 1.
	Number int64
	RunID  string
	Status ItemStatus
	// Error is the reason of a refusal or failure.
	Error string
	// NewRunID is the newest run that a replay started. A retry replays it.
	NewRunID string
	// Outcome is that of the new run, of an item that is [Started].
	Outcome Outcome
	EndedAt time.Time
	// Begun: an earlier attempt began, which may have succeeded without a record.
	Begun bool
}

// Statuses returns all statuses of batches.
func Statuses() []Status { return []Status{Selecting, Running, Paused, RunsOpen, Completed} }

// StateCount counts selected runs that are in the same state for every control.
type StateCount struct {
	State control.State
	Count int64
	// Sample are the IDs of some of them.
	Sample []string
}

// ListFilter selects the batches to list.
type ListFilter struct {
	Project string
	// Statuses is empty for all.
	Statuses []Status
	// Before is the ID after which the list continues, newest first; empty starts with the newest.
	Before string
	Limit  int
}

// ItemFilter selects the items of a batch to list.
type ItemFilter struct {
	Project string
	Batch   string
	// Status is empty for all, Outcome too.
	Status  ItemStatus
	Outcome Outcome
	// After is the number after which the list continues.
	After int64
	Limit int
}

// Store stores batches. Missing ones are [apperror.NotFound] with [apperror.BatchNotFound].
type Store interface {
	// StartBatch adds a batch with its runs: ids, each once, or else those that its filter selects, up to page of them.
	// Where there may be more, the batch has the status selecting. When the project has a batch with the same request ID,
	// it returns that one and false, and changes nothing. A new batch whose filter selects another number of runs than
	// b.Expected is refused with [apperror.BatchTotalChanged].
	StartBatch(ctx context.Context, b Batch, ids []string, page int, e audit.Entry) (Batch, bool, error)
	// StopWorkflow pauses the workflow of b's filter, and then adds b with the runs that its filter selects, up to page of
	// them, all in one transaction. It writes pause when it paused the workflow, and start with a new batch. When the
	// project has a batch with the same request ID, it returns that one and changes nothing; one with another fingerprint
	// is refused with [apperror.RequestIDReused], and more open runs than b.Expected with [apperror.BatchTotalChanged].
	StopWorkflow(ctx context.Context, b Batch, page int, pause, start audit.Entry) (Stopped, error)
	// RunStates counts the runs that a batch would select by state: the existing ones among the IDs, or those of the
	// filter.
	RunStates(ctx context.Context, b Batch, ids []string) ([]StateCount, error)
	GetBatch(ctx context.Context, project, id string) (Batch, error)
	// ListBatches returns batches, newest first.
	ListBatches(ctx context.Context, f ListFilter) ([]Batch, error)
	// ListBatchItems returns items in order of their numbers.
	ListBatchItems(ctx context.Context, f ItemFilter) ([]Item, error)
	// PauseBatch pauses a batch that has not ended, or unpauses it; it writes e when that changed anything.
	PauseBatch(ctx context.Context, project, id string, paused bool, e audit.Entry) (Batch, error)
	// RetryBatch makes the failed items of a batch pending, and those whose run has failed, and writes e when there were
	// any.
	RetryBatch(ctx context.Context, project, id string, e audit.Entry) (Batch, error)
}

// WorkStore is the store of a [Runner].
type WorkStore interface {
	WorkRows

	// WriteItems writes the results of pending items and updates the counts; the last item ends the batch.
	WriteItems(ctx context.Context, id string, items []Item, at time.Time) error
	// SetWaitReason writes the reason why the batch waits, until the next item has a result, and returns it as stored:
	// with marks in place of sensitive values. runID is the run that the reason concerns; empty: no run.
	SetWaitReason(ctx context.Context, id, runID, why string) (kept string, err error)
}

// WorkRows is the part of a [WorkStore] to which no values of runs are written.
type WorkRows interface {
	// ActiveBatches returns the oldest batches of all projects that have neither ended nor are paused.
	ActiveBatches(ctx context.Context, limit int) ([]Batch, error)
	// SelectMore records up to page more runs, and reports whether there may be more.
	SelectMore(ctx context.Context, id string, page int) (more bool, err error)
	// ClaimItems returns up to limit pending items with numbers above after, and marks them as begun. It returns false
	// when the batch is paused or has ended.
	ClaimItems(ctx context.Context, id string, after int64, limit int) ([]Item, bool, error)
	// CountNotTaken returns how many of these runs no worker has picked up: they are being started in Temporal, or wait
	// there for a worker.
	CountNotTaken(ctx context.Context, runIDs []string) (int64, error)
	// Exclusive runs fn unless another caller, in any process, runs work of that name.
	Exclusive(ctx context.Context, name string, fn func(context.Context) error) (ran bool, err error)
}
