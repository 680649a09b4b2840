package interp

import (
	"fmt"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
)

// StartChild asks for a run of another workflow, and for a Complete with its ID once it is accepted. Where the task awaits it, a
// ChildEnded is to follow some time later; it may come before the Complete.
type StartChild struct {
	ID         EffectID
	StepNumber int64
	// Key names the child within all runs: another one for every entry into a task. Path is that entry's.
	Key, Path string
	// Workflow is namespace/name; Version is empty for the newest.
	Workflow, Version string
	Input             any
	Awaited           bool
}

// CancelChild says that the end of a run which was awaited is not wanted any more, so it need not go on. Its StartChild may still
// be in flight: then it is to be canceled once that is done, and no Complete is expected.
type CancelChild struct{ Key, RunID string }

func (StartChild) effect()  {}
func (CancelChild) effect() {}

// Types of errors of a task whose child did not end by itself.
const (
	ErrorTypeChildCanceled   = "https://signalbox.dev/errors/child-canceled"
	ErrorTypeChildTerminated = "https://signalbox.dev/errors/child-terminated"
)

// child is the state of a task that awaits another run. It is there from the moment at which that is asked for.
type child struct {
	key, runID string
	early      *Result // how it ended, told before it was told to be accepted
}

// startChild asks for the run of another workflow.
func (m *Machine) startChild(f *frame, b *dsl.RunWorkflow) {
	var input any
	if b.Input != nil {
		var problem *dsl.Error
		if input, problem = m.template(b.Input, f.input, m.variables(f), f.task.Pointer); problem != nil {
			m.fail(f, problem)
			return
		}
	}
	f.call, f.child = EffectID(m.newID()), &child{key: EntryKey(m.start.RunID, f.path)}
	m.calls[f.call] = f
	if b.Await {
		m.parents = append(m.parents, f)
	}
	f.step.beginAttempt(1, m.now)
	m.book.mark(f.step)
	m.effects = append(m.effects, StartChild{
		ID: f.call, StepNumber: f.step.number, Key: f.child.key, Path: f.path, Workflow: b.Namespace + "/" + b.Name, Version: b.Version,
		Input: input, Awaited: b.Await,
	})
}

// childStarted takes the ID of a run that was accepted.
func (m *Machine) childStarted(f *frame, runID string) {
	if !f.task.Body.(*dsl.RunWorkflow).Await {
		f.child = nil
		f.step.endAttempt(m.now, nil)
		m.finish(f, f.input, f.task.Then)
		return
	}
	f.child.runID = runID
	if f.child.early != nil {
		m.childDone(f, *f.child.early)
		return
	}
	f.step.wait(WaitChild, time.Time{})
	m.book.mark(f.step)
}

// ChildEnded tells how a run ended that a task awaits: with its output, or with the error to raise. What is told of others, or again,
// is ignored.
func (m *Machine) ChildEnded(key string, result Result, now time.Time) {
	m.tick(now)
	result = m.cutResult(result)
	i := slices.IndexFunc(m.parents, func(f *frame) bool { return f.child.key == key })
	switch {
	case i < 0 || m.outcome != nil:
	case m.parents[i].child.runID == "":
		m.parents[i].child.early = &result
	default:
		m.childDone(m.parents[i], result)
	}
}

// childDone ends a task with how its child ended.
func (m *Machine) childDone(f *frame, result Result) {
	m.forgetChild(f)
	f.step.resume()
	if result.Error != nil {
		problem := *result.Error
		problem.Instance = f.task.Pointer
		f.step.endAttempt(m.now, &problem)
		m.fault(f, fault{problem: problem})
		return
	}
	f.step.endAttempt(m.now, nil)
	m.finish(f, returned(f.task.Body.(*dsl.RunWorkflow).Return, result.Value), f.task.Then)
}

// returned is what a task gives of a run that has completed.
func returned(what dsl.Return, output any) any {
	switch what {
	case dsl.ReturnNone:
		return nil
	case dsl.ReturnCode:
		return 0
	case dsl.ReturnStderr:
		return ""
	case dsl.ReturnAll:
		return map[string]any{"code": 0, "stdout": output, "stderr": ""}
	case dsl.ReturnStdout:
	}
	return output
}

func (m *Machine) forgetChild(f *frame) {
	m.parents = slices.DeleteFunc(m.parents, func(o *frame) bool { return o == f })
	f.child = nil
}

// disown gives up the run that a task awaits. One that is not awaited goes on, also where it is not known to be accepted yet.
func (m *Machine) disown(f *frame) {
	if f.child == nil {
		return
	}
	if f.call != 0 {
		delete(m.calls, f.call)
		f.call = 0
	}
	if slices.Contains(m.parents, f) {
		m.effects = append(m.effects, CancelChild{Key: f.child.key, RunID: f.child.runID})
	}
	m.forgetChild(f)
}

type childState struct {
	Key   string `json:"key"`
	RunID string `json:"runId"`
}

// child restores the state of a task that awaits another run.
func (r *restorer) child(f *frame, s childState) error {
	if _, ok := f.task.Body.(*dsl.RunWorkflow); !ok {
		return fmt.Errorf("the task %q runs no workflow", f.task.Pointer)
	}
	f.child = &child{key: s.Key, runID: s.RunID}
	return nil
}
