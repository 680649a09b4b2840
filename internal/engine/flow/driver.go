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
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
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

// recordSize is about what a step's record takes beside its input and output.
const recordSize = 256

// driver performs the effects of one execution.
type driver struct {
	ctx       workflow.Context // canceled when Temporal cancels the run
	detached  workflow.Context // never canceled: what effects run in
	in        Input
	info      *workflow.Info
	execution Execution
	machine   *interp.Machine
	sink      Sink
	turns     Turns
	limits    Limits
	wakes     workflow.ReceiveChannel
	controls  workflow.ReceiveChannel // nil for a run that takes none
	children  workflow.ReceiveChannel // nil for a run that has none
	lookout   *lookout.Lookout
	changed   *interp.RunRecord // records that were looked at and not handed over yet
	steps     []interp.StepRecord

	pending []*effect // in the order of their start
	parting []string  // keys of the runs whose ends a canceled run waits for

	behind bool // results have come that the machine was not given yet

	events  int // own events so far, a little overestimated
	dueAt   int // events when it became time to continue as new; 0: not yet
	retryAt int // events from which to try again to continue as new, after the state was too large

	// since the start of the workflow task
	localCalls, localBytes int
	recordBytes, sentBytes int
	fuelMark               int64

	encodedBytes int // since the scheduler had its turn

	computing time.Time // by the clock: when the piece of compute in progress began
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
	inline   int64        // of a call that is a local activity: what its result may add to the workflow task
	sentAt   time.Time    // of a call: when it was dispatched
	tries    int32        // of a call: how often
	attempts []Attempt    // of a call: the requests whose results were lost
	due      time.Time    // of a timer
	listener string       // of listenEffect and unlistenEffect
	child    string       // key of childEffect
	refused  bool         // it failed without a command
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
		d.perform(d.compute())
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
		case d.behind:
			d.breathe()
		default:
			d.await()
		}
		d.settle()
	}
}

// turnWait is how long the workflow's goroutine waits for a turn at a time: well under the deadlock detector's second.
const turnWait = 100 * time.Millisecond

// compute advances the machine until it is blocked or yields, and takes its records, in a turn of the run's project. Nothing in it
// waits: a turn that is held while a workflow waits is lost for the whole process until Temporal answers.
func (d *driver) compute() []interp.Effect {
	for !d.turns.Acquire(d.in.Project, turnWait) {
		d.breathe()
	}
	defer d.turns.Release(d.in.Project)
	d.computing = time.Now()
	effects := d.machine.Advance(workflow.Now(d.ctx))
	d.look() // before the effects: what leaves the run is sent with what is sensitive in it
	return effects
}

// look takes the records of what changed.
func (d *driver) look() {
	run, steps := d.machine.TakeRecords()
	for i := range steps { // before anything is done to them: the size decides where workflow tasks end
		d.recordBytes += recordSize + len(steps[i].Input) + len(steps[i].Output)
	}
	d.lookout.Look(run, steps)
	if run != nil {
		if d.changed != nil {
			run.Summary = run.Summary.Merge(d.changed.Summary)
		}
		d.changed = run
	}
	d.steps = append(d.steps, steps...)
}

// publish hands over what changed. Where nothing did, it still reports how far the run has come, so that its row does not look
// as if it were behind.
func (d *driver) publish() {
	d.look()
	d.sink.Records(d.execution, Position(d.in.Chain, d.info.GetCurrentHistoryLength()), d.changed, d.steps, d.lookout.All())
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
	d.behind = false
	d.computing = time.Now()
	mark := d.machine.Spent()
	d.obey()
	d.reunite()
	d.hear(false)
	for _, e := range slices.Clone(d.pending) {
		if !e.future.IsReady() {
			continue
		}
		if d.in.Interpreter >= interp.BoundedSince && d.machine.Spent()-mark >= d.limits.Machine.AdvanceFuel {
			d.behind = true // what has ended may lead to as much compute as an Advance
			return
		}
		d.forget(e)
		if e.kind == callEffect {
			d.settleCall(e)
			continue
		}
		if !e.refused {
			d.newTask()
		}
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
	if e.refused {
		d.machine.Complete(e.id, failedCall(e.call, err), workflow.Now(d.ctx))
		return
	}
	switch {
	case d.storageAway(err, contract.PayloadsUnread): // nothing was sent, so the database's absence only delays the call
		d.newTask()
		e.tries--
		d.startCall(e)
		return
	case d.storageAway(err, contract.PayloadsUnkept):
		err = Interrupted(err.Error())
	}
	if d.limits.HandOver {
		d.handleResponse(e, response, err)
		return
	}
	if e.call.Local {
		d.localBytes += len(response.Content)
		if again(err) {
			d.dispatch(e.id, *e.call, 0)
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
	d.localCalls, d.localBytes, d.recordBytes, d.sentBytes, d.fuelMark = 0, 0, 0, 0, d.machine.Spent()
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
			if safe(e.HTTP.Method) && !e.Once {
				last = append(last, e)
				continue
			}
			if r := d.request(e); d.callFits(e.ID, r) {
				d.dispatch(e.ID, r, 0)
			}
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
	for i, e := range last {
		if slices.Contains(effects, interp.Effect(interp.CancelCall{ID: e.ID})) {
			continue // asked for and given up within one Advance
		}
		if r := d.request(e); d.callFits(e.ID, r) {
			d.dispatch(e.ID, r, d.inline(len(last)-i))
		}
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
		d.machine.Spent()-d.fuelMark >= d.limits.BarrierFuel || d.limits.RecordBytes > 0 && d.recordBytes >= d.limits.RecordBytes
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
func (d *driver) breathe() { breathe(d.detached) }

func breathe(ctx workflow.Context) {
	turn, settable := workflow.NewFuture(ctx)
	workflow.Go(ctx, func(workflow.Context) { settable.SetValue(true) })
	_ = turn.Get(ctx, nil)
}

// apart calls f in a goroutine of its own and waits for it as a workflow may: packing and unpacking the largest state takes seconds, and
// neither can be interrupted. f is a function of values; nothing else uses them meanwhile.
func apart[T any](ctx workflow.Context, f func() (T, error)) (T, error) {
	var (
		result   T
		err      error
		panicked any
	)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { panicked = recover() }()
		result, err = f()
	}()
	for {
		wait := time.NewTimer(turnWait)
		select {
		case <-done:
			wait.Stop()
			if panicked != nil {
				panic(panicked)
			}
			return result, err
		case <-wait.C:
			breathe(ctx)
		}
	}
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
	snapshot, err := apart(d.detached, d.machine.Snapshot)
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
