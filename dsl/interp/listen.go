package interp

import (
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
)

// ear is the state of a listen task. It is there from the moment at which the listener is asked for until the task ends.
type ear struct {
	listener string
	open     bool  // the listener is committed
	mark     int64 // the highest position that was delivered
	queue    []map[string]any

	main, until target
	// keys are the correlation keys of the events consumed so far: the first to bring one fixes it.
	keys    map[string]any
	count   int   // of consumed events, those of until left out
	outputs []any // nil where nobody will ever see them
}

// target is a list of filters that is to be met by one event, or each by one.
type target struct {
	mode     eventfilter.Mode
	filters  []*dsl.EventFilter
	expect   []map[string]any // what the correlation keys of each filter must be
	matchers []*eventfilter.Matcher
	met      []bool
}

// startListen asks for the listener, with everything evaluated that depends on the run.
func (m *Machine) startListen(f *frame, b *dsl.Listen) {
	e := &ear{listener: callKey(m.start.RunID, f.path), keys: map[string]any{}}
	var problem *dsl.Error
	if e.main.expect, problem = m.expectations(f, b.To.Filters); problem != nil {
		m.fail(f, problem)
		return
	}
	if u := b.To.UntilEvents; u != nil {
		if e.until.expect, problem = m.expectations(f, u.Filters); problem != nil {
			m.fail(f, problem)
			return
		}
	}
	e.tune(b)
	spec, err := e.spec()
	if problem = expressionError(err, f.task.Pointer); problem != nil {
		m.fail(f, problem)
		return
	}
	f.ear, f.call = e, EffectID(m.newID())
	m.calls[f.call] = f
	m.ears = append(m.ears, f)
	m.effects = append(m.effects, Listen{ID: f.call, StepNumber: f.step.number, Listener: e.listener, Spec: spec})
}

// expectations evaluates what the correlation keys of filters must be.
func (m *Machine) expectations(f *frame, filters []*dsl.EventFilter) ([]map[string]any, *dsl.Error) {
	out := make([]map[string]any, len(filters))
	for i, filter := range filters {
		for _, key := range filter.Correlate {
			if key.Expect == nil {
				continue
			}
			value, problem := m.template(key.Expect, f.input, m.variables(f), f.task.Pointer)
			if problem != nil {
				return nil, problem
			}
			if out[i] == nil {
				out[i] = map[string]any{}
			}
			out[i][key.Name] = value
		}
	}
	return out, nil
}

// tune makes what follows from the document and the expectations.
func (e *ear) tune(b *dsl.Listen) {
	e.main.aim(b.To)
	if b.To.UntilEvents != nil {
		e.until.aim(*b.To.UntilEvents)
	}
}

func (t *target) aim(c dsl.Consumption) {
	t.mode, t.filters = c.Mode, c.Filters
	t.matchers = make([]*eventfilter.Matcher, len(c.Filters))
	for i, filter := range c.Filters {
		t.matchers[i] = filter.Matcher(t.expect[i])
	}
	if t.met == nil {
		t.met = make([]bool, len(c.Filters))
	}
}

// spec is what the listener is to be told of: every event that may be consumed.
func (e *ear) spec() (eventfilter.Spec, error) {
	out := eventfilter.Spec{Mode: e.main.mode}
	if e.until.mode != "" {
		out.Mode = eventfilter.Any
	}
	if len(e.main.filters) == 0 || e.until.mode != "" && len(e.until.filters) == 0 {
		return out, nil // every event
	}
	for _, t := range []target{e.main, e.until} {
		for i, filter := range t.filters {
			stored, err := filter.Filter(t.expect[i])
			if err != nil {
				return out, err
			}
			out.Filters = append(out.Filters, stored)
		}
	}
	return out, nil
}

// Deliver hands an event to a listener: its CloudEvents JSON form as a plain value, which must not be changed afterwards.
// Positions grow with each event for a listener: one that is not above the last is a repetition, and ignored. So are
// events for listeners that are not there any more.
func (m *Machine) Deliver(listener string, position int64, event any, now time.Time) {
	m.tick(now)
	i := slices.IndexFunc(m.ears, func(f *frame) bool { return f.ear.listener == listener })
	object, ok := event.(map[string]any)
	if i < 0 || !ok || m.outcome != nil || position <= m.ears[i].ear.mark {
		return
	}
	f := m.ears[i]
	f.ear.mark = position
	f.ear.queue = append(f.ear.queue, object)
	m.hear(f)
}

// opened tells a listen task that its listener is committed.
func (m *Machine) opened(f *frame) {
	f.ear.open = true
	f.step.wait(WaitEvent, time.Time{})
	m.book.mark(f.step)
	m.hear(f)
}

// hear consumes the next event in the queue, unless the listener is not committed yet or an item is being worked on.
func (m *Machine) hear(f *frame) {
	f.phase = phaseBlocked
	e := f.ear
	if !e.open || len(f.kids) > 0 || len(e.queue) == 0 {
		return
	}
	event := e.queue[0]
	e.queue = e.queue[1:]
	m.spend(stepFuel)
	switch {
	case m.takes(e, &e.until, event):
		if e.until.enough() {
			m.heard(f)
			return
		}
	case m.takes(e, &e.main, event):
		m.consume(f, event)
		return
	}
	m.listenOn(f)
}

// listenOn goes on with the next event, or waits for one.
func (m *Machine) listenOn(f *frame) {
	if len(f.ear.queue) > 0 {
		f.phase = phaseHear
		m.enqueue(f)
		return
	}
	if f.step.status != StatusWaiting {
		f.step.wait(WaitEvent, time.Time{})
		m.book.mark(f.step)
	}
}

// takes tells whether an event is one that a target still wants, and notes that it has it.
func (m *Machine) takes(e *ear, t *target, event map[string]any) bool {
	if t.mode == eventfilter.Any && len(t.filters) == 0 {
		return true
	}
	for i, matcher := range t.matchers {
		if t.mode == eventfilter.All && t.met[i] {
			continue
		}
		match := matcher.Match(event)
		m.spend(match.Fuel)
		if !match.OK || !e.correlates(t.filters[i], t.expect[i], match.Keys) {
			continue
		}
		t.met[i] = true
		for _, key := range t.filters[i].Correlate {
			if _, fixed := e.keys[key.Name]; !fixed {
				e.keys[key.Name] = match.Keys[key.Name]
			}
		}
		return true
	}
	return false
}

// correlates tells whether an event's keys are those of the events before it. A key with an expectation of its own has
// been compared with that.
func (e *ear) correlates(filter *dsl.EventFilter, expect, keys map[string]any) bool {
	for _, key := range filter.Correlate {
		fixed, known := e.keys[key.Name]
		if _, expected := expect[key.Name]; known && !expected && !eventfilter.Equal(fixed, keys[key.Name]) {
			return false
		}
	}
	return true
}

// enough tells whether a target has all the events that it wants.
func (t *target) enough() bool {
	return t.mode != eventfilter.All || !slices.Contains(t.met, false)
}

// consume works on an event: as the document's foreach says, or by keeping it.
func (m *Machine) consume(f *frame, event map[string]any) {
	b := f.task.Body.(*dsl.Listen)
	item := b.Read.Read(event)
	if b.Each == nil {
		m.consumed(f, item)
		return
	}
	binds := []binding{{b.Each.Item, item}, {b.Each.At, f.ear.count}}
	if b.Each.Tasks == nil {
		m.itemDone(f, item, binds)
		return
	}
	f.step.resume()
	m.book.mark(f.step)
	m.newList(f, roleItem, b.Each.Tasks, f.input).binds = binds
}

// itemDone takes the output of one item: its mapping and its export, with the item's variables.
func (m *Machine) itemDone(f *frame, output any, binds []binding) {
	each, at := f.task.Body.(*dsl.Listen).Each, f.task.Pointer
	vars := m.variables(f)
	for _, bound := range binds {
		vars[bound.name] = bound.value
	}
	var problem *dsl.Error
	if out := each.Output; out != nil {
		if output, problem = m.template(out.As, output, vars, at); problem == nil {
			problem = m.conform(out.Schema, output, at, "an item's output")
		}
		if problem != nil {
			m.fail(f, problem)
			return
		}
	}
	if export := each.Export; export != nil {
		vars["output"] = output
		next := m.context
		if export.As != nil {
			if next, problem = m.template(export.As, output, vars, at); problem != nil {
				m.fail(f, problem)
				return
			}
		}
		if problem = m.conform(export.Schema, next, at, "the exported context"); problem != nil {
			m.fail(f, problem)
			return
		}
		m.context = next
	}
	m.consumed(f, output)
}

// consumed adds an item to the task's output and finds out whether that was the last one.
func (m *Machine) consumed(f *frame, output any) {
	e, to := f.ear, f.task.Body.(*dsl.Listen).To
	e.count++
	if !endless(to) {
		e.outputs = append(e.outputs, output)
	}
	done := e.main.enough() && to.UntilEvents == nil
	if to.Until != nil {
		var problem *dsl.Error
		if done, problem = m.holds(to.Until, e.output(), m.variables(f), f.task.Pointer); problem != nil {
			m.fail(f, problem)
			return
		}
	}
	if done {
		m.heard(f)
		return
	}
	m.listenOn(f)
}

// endless tells of a task that never completes, whose output would grow for nobody.
func endless(to dsl.Consumption) bool { return to.Until != nil && to.Until.Source == "false" }

// heard ends the task with what it consumed.
func (m *Machine) heard(f *frame) {
	m.finish(f, f.ear.output(), f.task.Then)
}

func (e *ear) output() []any {
	if e.outputs == nil {
		return []any{}
	}
	return slices.Clip(e.outputs)
}

// deafen gives up a task's listener, whether or not it is committed already.
func (m *Machine) deafen(f *frame) {
	if f.ear == nil {
		return
	}
	if f.call != 0 {
		delete(m.calls, f.call)
		f.call = 0
	}
	m.ears = slices.DeleteFunc(m.ears, func(o *frame) bool { return o == f })
	m.effects = append(m.effects, Unlisten{Listener: f.ear.listener})
	f.ear = nil
}
