package schedule

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/event"
)

// The names in Temporal of the workflow and the activity of a fire.
const (
	fireWorkflow = "signalbox.fire"
	fireActivity = "signalbox.fire"
)

// Fire is the input of a fire workflow.
type Fire struct {
	Project  string `json:"project"`
	Workflow string `json:"workflow"`
	Version  string `json:"version"`
	// At is the due time. Zero: the time for which the schedule started the workflow.
	At time.Time `json:"at,omitzero"`
	// Run is the ID of the run that the fire follows; empty if it follows none. A fire that follows a run was started at
	// the end of the run for a later time. It is started only once, so it waits while the workflow is paused. It has no
	// effect if the workflow no longer follows its runs.
	Run string `json:"run,omitempty"`
}

// Publisher publishes events.
type Publisher interface {
	Publish(ctx context.Context, project string, events []event.Event) ([]event.Accepted, error)
}

// Timers returns the current timer of a workflow.
type Timers interface {
	Timer(ctx context.Context, project, workflow string) (t event.Timer, found bool, err error)
}

// Register adds the fire workflow to a worker of [contract.FireQueue].
func Register(r worker.Registry, events Publisher, timers Timers) {
	r.RegisterWorkflowWithOptions(fire, workflow.RegisterOptions{Name: fireWorkflow})
	publish := func(ctx context.Context, f Fire) error {
		if f.Run != "" {
			if follows, err := stillFollows(ctx, timers, f); err != nil || !follows {
				return err
			}
		}
		return commit(ctx, events, f)
	}
	r.RegisterActivityWithOptions(publish, activity.RegisterOptions{Name: fireActivity})
}

// fire commits the event of one fire time. It retries without a bound, so that an outage of the database does not lose
// a fire.
func fire(ctx workflow.Context, f Fire) error {
	if f.At.IsZero() {
		f.At = workflow.Now(ctx)
		if due, ok := workflow.GetTypedSearchAttributes(ctx).
			GetTime(temporal.NewSearchAttributeKeyTime("TemporalScheduledStartTime")); ok {
			f.At = due
		}
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 15 * time.Second,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute},
	})
	return workflow.ExecuteActivity(ctx, fireActivity, f).Get(ctx, nil)
}

// stillFollows reports whether the workflow still follows its runs. For a paused workflow it returns an error, and
// Temporal retries within a minute.
func stillFollows(ctx context.Context, timers Timers, f Fire) (bool, error) {
	t, found, err := timers.Timer(ctx, f.Project, f.Workflow)
	switch {
	case err != nil:
		return false, fmt.Errorf("reading the timer of %q: %w", f.Workflow, err)
	case !found || !t.Spec.Follows():
		return false, nil
	case t.Paused:
		return false, fmt.Errorf("workflow %q is paused", f.Workflow)
	}
	return true, nil
}

// commit publishes the event. The same fire time is a duplicate, unless it follows another run: several runs may end
// within one second.
func commit(ctx context.Context, events Publisher, f Fire) error {
	at := f.At.UTC().Format(time.RFC3339)
	data, err := json.Marshal(map[string]string{"scheduledTime": at, "workflow": f.Workflow, "version": f.Version})
	if err != nil {
		return fmt.Errorf("encoding the event of a fire: %w", err)
	}
	id := at
	if f.Run != "" {
		id += "/" + f.Run
	}
	_, err = events.Publish(ctx, f.Project, []event.Event{{
		ID: id, Source: event.TimerSource(f.Project, f.Workflow), Type: event.ScheduleFired, Subject: f.Workflow,
		Time: f.At, DataContentType: "application/json", Data: data,
	}})
	if found, ok := apperror.From(err); ok && (found.Class == apperror.NotFound || found.Class == apperror.Invalid) {
		return temporal.NewApplicationErrorWithOptions(err.Error(), found.Reason,
			temporal.ApplicationErrorOptions{NonRetryable: true, Cause: err})
	}
	return err
}

// fireID returns the workflow ID of the fire after the end of a run.
func fireID(project, name, run string) string { return ID(project, name) + "/after/" + run }
