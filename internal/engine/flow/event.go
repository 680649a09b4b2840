package flow

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
	"github.com/signalbox-dev/signalbox/dsl/interp"
)

// Names of the activities for events. Like those of calls, they never change their meaning.
const (
	// ListenActivity commits a listener: func(context.Context, ListenRequest) error. A listener with the same name is
	// left as it is.
	ListenActivity = "signalbox.listen"
	// UnlistenActivity removes a listener, if it exists: func(context.Context, UnlistenRequest) error.
	UnlistenActivity = "signalbox.unlisten"
	// EmitActivity publishes an event: func(context.Context, EmitRequest) error. A repetition has no effect.
	EmitActivity = "signalbox.emit"
)

// ListenRequest holds the listener to commit.
type ListenRequest struct {
	Project  string           `json:"project"`
	RunID    string           `json:"runId"`
	Listener string           `json:"listener"`
	Spec     eventfilter.Spec `json:"spec"`
	// FromStart: the listener also takes the events that were accepted since the run's start, except those that the run
	// has taken.
	FromStart bool `json:"fromStart,omitempty"`
	// Single: one event ends the task.
	Single bool `json:"single,omitempty"`
	// After is the position after which earlier events are taken, if it is above that of the run's start.
	After int64 `json:"after,omitempty"`
	// Taken are the positions of the events that the run has taken since its last commit of a listener.
	Taken []int64 `json:"taken,omitempty"`
}

// UnlistenRequest holds the listener to remove.
type UnlistenRequest struct {
	Project  string `json:"project"`
	Listener string `json:"listener"`
}

// EmitRequest holds the event to publish.
type EmitRequest struct {
	Project string `json:"project"`
	RunID   string `json:"runId"`
	// Event is its CloudEvents JSON form, with ID, source and time: publishing it again is a duplicate.
	Event json.RawMessage `json:"event"`
	// Sensitive are the texts in it that occurred at sensitive places of the run.
	Sensitive []string `json:"sensitive,omitempty"`
}

// Wake is the payload of the signal that delivers events to a listening run (contract.WakeSignal).
type Wake struct {
	Listener string          `json:"listener"`
	Position int64           `json:"position"`
	Event    json.RawMessage `json:"event"` // CloudEvents JSON form
	// Sensitive are the texts in it that must be redacted.
	Sensitive []string `json:"sensitive,omitempty"`
	// Traceparent is the span that delivers the event, for the traces of the run; the run itself does not read it.
	Traceparent string `json:"traceparent,omitempty"`
	// More are the events after this one, in order, without More of their own.
	More []Wake `json:"more,omitempty"`
}

const (
	// storeTimeout bounds one try of an activity that calls the database. Failed tries are repeated for ever, so that
	// an unavailable database only delays the run.
	storeTimeout     = 10 * time.Second
	maxRetryInterval = 10 * time.Second
)

// handleEvents passes received events to the machine: all of them, or until the workflow task is full.
func (d *driver) handleEvents(all bool) {
	var wake Wake
	mark := d.machine.Spent()
	for handled := false; d.wakes.Len() > 0 && (all || !handled || !d.taskFull()); handled = true {
		if wake = (Wake{}); !d.wakes.ReceiveAsync(&wake) {
			return // the rest cannot be decoded
		}
		if !handled {
			d.newTask()
		}
		d.events += eventsPerSignal
		for _, one := range append([]Wake{wake}, wake.More...) {
			mark = d.deliver(one, mark)
		}
	}
}

// deliver passes one event to the machine. mark is the compute that was used at the last yield; deliver returns it, or
// the present one after it has yielded.
func (d *driver) deliver(wake Wake, mark int64) int64 {
	event, err := decode(wake.Event)
	if err != nil {
		return mark // not an event that this run could listen for
	}
	d.tracker.Add(wake.Sensitive...)
	d.machine.Deliver(wake.Listener, wake.Position, event, workflow.Now(d.ctx))
	if spent := d.machine.Spent(); spent-mark >= d.limits.Machine.AdvanceFuel {
		mark = spent
		d.yield()
	}
	return mark
}

func (d *driver) listen(e interp.Listen) {
	request := d.listenRequest(e)
	this := &effect{kind: listenEffect, id: e.ID, listener: e.Listener}
	if !d.fits(this, "what the task listens to", sizeOf(request)) {
		return
	}
	this.future, this.cancel = d.storeActivity(this.id, ListenActivity, request)
	d.pending = append(d.pending, this)
}

func (d *driver) listenRequest(l interp.Listen) ListenRequest {
	return ListenRequest{
		Project: d.in.Project, RunID: d.in.RunID, Listener: l.Listener, Spec: l.Spec,
		FromStart: l.FromStart, Single: l.Single, After: l.After, Taken: l.Taken,
	}
}

// listeners returns the listeners that are committed, or whose commit is in flight.
func (d *driver) listeners() ([]ListenRequest, error) {
	open, err := d.machine.Listeners()
	if err != nil {
		return nil, fmt.Errorf("read the listeners of run %q: %w", d.in.RunID, err)
	}
	requests := make([]ListenRequest, len(open))
	for i, l := range open {
		requests[i] = d.listenRequest(l)
	}
	return requests, nil
}

// removeListener removes a listener that is no longer needed. If the commit of a listener is in flight, its removal
// follows it, because the two activities could overtake each other.
func (d *driver) removeListener(listener string) {
	if _, done := d.machine.Done(); done {
		return // the listeners of a run are removed at its end
	}
	for _, e := range d.pending {
		if e.kind == listenEffect && e.listener == listener {
			e.abandoned = true
			return
		}
	}
	d.unlisten(listener)
}

func (d *driver) unlisten(listener string) {
	future, cancel := d.storeActivity(0, UnlistenActivity, UnlistenRequest{Project: d.in.Project, Listener: listener})
	d.pending = append(d.pending, &effect{kind: unlistenEffect, future: future, cancel: cancel, listener: listener})
}

// pendingUnlistens returns the listeners with a removal in flight or not begun. The next execution removes them again,
// because activities in flight may be lost with this one.
func (d *driver) pendingUnlistens() []string {
	var out []string
	for _, e := range d.pending {
		if e.kind == unlistenEffect || e.abandoned {
			out = append(out, e.listener)
		}
	}
	return out
}

func (d *driver) emit(e interp.Emit) {
	event, err := encode(e.Event)
	if err != nil {
		panic(fmt.Sprintf("encode an event: %v", err)) // expressions return only JSON values
	}
	this := &effect{kind: emitEffect, id: e.ID}
	if !d.fits(this, "the event", len(event)) {
		return
	}
	this.future, this.cancel = d.storeActivity(this.id, EmitActivity, EmitRequest{
		Project: d.in.Project, RunID: d.in.RunID, Event: event, Sensitive: d.tracker.In(event),
	})
	d.pending = append(d.pending, this)
}

// storeActivity starts an activity that writes to the store, for an effect of a task; 0 for none.
func (d *driver) storeActivity(id interp.EffectID, name string, request any) (workflow.Future, workflow.CancelFunc) {
	ctx, cancel := workflow.WithCancel(d.contextOf(id))
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: storeTimeout,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: 200 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: maxRetryInterval,
		},
	})
	d.events += eventsPerActivity
	return workflow.ExecuteActivity(ctx, name, request), cancel
}

// completeEvent passes to the machine that its listener is committed or its event published, or the rejection.
func (d *driver) completeEvent(e *effect) {
	err := e.future.Get(d.detached, nil)
	if e.abandoned {
		d.unlisten(e.listener)
		return
	}
	d.machine.Complete(e.id, interp.Result{Error: rejection(err)}, workflow.Now(d.ctx))
}

// rejection returns the reason why the platform rejected a listener or an event: the permanent error of its activity.
func rejection(err error) *dsl.Error {
	if err == nil {
		return nil
	}
	if failure, ok := failureOf(err); ok {
		return &failure.Error
	}
	detail := err.Error()
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		detail = app.Message()
	}
	return &dsl.Error{Type: dsl.ErrorTypeRuntime, Status: 500, Title: "Cannot go on", Detail: detail}
}
