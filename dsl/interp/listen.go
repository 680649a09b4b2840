package interp

import (
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
	"github.com/signalbox-dev/signalbox/dsl/interp/internal/filterset"
)

// listener is the state of a listen task. It exists from the Listen effect to the end of the task.
type listener struct {
	key          string
	open         bool  // the listener is committed
	lastPosition int64 // the highest position that was delivered
	queue        []delivered
	reports      int64 // the number of events that the run had consumed at the Listen effect

	main  *filterset.Set
	until *filterset.Set // nil unless until is a strategy
	// keys are the correlation keys of the events consumed so far: the first event with a key sets it.
	keys    map[string]any
	taken   []TakenEvent
	count   int   // of consumed events, without those of until
	outputs []any // nil if the task never completes
}

// delivered is an event in the queue of a listener.
type delivered struct {
	event    map[string]any
	position int64
}

// maxTaken is the number of consumed events that a run keeps.
const maxTaken = 2000

// takenEvents are the newest events that a run has consumed, oldest first.
type takenEvents struct {
	positions []int64
	// reported is how many of them a listener that is committed has reported.
	reported int
	// total counts all consumed events. after is the highest position of those that were dropped without a report, dropped
	// that of all that were dropped.
	total, after, dropped int64
}

// add records a consumed event. The oldest ones are dropped beyond the maximum.
func (t *takenEvents) add(position int64) {
	t.positions = append(t.positions, position)
	t.total++
	if n := len(t.positions) - maxTaken; n > 0 {
		t.dropped = max(t.dropped, slices.Max(t.positions[:n]))
		if t.reported < n {
			t.after = max(t.after, slices.Max(t.positions[t.reported:n]))
		}
		t.positions, t.reported = t.positions[n:], max(t.reported-n, 0) // append copies them when the array is full
	}
}

// unreported returns the positions that no committed listener has reported.
func (t *takenEvents) unreported() []int64 { return slices.Clone(t.positions[t.reported:]) }

// save returns the positions as differences, which are small and compress well.
func (t *takenEvents) save() []int64 {
	steps := slices.Clone(t.positions)
	for i := len(steps) - 1; i > 0; i-- {
		steps[i] -= steps[i-1]
	}
	return steps
}

// restoreTaken reverts save.
func restoreTaken(s state) takenEvents {
	steps := s.Taken
	t := takenEvents{positions: steps, reported: s.TakenReported, total: int64(len(steps)), after: s.TakenAfter,
		dropped: s.TakenDropped}
	for i := 1; i < len(steps); i++ {
		steps[i] += steps[i-1]
	}
	return t
}

// report records that the events up to a number of consumed ones are reported.
func (t *takenEvents) report(total int64) {
	first := t.total - int64(len(t.positions))
	t.reported = max(t.reported, int(total-first))
}

// startListen requests the listener, with everything evaluated that depends on the run.
func (m *Machine) startListen(f *frame, b *dsl.Listen) {
	e := &listener{key: EntryKey(m.start.RunID, f.path), keys: map[string]any{}}
	var until filterset.State
	main, runError := m.filterState(f, b.To.Filters)
	if runError == nil && b.To.UntilEvents != nil {
		until, runError = m.filterState(f, b.To.UntilEvents.Filters)
	}
	if runError != nil {
		m.fail(f, runError)
		return
	}
	e.setFilters(b.To, main, until)
	spec, err := filterset.Spec(e.main, e.until)
	if runError = expressionError(err, f.task.Pointer); runError != nil {
		m.fail(f, runError)
		return
	}
	f.listener, f.call = e, EffectID(m.newID())
	m.calls[f.call] = f
	m.listeners = append(m.listeners, f)
	e.reports = m.taken.total
	effect := m.listenEffect(f, spec)
	effect.ID, effect.Taken = f.call, m.taken.unreported()
	m.effects = append(m.effects, effect)
}

func (m *Machine) listenEffect(f *frame, spec eventfilter.Spec) Listen {
	b := f.task.Body.(*dsl.Listen)
	return Listen{
		StepNumber: f.step.number, Listener: f.listener.key, Spec: spec, After: m.taken.after,
		FromStart: !f.task.IgnoresEarlier(), Single: b.To.Mode != eventfilter.All && b.To.Until == nil &&
			b.To.UntilEvents == nil,
	}
}

// filterState evaluates the required values of the correlation keys of filters, and takes the variables that their
// expressions use.
func (m *Machine) filterState(f *frame, filters []*dsl.EventFilter) (filterset.State, *dsl.Error) {
	s := filterset.State{Expect: make([]map[string]any, len(filters)), Vars: make([]map[string]any, len(filters))}
	vars := m.variables(f)
	for i, filter := range filters {
		s.Vars[i] = filter.Vars(vars)
		for _, key := range filter.Correlate {
			if key.Expect == nil {
				continue
			}
			value, runError := m.template(key.Expect, f.input, vars, f.task.Pointer)
			if runError != nil {
				return s, runError
			}
			if s.Expect[i] == nil {
				s.Expect[i] = map[string]any{}
			}
			s.Expect[i][key.Name] = value
		}
	}
	return s, nil
}

// setFilters builds the filter sets from the document and the expectations.
func (e *listener) setFilters(to dsl.Consumption, main, until filterset.State) {
	e.main = filterset.New(to, main)
	if to.UntilEvents != nil {
		e.until = filterset.New(*to.UntilEvents, until)
	}
}

// Deliver passes an event to a listener: its CloudEvents JSON form as a plain value, which must not be changed
// afterwards. Positions increase with each event for a listener: an event with a position not above the last one is a
// repetition, and ignored. Events for listeners that no longer exist are ignored, too.
func (m *Machine) Deliver(listener string, position int64, event any, now time.Time) {
	m.tick(now)
	i := slices.IndexFunc(m.listeners, func(f *frame) bool { return f.listener.key == listener })
	object, ok := event.(map[string]any)
	if i < 0 || !ok || m.outcome != nil || position <= m.listeners[i].listener.lastPosition {
		return
	}
	f := m.listeners[i]
	f.listener.lastPosition = position
	f.listener.queue = append(f.listener.queue, delivered{object, position})
	m.consumeNext(f)
}

// Listeners returns the listeners of the open listen tasks, as their Listen effects requested them, also those whose
// commit the machine has not seen yet: it may be done. Each has all events that the run has consumed, also those that
// an earlier listener has reported: what stored them may be lost.
func (m *Machine) Listeners() ([]Listen, error) {
	var list []Listen
	for _, f := range m.listeners {
		if m.outcome != nil {
			continue
		}
		spec, err := filterset.Spec(f.listener.main, f.listener.until)
		if err != nil {
			return nil, err
		}
		effect := m.listenEffect(f, spec)
		effect.Taken, effect.After = slices.Clone(m.taken.positions), m.taken.dropped
		list = append(list, effect)
	}
	return list, nil
}

// listenerCommitted handles the commit of a task's listener.
func (m *Machine) listenerCommitted(f *frame) {
	f.listener.open = true
	m.taken.report(f.listener.reports)
	f.step.wait(WaitEvent, time.Time{})
	m.recorder.markDirty(f.step)
	m.consumeNext(f)
}

// consumeNext consumes the next event in the queue, unless the listener is not committed yet or an item is being
// processed.
func (m *Machine) consumeNext(f *frame) {
	f.phase = phaseBlocked
	e := f.listener
	if !e.open || len(f.children) > 0 || len(e.queue) == 0 {
		return
	}
	event := e.queue[0]
	e.queue = e.queue[1:]
	m.spend(stepFuel)
	switch {
	case m.consumes(f, e.until, event):
		if e.until.Complete() {
			m.finishListen(f)
			return
		}
	case m.consumes(f, e.main, event):
		m.consume(f, event.event)
		return
	}
	m.awaitNext(f)
}

// awaitNext continues with the next event, or waits for one.
func (m *Machine) awaitNext(f *frame) {
	if len(f.listener.queue) > 0 {
		f.phase = phaseConsume
		m.enqueue(f)
		return
	}
	if f.step.status != StatusWaiting {
		f.step.wait(WaitEvent, time.Time{})
		m.recorder.markDirty(f.step)
	}
}

func (m *Machine) consumes(f *frame, s *filterset.Set, event delivered) bool {
	taken, fuel := s.Consume(event.event, f.listener.keys)
	m.spend(fuel)
	if taken {
		m.taken.add(event.position)
	}
	if taken && s.All() {
		f.listener.noteTaken(m.now)
		f.step.taken = f.listener.taken
		m.recorder.markDirty(f.step)
	}
	return taken
}

// noteTaken adds the filters that were met since its last call, of the sets that require an event for each filter.
func (e *listener) noteTaken(now time.Time) {
	index := 0
	for _, set := range []*filterset.Set{e.main, e.until} {
		if set == nil {
			continue
		}
		for _, met := range set.Met {
			noted := slices.ContainsFunc(e.taken, func(t TakenEvent) bool { return t.Filter == index })
			if met && !noted && set.All() {
				e.taken = append(e.taken, TakenEvent{Filter: index, At: now})
			}
			index++
		}
	}
}

// consume processes an event: with the task's foreach, or by adding it to the output.
func (m *Machine) consume(f *frame, event map[string]any) {
	b := f.task.Body.(*dsl.Listen)
	item := b.Read.Read(event)
	if b.Each == nil {
		m.consumed(f, item)
		return
	}
	binds := []binding{{b.Each.Item, item}, {b.Each.At, f.listener.count}}
	if b.Each.Tasks == nil {
		m.itemDone(f, item, binds)
		return
	}
	f.step.resume()
	m.recorder.markDirty(f.step)
	m.newList(f, roleItem, b.Each.Tasks, f.input).binds = binds
}

// itemDone handles the output of one item: its mapping and its export, with the item's variables.
func (m *Machine) itemDone(f *frame, output any, binds []binding) {
	each, at := f.task.Body.(*dsl.Listen).Each, f.task.Pointer
	vars := m.variables(f)
	for _, bound := range binds {
		vars[bound.name] = bound.value
	}
	var runError *dsl.Error
	if out := each.Output; out != nil {
		if output, runError = m.template(out.As, output, vars, at); runError == nil {
			runError = m.conform(out.Schema, output, at, "an item's output")
		}
		if runError != nil {
			m.fail(f, runError)
			return
		}
	}
	if export := each.Export; export != nil {
		vars["output"] = output
		next := m.context
		if export.As != nil {
			if next, runError = m.template(export.As, output, vars, at); runError != nil {
				m.fail(f, runError)
				return
			}
		}
		if runError = m.conform(export.Schema, next, at, "the exported context"); runError != nil {
			m.fail(f, runError)
			return
		}
		m.context = next
	}
	m.consumed(f, output)
}

// consumed adds an item to the task's output and checks whether it completes the task.
func (m *Machine) consumed(f *frame, output any) {
	e, to := f.listener, f.task.Body.(*dsl.Listen).To
	e.count++
	if !neverCompletes(to) {
		e.outputs = append(e.outputs, output)
	}
	done := e.main.Complete() && to.UntilEvents == nil
	if to.Until != nil {
		var runError *dsl.Error
		if done, runError = m.holds(to.Until, e.output(), m.variables(f), f.task.Pointer); runError != nil {
			m.fail(f, runError)
			return
		}
	}
	if done {
		m.finishListen(f)
		return
	}
	m.awaitNext(f)
}

// neverCompletes reports whether a task never completes: its output would grow without being used.
func neverCompletes(to dsl.Consumption) bool { return to.Until != nil && to.Until.Source == "false" }

// finishListen ends the task with its consumed events.
func (m *Machine) finishListen(f *frame) {
	m.finish(f, f.listener.output(), f.task.Then)
}

func (e *listener) output() []any {
	if e.outputs == nil {
		return []any{}
	}
	return slices.Clip(e.outputs)
}

// closeListener removes a task's listener, whether or not it is committed already.
func (m *Machine) closeListener(f *frame) {
	if f.listener == nil {
		return
	}
	if f.call != 0 {
		delete(m.calls, f.call)
		f.call = 0
	}
	m.listeners = slices.DeleteFunc(m.listeners, func(o *frame) bool { return o == f })
	m.effects = append(m.effects, Unlisten{Listener: f.listener.key})
	f.listener = nil
}
