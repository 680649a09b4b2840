package engine

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strings"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/httpcall/scrub"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/event/cloudevents"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// Events keeps the listeners of runs and takes the events that they emit.
type Events interface {
	// Listen commits a listener; one with the same ID is there already.
	Listen(ctx context.Context, l event.Listener) error
	// Unlisten removes a listener, if it is there.
	Unlisten(ctx context.Context, project, id string) error
	// Publish commits events; giving one again is a duplicate.
	Publish(ctx context.Context, project string, events []event.Event) ([]event.Accepted, error)
}

// signalLimit marks Temporal's refusal of a signal to an execution that has had as many as it may, which has no type of its own. The
// run goes on in another execution when its worker gets to it.
const signalLimit = "limit for signal events"

// Wake hands an event, in its CloudEvents JSON form, to a run that listens, with the texts that are sensitive in it. Handing it over
// again changes nothing. The
// errors are [run.ErrNotKnown] and [run.ErrClosed] for runs that are not there to be woken, and faults: Refused for an event that
// Temporal will never take, Unavailable for what may succeed later.
func (e *Engine) Wake(
	ctx context.Context, runID, listener string, position int64, cloudEvent json.RawMessage, sensitive []string,
) error {
	c, err := e.temporal()
	if err != nil {
		return err
	}
	err = c.SignalWorkflow(ctx, contract.WorkflowID(runID), "", contract.WakeSignal,
		flow.Wake{Listener: listener, Position: position, Event: cloudEvent, Sensitive: sensitive})
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
		return fault.New(fault.Refused, fault.EngineRefused,
			"temporal at %s refused the event for run %s: %v", e.address, runID, err).WithCause(err)
	default:
		return fault.New(fault.Unavailable, fault.EngineUnavailable,
			"temporal at %s did not take the event for run %s; try again", e.address, runID).WithRetry(retryAfter).WithCause(err)
	}
}

// absent tells why Temporal has no open execution of a run: it answers alike for what it never knew and for what has ended.
func (e *Engine) absent(ctx context.Context, runID string) error {
	known, err := e.describe(ctx, runID)
	switch {
	case err != nil:
		return err
	case known == nil:
		return run.ErrNotKnown
	default:
		return run.ErrClosed
	}
}

// RegisterEvents registers the activities with which runs listen and emit.
func RegisterEvents(r worker.ActivityRegistry, events Events) {
	w := eventWork{events}
	r.RegisterActivityWithOptions(w.listen, activity.RegisterOptions{Name: flow.ListenActivity})
	r.RegisterActivityWithOptions(w.unlisten, activity.RegisterOptions{Name: flow.UnlistenActivity})
	r.RegisterActivityWithOptions(w.emit, activity.RegisterOptions{Name: flow.EmitActivity})
}

type eventWork struct{ events Events }

func (w eventWork) listen(ctx context.Context, r flow.ListenRequest) error {
	return refused(w.events.Listen(ctx, event.Listener{
		ID: r.Listener, Project: r.Project, RunID: r.RunID, Spec: event.Spec{Mode: r.Spec.Mode, Filters: r.Spec.Filters},
	}))
}

func (w eventWork) unlisten(ctx context.Context, r flow.UnlistenRequest) error {
	return refused(w.events.Unlisten(ctx, r.Project, r.Listener))
}

func (w eventWork) emit(ctx context.Context, r flow.EmitRequest) error {
	parsed, err := cloudevents.FromJSON(r.Event, event.Limits{MaxDataBytes: math.MaxInt, MaxBatch: 1}) // the size is for who takes it
	if err != nil {
		return refused(err)
	}
	parsed.RunID, parsed.Sensitive = r.RunID, r.Sensitive
	giver := auth.Actor{Kind: auth.KindSystem, Name: "run " + r.RunID}
	_, err = w.events.Publish(auth.WithActor(ctx, giver), r.Project, []event.Event{parsed})
	return refused(scrub.New(r.Sensitive...).Error(err)) // it goes to logs, too
}

// refused makes an error of the run of what will never be taken. Everything else is for Temporal to try again.
func refused(err error) error {
	f, ok := errors.AsType[*fault.Fault](err)
	if !ok {
		return err
	}
	problem := dsl.Error{Detail: f.Message}
	switch {
	case f.Reason == fault.EventTooLarge:
		problem.Type, problem.Status, problem.Title = dsl.ErrorTypeValidation, http.StatusRequestEntityTooLarge, "Event too large"
	case f.Class == fault.Invalid:
		problem.Type, problem.Status, problem.Title = dsl.ErrorTypeValidation, http.StatusBadRequest, "Event refused"
	case f.Class == fault.NotFound:
		problem.Type, problem.Status, problem.Title = dsl.ErrorTypeConfiguration, http.StatusNotFound, "Not found"
	default:
		return err
	}
	return flow.CallError(flow.CategoryRefused, problem, err)
}
