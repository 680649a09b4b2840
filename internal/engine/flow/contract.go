package flow

import (
	"context"
	"encoding/json"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/httpmessage"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/redact"
)

// Documents provides the documents that runs are pinned to.
type Documents interface {
	// Document returns the document with this hash (dsl.Document.Hash). It is called inside a workflow task, so it must
	// return well within a second, from a cache or one quick read. An error returns the workflow task to Temporal,
	// which retries it. It never fails a run.
	Document(ctx context.Context, hash string) (*dsl.Document, error)
}

// Sink receives the records of runs in the process that creates them.
type Sink interface {
	// Records is called in a workflow task with the changes. It must not block. Replays call it again with the same
	// records at the same positions, so it must ignore a position at or below a stored one. Positions increase within a
	// run. The records of a workflow task are valid only after Temporal has accepted that task. run is nil if it did
	// not change. logs are those of programs that have ended. sensitive holds all texts that have occurred at sensitive
	// places so far. It only grows, and must not be modified.
	Records(e Execution, position int64, run *interp.RunRecord, steps []interp.StepRecord, logs []ProgramLog,
		sensitive []string)
}

// ListeningSink is a [Sink] that also reads what a run listens for.
type ListeningSink interface {
	Sink
	// Listening is called when the interpretation begins. listeners returns the committed listeners of the run at the time
	// of the call, which must not overlap with the interpretation.
	Listening(listeners func() ([]ListenRequest, error))
}

// Turns divides the processors of a process among projects. It decides when a run computes, never its results.
type Turns interface {
	// Enter returns a turn, or a place among those that wait for one, behind work that has waited since before the given
	// time.
	Enter(project string, since time.Time) Place
}

// Place is a turn, or a place among those that wait for one.
type Place interface {
	// Wait waits for the turn for at most the given time, and reports whether it came.
	Wait(wait time.Duration) bool
	// Leave ends the turn, or gives up the place.
	Leave()
}

// Execution is one Temporal execution of a run.
type Execution struct {
	WorkflowID string // the run's ID
	RunID      string // Temporal's run ID; changes with continue-as-new
}

// Position orders records within a run: by the execution's index in the chain of continue-as-new, then by the length of
// its history at the start of the workflow task.
func Position(chain, historyLength int) int64 {
	return int64(chain)<<32 | int64(historyLength)
}

// Input is the argument of the workflow. The starter of a run sets every field except Chain and Snapshot.
type Input struct {
	RunID        string          `json:"runId"`
	Project      string          `json:"project"`
	Workflow     string          `json:"workflow"` // namespace/name
	Version      string          `json:"version"`
	DocumentHash string          `json:"documentHash"`
	Input        json.RawMessage `json:"input,omitempty"` // absent in a continued execution: the snapshot carries it
	// Interpreter is the version of the interpreter with which the run was started (interp.Version). A worker that does
	// not support it returns the task to Temporal.
	Interpreter int `json:"interpreter"`
	// StepQuota requires that QuotaActivity grants the run its steps.
	StepQuota bool `json:"stepQuota,omitempty"`
	// Granted is its first block of steps. nil: the run requests it.
	Granted *QuotaGrant `json:"granted,omitempty"`
	// MaxSteps is the number of steps that the run may enter over all executions. 0: unlimited.
	MaxSteps int64 `json:"maxSteps,omitempty"`
	// Chain counts the executions before this one.
	Chain int `json:"chain,omitempty"`
	// Snapshot is the machine's state in a continued execution.
	Snapshot []byte `json:"snapshot,omitempty"`
	// Sensitive selects the values to redact in the run beside those that its document selects.
	Sensitive redact.Inherited `json:"sensitive,omitzero"`
	// Unlisten are listeners that the preceding execution had not finished removing.
	Unlisten []string `json:"unlisten,omitempty"`
}

// Limits control the size of a run's history and its compute. They decide commands, so a change of a limit changes the
// replay of old histories: a release that changes a default must raise interp.Version.
type Limits struct {
	Machine interp.Limits
	// LocalCalls and LocalBytes bound the local activities and their results in one workflow task, LocalWidth those in
	// flight at once, LocalResult one result. Calls beyond these bounds become activities.
	LocalCalls, LocalBytes, LocalWidth int
	// LocalSpan bounds the time from the first local activity of one workflow task to the end of the last one, so that
	// their records soon reach the rows, and a lost worker repeats only the calls of that time.
	LocalSpan   time.Duration
	LocalResult int64
	// BarrierFuel bounds the compute of one workflow task.
	BarrierFuel int64
	// RecordBytes bounds the records of one workflow task, which stay in memory until Temporal accepts it. 0:
	// unlimited.
	RecordBytes int
	// LocalTimeout bounds a call as a local activity. A call that is not done by then is handed over to an activity.
	LocalTimeout time.Duration
	// LocalRoom bounds the results of one workflow task, including those that calls in flight may add to it. 0: only
	// LocalResult bounds each.
	LocalRoom int64
	// CallTimeout bounds a call of a task without its own timeout, CallResult the response of any call.
	CallTimeout time.Duration
	CallResult  int64
	// ProgramTimeout bounds a program or a Go function of a task without its own timeout, ProgramBytes a program with its
	// input, and the input of a function, as JSON.
	ProgramTimeout time.Duration
	ProgramBytes   int
	// Heartbeat is the time after which a lost worker is detected, CallTries the number of workers that may try a call
	// before it fails.
	Heartbeat time.Duration
	CallTries int32
	// SoftEvents is the number of own events from which a run continues as new at the next moment without a call in
	// flight. HardEvents is the number from which it starts no new calls until then.
	SoftEvents, HardEvents int
	// ExecutionFuel bounds the compute of one execution, so that its whole history replays within one workflow task.
	ExecutionFuel int64
	// SnapshotBytes is the largest state that can be carried over. A run with a larger state continues in its execution
	// up to LastEvents own events, and then fails.
	SnapshotBytes, LastEvents int
	// ValueBytes is the largest value, as JSON, that a run sends or receives. TaskBytes bounds the data that is sent in
	// one workflow task, and YieldBytes the data that is encoded before the workflow yields to the scheduler.
	ValueBytes, TaskBytes, YieldBytes int
}

// HeartbeatsWithin is the time for which a worker may delay heartbeats of an activity. Temporal reports a cancellation
// in its response to a heartbeat.
const HeartbeatsWithin = time.Second

// DefaultLimits are the limits of interp.Version.
func DefaultLimits() Limits {
	return Limits{
		Machine:        interp.DefaultLimits(),
		LocalCalls:     400,
		LocalBytes:     1 << 20,
		LocalWidth:     200,
		LocalSpan:      700 * time.Millisecond,
		LocalResult:    64 << 10,
		LocalRoom:      3 << 20,
		LocalTimeout:   time.Second,
		BarrierFuel:    5_000_000,
		RecordBytes:    4 << 20,
		CallTimeout:    httpmessage.Timeout,
		CallResult:     1 << 20,
		Heartbeat:      10 * time.Second,
		ProgramTimeout: 10 * time.Minute,
		ProgramBytes:   768 << 10,
		CallTries:      3,
		SoftEvents:     8_000,
		HardEvents:     10_000,
		ExecutionFuel:  30_000_000,
		SnapshotBytes:  12 << 20, // a third more in base64
		LastEvents:     40_000,
		ValueBytes:     interp.MaxValueBytes,
		TaskBytes:      64 << 20,
		YieldBytes:     4 << 20,
	}
}

// of returns the limits of a run.
func (l Limits) of(in Input) Limits {
	l.Machine.Steps = in.MaxSteps
	return l
}
