package interp

import (
	"fmt"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// enter begins a task: its condition, its timeout, the extensions that apply to it, its input, then its body.
func (m *Machine) enter(f *frame) {
	t := f.task
	at := t.Pointer
	f.phase = phaseBlocked
	f.input = f.value // the value of $input until the input is transformed
	if t.If != nil {
		holds, runError := m.holds(t.If, f.value, m.variables(f), at)
		if runError != nil {
			m.fail(f, runError)
			return
		}
		if !holds {
			f.step.output, f.step.hasOutput = f.value, true
			m.recorder.close(f.step, StatusSkipped, m.now)
			m.follow(f, f.value, dsl.Flow{})
			return
		}
	}
	if t.Timeout != nil {
		after, runError := m.duration(t.Timeout.After, f.value, m.variables(f), at)
		if runError != nil {
			m.fail(f, runError)
			return
		}
		m.setAlarm(f, alarmTimeout, after)
		m.noteDeadline(f)
	}
	if runError := m.extend(f); runError != nil {
		m.fail(f, runError)
		return
	}
	m.runBefore(f)
}

// beginTask transforms the input of a task and begins its body.
func (m *Machine) beginTask(f *frame) {
	t, at := f.task, f.task.Pointer
	if t.Input != nil {
		if runError := m.conform(t.Input.Schema, f.value, at, "the task's input"); runError != nil {
			m.fail(f, runError)
			return
		}
		input, runError := m.template(t.Input.From, f.value, m.variables(f), at)
		if runError != nil {
			m.fail(f, runError)
			return
		}
		f.input, f.step.input = input, input
	}
	m.body(f)
}

// body begins the work of the task's kind.
func (m *Machine) body(f *frame) {
	switch b := f.task.Body.(type) {
	case *dsl.Do:
		m.newList(f, roleDo, b.Tasks, f.input)
	case *dsl.Set:
		value, runError := m.template(b.Value, f.input, m.variables(f), f.task.Pointer)
		if runError != nil {
			m.fail(f, runError)
			return
		}
		m.finish(f, value, f.task.Then)
	case *dsl.Switch:
		m.runSwitch(f, b)
	case *dsl.For:
		m.beginLoop(f, b)
	case *dsl.Fork:
		m.beginFork(f, b)
	case *dsl.Wait:
		m.beginWait(f, b)
	case *dsl.Raise:
		m.raise(f, b)
	case *dsl.Try:
		f.try, f.step.attempt = &attempts{number: 1, firstAt: m.now}, 1
		m.tryBody(f)
	case *dsl.FunctionCall:
		m.callFunction(f, b)
	case *dsl.HTTPCall, *dsl.OpenAPICall, *dsl.GoCall, *dsl.Listen, *dsl.Emit, *dsl.RunWorkflow, *dsl.RunProgram:
		f.phase = phaseCall
		m.startCall(f)
	default:
		runError := newError(dsl.ErrorTypeRuntime, 500, f.task.Pointer,
			fmt.Sprintf("this version does not run tasks of the kind %q", f.task.Body.Kind()))
		m.fail(f, &runError)
	}
}

// finish ends a task with its raw output: steps 5 to 8 of the data flow, then the flow directive.
func (m *Machine) finish(f *frame, raw any, then dsl.Flow) {
	t, output := f.task, raw
	var runError *dsl.Error
	if t.Output != nil {
		vars := m.variables(f)
		f.setOutput(vars, raw)
		if output, runError = m.template(t.Output.As, raw, vars, t.Pointer); runError == nil {
			runError = m.conform(t.Output.Schema, output, t.Pointer, "the task's output")
		}
		if runError != nil {
			m.fail(f, runError)
			return
		}
	}
	if t.Export != nil {
		vars := m.variables(f)
		f.setOutput(vars, raw)
		vars["output"] = output
		next := m.context
		if t.Export.As != nil {
			if next, runError = m.template(t.Export.As, output, vars, t.Pointer); runError != nil {
				m.fail(f, runError)
				return
			}
		}
		if runError = m.conform(t.Export.Schema, next, t.Pointer, "the exported context"); runError != nil {
			m.fail(f, runError)
			return
		}
		m.context = next
	}
	if f.extended != nil {
		m.bodyDone(f, raw, output, then)
		return
	}
	m.complete(f, output, then)
}

// complete ends a task with its transformed output.
func (m *Machine) complete(f *frame, output any, then dsl.Flow) {
	f.step.output, f.step.hasOutput = output, true
	m.recorder.close(f.step, StatusCompleted, m.now)
	m.follow(f, output, then)
}

// runSwitch runs a switch: the first case that holds, else the case without one, else the task's own
// directive.
func (m *Machine) runSwitch(f *frame, b *dsl.Switch) {
	then, chosen := f.task.Then, ""
	for _, c := range b.Cases {
		if c.When == nil {
			then, chosen = c.Then, c.Name
		}
	}
	for _, c := range b.Cases {
		if c.When == nil {
			continue
		}
		holds, runError := m.holds(c.When, f.input, m.variables(f), f.task.Pointer)
		if runError != nil {
			m.fail(f, runError)
			return
		}
		if holds {
			then, chosen = c.Then, c.Name
			break
		}
	}
	m.noteBranch(f, chosen)
	m.finish(f, f.input, then)
}

func (m *Machine) beginWait(f *frame, b *dsl.Wait) {
	d, runError := m.duration(b.Duration, f.input, m.variables(f), f.task.Pointer)
	if runError != nil {
		m.fail(f, runError)
		return
	}
	if d <= 0 {
		m.finish(f, f.input, f.task.Then)
		return
	}
	a := m.setAlarm(f, alarmWait, d)
	f.step.wait(WaitTimer, a.At)
	m.recorder.markDirty(f.step)
}

func (m *Machine) beginLoop(f *frame, b *dsl.For) {
	v, runError := m.evaluate(b.In, f.input, m.variables(f), f.task.Pointer)
	if runError != nil {
		m.fail(f, runError)
		return
	}
	items, ok := v.([]any)
	if !ok {
		runError := newError(dsl.ErrorTypeExpression, 400, f.task.Pointer,
			fmt.Sprintf("for.in must give an array, got %s", jq.TypeName(v)))
		m.fail(f, &runError)
		return
	}
	f.loop = &loop{items: items, value: f.input}
	m.iterate(f)
}

// iterate begins the next iteration of a for, or ends the loop.
func (m *Machine) iterate(f *frame) {
	f.phase = phaseBlocked
	b, l := f.task.Body.(*dsl.For), f.loop
	if l.pos-l.base >= len(l.items) {
		m.finish(f, l.value, f.task.Then)
		return
	}
	binds := []binding{{b.Each, l.items[l.pos-l.base]}, {b.At, l.pos}}
	if b.While != nil {
		vars := m.variables(f)
		for _, bound := range binds {
			vars[bound.name] = bound.value
		}
		holds, runError := m.holds(b.While, l.value, vars, f.task.Pointer)
		if runError != nil {
			m.fail(f, runError)
			return
		}
		if !holds {
			m.finish(f, l.value, f.task.Then)
			return
		}
	}
	m.newList(f, roleLoop, b.Tasks, l.value).binds = binds
}

func (m *Machine) beginFork(f *frame, b *dsl.Fork) {
	f.fork = &forkBranches{outputs: make([]any, len(b.Branches)), open: len(b.Branches)}
	if f.fork.open == 0 {
		m.finish(f, []any{}, f.task.Then)
		return
	}
	m.enterBranches(f)
}

// enterBranches enters the branches of a fork, or as many of them as the gate admits.
func (m *Machine) enterBranches(f *frame) {
	branches := f.task.Body.(*dsl.Fork).Branches
	for f.phase = phaseFork; f.fork.entered < len(branches); f.fork.entered++ {
		if !m.admits(f, branches[f.fork.entered]) {
			return
		}
		m.newTask(f, roleBranch, branches[f.fork.entered], f.input)
	}
	f.phase = phaseBlocked
}

// branchDone handles the output of a fork's branch.
func (m *Machine) branchDone(f, branch *frame, output any) {
	f.fork.outputs[branch.task.Index] = output
	f.fork.open--
	if f.task.Body.(*dsl.Fork).Compete {
		m.cancelChildren(f)
		m.finish(f, output, f.task.Then)
		return
	}
	if f.fork.open == 0 {
		m.finish(f, f.fork.outputs, f.task.Then)
	}
}

func (m *Machine) raise(f *frame, b *dsl.Raise) {
	e := b.Error
	runError := dsl.Error{Status: e.Status, Instance: f.task.Pointer}
	for _, part := range []struct {
		to       *string
		template *dsl.Template
	}{{&runError.Type, e.Type}, {&runError.Title, e.Title}, {&runError.Detail, e.Detail}} {
		if part.template == nil {
			continue
		}
		text, failed := m.text(part.template, f.input, m.variables(f), f.task.Pointer)
		if failed != nil {
			m.fail(f, failed)
			return
		}
		*part.to = text
	}
	m.fail(f, &runError)
}
