package interp

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
)

// StartChild requests a run of another workflow, and a Complete with its ID once it is accepted. If the task awaits it,
// ChildEnded must follow; it may precede the Complete.
type StartChild struct {
	ID         EffectID
	StepNumber int64
	// Key identifies the child across all runs: each entry into a task has another one. Path is the path of that entry.
	Key, Path string
	// Workflow is namespace/name; Version is empty for the latest.
	Workflow, Version string
	Input             any
	Awaited           bool
}

// CancelChild requests the cancellation of a run that is no longer awaited. Its StartChild may still be in flight: then
// the run must be canceled once it has started, and no Complete is expected.
type CancelChild struct{ Key, RunID string }

func (StartChild) effect()  {}
func (CancelChild) effect() {}

// The error types of a task with a canceled or terminated child.
const (
	ErrorTypeChildCanceled   = "https://signalbox.dev/errors/child-canceled"
	ErrorTypeChildTerminated = "https://signalbox.dev/errors/child-terminated"
)

// child is the state of a task that awaits another run. It exists from the StartChild on.
type child struct {
	key, runID string
	early      *Result // its result, if that was reported before the start
}

// startChild requests the run of another workflow.
func (m *Machine) startChild(f *frame, b *dsl.RunWorkflow) {
	input := f.input
	if !m.atLeast(2) {
		input = nil
	}
	if b.Input != nil {
		var runError *dsl.Error
		if input, runError = m.template(b.Input, f.input, m.variables(f), f.task.Pointer); runError != nil {
			m.fail(f, runError)
			return
		}
	}
	f.call, f.child = EffectID(m.newID()), &child{key: EntryKey(m.start.RunID, f.path)}
	m.calls[f.call] = f
	if b.Await {
		m.parents = append(m.parents, f)
	}
	f.step.beginAttempt(1, m.now)
	m.recorder.markDirty(f.step)
	m.effects = append(m.effects, StartChild{
		ID: f.call, StepNumber: f.step.number, Key: f.child.key, Path: f.path, Workflow: b.Namespace + "/" +
			b.Name, Version: b.Version,
		Input: input, Awaited: b.Await,
	})
}

// childStarted sets the ID of a run that was accepted.
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
	m.recorder.markDirty(f.step)
}

// ChildEnded reports the result of a run that a task awaits: its output, or the error to raise. A repeated report, and
// one for a run that is not awaited, is ignored.
func (m *Machine) ChildEnded(key string, result Result, now time.Time) {
	m.tick(now)
	result = truncateResult(result)
	i := slices.IndexFunc(m.parents, func(f *frame) bool { return f.child.key == key })
	switch {
	case i < 0 || m.outcome != nil:
	case m.parents[i].child.runID == "":
		m.parents[i].child.early = &result
	default:
		m.childDone(m.parents[i], result)
	}
}

// childDone ends a task with the result of its child.
func (m *Machine) childDone(f *frame, result Result) {
	m.forgetChild(f)
	f.step.resume()
	if result.Error != nil {
		runError := *result.Error
		runError.Instance = f.task.Pointer
		f.step.endAttempt(m.now, &runError)
		m.propagate(f, raised{runError: runError})
		return
	}
	f.step.endAttempt(m.now, nil)
	m.finish(f, childOutput(f.task.Body.(*dsl.RunWorkflow).Return, result.Value), f.task.Then)
}

// childOutput returns the output of a task after its child has completed.
func childOutput(what dsl.Return, output any) any {
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

// ChildError returns the error that a task raises for the error of the run that it awaits.
func ChildError(runID string, runError dsl.Error) *dsl.Error {
	runError.Detail = fmt.Sprintf("run %s: %s", runID, cmp.Or(runError.Detail, runError.Title))
	return &runError
}

// cancelChild stops awaiting the run of a task and cancels it. A run that the task does not await continues, even if
// its acceptance has not been reported yet.
func (m *Machine) cancelChild(f *frame) {
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
