package flow

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/dsl/interp"
)

// Control is the payload of the signal that controls a run (contract.ControlSignal). An operation without an effect is
// ignored.
type Control struct {
	Op string `json:"op"`
	// Reason is for readers of the history.
	Reason string `json:"reason,omitempty"`
}

// Operations of a Control.
const (
	// OpPause prevents every branch from entering its next task. Work in flight ends, and timers continue.
	OpPause = "pause"
	// OpUnpause continues a paused run.
	OpUnpause = "unpause"
	// OpResumeQuota requests the rejected steps again at once.
	OpResumeQuota = "resume_quota"
)

// QuotaActivity grants steps to a run with Input.StepQuota: [Quota]. It is retried for ever while it fails.
const QuotaActivity = "signalbox.quota"

// QuotaRequest is the argument of QuotaActivity: it requests a block of steps.
type QuotaRequest struct {
	Project string `json:"project"`
	RunID   string `json:"runId"`
	// Granted counts all steps of grants that the run has received so far. An activity may run several times: the run
	// has not received steps that were granted beyond this number, so the response must include them.
	Granted int64 `json:"granted"`
	// Used counts all steps that the run has entered so far.
	Used int64 `json:"used"`
	// Force marks a request by an operator, which overrides a stored rejection.
	Force bool `json:"force,omitempty"`
}

// QuotaGrant is the result of a QuotaRequest.
type QuotaGrant struct {
	// Steps is the number of further steps that the run may enter before ResetAt. Steps that it has not entered by then
	// expire, and so do those left at its end: its row stores how many it entered. 0 holds the run until ResetAt.
	Steps int64 `json:"steps"`
	// ResetAt is the end of the period.
	ResetAt time.Time `json:"resetAt"`
	// Used and Limit are the project's in this period, for readers of the history.
	Used  int64 `json:"used"`
	Limit int64 `json:"limit"`
}

// handleControls executes the received controls.
func (d *driver) handleControls() {
	for d.controls != nil && d.controls.Len() > 0 {
		var c Control
		if !d.controls.ReceiveAsync(&c) {
			return // the rest cannot be decoded
		}
		d.newTask()
		d.events += eventsPerSignal
		now := workflow.Now(d.ctx)
		switch c.Op {
		case OpPause:
			d.machine.Pause(now)
		case OpUnpause:
			d.machine.Unpause(now)
		case OpResumeQuota:
			d.machine.ResumeQuota(now)
		}
	}
}

// signaled reports whether signals have been received and not handled yet.
func (d *driver) signaled() bool {
	return d.wakes.Len() > 0 || d.controls != nil && (d.controls.Len() > 0 || d.children.Len() > 0)
}

func (d *driver) requestSteps(e interp.RequestSteps) {
	future, cancel := d.storeActivity(0, QuotaActivity, QuotaRequest{
		Project: d.in.Project, RunID: d.in.RunID, Granted: e.Granted, Used: e.Used, Force: e.Force,
	})
	d.pending = append(d.pending, &effect{kind: quotaEffect, id: e.ID, future: future, cancel: cancel})
}

func (d *driver) completeQuota(e *effect) {
	var grant QuotaGrant
	now := workflow.Now(d.ctx)
	if err := e.future.Get(d.detached, &grant); err != nil {
		runError := rejection(err)
		runError.Instance = "/"
		d.machine.Abort(*runError, now)
		return
	}
	d.machine.Grant(e.id, grant.Steps, grant.ResetAt, now)
}
