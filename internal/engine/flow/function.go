package flow

import (
	"encoding/json"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
)

// FunctionActivity executes a Go function: func(context.Context, FunctionRequest) (FunctionResult, error). It runs on
// the task queue contract.FunctionQueue of the project and the program. Like those of calls, its name never changes its
// meaning.
const FunctionActivity = "signalbox.function"

// FunctionMissing is the type of the failure of a program that does not have the function. Nothing was executed, and
// Temporal repeats the activity, because another process of the program may have it.
const FunctionMissing = "signalbox.function.missing"

// FunctionRequest is a Go function to execute. It stays in its message, because programs have no access to the stores
// of large payloads.
type FunctionRequest struct {
	Project string `json:"project"`
	RunID   string `json:"runId"`
	// Key identifies the execution: the same key means the same logical execution.
	Key      string `json:"key"`
	Program  string `json:"program"`
	Function string `json:"function"`
	Version  string `json:"version"`
	// Signature identifies the schemas that the workflow was checked with. Empty: any.
	Signature string          `json:"signature,omitempty"`
	Input     json.RawMessage `json:"input"`
	// Timeout bounds the function.
	Timeout time.Duration `json:"timeout"`
}

// StaysInline implements [codec.Inlined].
func (FunctionRequest) StaysInline() {}

// FunctionResult is the result of a function that returned no error. An error is a CallError.
type FunctionResult struct {
	Output json.RawMessage `json:"output"`
}

// Lengths of the intervals between attempts of a function that its program does not have.
const (
	missingFirst = time.Second
	missingMost  = 30 * time.Second
)

// startFunction starts a Go function.
func (d *driver) startFunction(e interp.CallGo) {
	input, err := encode(e.Input)
	if err != nil {
		panic(fmt.Sprintf("encode the input of a function: %v", err)) // expressions return only JSON values
	}
	r := FunctionRequest{
		Project: d.in.Project, RunID: d.in.RunID, Key: e.Key, Program: e.Program, Function: e.Function,
		Version: e.Version, Signature: e.Signature, Input: input, Timeout: d.boundedBy(e.Deadline),
	}
	this := &effect{kind: functionEffect, id: e.ID, function: &r, once: e.Once}
	if size := sizeOf(r); size > d.limits.ProgramBytes {
		d.reject(this, interp.TooLarge("the input of the function", size, d.limits.ProgramBytes, ""))
		return
	} else if !d.fits(this, "the input of the function", size) {
		return
	}
	d.dispatchFunction(this)
}

// dispatchFunction starts the activity of a function. It waits for its program without a limit of its own, as a program
// waits for a runner. Temporal repeats it only while the program does not have the function.
func (d *driver) dispatchFunction(e *effect) {
	ctx, cancel := workflow.WithCancel(workflow.WithActivityOptions(d.contextOf(e.id), workflow.ActivityOptions{
		TaskQueue:           contract.FunctionQueue(d.in.Project, e.function.Program),
		StartToCloseTimeout: e.function.Timeout + deadlineGrace,
		HeartbeatTimeout:    d.limits.Heartbeat,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: missingFirst, MaximumInterval: missingMost,
			NonRetryableErrorTypes: []string{"TemporalTimeout:StartToClose", "TemporalTimeout:Heartbeat"},
		},
		Summary: e.function.Function + ":" + e.function.Version,
	}))
	d.events += eventsPerActivity
	e.tries++
	e.sentAt = workflow.Now(d.ctx)
	e.future, e.cancel = workflow.ExecuteActivity(ctx, FunctionActivity, *e.function), cancel
	d.pending = append(d.pending, e)
}

// completeFunction handles the result of a function, or its loss.
func (d *driver) completeFunction(e *effect) {
	now := workflow.Now(d.ctx)
	var result FunctionResult
	err := e.future.Get(d.detached, &result)
	if d.repeats(e, err, now) {
		d.dispatchFunction(e)
		return
	}
	outcome := functionResult(e, result, err)
	if len(e.attempts) > 0 {
		outcome.Attempts = append(e.attempts, Attempt{StartedAt: e.sentAt, EndedAt: now, Unknown: lost(err)})
	}
	d.machine.Complete(e.id, outcome, now)
}

// functionResult returns the result of a function for the machine.
func functionResult(e *effect, result FunctionResult, err error) interp.Result {
	name := e.function.Function + ":" + e.function.Version
	if err == nil {
		output, err := decode(result.Output)
		if err == nil {
			return interp.Result{Value: output}
		}
		return interp.Result{Error: communicationError(502, "Bad answer", fmt.Sprintf("the function %s: %v", name, err))}
	}
	other := dsl.Error{Type: dsl.ErrorTypeRuntime, Status: 500, Title: "Function not executed"}
	return unfinished(e, err, other,
		fmt.Sprintf("the result of the function %s was lost with its program, so it is unknown what it did; %s: %s allows to "+
			"execute it again", name, dsl.RepeatKey, dsl.RepeatAllowed),
		fmt.Sprintf("the processes that executed the function %s were lost %d times", name, e.tries))
}
