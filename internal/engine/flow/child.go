package flow

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
)

// Names of the activities for child runs.
const (
	// ChildActivity starts a run: func(context.Context, ChildRequest) (ChildStarted, error). The same key identifies
	// the same run. A CallError of the type [interp.ErrorTypeChildCanceled] means that the parent is being canceled.
	ChildActivity = "signalbox.child"
	// CancelChildActivity requests the cancellation of a run: func(context.Context, CancelChildRequest) error. A closed
	// run is left as it is.
	CancelChildActivity = "signalbox.cancel_child"
)

// ChildRequest requests the start of a child run.
type ChildRequest struct {
	Project string `json:"project"`
	// Parent is the requesting run, Path the entry into its task, Key the unique name of this request among all runs.
	Parent string `json:"parent"`
	Path   string `json:"path"`
	Key    string `json:"key"`
	// Workflow is namespace/name; Version is empty for the newest.
	Workflow string          `json:"workflow"`
	Version  string          `json:"version,omitempty"`
	Input    json.RawMessage `json:"input"`
	// Awaited requests that the parent be notified of the completion, by ChildEnded.
	Awaited bool `json:"awaited,omitempty"`
	// Sensitive are the texts in the input that occurred at sensitive places of the parent.
	Sensitive []string `json:"sensitive,omitempty"`
}

// ChildStarted is the result of a ChildRequest.
type ChildStarted struct {
	RunID string `json:"runId"`
}

// CancelChildRequest requests the cancellation of a run that is no longer awaited.
type CancelChildRequest struct {
	Project string `json:"project"`
	Parent  string `json:"parent"`
	RunID   string `json:"runId"`
}

// ChildEnded is the payload of the signal that notifies a run of the completion of a child which it awaits
// (contract.ChildSignal).
type ChildEnded struct {
	Key    string `json:"key"` // of the ChildRequest
	RunID  string `json:"runId"`
	Status string `json:"status"`
	// Output is set for a completed run, Error for one that failed, timed out or was terminated.
	Output json.RawMessage `json:"output,omitempty"`
	Error  *dsl.Error      `json:"error,omitempty"`
	// ParentCanceled reports that the child was canceled with its parent: the cancellation of the parent was requested.
	ParentCanceled bool `json:"parentCanceled,omitempty"`
	// Sensitive are the texts in both that must be redacted.
	Sensitive []string `json:"sensitive,omitempty"`
}

// terminated is the status of a run that was terminated in Temporal. The interpreter has no such status.
const terminated = "terminated"

// childCancelTimeout bounds the wait of a canceled run for the completion of its canceled children.
const childCancelTimeout = 30 * time.Second

func (d *driver) startChild(e interp.StartChild) {
	input, err := encode(e.Input)
	if err != nil {
		panic(fmt.Sprintf("encode the input of another run: %v", err)) // expressions return only JSON values
	}
	this := &effect{kind: childEffect, id: e.ID, child: e.Key}
	if !d.fits(this, "the input of the other run", len(input)) {
		return
	}
	this.future, this.cancel = d.storeActivity(e.ID, ChildActivity, ChildRequest{
		Project: d.in.Project, Parent: d.in.RunID, Path: e.Path, Key: e.Key, Workflow: e.Workflow, Version: e.Version,
		Input: input, Awaited: e.Awaited, Sensitive: d.tracker.In(input),
	})
	d.pending = append(d.pending, this)
}

// completeChildStart passes the result of a child's start to the machine. A child that was abandoned meanwhile is
// canceled. The rejection of a start because the run is being canceled is not passed on, see cancelIfRequested.
func (d *driver) completeChildStart(e *effect) {
	var started ChildStarted
	err := e.future.Get(d.detached, &started)
	runError := rejection(err)
	switch {
	case !e.abandoned && runError != nil && runError.Type == interp.ErrorTypeChildCanceled:
		d.over = append(d.over, e.child)
	case !e.abandoned:
		d.machine.Complete(e.id, interp.Result{Value: started.RunID, Error: runError}, workflow.Now(d.ctx))
	case err == nil:
		d.cancelChild(started.RunID)
	default:
		d.stopAwaiting(e.child)
	}
}

// abandonChild cancels a child that is no longer awaited, unless it is over. If the run itself has ended in another way
// than by cancellation, the process that watches awaited runs cancels it: commands in flight are lost with the
// execution.
func (d *driver) abandonChild(c interp.CancelChild) {
	outcome, done := d.machine.Done()
	if done && outcome.Status != interp.StatusCanceled || slices.Contains(d.over, c.Key) {
		return
	}
	if done {
		d.canceling = append(d.canceling, c.Key)
	}
	if c.RunID != "" {
		d.cancelChild(c.RunID)
		return
	}
	for _, e := range d.pending {
		if e.kind == childEffect && e.child == c.Key {
			e.abandoned = true
		}
	}
}

func (d *driver) cancelChild(runID string) {
	future, cancel := d.storeActivity(0, CancelChildActivity,
		CancelChildRequest{Project: d.in.Project, Parent: d.in.RunID, RunID: runID})
	d.pending = append(d.pending, &effect{kind: cancelChildEffect, future: future, cancel: cancel})
}

// childRequestsPending reports whether activities for children are in flight that the machine does not wait for. They
// would be lost with this execution.
func (d *driver) childRequestsPending() bool {
	return slices.ContainsFunc(d.pending, func(e *effect) bool {
		return e.kind == childEffect || e.kind == cancelChildEffect
	})
}

// flushChildCancels waits, with a bound, for the completion of the children that a canceled run awaited.
func (d *driver) flushChildCancels() {
	if len(d.canceling) == 0 {
		return
	}
	timeout := workflow.NewTimer(d.detached, childCancelTimeout)
	for len(d.canceling) > 0 && !timeout.IsReady() {
		_ = workflow.Await(d.detached, func() bool { return timeout.IsReady() || d.hasWork() })
		d.handleCompletions()
	}
}

// stopAwaiting removes a child from those that a canceled run waits for.
func (d *driver) stopAwaiting(key string) {
	d.canceling = slices.DeleteFunc(d.canceling, func(k string) bool { return k == key })
}

// handleChildResults passes the received completions of children to the machine.
func (d *driver) handleChildResults() {
	for d.children != nil && d.children.Len() > 0 {
		var ended ChildEnded
		if !d.children.ReceiveAsync(&ended) {
			return // the rest cannot be decoded
		}
		d.newTask()
		d.events += eventsPerSignal
		d.stopAwaiting(ended.Key)
		d.tracker.Add(ended.Sensitive...)
		if ended.ParentCanceled {
			d.over = append(d.over, ended.Key)
			continue
		}
		d.machine.ChildEnded(ended.Key, ended.result(), workflow.Now(d.ctx))
	}
}

// result returns the child's result for the task that awaits it.
func (e ChildEnded) result() interp.Result {
	runError := dsl.Error{Type: dsl.ErrorTypeRuntime, Status: 500, Title: "Cannot go on",
		Detail: "it ended as " + e.Status}
	if e.Error != nil {
		runError = *e.Error
	}
	switch e.Status {
	case string(interp.StatusCompleted):
		output, err := decode(e.Output)
		if err == nil {
			return interp.Result{Value: output}
		}
		runError.Detail = "its output cannot be read: " + err.Error()
	case string(interp.StatusCanceled):
		runError = dsl.Error{Type: interp.ErrorTypeChildCanceled, Status: 409, Title: "Child canceled",
			Detail: "it was canceled"}
	case terminated:
		runError.Type, runError.Title = interp.ErrorTypeChildTerminated, "Child terminated"
	}
	return interp.Result{Error: interp.ChildError(e.RunID, runError)}
}
