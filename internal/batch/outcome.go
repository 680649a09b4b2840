package batch

import (
	"context"

	"github.com/signalbox-dev/signalbox/internal/run"
)

// Outcome is how a run that a batch started ended, or that it is open.
type Outcome string

// The outcomes.
const (
	RunOpen      Outcome = "open"
	RunCompleted Outcome = "completed"
	// FailedSameCause: the run failed or timed out, in the same failure group as the run that the batch selected.
	// FailedOtherCause: it did so otherwise.
	FailedSameCause  Outcome = "failed_same_cause"
	FailedOtherCause Outcome = "failed_other_cause"
	RunCanceled      Outcome = "canceled"
	RunTerminated    Outcome = "terminated"
	// RunUnknown: the run was deleted before its end was recorded.
	RunUnknown Outcome = "unknown"
)

// AllOutcomes returns all outcomes.
func AllOutcomes() []Outcome {
	return []Outcome{RunOpen, RunCompleted, FailedSameCause, FailedOtherCause, RunCanceled, RunTerminated, RunUnknown}
}

// FailedOutcomes returns the outcomes of runs that failed.
func FailedOutcomes() []Outcome { return []Outcome{FailedSameCause, FailedOtherCause} }

// Outcomes counts runs that have ended by outcome.
type Outcomes map[Outcome]int64

// Failed is the number of runs that failed.
func (o Outcomes) Failed() (n int64) {
	for _, failed := range FailedOutcomes() {
		n += o[failed]
	}
	return n
}

// StartedRun is a run that a batch started, as its row is now.
type StartedRun struct {
	// Number is that of its item.
	Number int64
	// Status is empty if there is no row.
	Status run.Status
	// FailureGroup is that of the run, SelectedGroup that of the run that the batch selected.
	FailureGroup, SelectedGroup string
}

// Outcome returns the outcome of the run.
func (r StartedRun) Outcome() Outcome {
	switch r.Status {
	case "":
		return RunUnknown
	case run.Completed:
		return RunCompleted
	case run.Canceled:
		return RunCanceled
	case run.Terminated:
		return RunTerminated
	case run.Failed, run.TimedOut:
		if r.FailureGroup != "" && r.FailureGroup == r.SelectedGroup {
			return FailedSameCause
		}
		return FailedOtherCause
	case run.Queued, run.Running, run.Waiting:
	}
	return RunOpen
}

// Noted is what one page of [OutcomeStore.NoteOutcomes] found.
type Noted struct {
	// Ended counts the runs whose outcome was stored.
	Ended Outcomes
	// Last is the number of the last item that was read; 0 after the last page.
	Last int64
}

// OutcomeStore is the store of an [Observer].
type OutcomeStore interface {
	// OpenBatches returns batches of replays whose runs have not all ended, in order of their IDs after the given one.
	OpenBatches(ctx context.Context, after string, limit int) ([]Batch, error)
	// NoteOutcomes reads up to limit runs that the batch started and that were open, from the items after a number, and
	// stores the outcomes of those that have ended.
	NoteOutcomes(ctx context.Context, id string, after int64, limit int) (Noted, error)
	// CloseRuns stores that all runs of a batch have ended, unless one is open or the batch has more to do.
	CloseRuns(ctx context.Context, id string) error
	// Exclusive runs fn unless another caller, in any process, runs work of that name.
	Exclusive(ctx context.Context, name string, fn func(context.Context) error) (ran bool, err error)
}
