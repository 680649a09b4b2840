package flow

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/engine/lookout"
)

// Events a history grows by.
const (
	eventsPerTask     = 3 // workflow task scheduled, started, completed
	eventsPerSignal   = 1 // signaled
	eventsPerActivity = 3 // scheduled, started, closed
	eventsPerTimer    = 2 // started, fired or canceled
	eventsPerLocal    = 1 // marker
)

// driver performs the effects of one execution.
type driver struct {
	ctx       workflow.Context // canceled when Temporal cancels the run
	detached  workflow.Context // never canceled: what effects run in
	in        Input
	info      *workflow.Info
	execution Execution
	machine   *interp.Machine
	sink      Sink
	limits    Limits
	wakes     workflow.ReceiveChannel
	controls  workflow.ReceiveChannel // nil for a run that takes none
	children  workflow.ReceiveChannel // nil for a run that has none
	lookout   *lookout.Lookout
	changed   *interp.RunRecord // records that were looked at and not handed over yet
	steps     []interp.StepRecord

	pending []*effect // in the order of their start
	parting []string  // keys of the runs whose ends a canceled run waits for

	events  int // own events so far, a little overestimated
	dueAt   int // events when it became time to continue as new; 0: not yet
	retryAt int // events from which to try again to continue as new, after the state was too large

	// since the start of the workflow task
	localCalls, localBytes int
	fuelMark               int64
}

// effectKind is what an effect is.
type effectKind int

const (
	timerEffect effectKind = iota
	callEffect
	listenEffect
	unlistenEffect
	emitEffect
	quotaEffect
	childEffect
	cancelChildEffect
)

// effect is something in flight.
type effect struct {
	kind     effectKind
	id       interp.EffectID
	future   workflow.Future
	cancel   workflow.CancelFunc
	call     *HTTPRequest // of a call
	due      time.Time    // of a timer
	listener string       // of listenEffect and unlistenEffect
	child    string       // key of childEffect
	unwanted bool         // the listener is to be given up once it is committed, the child canceled once it is accepted
}

func (d *driver) run() (json.RawMessage, error) {
	d.events = eventsPerTask
	for _, listener := range d.in.Unlisten {
		d.unlisten(listener)
	}
	for {
		if d.ctx.Err() != nil {
			d.machine.Cancel("cancellation was requested", workflow.Now(d.ctx))
		}
		if snapshot := d.moveOn(); snapshot != nil {
			d.publish() // what settled since the last Advance is in no later execution
			return nil, d.continueAsNew(snapshot)
		}
		effects := d.machine.Advance(workflow.Now(d.ctx))
		d.look() // first: what leaves the run is told with what is sensitive in it
		d.perform(effects)
		d.farewell()
		d.publish()
		outcome, done := d.machine.Done()
		switch {
		case done:
			return conclude(outcome)
		case d.full():
			d.barrier()
		case d.machine.Yielded():
			d.breathe()
			continue
		default:
			d.await()
		}
		d.settle()
	}
}

// look takes the records of what changed.
func (d *driver) look() {
	run, steps := d.machine.TakeRecords()
	d.lookout.Look(run, steps)
	if run != nil {
		d.changed = run
	}
	d.steps = append(d.steps, steps...)
}

// publish hands over what changed.
func (d *driver) publish() {
	d.look()
	if d.changed != nil || len(d.steps) > 0 {
		d.sink.Records(d.execution, Position(d.in.Chain, d.info.GetCurrentHistoryLength()), d.changed, d.steps, d.lookout.All())
	}
	d.changed, d.steps = nil, nil
}

// await blocks until something happens outside.
func (d *driver) await() {
	// The context cannot be canceled, so there is no error. Whether the run was canceled is part of the condition.
	_ = workflow.Await(d.detached, func() bool {
		return d.ctx.Err() != nil || d.stirred()
	})
}

// stirred tells whether something has happened outside.
func (d *driver) stirred() bool {
	return d.signaled() || slices.ContainsFunc(d.pending, func(e *effect) bool { return e.future.IsReady() })
}

// settle tells the machine what has happened: signals first, then the effects in the order in which they were started.
func (d *driver) settle() {
	d.obey()
	d.reunite()
	d.hear(false)
	for _, e := range slices.Clone(d.pending) {
		if !e.future.IsReady() {
			continue
		}
		d.forget(e)
		if e.kind == callEffect {
			d.settleCall(e)
			continue
		}
		d.newTask()
		switch e.kind { //nolint:exhaustive // calls are above; nobody waits for a listener to be given up, or a run to be canceled
		case timerEffect:
			d.machine.Fire(e.id, workflow.Now(d.ctx))
		case listenEffect, emitEffect:
			d.settleEvent(e)
		case quotaEffect:
			d.settleQuota(e)
		case childEffect:
			d.settleChild(e)
		}
	}
}

func (d *driver) settleCall(e *effect) {
	var response HTTPResponse
	err := e.future.Get(d.detached, &response)
	if e.call.Local {
		d.localBytes += len(response.Content)
		if again(err) {
			d.dispatch(e.id, *e.call, false)
			return
		}
	} else {
		d.newTask()
	}
	d.machine.Complete(e.id, resultOf(e.call, response, err), workflow.Now(d.ctx))
}

// newTask notes that an event has begun another workflow task.
func (d *driver) newTask() {
	d.events += eventsPerTask
	d.localCalls, d.localBytes, d.fuelMark = 0, 0, d.machine.Spent()
}

func (d *driver) forget(e *effect) {
	d.pending = slices.DeleteFunc(d.pending, func(o *effect) bool { return o == e })
}

// perform starts and cancels effects: timers and unsafe calls before safe ones, which go by what else is in flight.
func (d *driver) perform(effects []interp.Effect) {
	var last []interp.Call
	for _, e := range effects {
		switch e := e.(type) {
		case interp.StartTimer:
			d.startTimer(e)
		case interp.CancelTimer:
			d.cancel(e.ID)
		case interp.Call:
			if safe(e.HTTP.Method) {
				last = append(last, e)
				continue
			}
			d.dispatch(e.ID, d.request(e), false)
		case interp.CancelCall:
			d.cancel(e.ID)
		case interp.Listen:
			d.listen(e)
		case interp.Unlisten:
			d.giveUp(e.Listener)
		case interp.Emit:
			d.emit(e)
		case interp.StartChild:
			d.startChild(e)
		case interp.CancelChild:
			d.disown(e)
		case interp.AskSteps:
			d.askSteps(e)
		}
	}
	for _, e := range last {
		if slices.Contains(effects, interp.Effect(interp.CancelCall{ID: e.ID})) {
			continue // asked for and given up within one Advance
		}
		d.dispatch(e.ID, d.request(e), d.roomForLocal())
	}
}

func (d *driver) cancel(id interp.EffectID) {
	for _, e := range d.pending {
		if e.id == id {
			d.forget(e)
			e.cancel()
			return
		}
	}
}

func (d *driver) startTimer(e interp.StartTimer) {
	ctx, cancel := workflow.WithCancel(d.detached)
	// a timer of no time would fire without an event, and so within the workflow task
	after := max(e.Deadline.Sub(workflow.Now(d.ctx)), time.Millisecond)
	d.pending = append(d.pending, &effect{kind: timerEffect, id: e.ID, future: workflow.NewTimer(ctx, after), cancel: cancel, due: e.Deadline})
	d.events += eventsPerTimer
}

// full tells whether the workflow task has grown so far that it must end before more is done in it.
func (d *driver) full() bool {
	return d.localCalls >= d.limits.LocalCalls || d.localBytes >= d.limits.LocalBytes ||
		d.machine.Spent()-d.fuelMark >= d.limits.BarrierFuel
}

// barrier ends the workflow task. Only the server's events end one, so it takes an activity, which an idle worker
// starts eagerly, without a round trip through the queue.
func (d *driver) barrier() {
	ctx := workflow.WithActivityOptions(d.detached, workflow.ActivityOptions{
		StartToCloseTimeout: 10 * time.Second,
		Summary:             "ends a long workflow task",
	})
	if err := workflow.ExecuteActivity(ctx, BarrierActivity).Get(ctx, nil); err != nil {
		panic(fmt.Sprintf("barrier of run %q: %v", d.in.RunID, err))
	}
	d.events += eventsPerActivity
	d.newTask()
}

// breathe gives the scheduler its turn, so that the deadlock detector sees a workflow that is busy, not stuck. It
// leaves no event.
func (d *driver) breathe() {
	turn, settable := workflow.NewFuture(d.detached)
	workflow.Go(d.detached, func(workflow.Context) { settable.SetValue(true) })
	_ = turn.Get(d.detached, nil)
}

// moveOn tells whether to continue as new here and now: it is due, nothing is in flight and the state is not too
// large. When it has been due for long, new calls are held until nothing is in flight.
func (d *driver) moveOn() []byte {
	spent := d.machine.Spent()
	if _, done := d.machine.Done(); done {
		return nil
	}
	if d.dueAt == 0 {
		if d.events < d.limits.SoftEvents && spent < d.limits.ExecutionFuel && !d.info.GetContinueAsNewSuggested() {
			return nil
		}
		d.dueAt = max(d.events, 1)
	}
	if d.machine.InFlight() > 0 || d.settling() {
		if d.events-d.dueAt >= d.limits.HardEvents-d.limits.SoftEvents || spent >= 2*d.limits.ExecutionFuel {
			d.machine.Hold()
		}
		return nil
	}
	if d.events < d.retryAt {
		return nil
	}
	d.obey() // what is in the channels ends with the execution
	d.reunite()
	d.hear(true)
	if _, done := d.machine.Done(); done {
		return nil
	}
	snapshot, err := d.machine.Snapshot()
	if err != nil {
		panic(fmt.Sprintf("continue run %q as new: %v", d.in.RunID, err))
	}
	if len(snapshot) <= d.limits.SnapshotBytes {
		return snapshot
	}
	d.retryAt = d.events + (d.limits.HardEvents-d.limits.SoftEvents)/2
	if d.events >= d.limits.LastEvents {
		d.machine.Abort(dsl.Error{
			Type: dsl.ErrorTypeRuntime, Status: 500, Title: "Cannot go on", Instance: "/",
			Detail: fmt.Sprintf("the run's state of %d bytes, compressed, is over the limit of %d: keep less data in the loop", len(snapshot), d.limits.SnapshotBytes),
		}, workflow.Now(d.ctx))
	}
	return nil
}

func (d *driver) continueAsNew(snapshot []byte) error {
	next := d.in
	next.Input, next.Snapshot = nil, snapshot
	next.Chain++
	next.Unlisten = d.leaving()
	next.Sensitive = d.lookout.Carried(d.limits.SnapshotBytes - len(snapshot))
	return workflow.NewContinueAsNewError(d.ctx, d.info.WorkflowType.Name, next)
}

// conclude turns an outcome into the workflow's result.
func conclude(o interp.Outcome) (json.RawMessage, error) {
	switch o.Status {
	case interp.StatusCompleted:
		return encode(o.Output)
	case interp.StatusCanceled:
		return nil, temporal.NewCanceledError(o.Reason)
	default:
		return nil, failed(o)
	}
}
