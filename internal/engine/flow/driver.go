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
)

// Events by which an operation extends the history.
const (
	eventsPerTask     = 3 // workflow task scheduled, started, completed
	eventsPerSignal   = 1 // signaled
	eventsPerActivity = 3 // scheduled, started, closed
	eventsPerTimer    = 2 // started, fired or canceled
	eventsPerLocal    = 1 // marker
)

// recordSize is the approximate size of a step's record without its input and output.
const recordSize = 256

// driver executes the effects of one execution.
type driver struct {
	ctx        workflow.Context // canceled when Temporal cancels the run
	detached   workflow.Context // never canceled: the context of effects
	in         Input
	info       *workflow.Info
	execution  Execution
	machine    *interp.Machine
	sink       Sink
	turns      Turns
	measure    func(late time.Duration) // the lateness of a timer; nil: not measured
	limits     Limits
	wakes      workflow.ReceiveChannel
	controls   workflow.ReceiveChannel // nil for a run without controls
	children   workflow.ReceiveChannel // nil for a run without children
	tracker    *SensitiveTracker
	changedRun *interp.RunRecord // taken from the machine and not published yet
	steps      []interp.StepRecord
	logs       []ProgramLog

	pending   []*effect // in start order
	stopping  []*effect // programs that the machine has canceled and that have not ended yet
	canceling []string  // keys of the children whose completion a canceled run waits for
	over      []string  // keys of the children that have ended, or were not started, because the run is being canceled

	resultsLeft bool // results are ready that the machine has not received yet

	events  int // own events so far, slightly overestimated
	dueAt   int // events at which continue-as-new became due; 0: not due
	retryAt int // events from which to retry continue-as-new, after the state was too large

	// since the start of the workflow task
	localCalls, localBytes int
	localSince             time.Time // the start of its first local call
	recordBytes, sentBytes int
	fuelMark               int64
	taskSince              time.Time // by the clock of the process; it decides nothing but the order of turns

	encodedBytes int // since the last yield to the scheduler

	computing piece // the compute in progress
}

// effectKind is the kind of an effect.
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
	programEffect
	functionEffect
)

// effect is an operation in flight.
type effect struct {
	kind      effectKind
	id        interp.EffectID
	future    workflow.Future
	cancel    workflow.CancelFunc
	call      *HTTPRequest     // of a call
	inline    int64            // of a call as a local activity: the bytes that its result may add to the workflow task
	program   *ProgramRequest  // of a program
	function  *FunctionRequest // of a Go function
	once      bool             // of a program or a function: it is dispatched at most once
	sentAt    time.Time        // of a call, a program or a function: the time of its dispatch
	tries     int32            // of a call, a program or a function: the number of dispatches
	attempts  []Attempt        // of a call, a program or a function: those whose results were lost
	due       time.Time        // of a timer
	listener  string           // of listenEffect and unlistenEffect
	child     string           // key of childEffect
	rejected  bool             // it failed without a command
	abandoned bool             // the listener is removed once it is committed, the child canceled once it is accepted
}

// taskKey is the key of the task in the context of an activity.
type taskKey struct{}

// TaskOf returns the task that an activity's context belongs to; nil where it belongs to none. Traces name it.
func TaskOf(ctx workflow.Context) *dsl.Task {
	task, _ := ctx.Value(taskKey{}).(*dsl.Task)
	return task
}

// contextOf returns the context of an effect's activities.
func (d *driver) contextOf(id interp.EffectID) workflow.Context {
	return workflow.WithValue(d.detached, taskKey{}, d.machine.TaskOf(id))
}

func (d *driver) run() (json.RawMessage, error) {
	d.events, d.taskSince = eventsPerTask, time.Now()
	for _, listener := range d.in.Unlisten {
		d.unlisten(listener)
	}
	for {
		d.cancelIfRequested()
		if snapshot := d.snapshotIfDue(); snapshot != nil {
			d.publish() // no later execution publishes the results since the last Advance
			return nil, d.continueAsNew(snapshot)
		}
		d.perform(d.compute())
		d.flushChildCancels()
		outcome, done := d.machine.Done()
		if done {
			d.awaitLogs()
		}
		d.publish()
		switch {
		case done:
			return conclude(outcome)
		case d.taskFull():
			d.barrier()
		case d.machine.Yielded():
			d.yield()
			continue
		case d.resultsLeft:
			d.yield()
		default:
			d.await()
		}
		d.handleCompletions()
	}
}

// cancelIfRequested cancels the run if its cancellation was requested. A child that was canceled with the run reports
// the request, too. As the child's result it would be an error, which a `catch` handles or which fails the run, because
// the results of a workflow task are handled before the request in the same task.
func (d *driver) cancelIfRequested() {
	if d.ctx.Err() != nil || len(d.over) > 0 {
		d.machine.Cancel("cancellation was requested", workflow.Now(d.ctx))
	}
}

// turnWait is the time for which the workflow's goroutine blocks on a turn: well under the deadlock detector's second.
const turnWait = 100 * time.Millisecond

// compute advances the machine until it is blocked or yields, and takes its records, within a turn of the run's
// project. Nothing in it waits: a turn that is held while a workflow waits is lost for the whole process until Temporal
// responds.
func (d *driver) compute() []interp.Effect {
	place := d.turns.Enter(d.in.Project, d.taskSince)
	defer place.Leave()
	for !place.Wait(turnWait) {
		d.yield()
	}
	defer d.computing.begin()()
	effects := d.machine.Advance(workflow.Now(d.ctx))
	d.takeRecords() // before the effects: values that leave the run are sent with the sensitive texts in them
	return effects
}

// takeRecords takes the records of changes from the machine.
func (d *driver) takeRecords() {
	run, steps := d.machine.TakeRecords()
	for i := range steps { // before they are changed: the size decides where workflow tasks end
		d.recordBytes += recordSize + len(steps[i].Input) + len(steps[i].Output)
	}
	d.tracker.Observe(run, steps)
	if run != nil {
		if d.changedRun != nil {
			run.Summary = run.Summary.Merge(d.changedRun.Summary)
		}
		d.changedRun = run
	}
	d.steps = append(d.steps, steps...)
}

// publish passes the changes to the sink. Without changes it still reports the run's position, so that its row does not
// appear to be behind.
func (d *driver) publish() {
	d.takeRecords()
	d.sink.Records(d.execution, Position(d.in.Chain, d.info.GetCurrentHistoryLength()), d.changedRun, d.steps, d.logs,
		d.tracker.All())
	d.changedRun, d.steps, d.logs = nil, nil, nil
}

// await blocks until there is something to handle.
func (d *driver) await() {
	// The context cannot be canceled, so there is no error. The cancellation of the run is part of the condition.
	_ = workflow.Await(d.detached, func() bool {
		return d.ctx.Err() != nil || d.hasWork()
	})
}

// hasWork reports whether a signal or a result is ready.
func (d *driver) hasWork() bool {
	ready := func(e *effect) bool { return e.future.IsReady() }
	return d.signaled() || slices.ContainsFunc(d.pending, ready) || slices.ContainsFunc(d.stopping, ready)
}

// handleCompletions passes to the machine what has happened: signals first, then the results of effects in their start
// order.
func (d *driver) handleCompletions() {
	d.resultsLeft = false
	defer d.computing.begin()()
	mark := d.machine.Spent()
	d.handleControls()
	d.handleChildResults()
	d.handleEvents(false)
	d.keepStopped()
	for _, e := range slices.Clone(d.pending) {
		if !e.future.IsReady() {
			continue
		}
		if d.machine.Spent()-mark >= d.limits.Machine.AdvanceFuel {
			d.resultsLeft = true // the results may cause as much compute as an Advance
			return
		}
		d.forget(e)
		if e.kind == callEffect {
			d.completeCall(e)
			continue
		}
		if !e.rejected {
			d.newTask()
		}
		switch e.kind { //nolint:exhaustive // calls are above; the results of removals and of cancellations are not used
		case timerEffect:
			d.measureTimer(e)
			d.machine.Fire(e.id, workflow.Now(d.ctx))
		case listenEffect, emitEffect:
			d.completeEvent(e)
		case quotaEffect:
			d.completeQuota(e)
		case childEffect:
			d.completeChildStart(e)
		case programEffect:
			d.completeProgram(e)
		case functionEffect:
			d.completeFunction(e)
		}
	}
}

func (d *driver) completeCall(e *effect) {
	var response HTTPResponse
	err := e.future.Get(d.detached, &response)
	if e.rejected {
		d.machine.Complete(e.id, failedCall(e.call, err), workflow.Now(d.ctx))
		return
	}
	switch {
	// nothing was sent, so the outage of the database only delays the call
	case d.storageUnavailable(err, contract.PayloadsUnread):
		d.newTask()
		e.tries--
		d.startCall(e)
		return
	case d.storageUnavailable(err, contract.PayloadsUnkept):
		err = Interrupted(err.Error())
	}
	d.handleResponse(e, response, err)
}

// newTask records that an event has started another workflow task.
func (d *driver) newTask() {
	d.events += eventsPerTask
	d.localCalls, d.localBytes, d.recordBytes, d.sentBytes, d.fuelMark = 0, 0, 0, 0, d.machine.Spent()
	if !workflow.IsReplaying(d.ctx) { // else the tasks of the past are executed within the one that began first
		d.taskSince = time.Now()
	}
}

func (d *driver) forget(e *effect) {
	d.pending = slices.DeleteFunc(d.pending, func(o *effect) bool { return o == e })
}

// perform starts and cancels effects: timers and unsafe calls before safe ones, because the other effects in flight
// decide whether a safe call is a local activity.
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
			d.removeListener(e.Listener)
		case interp.Emit:
			d.emit(e)
		case interp.StartChild:
			d.startChild(e)
		case interp.CancelChild:
			d.abandonChild(e)
		case interp.RequestSteps:
			d.requestSteps(e)
		case interp.RunProgram:
			d.startProgram(e)
		case interp.CallGo:
			d.startFunction(e)
		}
	}
	for i, e := range last {
		if slices.Contains(effects, interp.Effect(interp.CancelCall{ID: e.ID})) {
			continue // started and canceled within one Advance
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
			if e.kind == programEffect && e.tries > 0 {
				d.stopping = append(d.stopping, e)
			}
			return
		}
	}
}

func (d *driver) startTimer(e interp.StartTimer) {
	ctx, cancel := workflow.WithCancel(d.detached)
	// a timer with zero duration would fire without an event, and thus within the workflow task
	now := workflow.Now(d.ctx)
	after := max(e.Deadline.Sub(now), time.Millisecond)
	d.pending = append(d.pending,
		&effect{kind: timerEffect, id: e.ID, future: workflow.NewTimer(ctx, after), cancel: cancel, due: now.Add(after)})
	d.events += eventsPerTimer
}

// measureTimer measures how late a timer is that has fired. It was due at its deadline, or at once where that had
// passed when it was set.
func (d *driver) measureTimer(timer *effect) {
	if d.measure != nil && !workflow.IsReplaying(d.ctx) {
		d.measure(max(0, workflow.Now(d.ctx).Sub(timer.due)))
	}
}

// taskFull reports whether the workflow task has grown so large that it must end before it does more.
func (d *driver) taskFull() bool {
	return d.localCalls >= d.limits.LocalCalls || d.localBytes >= d.limits.LocalBytes ||
		d.localCalls > 0 && workflow.Now(d.ctx).Sub(d.localSince) >= d.limits.LocalSpan ||
		d.machine.Spent()-d.fuelMark >= d.limits.BarrierFuel || d.recordBytes >= d.limits.RecordBytes
}

// barrier ends the workflow task. Only server events end one, so it takes an activity. An idle worker starts it
// eagerly, without a round trip through the queue.
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

// yield passes control to the scheduler, so that the deadlock detector sees a busy workflow, not a stuck one. It adds
// no event.
func (d *driver) yield() { yield(d.detached) }

func yield(ctx workflow.Context) {
	turn, settable := workflow.NewFuture(ctx)
	workflow.Go(ctx, func(workflow.Context) { settable.SetValue(true) })
	_ = turn.Get(ctx, nil)
}

// runInBackground calls f in a goroutine of its own and waits for it while it yields to the scheduler: packing and
// unpacking the largest state takes seconds, and neither can be interrupted. f is a function of values, which nothing
// else uses meanwhile.
func runInBackground[T any](ctx workflow.Context, f func() (T, error)) (T, error) {
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
			yield(ctx)
		}
	}
}

// snapshotIfDue returns the state if the run must continue as new now: it is due, nothing is in flight and the state is
// not too large. When it has been due for long, new calls are held until nothing is in flight.
func (d *driver) snapshotIfDue() []byte {
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
	if d.machine.InFlight() > 0 || d.childRequestsPending() || len(d.stopping) > 0 {
		if d.events-d.dueAt >= d.limits.HardEvents-d.limits.SoftEvents || spent >= 2*d.limits.ExecutionFuel {
			d.machine.Hold()
		}
		return nil
	}
	if d.events < d.retryAt {
		return nil
	}
	d.handleControls() // unread signals would be lost with the execution
	d.handleChildResults()
	d.handleEvents(true)
	d.cancelIfRequested()
	if _, done := d.machine.Done(); done {
		return nil
	}
	snapshot, err := runInBackground(d.detached, d.machine.Snapshot)
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
			Detail: fmt.Sprintf("the run's state of %d bytes, compressed, is over the limit of %d: keep less data in the loop",
				len(snapshot), d.limits.SnapshotBytes),
		}, workflow.Now(d.ctx))
	}
	return nil
}

func (d *driver) continueAsNew(snapshot []byte) error {
	next := d.in
	next.Input, next.Snapshot = nil, snapshot
	next.Chain++
	next.Unlisten = d.pendingUnlistens()
	next.Sensitive = d.tracker.Carried(d.limits.SnapshotBytes - len(snapshot))
	return workflow.NewContinueAsNewError(d.ctx, d.info.WorkflowType.Name, next)
}

// conclude converts an outcome to the workflow's result.
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
