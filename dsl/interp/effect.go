package interp

import (
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
)

// EffectID identifies an effect within a run, over all its snapshots.
type EffectID int64

// Effect is something to do outside: StartTimer, CancelTimer, Call, CancelCall, Listen, Unlisten, Emit, AskSteps, StartChild or
// CancelChild.
type Effect interface{ effect() }

// StartTimer asks for a Fire at Deadline or soon after. The deadline may have passed already.
type StartTimer struct {
	ID       EffectID
	Deadline time.Time
}

// CancelTimer says that a timer is not needed any more.
type CancelTimer struct{ ID EffectID }

// Call asks for a call and a Complete with its result.
type Call struct {
	ID         EffectID
	StepNumber int64
	Attempt    int
	// Deadline is when the task's own timeout ends the call; zero: it has none.
	Deadline time.Time
	// Key names the call for its receiver: the same key means the same logical call. Attempts of a try keep it as long
	// as the answer to the one before is unknown, so that a receiver can tell a repetition; an attempt after an
	// answer is a new call.
	Key string
	// Once: the call is sent at most once, whatever happens to its result.
	Once bool
	HTTP *HTTPRequest
}

// CancelCall says that the result of a call, of an Emit or of an AskSteps is not wanted any more.
type CancelCall struct{ ID EffectID }

// Listen asks for a listener, and for a Complete once it is committed: from then on every event that matches Spec is to be
// handed to Deliver, in the order of acceptance. Events may be delivered before that already. While it is not committed it
// counts as a call in flight.
type Listen struct {
	ID         EffectID
	StepNumber int64
	// Listener names it: another one for every entry into a task.
	Listener string
	Spec     eventfilter.Spec
}

// Unlisten says that a listener is not needed any more. Its Listen may still be in flight: then it is to be given up once
// that is done, and no Complete is expected.
type Unlisten struct{ Listener string }

// Emit asks for the publication of an event, and for a Complete with an empty result.
type Emit struct {
	ID         EffectID
	StepNumber int64
	Attempt    int
	// Key is what Call.Key is: publishing the event again under the same key is a repetition.
	Key string
	// Event is its CloudEvents JSON form, complete.
	Event map[string]any
}

func (StartTimer) effect()  {}
func (CancelTimer) effect() {}
func (Call) effect()        {}
func (CancelCall) effect()  {}
func (Listen) effect()      {}
func (Unlisten) effect()    {}
func (Emit) effect()        {}

// HTTPRequest is a fully mapped `call: http`.
type HTTPRequest struct {
	Method  string // upper case
	URL     string
	Headers map[string]string
	Query   map[string]string
	// Body is a plain JSON value; HasBody tells a body of null from none.
	Body     any
	HasBody  bool
	Output   dsl.HTTPOutput
	Redirect bool
	// Authentication is nil where there is none.
	Authentication *Authentication
	// Secrets are the marks in all of the above that stand for secrets, with what they stand for. No other text in the request is
	// equal to one, whatever data it is made of.
	Secrets map[string]dsl.Secret
}

// Authentication is how a call authenticates: Properties, or those in the secret of the name Secret.
type Authentication struct {
	Scheme     dsl.AuthScheme
	Secret     string
	Properties any
}

// Result is how a call went: Value, the task's raw output as a plain JSON value, or Error.
type Result struct {
	Value any
	// Error is the standard error to raise; its Instance is set by the machine.
	Error *dsl.Error
	// Unanswered tells of a failed call that it is unknown whether the receiver acted.
	Unanswered bool
	// Attempts are the requests that left the process for a call, in order. Where there are none, the machine records one
	// attempt from the effect to its result.
	Attempts []Attempt
}

// Attempt is one request that left the process, with the redirects that it led to.
type Attempt struct {
	// StartedAt may be zero where it is not known.
	StartedAt time.Time `json:"startedAt"`
	EndedAt   time.Time `json:"endedAt"`
	// Status is the HTTP status of the answer; 0: there was none.
	Status int `json:"status,omitempty"`
	// Unknown: the attempt's result was lost.
	Unknown bool `json:"unknown,omitempty"`
}

// alarmKind says what happens when a deadline passes.
type alarmKind string

const (
	alarmTimeout alarmKind = "timeout" // of a task, or of the run where there is no frame
	alarmAttempt alarmKind = "attempt" // of one attempt of a try
	alarmWait    alarmKind = "wait"    // a wait task is over
	alarmRetry   alarmKind = "retry"   // the next attempt of a try begins
	alarmQuota   alarmKind = "quota"   // steps that were refused may be granted
)

// alarm is one open deadline. It becomes a timer only when the machine blocks with it open: a deadline that is met at
// once costs no effect.
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
	a := &alarm{ID: EffectID(m.newID()), Kind: kind, At: later(m.now, d), frame: f}
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

// arm starts a timer for every deadline that has none.
func (m *Machine) arm() {
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
		if m.spent >= m.limits.AdvanceFuel && m.start.Interpreter >= BoundedSince {
			return // the next Advance goes on
		}
		m.ring(due)
	}
}

// ring lets a deadline pass.
func (m *Machine) ring(a *alarm) {
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
		m.book.mark(f.step)
		m.enqueue(f)
	case alarmAttempt:
		m.attemptTimedOut(f)
	case alarmQuota:
		m.gate.refused = false
	case alarmTimeout:
		if f == nil {
			problem := timeoutError("/timeout", "the run did not end within its timeout")
			m.end(Outcome{Status: StatusTimedOut, Error: &problem})
			return
		}
		m.fault(f, fault{problem: timeoutError(f.task.Pointer, "the task did not end within its timeout")})
	}
}

// later adds without overflow: a deadline beyond what time.Time's arithmetic holds is as good as never.
func later(t time.Time, d time.Duration) time.Time {
	const century = 100 * 365 * 24 * time.Hour
	return t.Add(min(max(d, 0), century))
}
