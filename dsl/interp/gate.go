package interp

import (
	"fmt"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
)

// gate stands before every task: a branch that would enter its next one may have to stop there, because the run is paused or
// has used up the steps that it was granted. Whatever is in flight goes on, and so do timers.
type gate struct {
	paused  bool
	stopped []*frame // where they would have entered a task, in the order of their arrival

	metered   bool
	granted   int64     // steps granted so far
	allowance int64     // those of them that may still be entered
	lapses    time.Time // when the allowance lapses; zero: never
	asking    EffectID  // the AskSteps in flight; 0: none
	refused   bool      // the last answer was no; an alarm asks again
	force     bool
}

// AskSteps asks for a Grant of steps, which a metered run needs before it enters tasks. While it is not answered it counts as a
// call in flight; CancelCall gives it up.
type AskSteps struct {
	ID EffectID
	// Granted counts the steps that the run was granted so far, Used those that it has entered.
	Granted, Used int64
	// Force tells that somebody has asked for it, before the time that the last refusal gave.
	Force bool
}

func (AskSteps) effect() {}

// Pause keeps every branch from entering its next task, until Unpause. A run that is paused, or has ended, is left as it is. A run
// whose last task ends meanwhile ends: there is nothing left to keep from.
func (m *Machine) Pause(now time.Time) {
	m.tick(now)
	if m.outcome == nil {
		m.gate.paused = true
		m.noteRun()
	}
}

// Unpause lets a paused run go on. Any other is left as it is.
func (m *Machine) Unpause(now time.Time) {
	m.tick(now)
	if m.gate.paused {
		m.gate.paused = false
		m.release()
	}
}

// Grant answers an AskSteps: steps that may be entered until lapses (zero: for ever), or none, and then lapses is when to ask again.
// An answer that is not waited for is ignored.
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

// askAgain is the least time between a refusal and the next AskSteps that nobody asked for.
const askAgain = time.Second

// ResumeQuota asks for steps again at once, if they were refused.
func (m *Machine) ResumeQuota(now time.Time) {
	m.tick(now)
	if !m.gate.refused {
		return
	}
	i := slices.IndexFunc(m.alarms, func(a *alarm) bool { return a.Kind == alarmQuota })
	m.dropAlarm(m.alarms[i])
	m.gate.refused, m.gate.force = false, true
}

// admits reports whether f may enter one more task, and counts it. Where it may not, f comes back when it may be otherwise, or
// the run has ended because it has entered as many steps as it may.
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

// exhausted ends the run if it has entered as many steps as it may. No try of the document sees the error: a handler would
// need steps of its own, and a loop around it would never end.
func (m *Machine) exhausted(task *dsl.Task) bool {
	limit := m.limits.Steps
	if limit <= 0 || m.book.total < limit || m.start.Interpreter < BoundedSince {
		return false
	}
	problem := newError(dsl.ErrorTypeRuntime, 500, task.Pointer, fmt.Sprintf(
		"the run has entered %d steps, which is its limit (runs.max_steps, or the lower max_steps of its project)", limit))
	problem.Title = "Too many steps"
	m.end(Outcome{Status: StatusFailed, Error: &problem})
	return true
}

// release gives those that have stopped another turn.
func (m *Machine) release() {
	stopped := m.gate.stopped
	m.gate.stopped = nil
	for _, f := range stopped {
		m.enqueue(f)
	}
}

// gateOpens is when steps are asked for again.
func (m *Machine) gateOpens() *time.Time {
	for _, a := range m.alarms {
		if a.Kind == alarmQuota {
			at := a.At
			return &at
		}
	}
	return nil
}

// ask asks for steps if a branch needs some.
func (m *Machine) ask() {
	g := &m.gate
	if !g.metered || g.paused || g.refused || g.asking != 0 || m.hold || !slices.ContainsFunc(g.stopped, open) {
		return
	}
	g.asking = EffectID(m.newID())
	m.effects = append(m.effects, AskSteps{ID: g.asking, Granted: g.granted, Used: m.book.total, Force: g.force})
}

func open(f *frame) bool { return !f.gone }

// closeGate ends the gate with the run.
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

// save gives the state of the gate, nil for that of a run that has nothing to do with it. Those that have stopped are in the
// snapshot's queue.
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
		paused: s.Paused, metered: s.Metered, granted: s.Granted, allowance: s.Allowance, lapses: s.Lapses, refused: s.Refused,
		force: s.Force,
	}
}
