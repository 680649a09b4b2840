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
	switch in := f.task.Input; {
	case in == nil:
		m.body(f)
	case in.Schema.Late():
		m.checkLate(f, &check{part: partInput})
	default:
		m.takeInput(f, in.Schema)
	}
}

// takeInput checks the input of a task, transforms it and begins the task's body.
func (m *Machine) takeInput(f *frame, schema *dsl.Schema) {
	t, at := f.task, f.task.Pointer
	if runError := m.conform(schema, f.value, at, "the task's input"); runError != nil {
		m.fail(f, runError)
		return
	}
	input, runError := m.template(t.Input.From, f.value, m.variables(f), at)
	if runError != nil {
		m.fail(f, runError)
		return
	}
	f.input, f.step.input = input, input
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
	t, end := f.task, ending{raw, raw, then}
	if t.Output != nil {
		var runError *dsl.Error
		vars := m.variables(f)
		f.setOutput(vars, raw)
		if end.output, runError = m.template(t.Output.As, raw, vars, t.Pointer); runError != nil {
			m.fail(f, runError)
			return
		}
		if t.Output.Schema.Late() {
			m.checkLate(f, &check{part: partOutput, ending: end})
			return
		}
		m.giveOutput(f, end, t.Output.Schema)
		return
	}
	m.export(f, end)
}

// giveOutput checks the output of a task, and ends the task.
func (m *Machine) giveOutput(f *frame, end ending, schema *dsl.Schema) {
	if runError := m.conform(schema, end.output, f.task.Pointer, "the task's output"); runError != nil {
		m.fail(f, runError)
		return
	}
	m.export(f, end)
}

// export ends a task whose output is valid.
func (m *Machine) export(f *frame, end ending) {
	switch e := f.task.Export; {
	case e == nil:
		m.ended(f, end)
	case e.Schema.Late():
		m.checkLate(f, &check{part: partExport, ending: end})
	default:
		m.giveContext(f, end, e.Schema)
	}
}

// giveContext computes and checks the new context, and ends the task.
func (m *Machine) giveContext(f *frame, end ending, schema *dsl.Schema) {
	next, _, runError := m.nextContext(f, end)
	if runError == nil {
		runError = m.conform(schema, next, f.task.Pointer, "the exported context")
	}
	if runError != nil {
		m.fail(f, runError)
		return
	}
	m.context = next
	m.ended(f, end)
}

// nextContext computes the context that a task exports, and returns it with the variables of its expressions.
func (m *Machine) nextContext(f *frame, end ending) (next any, vars map[string]any, runError *dsl.Error) {
	vars = m.variables(f)
	f.setOutput(vars, end.raw)
	vars["output"] = end.output
	if f.task.Export.As == nil {
		return m.context, vars, nil
	}
	next, runError = m.template(f.task.Export.As, end.output, vars, f.task.Pointer)
	return next, vars, runError
}

// ended follows a task with valid results.
func (m *Machine) ended(f *frame, end ending) {
	if f.extended != nil {
		m.bodyDone(f, end.raw, end.output, end.then)
		return
	}
	m.complete(f, end.output, end.then)
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
