package interp

import (
	"fmt"

	"github.com/signalbox-dev/signalbox/dsl"
)

// save gives the state of a listen task. Its listener is committed: while it is not, a call is in flight.
func (e *ear) save(p *pool) *earState {
	s := &earState{Listener: e.listener, Mark: e.mark, Keys: p.put(e.keys), Count: e.count, Met: [2][]bool{e.main.met, e.until.met}}
	for _, event := range e.queue {
		s.Queue = append(s.Queue, p.put(event))
	}
	for i, t := range []target{e.main, e.until} {
		for _, expect := range t.expect {
			s.Expect[i] = append(s.Expect[i], p.put(expect))
		}
	}
	for _, output := range e.outputs {
		s.Outputs = append(s.Outputs, p.put(output))
	}
	return s
}

// ear restores the state of a listen task.
func (r *restorer) ear(f *frame, s earState) error {
	b, ok := f.task.Body.(*dsl.Listen)
	if !ok {
		return fmt.Errorf("the task %q does not listen", f.task.Pointer)
	}
	e := &ear{listener: s.Listener, open: true, mark: s.Mark, keys: r.object(s.Keys), count: s.Count}
	for _, i := range s.Queue {
		e.queue = append(e.queue, r.object(i))
	}
	until := 0
	if b.To.UntilEvents != nil {
		until = len(b.To.UntilEvents.Filters)
	}
	for i, wanted := range []int{len(b.To.Filters), until} {
		t := []*target{&e.main, &e.until}[i]
		for _, expect := range s.Expect[i] {
			t.expect = append(t.expect, r.object(expect))
		}
		if t.met = s.Met[i]; len(t.expect) != wanted || len(t.met) != wanted {
			return fmt.Errorf("the task %q has %d filters, not %d", f.task.Pointer, wanted, len(t.expect))
		}
	}
	for _, i := range s.Outputs {
		e.outputs = append(e.outputs, r.value(i))
	}
	e.tune(b)
	f.ear = e
	return nil
}

func (r *restorer) object(i int) map[string]any {
	object, _ := r.value(i).(map[string]any)
	return object
}
