package interp

import (
	"errors"
	"maps"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp/internal/payload"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// describe builds $workflow and $runtime.
func (m *Machine) describe() {
	m.workflow = map[string]any{
		"id":         m.start.RunID,
		"definition": m.doc.Definition,
		"input":      m.start.Input,
		"startedAt":  dateTime(m.start.At),
	}
	m.runtime = map[string]any{
		"name":     m.start.RuntimeName,
		"version":  m.start.RuntimeVersion,
		"metadata": map[string]any{},
	}
}

// dateTime is the representation of a time in expressions.
func dateTime(t time.Time) map[string]any {
	return map[string]any{
		"iso8601": t.Format(time.RFC3339Nano),
		"epoch":   map[string]any{"seconds": int(t.Unix()), "milliseconds": int(t.UnixMilli())},
	}
}

// variables returns the variables for expressions of f's task, or for those of the workflow itself if f is nil. The
// caller may add to them.
func (m *Machine) variables(f *frame) map[string]any {
	vars := map[string]any{"workflow": m.workflow, "runtime": m.runtime, "context": m.context}
	if f == nil {
		return vars
	}
	vars["input"] = f.input
	vars["task"] = m.taskVariable(f)
	if a := authenticationOf(f.task); a != nil {
		vars["authorization"] = map[string]any{"scheme": a.Scheme.HTTP()}
	}
	for p := f.parent; p != nil; p = p.parent {
		for _, b := range p.binds {
			if _, shadowed := vars[b.name]; !shadowed {
				vars[b.name] = b.value
			}
		}
	}
	return vars
}

// authenticationOf returns how the call of a task, or the read of its source, authenticates; nil if neither does.
func authenticationOf(t *dsl.Task) *dsl.Authentication {
	switch b := t.Body.(type) {
	case *dsl.HTTPCall:
		return b.Authentication
	case *dsl.OpenAPICall:
		return b.Authentication
	case *dsl.RunProgram:
		if b.Source != nil {
			return b.Source.Authentication
		}
	}
	return nil
}

// descriptorOf is $task.
func (m *Machine) descriptorOf(f *frame) map[string]any {
	if f.descriptor == nil {
		f.descriptor = map[string]any{
			"name":       f.task.Name,
			"reference":  f.task.Pointer,
			"definition": f.task.Definition,
			"input":      f.value,
			"output":     nil,
			"startedAt":  dateTime(f.startedAt),
		}
	}
	return f.descriptor
}

// setOutput sets the task's raw output in $task.
func (f *frame) setOutput(vars map[string]any, raw any) {
	if extendedBy(f) != nil {
		return // $task is the extended task
	}
	d := maps.Clone(f.descriptor)
	d["output"] = raw
	vars["task"] = d
}

// fuel returns the budget of the next expression. All expressions of one turn share a budget, because a turn cannot be
// interrupted and a task may have any number of expressions.
func (m *Machine) fuel() *jq.Fuel {
	share := m.limits.ExpressionFuel
	if m.handling {
		share += share / handlerShare
	}
	fuel := jq.NewFuel(max(share-m.turn, 0))
	fuel.Watch, fuel.Now, fuel.Version1 = m.watch, m.now, !m.atLeast(2)
	return fuel
}

// Watch sets a function that the machine calls repeatedly while it evaluates expressions. A driver that must stop an
// evaluation that takes longer than its cost suggests may panic in it, after which the machine must not be used. The
// function must not influence the interpretation.
func (m *Machine) Watch(f func()) { m.watch = f }

// BranchCatch is the branch of a try that handles an error by its catch.
const BranchCatch = "catch"

// OnBranch sets a function that the machine calls whenever a task chooses what follows: a switch with the name of the
// case that holds, which is empty if none does, and a try with [BranchCatch]. The function must not influence the
// interpretation.
func (m *Machine) OnBranch(f func(task *dsl.Task, branch string)) { m.onBranch = f }

func (m *Machine) noteBranch(f *frame, branch string) {
	if m.onBranch != nil {
		m.onBranch(f.task, branch)
	}
}

// handlerShare is the part of a turn's budget, one in handlerShare, that is reserved for the handlers of an error: an
// expression that exhausts the budget fails with an error that can be caught.
const handlerShare = 4

// newTurn begins the turn of another task.
func (m *Machine) newTurn() { m.turn, m.handling = 0, false }

// evaluate evaluates an expression of the task at the pointer.
func (m *Machine) evaluate(e *dsl.Expr, input any, vars map[string]any, at string) (any, *dsl.Error) {
	fuel := m.fuel()
	v, err := e.Eval(input, vars, fuel)
	m.spend(fuel.Used())
	return v, expressionError(err, at)
}

func (m *Machine) holds(e *dsl.Expr, input any, vars map[string]any, at string) (bool, *dsl.Error) {
	fuel := m.fuel()
	holds, err := e.Holds(input, vars, fuel)
	m.spend(fuel.Used())
	return holds, expressionError(err, at)
}

// template evaluates a template; nil is the identity.
func (m *Machine) template(t *dsl.Template, input any, vars map[string]any, at string) (any, *dsl.Error) {
	if t == nil {
		return input, nil
	}
	fuel := m.fuel()
	v, err := t.Eval(input, vars, fuel)
	m.spend(fuel.Used())
	return v, expressionError(err, at)
}

func (m *Machine) text(t *dsl.Template, input any, vars map[string]any, at string) (string, *dsl.Error) {
	fuel := m.fuel()
	s, err := t.EvalString(input, vars, fuel)
	m.spend(fuel.Used())
	return s, expressionError(err, at)
}

func (m *Machine) duration(d *dsl.Duration, input any, vars map[string]any, at string) (time.Duration, *dsl.Error) {
	fuel := m.fuel()
	length, err := d.Eval(input, vars, fuel)
	m.spend(fuel.Used())
	return length, expressionError(err, at)
}

// conform validates a value against a schema; a nil schema accepts everything.
func (m *Machine) conform(s *dsl.Schema, v any, at, what string) *dsl.Error {
	if s == nil {
		return nil
	}
	size := int64(payload.Size(v, m.limits.size()) / bytesPerFuel)
	spent, err := s.Check(v, m.fuel().Remaining()-size)
	m.spend(min(size+spent, m.fuel().Remaining()))
	if err == nil {
		return nil
	}
	text := err.Error()
	if violations, ok := errors.AsType[*dsl.SchemaError](err); ok && m.atLeast(2) {
		text = violations.Text()
	}
	schema := " does not match its schema"
	if s.Origin != "" {
		schema += " " + s.Origin
	}
	runError := newError(dsl.ErrorTypeValidation, 400, at, what+schema+": "+text)
	if _, costly := errors.AsType[*dsl.CheckCostError](err); costly {
		runError = newError(dsl.ErrorTypeExpression, 400, at, what+" cannot be checked: "+err.Error())
	}
	return &runError
}

// bytesPerFuel is the number of bytes of JSON that one unit of fuel copies: a value is copied for its check.
const bytesPerFuel = 32

// size is the number of bytes up to which the size of a value is counted, so that its copy costs an eighth of an
// Advance at most.
func (l Limits) size() int { return int(min(l.AdvanceFuel, 1<<40)) * bytesPerFuel / 8 }

func expressionError(err error, at string) *dsl.Error {
	if err == nil {
		return nil
	}
	runError := newError(dsl.ErrorTypeExpression, 400, at, err.Error())
	return &runError
}
