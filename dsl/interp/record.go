package interp

import (
	"encoding/json"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp/internal/payload"
)

// Status of a step or a run, as operators see it.
type Status string

// Statuses. Steps use running, waiting, completed, failed, skipped and canceled; runs use running, waiting, completed,
// failed, canceled and timed_out.
const (
	StatusRunning   Status = "running"
	StatusWaiting   Status = "waiting"
	StatusCompleted Status = "completed"
	StatusFailed    Status = "failed"
	StatusSkipped   Status = "skipped"
	StatusCanceled  Status = "canceled"
	StatusTimedOut  Status = "timed_out"
)

// Kinds of waiting. Only a run as a whole waits for the last two.
const (
	WaitTimer  = "timer"  // a wait task
	WaitRetry  = "retry"  // the delay before the next attempt of a try task
	WaitEvent  = "event"  // a listen task
	WaitChild  = "child"  // a run task whose run goes on
	WaitPaused = "paused" // for Unpause
	WaitQuota  = "quota"  // for a Grant of steps
)

// MaxRecordedPayload is the size in bytes of JSON up to which a step's input or output is recorded in full. A larger
// one is recorded as a JSON string that holds the beginning of it, and named in StepRecord.Truncated.
const MaxRecordedPayload = 16 << 10

// maxAttempts is how many attempts a step's record keeps: the latest ones.
const maxAttempts = 50

// StepRecord is the state of one step: one entry into one task. A later record of the same Number replaces an earlier
// one. Records are a pure function of the run's history: interpreting it again gives the same records.
type StepRecord struct {
	// Number is the order of entry in the run, from 1. It identifies the step.
	Number int64 `json:"number"`
	// Path is where the step is in the run: the task's pointer with `for/<index>` between a loop and its body,
	// `retry/<n>` between a try task and its body from the second attempt on, and `#<n>` after the name of a task
	// entered for the n-th time by a jump back: /do/0/loop/for/3/do/1/ship, /do/0/poll/retry/2/try/0/get, /do/0/again#2.
	Path string `json:"path"`
	// Pointer is the JSON pointer of the task in the document: /do/0/loop/do/1/ship.
	Pointer string `json:"pointer"`
	Task    string `json:"task"`
	Kind    string `json:"kind"`
	Status  Status `json:"status"`
	// WaitKind is set while Status is waiting, WaitUntil where it is known for how long.
	WaitKind  string     `json:"waitKind,omitempty"`
	WaitUntil *time.Time `json:"waitUntil,omitempty"`
	// Attempt counts the tries of a try task, from 1; for any other task it is the attempt of the nearest try around it.
	Attempt   int             `json:"attempt"`
	StartedAt time.Time       `json:"startedAt"`
	EndedAt   *time.Time      `json:"endedAt,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	Output    json.RawMessage `json:"output,omitempty"`
	// Truncated names the payloads ("input", "output") that were over MaxRecordedPayload.
	Truncated []string   `json:"truncated,omitempty"`
	Error     *dsl.Error `json:"error,omitempty"`
	// InputShown and OutputShown are what may be shown in place of truncated payloads, where that is less than they hold. Whoever runs
	// the machine sets them.
	InputShown  json.RawMessage `json:"-"`
	OutputShown json.RawMessage `json:"-"`
	// Attempts are the real tries of a call or a try task, the latest 50.
	Attempts []AttemptRecord `json:"attempts,omitempty"`
	// Kept marks a step whose record stays when the step is not among the last ones any more (see Summary): it has failed, or it was
	// open at that time.
	Kept bool `json:"kept,omitempty"`

	wholeInput, wholeOutput any
}

// Whole returns the payloads that are truncated in the record, as they are; nil for those that are not. They are not to be changed.
func (r *StepRecord) Whole() (input, output any) { return r.wholeInput, r.wholeOutput }

// Preview is how a payload is recorded that is over MaxRecordedPayload.
func Preview(v any) json.RawMessage { return payload.Beginning(v) }

// AttemptRecord is one real try.
type AttemptRecord struct {
	Number    int        `json:"number"`
	StartedAt time.Time  `json:"startedAt"`
	EndedAt   *time.Time `json:"endedAt,omitempty"`
	Error     *dsl.Error `json:"error,omitempty"`
	// Outcome is how one request of a call ended: answered, failed or unknown. It is empty while the attempt goes on, for tasks
	// other than calls, and in runs older than BoundedSince.
	Outcome string `json:"outcome,omitempty"`
	// HTTPStatus is the status of the answer; 0 where there is none.
	HTTPStatus int `json:"httpStatus,omitempty"`
}

// Values of AttemptRecord.Outcome.
const (
	OutcomeAnswered = "answered" // the receiver answered, whatever the status
	OutcomeFailed   = "failed"   // no complete answer, or nothing could be sent
	OutcomeUnknown  = "unknown"  // the result was lost: the request may have been sent, and the receiver may have acted
)

// RunRecord is the state of the run. Its status changes at workflow level only: a failing step inside a try never shows
// here. A run is waiting when every open branch waits.
type RunRecord struct {
	Status   Status `json:"status"`
	WaitKind string `json:"waitKind,omitempty"`
	// Since is when Status (with WaitKind) began.
	Since time.Time `json:"since"`
	// WaitUntil is the earliest moment at which a waiting run goes on by itself; nil when it waits for events only.
	WaitUntil *time.Time `json:"waitUntil,omitempty"`
	// Output is the whole output of a completed run.
	Output json.RawMessage `json:"output,omitempty"`
	Error  *dsl.Error      `json:"error,omitempty"`
	// StepsTotal counts the steps entered so far, StepsDone those of them that have ended.
	StepsTotal int64 `json:"stepsTotal"`
	StepsDone  int64 `json:"stepsDone"`
	// Summary is what changed about the steps that have no records of their own; nil when nothing did.
	Summary *Summary `json:"summary,omitempty"`
}
