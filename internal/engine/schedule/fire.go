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

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/fault"
)

// The names under which Temporal knows what a schedule starts.
const (
	fireWorkflow = "signalbox.fire"
	fireActivity = "signalbox.fire"
)

// Fire is what a schedule starts a fire workflow with.
type Fire struct {
	Project  string `json:"project"`
	Workflow string `json:"workflow"`
	Version  string `json:"version"`
	// At is when it was due. Zero: the time for which the schedule started it.
	At time.Time `json:"at,omitzero"`
	// Following: it was arranged at the end of a run, for later. Nobody arranges it again, so that it waits while the workflow is paused;
	// it comes to nothing where the workflow does not follow its runs any more.
	Following bool `json:"following,omitempty"`
	// Run is the ID of the run that it follows; empty where it follows none, and where an earlier release has arranged it.
	Run string `json:"run,omitempty"`
}

// Publisher accepts events.
type Publisher interface {
	Publish(ctx context.Context, project string, events []event.Event) ([]event.Accepted, error)
}

// Timers tells what a workflow wants of the clock by now.
type Timers interface {
	Timer(ctx context.Context, project, workflow string) (t event.Timer, found bool, err error)
}

// Register adds the fire workflow to the worker of a project.
func Register(r worker.Registry, events Publisher, timers Timers) {
	r.RegisterWorkflowWithOptions(fire, workflow.RegisterOptions{Name: fireWorkflow})
	publish := func(ctx context.Context, f Fire) error {
		if f.Following {
			if wanted, err := stillWanted(ctx, timers, f); err != nil || !wanted {
				return err
			}
		}
		return commit(ctx, events, f)
	}
	r.RegisterActivityWithOptions(publish, activity.RegisterOptions{Name: fireActivity})
}

// fire commits the event of one fire time. It goes on for as long as it takes: what was due is not lost because the database
// was away.
func fire(ctx workflow.Context, f Fire) error {
	if f.At.IsZero() {
		f.At = workflow.Now(ctx)
		if due, ok := workflow.GetTypedSearchAttributes(ctx).GetTime(temporal.NewSearchAttributeKeyTime("TemporalScheduledStartTime")); ok {
			f.At = due
		}
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 15 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute},
	})
	return workflow.ExecuteActivity(ctx, fireActivity, f).Get(ctx, nil)
}

// stillWanted tells whether the workflow still follows its runs. The error of one that is paused has Temporal ask again, at most a
// minute later.
func stillWanted(ctx context.Context, timers Timers, f Fire) (bool, error) {
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

// commit publishes the event. The same fire time again is a duplicate, unless it follows another run: those may end within one second.
func commit(ctx context.Context, events Publisher, f Fire) error {
	at := f.At.UTC().Format(time.RFC3339)
	data, err := json.Marshal(map[string]string{"scheduledTime": at, "workflow": f.Workflow, "version": f.Version})
	if err != nil {
		return fmt.Errorf("writing what was due: %w", err)
	}
	id := at
	if f.Run != "" {
		id += "/" + f.Run
	}
	_, err = events.Publish(ctx, f.Project, []event.Event{{
		ID: id, Source: event.TimerSource(f.Project, f.Workflow), Type: event.ScheduleFired, Subject: f.Workflow,
		Time: f.At, DataContentType: "application/json", Data: data,
	}})
	if found, ok := fault.From(err); ok && (found.Class == fault.NotFound || found.Class == fault.Invalid) {
		return temporal.NewApplicationErrorWithOptions(err.Error(), found.Reason, temporal.ApplicationErrorOptions{NonRetryable: true, Cause: err})
	}
	return err
}

// fireID is the workflow ID of the fire after the end of a run.
func fireID(project, name, run string) string { return ID(project, name) + "/after/" + run }
