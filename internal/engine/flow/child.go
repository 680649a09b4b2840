package flow

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
)

// Names of the activities around runs that a run starts.
const (
	// ChildActivity starts a run: func(context.Context, ChildRequest) (ChildStarted, error). The same key again is the same run.
	ChildActivity = "signalbox.child"
	// CancelChildActivity asks for the cancellation of a run: func(context.Context, CancelChildRequest) error. One that has ended
	// is left as it is.
	CancelChildActivity = "signalbox.cancel_child"
)

// ChildRequest asks for a run.
type ChildRequest struct {
	Project string `json:"project"`
	// Parent is the run that asks, Path the entry into its task, Key the name of this request within all runs.
	Parent string `json:"parent"`
	Path   string `json:"path"`
	Key    string `json:"key"`
	// Workflow is namespace/name; Version is empty for the newest.
	Workflow string          `json:"workflow"`
	Version  string          `json:"version,omitempty"`
	Input    json.RawMessage `json:"input"`
	// Awaited tells that the parent is to be told of its end, by ChildEnded.
	Awaited bool `json:"awaited,omitempty"`
	// Sensitive are the texts in the input that have stood at sensitive places of the parent.
	Sensitive []string `json:"sensitive,omitempty"`
}

// ChildStarted answers a ChildRequest.
type ChildStarted struct {
	RunID string `json:"runId"`
}

// CancelChildRequest asks for the cancellation of a run that is not awaited any more.
type CancelChildRequest struct {
	Project string `json:"project"`
	Parent  string `json:"parent"`
	RunID   string `json:"runId"`
}

// ChildEnded is the payload of the signal that tells a run how one ended which it awaits (contract.ChildSignal).
type ChildEnded struct {
	Key    string `json:"key"` // of the ChildRequest
	RunID  string `json:"runId"`
	Status string `json:"status"`
	// Output is that of a completed run, Error that of one which failed, timed out or was terminated.
	Output json.RawMessage `json:"output,omitempty"`
	Error  *dsl.Error      `json:"error,omitempty"`
	// Sensitive are the texts that are to be hidden in them.
	Sensitive []string `json:"sensitive,omitempty"`
}

// terminated is the status of a run that was ended in Temporal, which is none of the interpreter's.
const terminated = "terminated"

// farewellTime is how long a canceled run waits for the end of those that it awaited.
const farewellTime = 30 * time.Second

func (d *driver) startChild(e interp.StartChild) {
	input, err := encode(e.Input)
	if err != nil {
		panic(fmt.Sprintf("encode the input of another run: %v", err)) // expressions give only what JSON can hold
	}
	this := &effect{kind: childEffect, id: e.ID, child: e.Key}
	if !d.fits(this, "the input of the other run", len(input)) {
		return
	}
	this.future, this.cancel = d.storeActivity(ChildActivity, ChildRequest{
		Project: d.in.Project, Parent: d.in.RunID, Path: e.Path, Key: e.Key, Workflow: e.Workflow, Version: e.Version,
		Input: input, Awaited: e.Awaited, Sensitive: d.lookout.In(input),
	})
	d.pending = append(d.pending, this)
}

// settleChild tells the machine that a run was accepted, or why not. One that nobody wants any more is canceled.
func (d *driver) settleChild(e *effect) {
	var started ChildStarted
	err := e.future.Get(d.detached, &started)
	switch {
	case !e.unwanted:
		d.machine.Complete(e.id, interp.Result{Value: started.RunID, Error: refusal(err)}, workflow.Now(d.ctx))
	case err == nil:
		d.cancelChild(started.RunID)
	default:
		d.part(e.child)
	}
}

// disown cancels a run that is not awaited any more. When the run itself has ended but by cancellation, those who watch over runs
// that are awaited do that: what is in flight ends with the execution.
func (d *driver) disown(c interp.CancelChild) {
	outcome, done := d.machine.Done()
	if done && outcome.Status != interp.StatusCanceled {
		return
	}
	if done {
		d.parting = append(d.parting, c.Key)
	}
	if c.RunID != "" {
		d.cancelChild(c.RunID)
		return
	}
	for _, e := range d.pending {
		if e.kind == childEffect && e.child == c.Key {
			e.unwanted = true
		}
	}
}

func (d *driver) cancelChild(runID string) {
	future, cancel := d.storeActivity(CancelChildActivity, CancelChildRequest{Project: d.in.Project, Parent: d.in.RunID, RunID: runID})
	d.pending = append(d.pending, &effect{kind: cancelChildEffect, future: future, cancel: cancel})
}

// settling tells whether what concerns other runs is in flight that the machine does not wait for. It would get lost with this
// execution.
func (d *driver) settling() bool {
	return slices.ContainsFunc(d.pending, func(e *effect) bool { return e.kind == childEffect || e.kind == cancelChildEffect })
}

// farewell waits until the runs have ended that a canceled run awaited, for some time.
func (d *driver) farewell() {
	if len(d.parting) == 0 {
		return
	}
	enough := workflow.NewTimer(d.detached, farewellTime)
	for len(d.parting) > 0 && !enough.IsReady() {
		_ = workflow.Await(d.detached, func() bool { return enough.IsReady() || d.stirred() })
		d.settle()
	}
}

// part takes a run from those that a canceled run waits for.
func (d *driver) part(key string) {
	d.parting = slices.DeleteFunc(d.parting, func(k string) bool { return k == key })
}

// reunite hands the machine the ends of other runs that it was told of.
func (d *driver) reunite() {
	for d.children != nil && d.children.Len() > 0 {
		var ended ChildEnded
		if !d.children.ReceiveAsync(&ended) {
			return // what was left cannot be read
		}
		d.newTask()
		d.events += eventsPerSignal
		d.part(ended.Key)
		d.lookout.Learn(ended.Sensitive...)
		d.machine.ChildEnded(ended.Key, ended.result(), workflow.Now(d.ctx))
	}
}

// result is what the end of a run is to the task that awaits it.
func (e ChildEnded) result() interp.Result {
	problem := dsl.Error{Type: dsl.ErrorTypeRuntime, Status: 500, Title: "Cannot go on", Detail: "it ended as " + e.Status}
	if e.Error != nil {
		problem = *e.Error
	}
	switch e.Status {
	case string(interp.StatusCompleted):
		output, err := decode(e.Output)
		if err == nil {
			return interp.Result{Value: output}
		}
		problem.Detail = "its output cannot be read: " + err.Error()
	case string(interp.StatusCanceled):
		problem = dsl.Error{Type: interp.ErrorTypeChildCanceled, Status: 409, Title: "Child canceled", Detail: "it was canceled"}
	case terminated:
		problem.Type, problem.Title = interp.ErrorTypeChildTerminated, "Child terminated"
	}
	problem.Detail = fmt.Sprintf("run %s: %s", e.RunID, cmp.Or(problem.Detail, problem.Title))
	return interp.Result{Error: &problem}
}
