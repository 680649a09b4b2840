package interp

import (
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp/internal/gather"
)

// ear is the state of a listen task. It is there from the moment at which the listener is asked for until the task ends.
type ear struct {
	listener string
	open     bool  // the listener is committed
	mark     int64 // the highest position that was delivered
	queue    []map[string]any

	main  *gather.Set
	until *gather.Set // nil unless it is a strategy
	// keys are the correlation keys of the events consumed so far: the first to bring one fixes it.
	keys    map[string]any
	count   int   // of consumed events, those of until left out
	outputs []any // nil where nobody will ever see them
}

// startListen asks for the listener, with everything evaluated that depends on the run.
func (m *Machine) startListen(f *frame, b *dsl.Listen) {
	e := &ear{listener: EntryKey(m.start.RunID, f.path), keys: map[string]any{}}
	var main, until gather.State
	var problem *dsl.Error
	if main.Expect, problem = m.expectations(f, b.To.Filters); problem == nil && b.To.UntilEvents != nil {
		until.Expect, problem = m.expectations(f, b.To.UntilEvents.Filters)
	}
	if problem != nil {
		m.fail(f, problem)
		return
	}
	e.tune(m.consumption(b), main, until)
	spec, err := gather.Spec(e.main, e.until)
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
func (e *ear) tune(to dsl.Consumption, main, until gather.State) {
	e.main = gather.New(to, main)
	if to.UntilEvents != nil {
		e.until = gather.New(*to.UntilEvents, until)
	}
}

// consumption is what a task listens to. In runs before BoundedSince no text of a filter is a pattern.
func (m *Machine) consumption(b *dsl.Listen) dsl.Consumption {
	if m.bounded() {
		return b.To
	}
	return b.To.Literally()
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
	case m.takes(e, e.until, event):
		if e.until.Enough() {
			m.heard(f)
			return
		}
	case m.takes(e, e.main, event):
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

func (m *Machine) takes(e *ear, s *gather.Set, event map[string]any) bool {
	taken, fuel := s.Takes(event, e.keys, m.prices())
	m.spend(fuel)
	return taken
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
	done := e.main.Enough() && to.UntilEvents == nil
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
