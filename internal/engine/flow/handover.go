package flow

import (
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// handleResponse handles the completion of a call's activity: the call's result, a request that continues in the
// process that sent it, or the loss of its result.
func (d *driver) handleResponse(e *effect, response HTTPResponse, err error) {
	if e.call.Local {
		d.localBytes += response.Size()
	} else {
		d.newTask()
	}
	e.inline, e.call.Local = 0, false
	now := workflow.Now(d.ctx)
	switch {
	case response.Continued != nil:
		d.attach(e, *response.Continued)
		return
	case response.Postponed:
		if len(response.Attempts) == 0 {
			e.tries-- // nothing was sent
		} else {
			e.attempts = response.Attempts
			d.machine.RecordAttempts(e.id, e.attempts, now)
		}
		d.startCall(e)
		return
	case lost(err):
		e.attempts = append(e.attempts, Attempt{StartedAt: e.sentAt, EndedAt: now, Unknown: true})
		if e.tries < d.limits.CallTries && !e.call.Once {
			d.machine.RecordAttempts(e.id, e.attempts, now)
			d.startCall(e)
			return
		}
	}
	result := resultOf(e.call, response, err)
	if len(e.attempts) > 0 {
		if len(result.Attempts) == 0 && !lost(err) { // the last try sent nothing
			result.Attempts = []Attempt{{StartedAt: e.sentAt, EndedAt: now}}
		}
		result.Attempts = append(e.attempts, result.Attempts...)
	}
	d.machine.Complete(e.id, result, now)
}

// attach waits for a request in flight, by an activity in the process that sent it. If that process is gone, no worker
// takes the activity, or its heartbeats stop.
func (d *driver) attach(e *effect, c Continued) {
	left := max(e.call.Timeout-workflow.Now(d.ctx).Sub(e.sentAt), 0)
	ctx, cancel := workflow.WithCancel(workflow.WithActivityOptions(d.contextOf(e.id), workflow.ActivityOptions{
		TaskQueue:              c.Queue,
		ScheduleToStartTimeout: d.limits.Heartbeat,
		StartToCloseTimeout:    left + keepGrace,
		HeartbeatTimeout:       d.limits.Heartbeat,
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
	}))
	e.future, e.cancel = workflow.ExecuteActivity(ctx, AttachActivity, AttachRequest{ID: c.ID}), cancel
	d.events += eventsPerActivity
	d.pending = append(d.pending, e)
}
