// Package batch does one thing to many runs, as a durable job: cancel, terminate or replay, by the runs' IDs or by a filter.
//
//	s := batch.NewService(store, workflows, runner.Wake, time.Now)
//	b, created, err := s.Start(ctx, batch.StartRequest{Project: "default", Action: batch.Replay, RunIDs: ids, Reason: "fixed"})
//	r := batch.NewRunner(store, controls, time.Now)
//	err = r.Start(ctx)
//
// [Service.Start] takes down which runs are meant, and [Runner] works through them: in one process of all, at the batch's rate, a
// few at a time. What became of each run is kept with the counts in one transaction. A process that dies leaves at most what it
// had in its hands undecided; that is done again by whoever comes next, and does nothing twice: a replay has a request ID
// of its own, and who was canceled or terminated stays so.
//
// While Temporal is away a batch waits and says why. It decides nothing about runs: that is for [run.Service], which refuses
// what cannot be done to a run.
package batch

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// Action is what is done to each run.
type Action string

// The actions.
const (
	Cancel    Action = "cancel"
	Terminate Action = "terminate"
	Replay    Action = "replay"
)

// Actions returns all of them.
func Actions() []Action { return []Action{Cancel, Terminate, Replay} }

// Latest is the version of replays with the newest published one.
const Latest = "latest"

// Status is where a batch is in its life.
type Status string

// The statuses of a batch.
const (
	// Selecting: the runs are still being taken down. Nothing is done to any before all are.
	Selecting Status = "selecting"
	Running   Status = "running"
	Paused    Status = "paused"
	Completed Status = "completed"
)

// ItemStatus is what became of one run of a batch.
type ItemStatus string

// The statuses of an item.
const (
	Pending   ItemStatus = "pending"
	Succeeded ItemStatus = "succeeded"
	// Refused: the run was in no state for it, or there is no such run. Trying again would be the same.
	Refused ItemStatus = "refused"
	Failed  ItemStatus = "failed"
)

// ItemStatuses returns all of them.
func ItemStatuses() []ItemStatus { return []ItemStatus{Pending, Succeeded, Refused, Failed} }

// Bounds of a batch.
const (
	// MaxIDs is how many runs can be named.
	MaxIDs = 10_000
	// Page is how many runs a filter takes down in the transaction of the call; what is beyond follows in pages of the same size.
	Page = 10_000
	// DefaultRate, MinRate and MaxRate are in items per second.
	DefaultRate = 50.0
	MinRate     = 0.1
	MaxRate     = 500.0
)

// Filter selects runs as a list of runs does. Zero fields match everything.
type Filter struct {
	Statuses []run.Status `json:"statuses,omitempty"`
	// Workflow is "namespace/name".
	Workflow string `json:"workflow,omitempty"`
	Version  string `json:"version,omitempty"`
	// Since is inclusive, Until exclusive, both on the time of creation.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Problems are codes of runs that are stuck, or [run.AnyProblem]; Trigger is what started them.
	Problems []string `json:"problems,omitempty"`
	Trigger  string   `json:"trigger,omitempty"`
	// NotReplayed leaves out runs of which there was a replay when the batch came to them.
	NotReplayed bool `json:"notReplayed,omitempty"`
}

// Runs is the filter as the store of runs takes it: those of a project that were there at a moment, the oldest first.
func (f Filter) Runs(project string, at time.Time) run.Filter {
	until := f.Until
	if until.IsZero() || until.After(at) {
		until = at
	}
	return run.Filter{
		Project: project, Statuses: f.Statuses, Workflow: f.Workflow, Version: f.Version, Since: f.Since, Until: until, Problems: f.Problems,
		Trigger: f.Trigger, NotReplayed: f.NotReplayed, OldestFirst: true,
	}
}

// Batch is one action on many runs.
type Batch struct {
	ID      string
	Project string
	Action  Action
	Status  Status
	Reason  string
	// Rate is in items per second.
	Rate float64
	// Version is what is replayed: empty for each run's own, "latest" for the newest one.
	Version string
	// Total counts the runs that are meant, as far as they are taken down; the others count its items by status.
	Total, Succeeded, Refused, Failed int64
	// Waiting is why nothing moves at present; empty while something does.
	Waiting string
	// Actor is who began it, and who does what it does.
	Actor     auth.Actor
	RequestID string
	// Fingerprint tells the request apart from others with the same request ID.
	Fingerprint string
	CreatedAt   time.Time
	// EndedAt is zero while there is something to do.
	EndedAt time.Time
	// Filter is nil where the runs were named.
	Filter *Filter
}

// Pending is how many items are still to be done.
func (b Batch) Pending() int64 { return b.Total - b.Succeeded - b.Refused - b.Failed }

// Item is one run of a batch.
type Item struct {
	// Number is its place in the batch, from 1.
	Number int64
	RunID  string
	Status ItemStatus
	// Error is why it was refused or failed.
	Error string
	// NewRunID is the run that a replay made.
	NewRunID string
	EndedAt  time.Time
	// Begun tells that somebody has begun with it before, who may have done it without telling.
	Begun bool
}

// ListFilter says which batches to list.
type ListFilter struct {
	Project string
	// Before is the ID to go on from, newest first; empty for the newest.
	Before string
	Limit  int
}

// ItemFilter says which items of a batch to list.
type ItemFilter struct {
	Project string
	Batch   string
	// Status is empty for all.
	Status ItemStatus
	// After is the number to go on from.
	After int64
	Limit int
}

// Store keeps batches. Missing ones are [fault.NotFound] with [fault.BatchNotFound].
type Store interface {
	// StartBatch adds a batch with the runs that are meant: ids, each once, or else those that its filter selects, up to page of
	// them; where there may be more, it is still selecting.
	// When the project has a batch with the same request ID, it returns that one and false, and changes nothing.
	StartBatch(ctx context.Context, b Batch, ids []string, page int, e audit.Entry) (Batch, bool, error)
	// CountRuns returns how many runs a batch would mean: those of the IDs that there are, or of the filter.
	CountRuns(ctx context.Context, b Batch, ids []string) (int64, error)
	GetBatch(ctx context.Context, project, id string) (Batch, error)
	// ListBatches returns batches, newest first.
	ListBatches(ctx context.Context, f ListFilter) ([]Batch, error)
	// ListBatchItems returns items in order of their numbers.
	ListBatchItems(ctx context.Context, f ItemFilter) ([]Item, error)
	// PauseBatch stops one that has not ended, or lets it go on; e is written when that changed anything.
	PauseBatch(ctx context.Context, project, id string, paused bool, e audit.Entry) (Batch, error)
	// RetryBatch makes the failed items of a batch pending, and writes e when there were any.
	RetryBatch(ctx context.Context, project, id string, e audit.Entry) (Batch, error)
}

// WorkStore is what a [Runner] asks of a store.
type WorkStore interface {
	WorkRows

	// SettleItems writes what became of items that are pending, and counts it; the last one ends the batch.
	SettleItems(ctx context.Context, id string, items []Item, at time.Time) error
	// NoteWaiting keeps why the batch waits, until the next item is settled, and returns it as it is kept: with marks in place of sensitive
	// values. runID is the run to which that happened; empty: to none.
	NoteWaiting(ctx context.Context, id, runID, why string) (kept string, err error)
}

// WorkRows is the part of a [WorkStore] to which no values of runs are written.
type WorkRows interface {
	// ActiveBatches returns the oldest batches of all projects that have neither ended nor are paused.
	ActiveBatches(ctx context.Context, limit int) ([]Batch, error)
	// SelectMore takes up to page more runs down, and tells whether there may be more.
	SelectMore(ctx context.Context, id string, page int) (more bool, err error)
	// ClaimItems returns up to limit pending items with numbers above after, and marks them as begun. It returns false
	// when the batch has been paused or has ended.
	ClaimItems(ctx context.Context, id string, after int64, limit int) ([]Item, bool, error)
	// CloseBatch ends an open batch that has no pending item, although not all that were taken down are counted: those are gone,
	// and count as failed. It returns how many, and changes nothing where an item is pending.
	CloseBatch(ctx context.Context, id string, at time.Time) (gone int64, err error)
	// Exclusive runs fn unless somebody else, in any process, runs work of that name.
	Exclusive(ctx context.Context, name string, fn func(context.Context) error) (ran bool, err error)
}
