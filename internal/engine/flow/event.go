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

// Names of the activities around events. As those of calls, they never change their meaning.
const (
	// ListenActivity commits a listener: func(context.Context, ListenRequest) error. One with the same name is there already.
	ListenActivity = "signalbox.listen"
	// UnlistenActivity removes a listener, if it is there: func(context.Context, UnlistenRequest) error.
	UnlistenActivity = "signalbox.unlisten"
	// EmitActivity publishes an event: func(context.Context, EmitRequest) error. A repetition changes nothing.
	EmitActivity = "signalbox.emit"
)

// ListenRequest is a listener to commit.
type ListenRequest struct {
	Project  string           `json:"project"`
	RunID    string           `json:"runId"`
	Listener string           `json:"listener"`
	Spec     eventfilter.Spec `json:"spec"`
}

// UnlistenRequest is a listener to remove.
type UnlistenRequest struct {
	Project  string `json:"project"`
	Listener string `json:"listener"`
}

// EmitRequest is an event to publish.
type EmitRequest struct {
	Project string `json:"project"`
	RunID   string `json:"runId"`
	// Event is its CloudEvents JSON form, with ID, source and time: publishing it again is a duplicate.
	Event json.RawMessage `json:"event"`
	// Sensitive are the texts in it that have stood at sensitive places of the run.
	Sensitive []string `json:"sensitive,omitempty"`
}

// Wake is the payload of the signal that hands an event to a run that listens (contract.WakeSignal).
type Wake struct {
	Listener string          `json:"listener"`
	Position int64           `json:"position"`
	Event    json.RawMessage `json:"event"` // CloudEvents JSON form
	// Sensitive are the texts that are to be hidden in it.
	Sensitive []string `json:"sensitive,omitempty"`
}

const (
	// storeTimeout bounds one try of an activity that asks the database. A try that fails is made again for ever, so
	// that a database that is away only delays.
	storeTimeout = 10 * time.Second
	retryMost    = 10 * time.Second
)

// hear hands the events that have come to the machine; all of them, or until the workflow task has become too big.
func (d *driver) hear(all bool) {
	var wake Wake
	mark := d.machine.Spent()
	for heard := false; d.wakes.Len() > 0 && (all || !heard || !d.full()); heard = true {
		if wake = (Wake{}); !d.wakes.ReceiveAsync(&wake) {
			return // what was left cannot be read
		}
		if !heard {
			d.newTask()
		}
		d.events += eventsPerSignal
		event, err := decode(wake.Event)
		if err != nil {
			continue // no event that this run could have asked for
		}
		d.lookout.Learn(wake.Sensitive...)
		d.machine.Deliver(wake.Listener, wake.Position, event, workflow.Now(d.ctx))
		if spent := d.machine.Spent(); spent-mark >= d.limits.Machine.AdvanceFuel {
			mark = spent
			d.breathe()
		}
	}
}

func (d *driver) listen(e interp.Listen) {
	request := ListenRequest{Project: d.in.Project, RunID: d.in.RunID, Listener: e.Listener, Spec: e.Spec}
	this := &effect{kind: listenEffect, id: e.ID, listener: e.Listener}
	if !d.fits(this, "what the task listens to", sizeOf(request)) {
		return
	}
	this.future, this.cancel = d.storeActivity(ListenActivity, request)
	d.pending = append(d.pending, this)
}

// giveUp removes a listener that is not needed any more. One that is still to be committed is removed after that, as the
// two could overtake each other.
func (d *driver) giveUp(listener string) {
	if _, done := d.machine.Done(); done {
		return // the listeners of a run go with its end
	}
	for _, e := range d.pending {
		if e.kind == listenEffect && e.listener == listener {
			e.unwanted = true
			return
		}
	}
	d.unlisten(listener)
}

func (d *driver) unlisten(listener string) {
	future, cancel := d.storeActivity(UnlistenActivity, UnlistenRequest{Project: d.in.Project, Listener: listener})
	d.pending = append(d.pending, &effect{kind: unlistenEffect, future: future, cancel: cancel, listener: listener})
}

// leaving are the listeners whose removal has not ended, or not begun. The next execution removes them again: what is in
// flight now may get lost with this one.
func (d *driver) leaving() []string {
	var out []string
	for _, e := range d.pending {
		if e.kind == unlistenEffect || e.unwanted {
			out = append(out, e.listener)
		}
	}
	return out
}

func (d *driver) emit(e interp.Emit) {
	event, err := encode(e.Event)
	if err != nil {
		panic(fmt.Sprintf("encode an event: %v", err)) // expressions give only what JSON can hold
	}
	this := &effect{kind: emitEffect, id: e.ID}
	if !d.fits(this, "the event", len(event)) {
		return
	}
	this.future, this.cancel = d.storeActivity(EmitActivity, EmitRequest{
		Project: d.in.Project, RunID: d.in.RunID, Event: event, Sensitive: d.lookout.In(event),
	})
	d.pending = append(d.pending, this)
}

func (d *driver) storeActivity(name string, request any) (workflow.Future, workflow.CancelFunc) {
	ctx, cancel := workflow.WithCancel(d.detached)
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: storeTimeout,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: 200 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: retryMost,
		},
	})
	d.events += eventsPerActivity
	return workflow.ExecuteActivity(ctx, name, request), cancel
}

// settleEvent tells the machine that its listener is committed or its event published, or why not.
func (d *driver) settleEvent(e *effect) {
	err := e.future.Get(d.detached, nil)
	if e.unwanted {
		d.unlisten(e.listener)
		return
	}
	d.machine.Complete(e.id, interp.Result{Error: refusal(err)}, workflow.Now(d.ctx))
}

// refusal is why the platform did not take a listener or an event: what an activity gives that is not to be repeated.
func refusal(err error) *dsl.Error {
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
