package interp

import (
	"errors"
	"maps"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// extended is the state of a task to which extensions apply. They are nested: the first of the document is the
// outermost.
type extended struct {
	applies []int // the indices of the extensions in the document
	entered int   // number of them that are entered: around the task, or around the part of it that runs

	done        bool // the body has ended
	raw, output any
	then        dsl.Flow
}

// extend selects the extensions that apply to a task. Their conditions see its raw input, and $task as their tasks do.
//
// A condition whose evaluation fails does not hold: conditions are made for the tasks that their author has in mind, and
// are evaluated for others, whose definitions have other forms.
func (m *Machine) extend(f *frame) *dsl.Error {
	if len(m.doc.Extensions) == 0 || extendedBy(f) != nil {
		return nil
	}
	var applies []int
	for i, e := range m.doc.Extensions {
		if !e.Extends(f.task.Body.Kind()) {
			continue
		}
		if e.When != nil {
			holds, runError := m.applies(f, e)
			if runError != nil {
				return runError
			}
			if !holds {
				continue
			}
		}
		applies = append(applies, i)
	}
	if applies != nil {
		f.extended = &extended{applies: applies}
	}
	return nil
}

// applies evaluates the condition of an extension. An exhausted budget is an error.
func (m *Machine) applies(f *frame, e *dsl.Extension) (bool, *dsl.Error) {
	vars := m.variables(f)
	vars["task"] = m.describeExtended(f)
	fuel := m.fuel()
	holds, err := e.When.Holds(f.value, vars, fuel)
	m.spend(fuel.Used())
	if errors.Is(err, jq.ErrFuel) {
		return false, expressionError(err, f.task.Pointer)
	}
	return holds && err == nil, nil
}

// runBefore runs the tasks that extensions run before a task, one extension after another, then the task.
func (m *Machine) runBefore(f *frame) {
	if x := f.extended; x != nil {
		for x.entered < len(x.applies) {
			x.entered++
			if list, _ := x.list(m.doc, roleBefore); len(list) > 0 {
				m.newList(f, roleBefore, list, f.value)
				return
			}
		}
	}
	m.beginTask(f)
}

// beforeDone continues after the tasks that an extension runs before a task. Their output is dropped, unless they exit:
// then it takes the place of the task's own, and what that extension is around does not run.
func (m *Machine) beforeDone(f *frame, output any, exited bool) {
	if !exited {
		m.runBefore(f)
		return
	}
	f.extended.entered--
	m.finish(f, output, f.task.Then)
}

// bodyDone runs the tasks that extensions run after a task, which has this output.
func (m *Machine) bodyDone(f *frame, raw, output any, then dsl.Flow) {
	m.closeListener(f)
	m.dropAttemptAlarm(f)
	f.phase = phaseBlocked
	f.extended.done, f.extended.raw, f.extended.output, f.extended.then = true, raw, output, then
	m.runAfter(f)
}

// runAfter runs the tasks of the next extension, from the innermost to the outermost, or ends the task. The output of
// these tasks is dropped.
func (m *Machine) runAfter(f *frame) {
	x := f.extended
	for ; x.entered > 0; x.entered-- {
		if list, _ := x.list(m.doc, roleAfter); len(list) > 0 {
			m.newList(f, roleAfter, list, x.output)
			return
		}
	}
	m.complete(f, x.output, x.then)
}

// afterDone continues after the tasks that an extension runs after a task.
func (m *Machine) afterDone(f *frame) {
	f.extended.entered--
	m.runAfter(f)
}

// list returns the tasks that the innermost entered extension runs in a role.
func (x *extended) list(doc *dsl.Document, r role) ([]*dsl.Task, bool) {
	if x == nil || x.entered < 1 || x.entered > len(x.applies) {
		return nil, false
	}
	e := doc.Extensions[x.applies[x.entered-1]]
	if r == roleBefore {
		return e.Before, true
	}
	return e.After, true
}

// extendedBy returns the task that is extended by the tasks around f; nil if f is no task of an extension.
func extendedBy(f *frame) *frame {
	for p := f.parent; p != nil; p = p.parent {
		if p.role == roleBefore || p.role == roleAfter {
			return p.parent
		}
	}
	return nil
}

// taskVariable is $task: the task itself, or, for tasks of an extension, the task that they extend.
func (m *Machine) taskVariable(f *frame) map[string]any {
	if of := extendedBy(f); of != nil {
		return m.describeExtended(of)
	}
	return m.descriptorOf(f)
}

// describeExtended is $task for the extensions of a task: its descriptor and the members of its definition.
func (m *Machine) describeExtended(f *frame) map[string]any {
	definition, _ := f.task.Definition.(map[string]any)
	d := maps.Clone(definition)
	maps.Copy(d, m.descriptorOf(f))
	if x := f.extended; x != nil && x.done {
		d["output"] = x.raw
	}
	return d
}

// extendedState is the saved form of extended.
type extendedState struct {
	Applies []int    `json:"applies"`
	Entered int      `json:"entered"`
	Done    bool     `json:"done,omitempty"`
	Raw     int      `json:"raw"`
	Output  int      `json:"output"`
	Then    dsl.Flow `json:"then,omitzero"`
}

func (x *extended) save(p *valuePool) *extendedState {
	if x == nil {
		return nil
	}
	return &extendedState{x.applies, x.entered, x.done, p.put(x.raw), p.put(x.output), x.then}
}

func (r *restorer) extended(s *extendedState) *extended {
	if s == nil {
		return nil
	}
	return &extended{applies: s.Applies, entered: s.Entered, done: s.Done, raw: r.value(s.Raw), output: r.value(s.Output),
		then: s.Then}
}
