package interp

import (
	"fmt"
	"maps"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp/internal/gather"
	"github.com/signalbox-dev/signalbox/dsl/interp/internal/pack"
)

// save gives the state of a listen task. Its listener is committed: while it is not, a call is in flight.
func (e *ear) save(p *pack.Pool) *earState {
	s := &earState{Listener: e.listener, Mark: e.mark, Keys: p.Put(e.keys), Count: e.count}
	for _, event := range e.queue {
		s.Queue = append(s.Queue, p.Put(event))
	}
	for i, set := range []*gather.Set{e.main, e.until} {
		if set == nil {
			continue
		}
		s.Met[i] = set.Met
		for _, expect := range set.Expect {
			s.Expect[i] = append(s.Expect[i], p.Put(expect))
		}
	}
	for _, output := range e.outputs {
		s.Outputs = append(s.Outputs, p.Put(output))
	}
	return s
}

// ear restores the state of a listen task.
func (r *restorer) ear(f *frame, s earState) error {
	b, ok := f.task.Body.(*dsl.Listen)
	if !ok {
		return fmt.Errorf("the task %q does not listen", f.task.Pointer)
	}
	e := &ear{listener: s.Listener, open: true, mark: s.Mark, keys: maps.Clone(r.object(s.Keys)), count: s.Count}
	for _, i := range s.Queue {
		e.queue = append(e.queue, r.object(i))
	}
	wanted := [2]int{len(b.To.Filters)}
	if b.To.UntilEvents != nil {
		wanted[1] = len(b.To.UntilEvents.Filters)
	}
	var states [2]gather.State
	for i := range states {
		for _, expect := range s.Expect[i] {
			states[i].Expect = append(states[i].Expect, r.object(expect))
		}
		if states[i].Met = s.Met[i]; len(s.Expect[i]) != wanted[i] || len(s.Met[i]) != wanted[i] {
			return fmt.Errorf("the task %q has %d filters, not %d", f.task.Pointer, wanted[i], len(s.Expect[i]))
		}
	}
	for _, i := range s.Outputs {
		e.outputs = append(e.outputs, r.value(i))
	}
	e.tune(r.machine.consumption(b), states[0], states[1])
	f.ear = e
	return nil
}

func (r *restorer) object(i int) map[string]any {
	object, _ := r.value(i).(map[string]any)
	return object
}
