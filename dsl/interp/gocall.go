package interp

import (
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
)

// CallGo requests the execution of a Go function, and a Complete whose value is its output.
type CallGo struct {
	ID         EffectID
	StepNumber int64
	// Deadline is the time at which the timeout of the task, or of a call of the function that the task is, ends the Go
	// function; zero: there is none.
	Deadline time.Time
	// Key is as in Call: of two executions under one key, the second is a repetition of the first.
	Key string
	// Once: the function is started at most once, whatever happens to its result.
	Once bool
	// Program, Function, Version and Signature are those of the [dsl.GoCall].
	Program, Function, Version, Signature string
	// Input is a plain JSON value.
	Input any
}

func (CallGo) effect() {}

// startGoCall evaluates the input of a Go function and emits its effect.
func (m *Machine) startGoCall(f *frame, b *dsl.GoCall) {
	input := f.input
	if b.Input != nil {
		var runError *dsl.Error
		if input, runError = m.template(b.Input, f.input, m.variables(f), f.task.Pointer); runError != nil {
			m.fail(f, runError)
			return
		}
	}
	f.call = EffectID(m.newID())
	m.calls[f.call] = f
	f.step.beginAttempt(1, m.now)
	m.recorder.markDirty(f.step)
	m.effects = append(m.effects, CallGo{
		ID: f.call, StepNumber: f.step.number, Deadline: deadlineOf(f), Key: callKey(m.start.RunID, f.key),
		Once: repeatOf(f).ForbidsRepeat(), Program: b.Program, Function: b.Function, Version: b.Version,
		Signature: b.Signature, Input: input,
	})
}

// callers returns the frame of a task and those of the calls that lead to it as a function, from the inside. Authors of
// workflows call the definition of a Go function, and do not write it: what they say of the call holds for the
// function.
func callers(f *frame) []*frame {
	frames := []*frame{f}
	for f.parent != nil && f.parent.role == roleFunction {
		f = f.parent.parent
		frames = append(frames, f)
	}
	return frames
}

// repeatOf returns the task that decides whether a Go function may be executed again: with the setting of the outermost
// call that has one.
func repeatOf(f *frame) *dsl.Task {
	decides := f.task
	for _, caller := range callers(f) {
		if _, given := caller.task.Metadata[dsl.RepeatKey]; given {
			decides = &dsl.Task{Body: f.task.Body, Metadata: caller.task.Metadata}
		}
	}
	return decides
}

// deadlineOf returns the earliest deadline of a Go function and the calls that lead to it; zero: there is none.
func deadlineOf(f *frame) time.Time {
	var earliest time.Time
	for _, caller := range callers(f) {
		if at := caller.deadline(); !at.IsZero() && (earliest.IsZero() || at.Before(earliest)) {
			earliest = at
		}
	}
	return earliest
}
