package flow

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/redact"
)

// Documents gives the documents runs are pinned to.
type Documents interface {
	// Document returns the document with this hash (dsl.Document.Hash). It is called inside a workflow task, so it
	// must answer well within a second, from a cache or one quick read. An error gives the workflow task back to
	// Temporal, which tries again; it never fails a run.
	Document(ctx context.Context, hash string) (*dsl.Document, error)
}

// Sink takes the records of runs as they are made, in the process that makes them.
type Sink interface {
	// Records is called in a workflow task with what changed. It must not block. Replays call it again with the same
	// records at the same positions, so a position at or below one already stored is old news. Positions grow within
	// a run; what a workflow task says counts only once Temporal has accepted that task. run is nil when it did not
	// change. sensitive are all texts that have stood at sensitive places so far; it only ever grows, and is not to be changed.
	Records(e Execution, position int64, run *interp.RunRecord, steps []interp.StepRecord, sensitive []string)
}

// Turns shares the processors of a process out among projects. It decides when a run computes, never what.
type Turns interface {
	// Acquire waits for a turn for at most that long and reports whether it was given; then Release gives it back.
	Acquire(project string, wait time.Duration) bool
	Release(project string)
}

// Execution is one Temporal execution of a run.
type Execution struct {
	WorkflowID string // the run's ID
	RunID      string // Temporal's run ID; changes with continue-as-new
}

// Position orders records within a run: the execution's place in the chain of continue-as-new, then the length of its
// history at the start of the workflow task.
func Position(chain, historyLength int) int64 {
	return int64(chain)<<32 | int64(historyLength)
}

// Input is the argument of the workflow. Who starts a run fills everything but Chain and Snapshot.
type Input struct {
	RunID        string          `json:"runId"`
	Project      string          `json:"project"`
	Workflow     string          `json:"workflow"` // namespace/name
	Version      string          `json:"version"`
	DocumentHash string          `json:"documentHash"`
	Input        json.RawMessage `json:"input,omitempty"` // absent in a continued execution: the snapshot carries it
	// Interpreter is the interpretation the run was started with (interp.Version). A worker that does not know it
	// gives the task back.
	Interpreter int `json:"interpreter"`
	// StepQuota tells that the run is granted its steps, by QuotaActivity.
	StepQuota bool `json:"stepQuota,omitempty"`
	// MaxSteps is how many steps the run may enter, over all executions; 0: no bound.
	MaxSteps int64 `json:"maxSteps,omitempty"`
	// Chain counts the executions before this one.
	Chain int `json:"chain,omitempty"`
	// Snapshot is the machine's state in a continued execution.
	Snapshot []byte `json:"snapshot,omitempty"`
	// Sensitive is what is to be hidden in the run beside what its document says.
	Sensitive redact.Inherited `json:"sensitive,omitzero"`
	// Unlisten are listeners that the execution before was about to give up.
	Unlisten []string `json:"unlisten,omitempty"`
}

// Limits shape the history a run leaves and the compute it takes. They decide commands, so changing one changes what
// old histories replay to: a release that changes a default must raise interp.Version.
type Limits struct {
	Machine interp.Limits
	// LocalCalls and LocalBytes bound the local activities and their results in one workflow task, LocalWidth those
	// in flight at once, LocalResult one result; what is over goes as an activity.
	LocalCalls, LocalBytes, LocalWidth int
	LocalResult                        int64
	// BarrierFuel bounds the compute of one workflow task.
	BarrierFuel int64
	// RecordBytes bounds the records of one workflow task, which wait in memory for Temporal to accept it; 0: no bound.
	RecordBytes int
	// LocalTimeout bounds a call made as a local activity; one that is not done by then is handed over to an activity.
	LocalTimeout time.Duration
	// LocalRoom bounds the results of one workflow task together with those that calls in flight may add to it. 0: LocalResult alone
	// bounds each.
	LocalRoom int64
	// HandOver: a call that a local activity does not finish goes on in its process, and an activity takes its result. In runs older
	// than interp.BoundedSince the activity makes the call again.
	HandOver bool
	// CallTimeout bounds a call whose task has no timeout of its own, CallResult any call's response.
	CallTimeout time.Duration
	CallResult  int64
	// Heartbeat is how soon a lost worker is noticed, CallTries how often a call is given to a worker before it fails.
	Heartbeat time.Duration
	CallTries int32
	// SoftEvents is the number of own events from which a run continues as new at the next moment without a call in
	// flight, HardEvents the number from which it starts no new calls until then.
	SoftEvents, HardEvents int
	// ExecutionFuel bounds the compute of one execution, so that its whole history replays within one workflow task.
	ExecutionFuel int64
	// SnapshotBytes is the largest state that can be carried over. A run whose state is larger goes on in place up to
	// LastEvents own events, and then fails.
	SnapshotBytes, LastEvents int
	// ValueBytes is the largest value, as JSON, that a run sends or takes. TaskBytes bounds what is sent in one workflow task, and
	// BreathBytes what is encoded before the scheduler has its turn.
	ValueBytes, TaskBytes, BreathBytes int
}

const (
	// noBound is the bound of values of runs that were started before there was one.
	noBound = math.MaxInt
	// Limits of runs of interpreters before interp.BoundedSince: what Temporal takes in one payload.
	oldSnapshotBytes = 1_900_000
)

// HeartbeatsWithin is how long a worker may hold heartbeats of an activity back. Temporal reports a cancellation with its answer to one.
const HeartbeatsWithin = time.Second

// DefaultLimits are the limits of interp.Version.
func DefaultLimits() Limits {
	return Limits{
		Machine:       interp.DefaultLimits(),
		LocalCalls:    400,
		LocalBytes:    1 << 20,
		LocalWidth:    200,
		LocalResult:   64 << 10,
		LocalRoom:     3 << 20,
		LocalTimeout:  time.Second,
		HandOver:      true,
		BarrierFuel:   5_000_000,
		RecordBytes:   4 << 20,
		CallTimeout:   60 * time.Second,
		CallResult:    1 << 20,
		Heartbeat:     10 * time.Second,
		CallTries:     3,
		SoftEvents:    8_000,
		HardEvents:    10_000,
		ExecutionFuel: 30_000_000,
		SnapshotBytes: 12 << 20, // a third more in base64
		LastEvents:    40_000,
		ValueBytes:    interp.MaxValueBytes,
		TaskBytes:     64 << 20,
		BreathBytes:   4 << 20,
	}
}

// of returns the limits of a run. Those that decide commands stay what they were when the run began: what version
// interp.BoundedSince changed is set back here for runs of older ones, unless the worker was given other limits.
func (l Limits) of(in Input) Limits {
	if in.Interpreter >= interp.BoundedSince {
		l.Machine.Steps = in.MaxSteps
		return l
	}
	l.RecordBytes = 0
	l.ValueBytes, l.SnapshotBytes = noBound, min(l.SnapshotBytes, oldSnapshotBytes)
	l.HandOver, l.LocalRoom, l.LocalWidth, l.LocalTimeout = false, 0, 20, 3*time.Second
	now := DefaultLimits()
	for _, older := range []struct {
		limit     *int64
		now, then int64
	}{
		{&l.Machine.ExpressionFuel, now.Machine.ExpressionFuel, 2_000_000},
		{&l.Machine.AdvanceFuel, now.Machine.AdvanceFuel, 2_000_000},
		{&l.BarrierFuel, now.BarrierFuel, 8_000_000},
		{&l.ExecutionFuel, now.ExecutionFuel, 40_000_000},
	} {
		if *older.limit == older.now {
			*older.limit = older.then
		}
	}
	return l
}
