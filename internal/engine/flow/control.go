package flow

import (
	"context"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/dsl/interp"
)

// ControlsSince is the first interpreter whose runs can be paused, have a quota of steps and await other runs. A run that was started with an older
// one takes no notice: workers that knew no other way may have worked on it.
const ControlsSince = 3

// Control is the payload of the signal that controls a run (contract.ControlSignal). What is so already stays so.
type Control struct {
	Op string `json:"op"`
	// Reason is for those who read the history.
	Reason string `json:"reason,omitempty"`
}

// What a Control does.
const (
	// OpPause keeps every branch from entering its next task. What is in flight ends, and timers go on.
	OpPause = "pause"
	// OpUnpause lets a paused run go on.
	OpUnpause = "unpause"
	// OpResumeQuota asks at once for the steps that were refused.
	OpResumeQuota = "resume_quota"
)

// QuotaActivity grants steps to a run with Input.StepQuota: [Quota]. It is asked again for ever while it fails.
const QuotaActivity = "signalbox.quota"

// Quota grants steps. It is what implements QuotaActivity.
type Quota func(ctx context.Context, request QuotaRequest) (QuotaGrant, error)

// QuotaRequest asks for a block of steps.
type QuotaRequest struct {
	Project string `json:"project"`
	RunID   string `json:"runId"`
	// Granted counts all steps that the run knows to be granted so far. An activity may run several times: what was granted to
	// the run beyond this number was never heard of, and is to be granted by the same answer.
	Granted int64 `json:"granted"`
	// Used counts all steps that the run has entered so far.
	Used int64 `json:"used"`
	// Force: somebody asks for it, so a refusal that is remembered is no answer.
	Force bool `json:"force,omitempty"`
}

// QuotaGrant answers a QuotaRequest.
type QuotaGrant struct {
	// Steps are how many more steps the run may enter before ResetAt; what it has not entered by then lapses, and what is left when
	// it ends is nobody's: the row says how many it entered. 0 holds the run until ResetAt.
	Steps int64 `json:"steps"`
	// ResetAt is when the period ends.
	ResetAt time.Time `json:"resetAt"`
	// Used and Limit are the project's in this period, for those who read the history.
	Used  int64 `json:"used"`
	Limit int64 `json:"limit"`
}

// obey does what controls say that have come.
func (d *driver) obey() {
	for d.controls != nil && d.controls.Len() > 0 {
		var c Control
		if !d.controls.ReceiveAsync(&c) {
			return // what was left cannot be read
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

// signaled tells whether a signal has come that was not taken in yet.
func (d *driver) signaled() bool {
	return d.wakes.Len() > 0 || d.controls != nil && (d.controls.Len() > 0 || d.children.Len() > 0)
}

func (d *driver) askSteps(e interp.AskSteps) {
	future, cancel := d.storeActivity(QuotaActivity, QuotaRequest{
		Project: d.in.Project, RunID: d.in.RunID, Granted: e.Granted, Used: e.Used, Force: e.Force,
	})
	d.pending = append(d.pending, &effect{kind: quotaEffect, id: e.ID, future: future, cancel: cancel})
}

func (d *driver) settleQuota(e *effect) {
	var grant QuotaGrant
	now := workflow.Now(d.ctx)
	if err := e.future.Get(d.detached, &grant); err != nil {
		problem := refusal(err)
		problem.Instance = "/"
		d.machine.Abort(*problem, now)
		return
	}
	d.machine.Grant(e.id, grant.Steps, grant.ResetAt, now)
}
