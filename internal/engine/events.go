package engine

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strings"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/event/cloudevents"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// Listeners stores the listeners of runs.
type Listeners interface {
	// Listen commits a listener. A listener with the same ID is left as it is.
	Listen(ctx context.Context, l event.Listener) error
}

// Events stores the listeners of runs and publishes the events that they emit.
type Events interface {
	Listeners
	// Unlisten removes a listener, if it exists.
	Unlisten(ctx context.Context, project, id string) error
	// Publish commits events. Publishing an event again is a duplicate.
	Publish(ctx context.Context, project string, events []event.Event) ([]event.Accepted, error)
}

// signalLimit identifies Temporal's rejection of a signal to an execution that has reached its signal limit, which has
// no error type of its own. The run continues in another execution after its next workflow task.
const signalLimit = "limit for signal events"

// Wake delivers events to a listening run in one signal, in their order. Delivering them again changes nothing. The
// errors are [run.ErrNotKnown] and [run.ErrClosed] for runs that cannot receive it, and faults: Refused for an event
// that Temporal will never accept, Unavailable for one that may succeed later.
func (e *Engine) Wake(ctx context.Context, runID string, events ...event.WakeEvent) error {
	c, err := e.temporal()
	if err != nil {
		return err
	}
	wakes := make([]flow.Wake, len(events))
	for i, w := range events {
		wakes[i] = flow.Wake{Listener: w.Listener, Position: w.Position, Event: w.JSON, Sensitive: w.Sensitive}
	}
	signal := wakes[0]
	signal.More = wakes[1:]
	err = c.SignalWorkflow(ctx, contract.WorkflowID(runID), "", contract.WakeSignal, signal)
	if err == nil {
		return nil
	}
	var (
		missing *serviceerror.NotFound
		invalid *serviceerror.InvalidArgument
	)
	switch {
	case errors.As(err, &missing):
		return e.absent(ctx, runID)
	case errors.As(err, &invalid) && !strings.Contains(invalid.Message, signalLimit):
		return apperror.New(apperror.Refused, apperror.EngineRefused,
			"temporal rejected the event for run %s: %v", runID, err).WithDetail("%s", e.address).WithCause(err)
	default:
		return apperror.New(apperror.Unavailable, apperror.EngineUnavailable,
			"temporal did not accept the event for run %s", runID).WithDetail("%s: %v", e.address,
			err).WithRetry(retryAfter).WithCause(err)
	}
}

// absent returns the reason why Temporal has no open execution of a run: Temporal's error is the same for an unknown
// and for a closed execution.
func (e *Engine) absent(ctx context.Context, runID string) error {
	info, err := e.describe(ctx, runID)
	switch {
	case err != nil:
		return err
	case info == nil:
		return run.ErrNotKnown
	default:
		return run.ErrClosed
	}
}

// RegisterEvents registers the activities that listen and emit.
func RegisterEvents(r worker.ActivityRegistry, events Events) {
	a := eventActivities{events}
	r.RegisterActivityWithOptions(a.listen, activity.RegisterOptions{Name: flow.ListenActivity})
	r.RegisterActivityWithOptions(a.unlisten, activity.RegisterOptions{Name: flow.UnlistenActivity})
	r.RegisterActivityWithOptions(a.emit, activity.RegisterOptions{Name: flow.EmitActivity})
}

type eventActivities struct{ events Events }

func (a eventActivities) listen(ctx context.Context, r flow.ListenRequest) error {
	return rejected(a.events.Listen(ctx, listenerOf(r)))
}

func listenerOf(r flow.ListenRequest) event.Listener {
	return event.Listener{
		ID: r.Listener, Project: r.Project, RunID: r.RunID, Spec: event.Spec{Mode: r.Spec.Mode, Filters: r.Spec.Filters},
		FromStart: r.FromStart, Single: r.Single, After: r.After, Taken: r.Taken,
	}
}

func (a eventActivities) unlisten(ctx context.Context, r flow.UnlistenRequest) error {
	return rejected(a.events.Unlisten(ctx, r.Project, r.Listener))
}

func (a eventActivities) emit(ctx context.Context, r flow.EmitRequest) error {
	// the publisher checks the size
	parsed, err := cloudevents.FromJSON(r.Event, event.Limits{MaxDataBytes: math.MaxInt, MaxBatch: 1})
	if err != nil {
		return rejected(err)
	}
	parsed.RunID, parsed.Sensitive = r.RunID, r.Sensitive
	_, err = a.events.Publish(auth.WithActor(ctx, auth.Run(r.RunID)), r.Project, []event.Event{parsed})
	return rejected(redact.NewScrubber(r.Sensitive...).Error(err)) // the error is also logged
}

// rejected converts a permanent rejection to an error of the run. Temporal retries every other error.
func rejected(err error) error {
	f, ok := errors.AsType[*apperror.Error](err)
	if !ok {
		return err
	}
	runError := dsl.Error{Detail: f.Message}
	switch {
	case f.Reason == apperror.EventTooLarge:
		runError.Type, runError.Status = dsl.ErrorTypeValidation, http.StatusRequestEntityTooLarge
		runError.Title = "Event too large"
	case f.Class == apperror.Invalid:
		runError.Type, runError.Status, runError.Title = dsl.ErrorTypeValidation, http.StatusBadRequest, "Event refused"
	case f.Class == apperror.NotFound:
		runError.Type, runError.Status, runError.Title = dsl.ErrorTypeConfiguration, http.StatusNotFound, "Not found"
	default:
		return err
	}
	return flow.CallError(flow.CategoryRefused, runError, err)
}
