package interp

import (
	"fmt"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
)

// gate precedes every task: a branch that would enter its next task may have to stop there, because the run is paused
// or has used the steps that it was granted. Calls in flight and timers continue.
type gate struct {
	paused  bool
	stopped []*frame // the branches that stopped before a task, in order of arrival

	metered   bool
	granted   int64     // steps granted so far
	allowance int64     // those of them that may still be entered
	lapses    time.Time // time at which the allowance expires; zero: never
	asking    EffectID  // the RequestSteps in flight; 0: none
	refused   bool      // the last request was refused; an alarm triggers the next one
	force     bool
}

// RequestSteps requests a Grant of steps, which a metered run needs before it enters tasks. Until it is answered it
// counts as a call in flight; CancelCall cancels it.
type RequestSteps struct {
	ID EffectID
	// Granted is the number of steps that the run was granted so far, Used the number of those that it has entered.
	Granted, Used int64
	// Force reports that an operator requested it, before the time of the next regular request.
	Force bool
}

func (RequestSteps) effect() {}

// Pause prevents every branch from entering its next task, until Unpause. It has no effect on a run that is paused or
// has ended. A paused run ends with its last open task, as it has no further task to enter.
func (m *Machine) Pause(now time.Time) {
	m.tick(now)
	if m.outcome == nil {
		m.gate.paused = true
		m.noteRun()
	}
}

// Unpause resumes a paused run. It has no effect on any other.
func (m *Machine) Unpause(now time.Time) {
	m.tick(now)
	if m.gate.paused {
		m.gate.paused = false
		m.release()
	}
}

// Grant answers a RequestSteps: the number of steps that may be entered until lapses (zero: without limit). If steps is
// 0, lapses is the time of the next request. An answer to another request than the open one is ignored.
func (m *Machine) Grant(id EffectID, steps int64, lapses, now time.Time) {
	m.tick(now)
	g := &m.gate
	if id != g.asking || g.asking == 0 || m.outcome != nil {
		return
	}
	g.asking, g.force = 0, false
	if steps <= 0 {
		g.refused = true
		m.setAlarm(nil, alarmQuota, max(lapses.Sub(m.now), askAgain))
		return
	}
	g.granted += steps
	g.allowance, g.lapses = steps, lapses
	m.release()
}

// askAgain is the minimum time between a refusal and the next regular RequestSteps.
const askAgain = time.Second

// ResumeQuota requests steps again at once, if they were refused.
func (m *Machine) ResumeQuota(now time.Time) {
	m.tick(now)
	if !m.gate.refused {
		return
	}
	i := slices.IndexFunc(m.alarms, func(a *alarm) bool { return a.Kind == alarmQuota })
	m.dropAlarm(m.alarms[i])
	m.gate.refused, m.gate.force = false, true
}

// admits reports whether f may enter one more task, and counts it. If not, f runs again when the gate opens, or the run
// has ended because it has reached its limit of steps.
func (m *Machine) admits(f *frame, task *dsl.Task) bool {
	if m.exhausted(task) {
		return false
	}
	g := &m.gate
	if !g.lapses.IsZero() && !m.now.Before(g.lapses) {
		g.allowance = 0
	}
	switch {
	case !g.paused && !g.metered:
		return true
	case !g.paused && g.allowance > 0:
		g.allowance--
		return true
	}
	g.stopped = append(g.stopped, f)
	return false
}

// exhausted ends the run if it has reached its limit of steps. A try of the document cannot catch the error: a handler
// would need steps itself, and a loop around it would never end.
func (m *Machine) exhausted(task *dsl.Task) bool {
	limit := m.limits.Steps
	if limit <= 0 || m.recorder.total < limit {
		return false
	}
	runError := newError(dsl.ErrorTypeRuntime, 500, task.Pointer, fmt.Sprintf(
		"the run has entered %d steps, which is its limit (runs.max_steps, or the lower max_steps of its project)", limit))
	runError.Title = "Too many steps"
	m.end(Outcome{Status: StatusFailed, Error: &runError})
	return true
}

// release queues the frames that have stopped.
func (m *Machine) release() {
	stopped := m.gate.stopped
	m.gate.stopped = nil
	for _, f := range stopped {
		m.enqueue(f)
	}
}

// gateOpens returns the time at which steps are requested again.
func (m *Machine) gateOpens() *time.Time {
	for _, a := range m.alarms {
		if a.Kind == alarmQuota {
			at := a.At
			return &at
		}
	}
	return nil
}

// requestSteps requests steps if a branch needs some.
func (m *Machine) requestSteps() {
	g := &m.gate
	if !g.metered || g.paused || g.refused || g.asking != 0 || m.hold || !slices.ContainsFunc(g.stopped, open) {
		return
	}
	g.asking = EffectID(m.newID())
	m.effects = append(m.effects, RequestSteps{ID: g.asking, Granted: g.granted, Used: m.recorder.total, Force: g.force})
}

func open(f *frame) bool { return !f.gone }

// closeGate cancels the pending request of the gate when the run ends.
func (m *Machine) closeGate() {
	if m.gate.asking != 0 {
		m.effects = append(m.effects, CancelCall{ID: m.gate.asking})
	}
	m.gate = gate{}
}

type gateState struct {
	Paused    bool      `json:"paused,omitempty"`
	Metered   bool      `json:"metered,omitempty"`
	Granted   int64     `json:"granted,omitempty"`
	Allowance int64     `json:"allowance,omitempty"`
	Lapses    time.Time `json:"lapses,omitzero"`
	Refused   bool      `json:"refused,omitempty"`
	Force     bool      `json:"force,omitempty"`
}

// save returns the state of the gate, nil if it is the zero state. The stopped frames are in the snapshot's queue.
func (g *gate) save() *gateState {
	s := gateState{g.paused, g.metered, g.granted, g.allowance, g.lapses, g.refused, g.force}
	if s == (gateState{}) {
		return nil
	}
	return &s
}

func (s *gateState) gate() gate {
	if s == nil {
		return gate{}
	}
	return gate{
		paused: s.Paused, metered: s.Metered, granted: s.Granted, allowance: s.Allowance, lapses: s.Lapses,
		refused: s.Refused,
		force:   s.Force,
	}
}
