package interp

import (
	"encoding/json"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp/internal/payload"
)

// Status is the status of a step or a run in its record.
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

// The values of WaitKind. Only a run as a whole waits for the last two.
const (
	WaitTimer  = "timer"  // a wait task
	WaitRetry  = "retry"  // the delay before the next attempt of a try task
	WaitEvent  = "event"  // a listen task
	WaitChild  = "child"  // a run task whose child has not ended
	WaitPaused = "paused" // for Unpause
	WaitQuota  = "quota"  // for a Grant of steps
)

// MaxRecordedPayload is the size in bytes of JSON up to which a step's input or output is recorded in full. A larger
// one is recorded shortened: as a value of the same type whose parts have the types and places of those that they show.
// Strings lose their end, arrays their last items, objects members. StepRecord has its real size.
const MaxRecordedPayload = 16 << 10

// maxAttempts is the number of attempts in a step's record: the latest ones.
const maxAttempts = 50

// StepRecord is the state of one step: one entry into one task. A later record of the same Number replaces an earlier
// one. Records are a pure function of the run's history: interpreting it again results in the same records.
type StepRecord struct {
	// Number is the order of entry in the run, from 1. It identifies the step.
	Number int64 `json:"number"`
	// Path is the position of the step in the run: the task's pointer with `for/<index>` between a loop and its body,
	// `retry/<n>` between a try task and its body from the second attempt on, and `#<n>` after the name of a task
	// entered for the n-th time by a jump back: /do/0/loop/for/3/do/1/ship, /do/0/poll/retry/2/try/0/get, /do/0/again#2.
	Path string `json:"path"`
	// Pointer is the JSON pointer of the task in the document: /do/0/loop/do/1/ship.
	Pointer string `json:"pointer"`
	Task    string `json:"task"`
	Kind    string `json:"kind"`
	Status  Status `json:"status"`
	// WaitKind is set while Status is waiting, WaitUntil if the end of the wait is known.
	WaitKind  string     `json:"waitKind,omitempty"`
	WaitUntil *time.Time `json:"waitUntil,omitempty"`
	// Deadline is when the earliest of the timeouts that apply to an open step ends it: its own, those of the tasks and
	// attempts around it, and the run's. DeadlineBy is the pointer of the task with that timeout, or /timeout. Both are
	// recorded if an expression computes the length of one of these timeouts; otherwise they follow from the document.
	Deadline   *time.Time `json:"deadline,omitempty"`
	DeadlineBy string     `json:"deadlineBy,omitempty"`
	// Taken lists, for an open listen task that requires an event for each of several filters, the filters that were
	// met, in this order.
	Taken []TakenEvent `json:"taken,omitempty"`
	// Attempt is the number of the attempt of a try task, from 1; for any other task it is that of the nearest try
	// around it.
	Attempt   int             `json:"attempt"`
	StartedAt time.Time       `json:"startedAt"`
	EndedAt   *time.Time      `json:"endedAt,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	Output    json.RawMessage `json:"output,omitempty"`
	// InputSize and OutputSize are the sizes in bytes of JSON of payloads that are shortened in the record; 0 for others.
	InputSize  int        `json:"inputSize,omitempty"`
	OutputSize int        `json:"outputSize,omitempty"`
	Error      *dsl.Error `json:"error,omitempty"`
	// InputShown and OutputShown replace the shortened payloads where they are displayed, if not all of their content
	// may be shown. The driver of the machine sets them.
	InputShown  json.RawMessage `json:"-"`
	OutputShown json.RawMessage `json:"-"`
	// Attempts are the attempts of a call or a try task, the latest 50.
	Attempts []AttemptRecord `json:"attempts,omitempty"`
	// Kept marks a step that keeps its record when the step is not among the last ones any more (see Summary): it has
	// failed, or it was open at that time.
	Kept bool `json:"kept,omitempty"`

	wholeInput, wholeOutput any
}

// FullPayloads returns the payloads that are shortened in the record in full; nil for those that are not shortened.
// They must not be changed.
func (r *StepRecord) FullPayloads() (input, output any) { return r.wholeInput, r.wholeOutput }

// TakenEvent is an event that a listen task has taken for one of its filters.
type TakenEvent struct {
	// Filter is the index of the filter among those of the task, followed by those of its until.
	Filter int `json:"filter"`
	// At is when the run took the event; zero if the snapshot from which the run continues does not contain it.
	At time.Time `json:"at,omitzero"`
}

// Shorten returns the recorded form of a payload that is over MaxRecordedPayload.
func Shorten(v any) json.RawMessage { return payload.Shorten(v) }

// Identical reports whether two payloads are the same value, without comparing the contents of arrays and objects.
func Identical(a, b any) bool { return payload.Identical(a, b) }

// AttemptRecord is one attempt.
type AttemptRecord struct {
	Number    int        `json:"number"`
	StartedAt time.Time  `json:"startedAt"`
	EndedAt   *time.Time `json:"endedAt,omitempty"`
	Error     *dsl.Error `json:"error,omitempty"`
	// Outcome is the outcome of one request of a call: answered, failed or unknown. It is empty while the attempt is
	// open, and for tasks other than calls.
	Outcome string `json:"outcome,omitempty"`
	// HTTPStatus is the status of the response; 0 if there is none.
	HTTPStatus int `json:"httpStatus,omitempty"`
	// Method and Host are those of the request of a call: its method, and the host and port of its URL. Host is empty
	// where the URL has none or a secret is part of it. Both are empty for other tasks.
	Method string `json:"method,omitempty"`
	Host   string `json:"host,omitempty"`
	// RetryAfter is the delay before the next attempt that the response asks for; 0: none.
	RetryAfter time.Duration `json:"retryAfter,omitempty"`
}

// Values of AttemptRecord.Outcome.
const (
	OutcomeAnswered = "answered" // the receiver responded, with any status
	OutcomeFailed   = "failed"   // no complete response, or nothing could be sent
	OutcomeUnknown  = "unknown"  // the result was lost: the request may have been sent, and the receiver may have acted
)

// RunRecord is the state of the run. Its status reflects the workflow level only: a failing step inside a try does not
// change it. A run is waiting when every open branch waits.
type RunRecord struct {
	Status   Status `json:"status"`
	WaitKind string `json:"waitKind,omitempty"`
	// Since is the time at which Status (with WaitKind) began.
	Since time.Time `json:"since"`
	// WaitUntil is the earliest time at which a waiting run continues by itself; nil if it waits for events only.
	WaitUntil *time.Time `json:"waitUntil,omitempty"`
	// Output is the whole output of a completed run.
	Output json.RawMessage `json:"output,omitempty"`
	Error  *dsl.Error      `json:"error,omitempty"`
	// StepsTotal counts the steps entered so far, StepsDone those of them that have ended.
	StepsTotal int64 `json:"stepsTotal"`
	StepsDone  int64 `json:"stepsDone"`
	// Summary is the changes of the steps that have no records of their own; nil if there are none.
	Summary *Summary `json:"summary,omitempty"`
}
