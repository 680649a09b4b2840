package interp

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp/internal/payload"
)

// Start is the initial data of a run.
type Start struct {
	RunID string
	// Input is the raw input as a plain JSON value (see jq.Normalize). It must not be changed afterwards.
	Input any
	At    time.Time
	// Source is the default source of the run's events, a URI reference; empty: the document's name.
	Source string
	// RuntimeName and RuntimeVersion are the values in $runtime.
	RuntimeName, RuntimeVersion string
	// Metered defines whether the run needs a Grant for the steps that it enters.
	Metered bool
	// Granted are the steps that a metered run was granted with its start. They may be entered until Lapses.
	Granted int64
	Lapses  time.Time
	// Interpreter is the version of the interpretation that the run keeps to its end; 0 means Version.
	Interpreter int
}

// stepFuel is the cost of one turn of one frame in addition to its expressions, in the time of instructions.
const stepFuel = 60

// Outcome is the result of a run: completed with Output, failed or timed_out with Error, or canceled with Reason.
type Outcome struct {
	Status Status
	Output any
	// JSON is the output as JSON. It may be large, so it is encoded once for all its users.
	JSON   json.RawMessage
	Error  *dsl.Error
	Reason string
}

// Machine interprets one run. It is not safe for concurrent use.
type Machine struct {
	doc    *dsl.Document
	start  Start
	limits Limits

	now       time.Time
	context   any
	root      *frame
	ready     []*frame // can run now, in order
	held      []*frame // would start a call, but the machine holds
	alarms    []*alarm // open deadlines, in order of creation
	calls     map[EffectID]*frame
	taken     takenEvents
	listeners []*frame // open listen tasks
	parents   []*frame // tasks that await another run
	lastID    int64
	begun     bool
	hold      bool
	gate      gate

	spent, total int64
	turn         int64 // fuel used in this turn: one turn of one frame, or the reaction to one external event
	handling     bool  // an error was raised in this turn
	yielded      bool
	watch        func() // called while expressions are evaluated; may be nil
	onBranch     func(task *dsl.Task, branch string)
	effects      []Effect
	outcome      *Outcome

	recorder recorder
	workflow map[string]any // $workflow
	runtime  map[string]any // $runtime
}

// New returns the machine of a new run. Nothing happens before the first Advance.
func New(doc *dsl.Document, start Start, limits Limits) *Machine {
	start.At = normalizeTime(start.At)
	start.Interpreter = cmp.Or(start.Interpreter, Version)
	if start.Source == "" {
		start.Source = "/workflows/" + doc.Namespace + "/" + doc.Name
	}
	m := &Machine{doc: doc, start: start, limits: limits, now: start.At, calls: map[EffectID]*frame{}}
	m.gate.metered = start.Metered
	if start.Metered {
		m.gate.granted, m.gate.allowance, m.gate.lapses = start.Granted, start.Granted, start.Lapses
	}
	m.describe()
	m.recorder.run = RunRecord{Status: StatusRunning, Since: start.At}
	m.recorder.runDirty = true
	m.recorder.summary = newSummarizer(limits.Records)
	return m
}

// Advance runs every branch until it is blocked, the run has ended, or the budget or the limit of pending records is
// reached (Yielded), and returns the effects for the driver. now must never decrease; deadlines that have passed fire
// first.
func (m *Machine) Advance(now time.Time) []Effect {
	m.tick(now)
	m.spent, m.yielded = 0, false
	if !m.begun && m.outcome == nil {
		m.begun = true
		m.begin()
	}
	m.fireDue()
	for m.outcome == nil && len(m.ready) > 0 {
		if m.spent >= m.limits.AdvanceFuel || m.recorder.full() {
			m.yielded = true
			break
		}
		f := m.ready[0]
		m.ready = m.ready[1:]
		if !f.gone {
			f.queued = false
			m.newTurn()
			m.spend(stepFuel)
			m.runTurn(f)
		}
	}
	if m.outcome == nil && !m.yielded {
		m.requestSteps()
		m.startTimers()
	}
	m.noteRun()
	out := m.effects
	m.effects = nil
	return out
}

// Yielded reports whether the last Advance stopped for its budget or for records that must be taken: there is more to
// compute.
func (m *Machine) Yielded() bool { return m.yielded }

// Spent returns the compute used since New or Restore, in units of fuel.
func (m *Machine) Spent() int64 { return m.total }

// Done returns the outcome of the run, and whether it has ended.
func (m *Machine) Done() (Outcome, bool) {
	if m.outcome == nil {
		return Outcome{}, false
	}
	return *m.outcome, true
}

// InFlight returns the number of calls, publications, uncommitted listeners and requests for steps without a result.
// While it is 0 the machine can be snapshotted.
func (m *Machine) InFlight() int {
	if m.gate.asking != 0 {
		return len(m.calls) + 1
	}
	return len(m.calls)
}

// Listening reports whether an event, or the end of another run, may be delivered.
func (m *Machine) Listening() bool { return len(m.listeners)+len(m.parents) > 0 }

// Hold prevents new calls from starting, so that InFlight falls to 0. Only Restore ends it.
func (m *Machine) Hold() { m.hold = true }

// Fire reports that a timer's deadline has passed. A timer that is not open any more is ignored.
func (m *Machine) Fire(id EffectID, now time.Time) {
	m.tick(now)
	if i := slices.IndexFunc(m.alarms, func(a *alarm) bool { return a.ID == id }); i >= 0 {
		m.alarms[i].armed = false // the timer no longer exists
		m.fireAlarm(m.alarms[i])
	}
}

// Complete reports the result of a call, an Emit, a Listen, a StartChild, a RunProgram or a CallGo. The result of an
// effect that is not in flight any more is ignored.
func (m *Machine) Complete(id EffectID, result Result, now time.Time) {
	m.tick(now)
	f, open := m.calls[id]
	if !open || m.outcome != nil {
		return
	}
	delete(m.calls, id)
	f.call = 0
	result = truncateResult(result)
	if f.check != nil {
		m.schemaRead(f, result)
		return
	}
	if result.Error != nil {
		runError := *result.Error
		runError.Instance = f.task.Pointer
		m.endAttempts(f, result.Attempts, &runError)
		if f.child != nil {
			m.forgetChild(f)
		}
		m.propagate(f, raised{runError: runError, unanswered: result.Unanswered, retryAfter: retryAfter(result.Attempts)})
		return
	}
	if f.child != nil {
		runID, _ := result.Value.(string)
		m.childStarted(f, runID)
		return
	}
	if f.listener != nil {
		m.listenerCommitted(f)
		return
	}
	if program, is := f.task.Body.(*dsl.RunProgram); is && f.source != nil {
		m.sourceRead(f, program, result)
		return
	} else if is {
		m.programDone(f, program, result.Value)
		return
	}
	m.endAttempts(f, result.Attempts, nil)
	if f.emitted != nil {
		m.finish(f, f.emitted, f.task.Then)
		return
	}
	m.finish(f, result.Value, f.task.Then)
}

// Cancel ends the run as canceled: every open step and effect is canceled. It has no effect on a run that has ended.
func (m *Machine) Cancel(reason string, now time.Time) {
	m.tick(now)
	m.end(Outcome{Status: StatusCanceled, Reason: reason})
}

// Abort ends the run as failed for a reason outside the document. It has no effect on a run that has ended.
func (m *Machine) Abort(runError dsl.Error, now time.Time) {
	m.tick(now)
	m.end(Outcome{Status: StatusFailed, Error: &runError})
}

func (m *Machine) tick(now time.Time) {
	m.newTurn()
	if now = normalizeTime(now); now.After(m.now) {
		m.now = now
	}
}

func (m *Machine) spend(n int64) {
	m.turn += n
	m.spent += n
	m.total += n
}

// begin runs steps 1 and 2 of the data flow: the workflow's input.
func (m *Machine) begin() {
	value := m.start.Input
	if in := m.doc.Input; in != nil {
		if runError := m.conform(in.Schema, value, "/input", "the workflow's input"); runError != nil {
			m.end(Outcome{Status: StatusFailed, Error: runError})
			return
		}
		var runError *dsl.Error
		if value, runError = m.template(in.From, value, m.variables(nil), "/input"); runError != nil {
			m.end(Outcome{Status: StatusFailed, Error: runError})
			return
		}
	}
	m.context = value
	if t := m.doc.Timeout; t != nil {
		after, runError := m.duration(t.After, value, m.variables(nil), "/timeout")
		if runError != nil {
			m.end(Outcome{Status: StatusFailed, Error: runError})
			return
		}
		m.setAlarm(nil, alarmTimeout, after)
	}
	m.root = m.newList(nil, roleDo, m.doc.Do, value)
}

// conclude runs steps 10 and 11 of the data flow: the workflow's output.
func (m *Machine) conclude(value any) {
	if out := m.doc.Output; out != nil {
		var runError *dsl.Error
		if value, runError = m.template(out.As, value, m.variables(nil), "/output"); runError == nil {
			runError = m.conform(out.Schema, value, "/output", "the workflow's output")
		}
		if runError != nil {
			m.end(Outcome{Status: StatusFailed, Error: runError})
			return
		}
	}
	encoded := payload.Encode(value)
	if len(encoded) > MaxValueBytes {
		runError := TooLarge("the output of the run", len(encoded), MaxValueBytes, "/output")
		m.end(Outcome{Status: StatusFailed, Error: &runError})
		return
	}
	m.end(Outcome{Status: StatusCompleted, Output: value, JSON: encoded})
}

// end ends the run and cancels everything that is open.
func (m *Machine) end(o Outcome) {
	if m.outcome != nil {
		return
	}
	if o.Error != nil {
		runError := truncate(*o.Error)
		o.Error = &runError
	}
	m.outcome = &o
	if m.root != nil {
		m.cancelTree(m.root)
		m.root = nil
	}
	for len(m.alarms) > 0 {
		m.dropAlarm(m.alarms[0])
	}
	m.closeGate()
	m.ready, m.held, m.yielded = nil, nil, false
	m.noteRun()
}

// normalizeTime removes the parts that a snapshot would not keep: the zone and the monotonic reading.
func normalizeTime(t time.Time) time.Time { return t.Round(0).UTC() }
