package flow

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/sandbox/limit"
)

// Names of the activities for programs. Like those of calls, they never change their meaning.
const (
	// PermitActivity decides whether a project may execute a program: func(context.Context, PermitRequest) (limit.Limits,
	// error). Its result are the limits of the project, its CallError is the error of the task.
	PermitActivity = "signalbox.program.permit"
	// ProgramActivity executes a program: func(context.Context, ProgramRequest) (ProgramResult, error). It runs on the
	// task queue contract.RunnerQueue of the project.
	ProgramActivity = "signalbox.program"
)

// queueGrace is the time by which the activity of a program may exceed the program: it waits in the runner until another
// one has ended. Heartbeats detect the loss of the runner.
const queueGrace = time.Hour

// PermitRequest is what the decision about a program requires.
type PermitRequest struct {
	Project string `json:"project"`
	Kind    string `json:"kind"`            // one of dsl.ProgramKinds
	Image   string `json:"image,omitempty"` // of a container
}

// ProgramRequest is a program to execute. It stays in its message, because runners have no access to the stores of large
// payloads.
type ProgramRequest struct {
	Project string `json:"project"`
	RunID   string `json:"runId"`
	// Step, Task and Attempt are those of its log: the number of the step, the name of the task, and the number of the
	// attempt from 1.
	Step    int64  `json:"step,omitempty"`
	Task    string `json:"task,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	// Key identifies the program: the same key means the same logical execution.
	Key      string `json:"key"`
	Kind     string `json:"kind"`
	Language string `json:"language,omitempty"` // of a script
	// Code is the code of a script, or the command of a shell or a container.
	Code string `json:"code,omitempty"`
	// Source is the text that the code was read from during the run: its URI and its hash, for readers of the history.
	Source    *ProgramSource `json:"source,omitempty"`
	Stdin     string         `json:"stdin,omitempty"`
	Arguments []string       `json:"arguments,omitempty"`
	// Named are arguments in the form of older releases of the language, each a JSON value.
	Named       map[string]json.RawMessage `json:"named,omitempty"`
	Environment map[string]string          `json:"environment,omitempty"`
	Container   *ProgramContainer          `json:"container,omitempty"`
	// Timeout bounds the program.
	Timeout time.Duration `json:"timeout"`
	// Limits are those of the project. The runner has its own.
	Limits limit.Limits `json:"limits,omitzero"`
	// Detached: the result is not awaited, so that the activity ends once the program has started.
	Detached bool `json:"detached,omitempty"`
}

// ProgramSource identifies a text.
type ProgramSource struct {
	URI  string `json:"uri"`
	Hash string `json:"hash"`
}

// StaysInline implements [codec.Inlined].
func (ProgramRequest) StaysInline() {}

// ProgramContainer is what only a container has.
type ProgramContainer struct {
	Image      string            `json:"image"`
	Name       string            `json:"name,omitempty"`
	Ports      map[string]string `json:"ports,omitempty"`   // the container's by the host's
	Volumes    map[string]string `json:"volumes,omitempty"` // the container's paths by the host's
	PullPolicy string            `json:"pullPolicy"`
	Cleanup    string            `json:"cleanup"`
	After      time.Duration     `json:"after,omitempty"`
}

// ProgramResult is the result of a program that ended by itself; the zero value for a detached one. A program that was
// ended is a CallError.
type ProgramResult struct {
	Code   int    `json:"code"`
	Stdout string `json:"stdout,omitempty"`
	Stderr string `json:"stderr,omitempty"`
}

// startProgram asks whether the project may execute a program.
func (d *driver) startProgram(e interp.RunProgram) {
	r := d.programRequest(e)
	this := &effect{kind: programEffect, id: e.ID, program: &r, once: e.Once}
	if size := sizeOf(r); size > d.limits.ProgramBytes {
		d.reject(this, interp.TooLarge("the program, with its input", size, d.limits.ProgramBytes, ""))
		return
	} else if !d.fits(this, "the program", size) {
		return
	}
	permit := PermitRequest{Project: r.Project, Kind: r.Kind}
	if r.Container != nil {
		permit.Image = r.Container.Image
	}
	this.future, this.cancel = d.storeActivity(this.id, PermitActivity, permit)
	d.pending = append(d.pending, this)
}

// programRequest returns the wire form of a program.
func (d *driver) programRequest(e interp.RunProgram) ProgramRequest {
	p := e.Program
	r := ProgramRequest{
		Project: d.in.Project, RunID: d.in.RunID, Step: e.StepNumber, Key: e.Key,
		Kind: string(p.Kind), Language: string(p.Language),
		Code: p.Code, Stdin: p.Stdin, Arguments: p.Arguments, Environment: p.Environment,
		Timeout: d.boundedBy(e.Deadline), Detached: !e.Awaited,
	}
	if task := d.machine.TaskOf(e.ID); task != nil { // else it was canceled at once
		r.Task = task.Name
	}
	if p.Source != nil {
		r.Source = &ProgramSource{URI: p.Source.URI, Hash: p.Source.Hash}
	}
	for name, value := range p.Named {
		encoded, err := encode(value)
		if err != nil {
			panic(fmt.Sprintf("encode an argument of a program: %v", err)) // expressions return only JSON values
		}
		if r.Named == nil {
			r.Named = make(map[string]json.RawMessage, len(p.Named))
		}
		r.Named[name] = encoded
	}
	if c := p.Container; c != nil {
		r.Container = &ProgramContainer{
			Image: c.Image, Name: c.Name, Ports: c.Ports, Volumes: c.Volumes, PullPolicy: string(c.PullPolicy),
			Cleanup: string(c.Cleanup), After: c.After,
		}
	}
	return r
}

// dispatchProgram starts the activity of a program that the project may execute. It waits for a runner without a limit
// of its own: the task's timeout and the diagnosis of stuck runs are about that.
func (d *driver) dispatchProgram(e *effect) {
	ctx, cancel := workflow.WithCancel(workflow.WithActivityOptions(d.contextOf(e.id), workflow.ActivityOptions{
		TaskQueue:           contract.RunnerQueue(d.in.Project),
		StartToCloseTimeout: e.program.Timeout + queueGrace,
		HeartbeatTimeout:    d.limits.Heartbeat,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 1},
		WaitForCancellation: true, // its log follows its end
	}))
	d.events += eventsPerActivity
	e.tries++
	e.sentAt = workflow.Now(d.ctx)
	e.program.Attempt = int(e.tries)
	e.future, e.cancel = workflow.ExecuteActivity(ctx, ProgramActivity, *e.program), cancel
	d.pending = append(d.pending, e)
}

// completeProgram handles the answer to the question whether a program may be executed, and then its result.
func (d *driver) completeProgram(e *effect) {
	now := workflow.Now(d.ctx)
	if e.tries == 0 {
		if runError := rejection(e.future.Get(d.detached, &e.program.Limits)); runError != nil {
			d.machine.Complete(e.id, interp.Result{Error: runError}, now)
			return
		}
		d.dispatchProgram(e)
		return
	}
	d.keepLog(e)
	var result ProgramResult
	err := e.future.Get(d.detached, &result)
	if d.repeats(e, err, now) {
		d.dispatchProgram(e)
		return
	}
	d.machine.Complete(e.id, programResult(e, result, err), now)
}

// programResult returns the result of a program for the machine.
func programResult(e *effect, result ProgramResult, err error) interp.Result {
	if err == nil {
		return interp.Result{Value: interp.ProgramResult(result)}
	}
	kind := e.program.Kind
	other := dsl.Error{Type: dsl.ErrorTypeRuntime, Status: 500, Title: "Program not executed"}
	return unfinished(e, err, other,
		fmt.Sprintf("the result of the %s was lost with its runner, so it is unknown what it did; only %s: %s allows to "+
			"execute it again", kind, dsl.RepeatKey, dsl.RepeatAllowed),
		fmt.Sprintf("the runners that executed the %s were lost %d times", kind, e.tries))
}

// boundedBy returns the time that a program or a function has until a deadline, which is zero where there is none.
func (d *driver) boundedBy(deadline time.Time) time.Duration {
	if deadline.IsZero() {
		return d.limits.ProgramTimeout
	}
	return max(deadline.Sub(workflow.Now(d.ctx)), 0) + deadlineGrace
}

// repeats reports whether a program or a function that ended with an error was lost and is executed again, and records
// the lost attempt.
func (d *driver) repeats(e *effect, err error, now time.Time) bool {
	if !lost(err) || e.once || e.tries >= d.limits.CallTries {
		return false
	}
	e.attempts = append(e.attempts, Attempt{StartedAt: e.sentAt, EndedAt: now, Unknown: true})
	d.machine.RecordAttempts(e.id, e.attempts, now)
	return true
}

// unfinished returns the result of a program or a function without a result of its own. unknown is the detail of one
// that was lost and is not executed again, repeated that of one that was lost each time. Any other error is the detail of
// other.
func unfinished(e *effect, err error, other dsl.Error, unknown, repeated string) interp.Result {
	if failure, is := failureOf(err); is {
		runError := failure.Error
		return interp.Result{Error: &runError}
	}
	if lost(err) && e.once {
		return interp.Result{Error: communicationError(504, "Outcome unknown", unknown), Unanswered: true}
	}
	if lost(err) {
		return interp.Result{Error: communicationError(504, "No answer", repeated), Unanswered: true}
	}
	other.Detail = err.Error()
	if app, is := errors.AsType[*temporal.ApplicationError](err); is {
		other.Detail = app.Message()
	}
	return interp.Result{Unanswered: true, Error: &other}
}
