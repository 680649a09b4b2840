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

	"github.com/signalbox-dev/signalbox/dsl/firing"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/event"
)

// The names in Temporal of the workflow and the activity of a fire.
const (
	fireWorkflow = "signalbox.fire"
	fireActivity = "signalbox.fire"
	// The activities that wait for the run of a fire to end, and cancel it.
	waitActivity   = "signalbox.fire.wait"
	cancelActivity = "signalbox.fire.cancel"
)

// waitAtMost is the longest delay between the end of a run and the end of its fire workflow.
const waitAtMost = 10 * time.Second

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
	// Cron is the expression of the schedule, Zone its time zone; empty for an interval. A fire at a time that does not
	// match them has no effect, see package firing.
	Cron string `json:"cron,omitempty"`
	Zone string `json:"zone,omitempty"`
	// Waits: the fire workflow is open until the run that it started has ended. Its cancellation cancels that run.
	Waits bool `json:"waits,omitempty"`
}

// fired identifies the committed event of a fire.
type fired struct {
	Project  string `json:"project"`
	Workflow string `json:"workflow"`
	// Position is that of the event; 0 if the fire had no effect.
	Position int64 `json:"position"`
}

// Publisher publishes events.
type Publisher interface {
	Publish(ctx context.Context, project string, events []event.Event) ([]event.Accepted, error)
}

// State is the state of the timers, of fires and of their runs.
type State interface {
	// Timer returns the current timer of a workflow.
	Timer(ctx context.Context, project, workflow string) (t event.Timer, found bool, err error)
	// FiredRun returns the run of a workflow that an event has started or will start, and whether that run has ended; also
	// if the event starts none. The ID is empty while it is unknown.
	FiredRun(ctx context.Context, project, workflow string, position int64) (id string, ended bool, err error)
}

// Canceler cancels runs. It does nothing for a run that has ended or is being canceled.
type Canceler interface {
	Cancel(ctx context.Context, project, id, reason string) error
}

// Register adds the fire workflow to a worker of [contract.FireQueue].
func Register(r worker.Registry, events Publisher, state State, runs Canceler) {
	r.RegisterWorkflowWithOptions(fire, workflow.RegisterOptions{Name: fireWorkflow})
	a := activities{events, state, runs}
	r.RegisterActivityWithOptions(a.publish, activity.RegisterOptions{Name: fireActivity})
	r.RegisterActivityWithOptions(a.wait, activity.RegisterOptions{Name: waitActivity})
	r.RegisterActivityWithOptions(a.cancel, activity.RegisterOptions{Name: cancelActivity})
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
	retried := func(ctx workflow.Context, maximum time.Duration) workflow.Context {
		return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: 15 * time.Second,
			RetryPolicy: &temporal.RetryPolicy{
				InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: maximum},
		})
	}
	if !f.Waits {
		return workflow.ExecuteActivity(retried(ctx, time.Minute), fireActivity, f).Get(ctx, nil)
	}
	// A cancellation applies to the run. The event is committed first, so that the run is known.
	detached, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	done := fired{Project: f.Project, Workflow: f.Workflow}
	err := workflow.ExecuteActivity(retried(detached, time.Minute), fireActivity, f).Get(detached, &done.Position)
	if err != nil || done.Position == 0 {
		return err
	}
	// Temporal attempts the activity again until the run has ended, which adds nothing to the history.
	err = workflow.ExecuteActivity(retried(ctx, waitAtMost), waitActivity, done).Get(ctx, nil)
	if !temporal.IsCanceledError(err) {
		return err
	}
	for _, name := range []string{cancelActivity, waitActivity} {
		if failed := workflow.ExecuteActivity(retried(detached, waitAtMost), name, done).Get(detached, nil); failed != nil {
			return failed
		}
	}
	return err
}

type activities struct {
	events Publisher
	state  State
	runs   Canceler
}

// publish commits the event of a fire and returns its position; 0 if the fire has no effect.
func (a activities) publish(ctx context.Context, f Fire) (int64, error) {
	if f.Run != "" {
		if follows, err := stillFollows(ctx, a.state, f); err != nil || !follows {
			return 0, err
		}
	}
	if f.Cron != "" {
		if times, err := firing.New(firing.Spec{Cron: f.Cron, Zone: f.Zone}); err == nil && !times.Matches(f.At) {
			return 0, nil
		}
	}
	return commit(ctx, a.events, f)
}

// openRun returns the open run of a fire; "" if it has ended. It fails while the run is unknown.
func (a activities) openRun(ctx context.Context, f fired) (string, error) {
	id, ended, err := a.state.FiredRun(ctx, f.Project, f.Workflow, f.Position)
	switch {
	case err != nil:
		return "", fmt.Errorf("reading the run of the event at position %d: %w", f.Position, err)
	case ended:
		return "", nil
	case id == "":
		return "", fmt.Errorf("the event at position %d has not started a run yet", f.Position)
	}
	return id, nil
}

// wait fails until the run of a fire has ended.
func (a activities) wait(ctx context.Context, f fired) error {
	id, err := a.openRun(ctx, f)
	if err != nil || id == "" {
		return err
	}
	return fmt.Errorf("run %s is open", id)
}

// cancel cancels the run of a fire.
func (a activities) cancel(ctx context.Context, f fired) error {
	id, err := a.openRun(ctx, f)
	if err != nil || id == "" {
		return err
	}
	return a.runs.Cancel(ctx, f.Project, id, "the schedule fired again, and its overlap is to cancel the open run")
}

// stillFollows reports whether the workflow still follows its runs. For a paused workflow it returns an error, and
// Temporal retries within a minute.
func stillFollows(ctx context.Context, timers State, f Fire) (bool, error) {
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

// commit publishes the event and returns its position. The same fire time is a duplicate, unless it follows another run:
// several runs may end within one second.
func commit(ctx context.Context, events Publisher, f Fire) (int64, error) {
	at := eventID(f.At)
	data, err := json.Marshal(map[string]string{"scheduledTime": at, "workflow": f.Workflow, "version": f.Version})
	if err != nil {
		return 0, fmt.Errorf("encoding the event of a fire: %w", err)
	}
	id := at
	if f.Run != "" {
		id += "/" + f.Run
	}
	accepted, err := events.Publish(ctx, f.Project, []event.Event{{
		ID: id, Source: event.TimerSource(f.Project, f.Workflow), Type: event.ScheduleFired, Subject: f.Workflow,
		Time: f.At, DataContentType: "application/json", Data: data,
	}})
	if found, ok := apperror.From(err); ok && (found.Class == apperror.NotFound || found.Class == apperror.Invalid) {
		return 0, temporal.NewApplicationErrorWithOptions(err.Error(), found.Reason,
			temporal.ApplicationErrorOptions{NonRetryable: true, Cause: err})
	}
	if err != nil {
		return 0, err
	}
	return accepted[0].Position, nil
}

// eventID returns the ID of the event of a due time.
func eventID(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// fireID returns the workflow ID of the fire after the end of a run.
func fireID(project, name, run string) string { return ID(project, name) + "/after/" + run }
