package interp

import (
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
)

// EffectID identifies an effect within a run, across all its snapshots.
type EffectID int64

// Effect is a request to the driver: StartTimer, CancelTimer, Call, CancelCall, Listen, Unlisten, Emit, RequestSteps,
// StartChild, CancelChild, RunProgram or CallGo.
type Effect interface{ effect() }

// StartTimer requests a Fire at Deadline or soon after. The deadline may have passed already.
type StartTimer struct {
	ID       EffectID
	Deadline time.Time
}

// CancelTimer reports that a timer is not needed any more.
type CancelTimer struct{ ID EffectID }

// Call requests a call and a Complete with its result.
type Call struct {
	ID         EffectID
	StepNumber int64
	Attempt    int
	// Deadline is the time at which the task's own timeout ends the call; zero: it has none.
	Deadline time.Time
	// Key identifies the call to its receiver: the same key means the same logical call. Attempts of a try keep it as
	// long as the response to the previous one is unknown, so that a receiver can detect a repetition; an attempt after
	// a response is a new call.
	Key string
	// Once: the call is sent at most once, whatever happens to its result.
	Once bool
	HTTP *HTTPRequest
}

// CancelCall reports that the result of a call, of an Emit, of a RequestSteps, of a RunProgram or of a CallGo is not
// needed any more.
type CancelCall struct{ ID EffectID }

// Listen requests a listener, and a Complete once it is committed: from then on every event that matches Spec must be
// passed to Deliver, in the order of acceptance. Events may be delivered before that. Until it is committed it counts
// as a call in flight.
type Listen struct {
	ID         EffectID
	StepNumber int64
	// Listener identifies the listener: each entry into a task has another one.
	Listener string
	Spec     eventfilter.Spec
	// FromStart: events that were accepted since the run's start are delivered first, in their order, except those in
	// Taken and those that earlier effects had there. Single: one event ends the task, so that the first of them suffices.
	FromStart, Single bool
	// Taken are the positions of the events that the run has consumed, since the last Listen that is complete. After is a
	// position up to which events count as consumed: more were consumed than Taken can contain.
	Taken []int64
	After int64
}

// Unlisten reports that a listener is not needed any more. Its Listen may still be in flight: then the listener must be
// removed once it is committed, and no Complete is expected.
type Unlisten struct{ Listener string }

// Emit requests the publication of an event, and a Complete with an empty result.
type Emit struct {
	ID         EffectID
	StepNumber int64
	Attempt    int
	// Key is as in Call: publishing the event again under the same key is a repetition.
	Key string
	// Event is the complete event in its CloudEvents JSON form.
	Event map[string]any
}

func (StartTimer) effect()  {}
func (CancelTimer) effect() {}
func (Call) effect()        {}
func (CancelCall) effect()  {}
func (Listen) effect()      {}
func (Unlisten) effect()    {}
func (Emit) effect()        {}

// HTTPRequest is a `call: http` with all expressions evaluated.
type HTTPRequest struct {
	Method  string // upper case
	URL     string
	Headers map[string]string
	Query   map[string]string
	// Body is a plain JSON value; HasBody distinguishes a null body from no body.
	Body     any
	HasBody  bool
	Output   dsl.HTTPOutput
	Redirect bool
	// Authentication is nil if there is none.
	Authentication *Authentication
	// Secrets maps the placeholders in all of the above to the secrets they stand for. No other text in the request
	// equals a placeholder, whatever data the request contains.
	Secrets map[string]dsl.Secret
}

// Authentication defines how a call authenticates: by Properties, or by those in the secret named Secret.
type Authentication struct {
	Scheme     dsl.AuthScheme
	Secret     string
	Properties any
}

// Result is the result of a call: Value, the task's raw output as a plain JSON value, or Error. The value of a program
// is a [ProgramResult].
type Result struct {
	Value any
	// Error is the standard error to raise; the machine sets its Instance.
	Error *dsl.Error
	// Unanswered reports that a call failed and that it is unknown whether the receiver acted.
	Unanswered bool
	// Attempts are the requests that were sent for a call, in order. If there are none, the machine records one attempt
	// from the effect to its result.
	Attempts []Attempt
}

// Attempt is one request that was sent, including its redirects.
type Attempt struct {
	// StartedAt may be zero if it is unknown.
	StartedAt time.Time `json:"startedAt"`
	EndedAt   time.Time `json:"endedAt"`
	// Status is the HTTP status of the response; 0: there was none.
	Status int `json:"status,omitempty"`
	// Unknown: the attempt's result was lost.
	Unknown bool `json:"unknown,omitempty"`
	// RetryAfter is the least delay before the next request that the response asks for, limited by the caller of the
	// service; 0: it asks for none.
	RetryAfter time.Duration `json:"retryAfter,omitempty"`
}

// alarmKind defines the action when a deadline passes.
type alarmKind string

const (
	alarmTimeout alarmKind = "timeout" // of a task, or of the run if there is no frame
	alarmAttempt alarmKind = "attempt" // of one attempt of a try
	alarmWait    alarmKind = "wait"    // the end of a wait task
	alarmRetry   alarmKind = "retry"   // the next attempt of a try
	alarmQuota   alarmKind = "quota"   // the next request for steps after a refusal
)

// alarm is one open deadline. It becomes a timer only if the machine blocks while it is open: a deadline that passes at
// once has no effect.
type alarm struct {
	ID    EffectID
	Kind  alarmKind
	At    time.Time
	frame *frame
	armed bool
}

func (m *Machine) newID() int64 {
	m.lastID++
	return m.lastID
}

// setAlarm opens a deadline after d from now.
func (m *Machine) setAlarm(f *frame, kind alarmKind, d time.Duration) *alarm {
	a := &alarm{ID: EffectID(m.newID()), Kind: kind, At: addTime(m.now, d), frame: f}
	m.alarms = append(m.alarms, a)
	if f != nil {
		f.alarms = append(f.alarms, a)
	}
	return a
}

// dropAlarm closes a deadline. Deadlines mostly close in the reverse order of opening, so the search runs backwards.
func (m *Machine) dropAlarm(a *alarm) {
	m.alarms = without(m.alarms, a)
	if a.frame != nil {
		a.frame.alarms = without(a.frame.alarms, a)
	}
	if a.armed {
		m.effects = append(m.effects, CancelTimer{ID: a.ID})
	}
}

func without(list []*alarm, a *alarm) []*alarm {
	for i, b := range slices.Backward(list) {
		if b == a {
			return slices.Delete(list, i, i+1)
		}
	}
	return list
}

// startTimers starts a timer for every deadline that has none.
func (m *Machine) startTimers() {
	for _, a := range m.alarms {
		if !a.armed {
			a.armed = true
			m.effects = append(m.effects, StartTimer{ID: a.ID, Deadline: a.At})
		}
	}
}

// fireDue fires the deadlines that have passed, by time, then by age.
func (m *Machine) fireDue() {
	for m.outcome == nil {
		var due *alarm
		for _, a := range m.alarms {
			if !a.At.After(m.now) && (due == nil || a.At.Before(due.At)) {
				due = a
			}
		}
		if due == nil {
			return
		}
		if m.spent >= m.limits.AdvanceFuel {
			return // the next Advance continues
		}
		m.fireAlarm(due)
	}
}

// fireAlarm runs the action of a deadline.
func (m *Machine) fireAlarm(a *alarm) {
	if m.outcome != nil {
		return
	}
	m.newTurn()
	f := a.frame
	m.dropAlarm(a)
	switch a.Kind {
	case alarmWait:
		m.finish(f, f.input, f.task.Then)
	case alarmRetry:
		f.step.resume()
		m.recorder.markDirty(f.step)
		m.enqueue(f)
	case alarmAttempt:
		m.attemptTimedOut(f)
	case alarmQuota:
		m.gate.refused = false
	case alarmTimeout:
		if f == nil {
			runError := timeoutError("/timeout", "the run did not end within its timeout")
			m.end(Outcome{Status: StatusTimedOut, Error: &runError})
			return
		}
		m.propagate(f, raised{runError: timeoutError(f.task.Pointer, "the task did not end within its timeout")})
	}
}

// noteDeadline sets the deadline in the record of a task, if an expression gave the length of one of the timeouts that
// apply to the task.
func (m *Machine) noteDeadline(f *frame) {
	var first *alarm
	by, computed := "", false
	note := func(a *alarm, length *dsl.Duration, pointer string) {
		if first == nil || a.At.Before(first.At) {
			first, by = a, pointer
		}
		_, fixed := length.Fixed()
		computed = computed || !fixed
	}
	for around := f; around != nil; around = around.parent {
		for _, a := range around.alarms {
			switch {
			case a.Kind == alarmTimeout:
				note(a, around.task.Timeout.After, around.task.Pointer)
			case a.Kind == alarmAttempt && around != f:
				note(a, around.task.Body.(*dsl.Try).Catch.Retry.Limit.Attempt.Duration, around.task.Pointer)
			}
		}
	}
	if m.doc.Timeout != nil {
		i := slices.IndexFunc(m.alarms, func(a *alarm) bool { return a.frame == nil && a.Kind == alarmTimeout })
		if i >= 0 {
			note(m.alarms[i], m.doc.Timeout.After, "/timeout")
		}
	}
	if computed {
		f.step.deadline, f.step.deadlineBy = first.At, by
	}
}

// addTime adds without overflow: a deadline beyond the range of time.Time is the maximum time.
func addTime(t time.Time, d time.Duration) time.Time {
	const century = 100 * 365 * 24 * time.Hour
	return t.Add(min(max(d, 0), century))
}
