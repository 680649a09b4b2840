package interp

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp/internal/filterset"
)

// save returns the state of a listen task. Its listener is committed: until then, a call is in flight.
func (e *listener) save(p *valuePool) *listenerState {
	s := &listenerState{Listener: e.key, Mark: e.lastPosition, Keys: p.put(e.keys), Count: e.count, Taken: e.taken}
	for _, event := range e.queue {
		s.Queue, s.Positions = append(s.Queue, p.put(event.event)), append(s.Positions, event.position)
	}
	for i, set := range []*filterset.Set{e.main, e.until} {
		if set == nil {
			continue
		}
		s.Met[i] = set.Met
		for _, expect := range set.Expect {
			s.Expect[i] = append(s.Expect[i], p.put(expect))
		}
		if slices.ContainsFunc(set.Vars, func(vars map[string]any) bool { return vars != nil }) {
			for len(s.Vars) <= i {
				s.Vars = append(s.Vars, nil)
			}
			for _, vars := range set.Vars {
				s.Vars[i] = append(s.Vars[i], p.put(vars))
			}
		}
	}
	for _, output := range e.outputs {
		s.Outputs = append(s.Outputs, p.put(output))
	}
	return s
}

// listener restores the state of a listen task.
func (r *restorer) listener(f *frame, s listenerState) error {
	b, ok := f.task.Body.(*dsl.Listen)
	if !ok {
		return fmt.Errorf("the task %q does not listen", f.task.Pointer)
	}
	e := &listener{key: s.Listener, open: true, lastPosition: s.Mark, keys: maps.Clone(r.object(s.Keys)), count: s.Count,
		taken: s.Taken}
	for n, i := range s.Queue {
		e.queue = append(e.queue, delivered{r.object(i), s.Positions[n]})
	}
	wanted := [2]int{len(b.To.Filters)}
	if b.To.UntilEvents != nil {
		wanted[1] = len(b.To.UntilEvents.Filters)
	}
	var states [2]filterset.State
	for i := range states {
		for _, expect := range s.Expect[i] {
			states[i].Expect = append(states[i].Expect, r.object(expect))
		}
		states[i].Vars = make([]map[string]any, wanted[i])
		if i < len(s.Vars) && len(s.Vars[i]) == wanted[i] {
			for n, vars := range s.Vars[i] {
				states[i].Vars[n] = r.object(vars)
			}
		}
		if states[i].Met = s.Met[i]; len(s.Expect[i]) != wanted[i] || len(s.Met[i]) != wanted[i] {
			return fmt.Errorf("the task %q has %d filters, not %d", f.task.Pointer, wanted[i], len(s.Expect[i]))
		}
	}
	for _, i := range s.Outputs {
		e.outputs = append(e.outputs, r.value(i))
	}
	e.setFilters(b.To, states[0], states[1])
	e.noteTaken(time.Time{})
	f.listener = e
	return nil
}

func (r *restorer) object(i int) map[string]any {
	object, _ := r.value(i).(map[string]any)
	return object
}
