package dispatcherflow

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/delivery"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
)

// Input is the input of a dispatcher, which it carries over when it continues as new.
type Input struct {
	// Version is the version of the workflow's code that the run executes.
	Version int                             `json:"version"`
	Name    inbox.Name                      `json:"name"`
	Owner   inbox.Owner                     `json:"owner"`
	Workers []dispatchtype.RegisteredWorker `json:"workers,omitempty"`
	// CheckEvery is the interval of worker checks while it routes.
	CheckEvery time.Duration `json:"checkEvery"`
	// Parked: it waits for its doorbell. Suspects are workers that may be dead.
	Parked   bool     `json:"parked,omitempty"`
	Suspects []string `json:"suspects,omitempty"`
}

const (
	// turnVersion is the first version in which a dispatcher ends its routing to continue as new: thousands of doorbells
	// may arrive while it routes.
	turnVersion = 2
	// shortVersion is the first version with a short history.
	shortVersion = 3
	// deferFor is how long continuing as new is deferred after an update in the same task: an event that arrives meanwhile
	// makes the server reject the task, and the update with it. It is deferred at most maxDeferrals times: a history
	// accepts a limited number of updates.
	deferFor     = time.Second
	maxDeferrals = 5
	// routingPause is the pause after a routing that failed permanently.
	routingPause = time.Second
	// misses is the number of consecutive checks that must miss a worker.
	misses = 2
)

// dispatcher is the workflow's state. Its coroutines run one at a time.
type dispatcher struct {
	in      Input
	workers []dispatchtype.RegisteredWorker // in the order of their server IDs

	want    bool  // a routing must be started
	busy    bool  // it was routing when it was adopted: poll as long as after work
	routing int64 // the epoch of the current routing, 0 if there is none
	under   int   // running routings, of any epoch
	rung    bool  // the doorbell rang while it was routing
	checks  bool  // a check is running
	// turn ends the current routing, so that it is started again; nil if there is none, or after the call.
	turn workflow.CancelFunc

	suspects map[string]bool
	updated  int // the length of history at the last update
}

// Run is the workflow.
func Run(ctx workflow.Context, in Input) error {
	d := &dispatcher{in: in, workers: slices.Clone(in.Workers), suspects: map[string]bool{}}
	d.want = !in.Parked
	d.suspect(in.Suspects)
	if err := d.handle(ctx); err != nil {
		return err
	}
	workflow.Go(ctx, d.watch)
	// Started after the signal receivers: coroutines run in the order in which they were started. So a signal that woke
	// the workflow is processed before the decision to continue as new, and carried over.
	ended, end := workflow.NewFuture(ctx)
	workflow.Go(ctx, func(ctx workflow.Context) { end.SetError(d.loop(ctx)) })
	return ended.Get(ctx, nil)
}

// loop starts routings and continues as new, until the workflow ends.
func (d *dispatcher) loop(ctx workflow.Context) error {
	deferrals := 0
	for {
		err := workflow.Await(ctx, func() bool { return d.want || d.full(ctx) && (d.quiet() || d.turn != nil) })
		if err != nil {
			return err
		}
		switch {
		case d.want && (!d.full(ctx) || !d.quiet()):
			d.start(ctx)
		case !d.quiet():
			d.turn()
			d.turn = nil
		case d.updated == length(ctx) && deferrals < maxDeferrals:
			deferrals++
			if _, err := workflow.AwaitWithTimeout(ctx, deferFor, func() bool {
				return d.updated != length(ctx) && d.want
			}); err != nil {
				return err
			}
		default:
			return d.next(ctx)
		}
	}
}

// start starts a routing for the current owner.
func (d *dispatcher) start(ctx workflow.Context) {
	d.want, d.rung = false, false
	owner := d.in.Owner
	in := RouteInput{Name: d.in.Name, Owner: owner, Busy: d.busy}
	d.busy = false
	d.routing = owner.Epoch
	d.under++
	var turn workflow.CancelFunc
	routing := ctx
	if d.in.Version >= turnVersion {
		routing, turn = workflow.WithCancel(ctx)
	}
	d.turn = turn
	routed := workflow.ExecuteActivity(workflow.WithActivityOptions(routing, workflow.ActivityOptions{
		StartToCloseTimeout: routeTimeout,
		HeartbeatTimeout:    heartbeatTimeout,
		WaitForCancellation: d.in.Version >= turnVersion, // its result reports whether there is more to do
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: retryFirst, BackoffCoefficient: 2, MaximumInterval: retryMost,
		},
	}), wire.RouteActivity, in)
	workflow.Go(ctx, func(ctx workflow.Context) {
		var end delivery.End
		err := routed.Get(ctx, &end)
		d.under--
		if owner.Epoch != d.routing {
			return // the routing of a previous owner
		}
		d.turn = nil
		if turn != nil && temporal.IsCanceledError(err) {
			end, err = delivery.Turned, nil // canceled before it started
		}
		if err != nil {
			workflow.GetLogger(ctx).Error("Routing failed; starting it again", "error", err)
			_ = workflow.Sleep(ctx, routingPause)
			if owner.Epoch != d.routing {
				return
			}
		}
		d.routing = 0
		d.want = d.want || err != nil || end == delivery.Turned || d.rung
		d.busy = end == delivery.Turned
	})
}

// full reports whether the history is long enough to continue as new.
func (d *dispatcher) full(ctx workflow.Context) bool {
	return workflow.GetInfo(ctx).GetContinueAsNewSuggested() || length(ctx) > maxEvents(d.in.Version)
}

// maxEvents returns the history length at which a dispatcher continues as new even if the server does not suggest it.
// The worker of a new owner replays the history before it adopts the dispatcher, at some 0.1 ms per event on a busy
// machine.
func maxEvents(version int) int {
	switch {
	case version >= shortVersion:
		return 500
	case version >= turnVersion:
		return 2000
	default:
		return 4000
	}
}

// quiet reports whether no activity is running.
func (d *dispatcher) quiet() bool { return d.under == 0 && d.routing == 0 && !d.checks }

func length(ctx workflow.Context) int { return workflow.GetInfo(ctx).GetCurrentHistoryLength() }

// next returns the error that continues as new.
func (d *dispatcher) next(ctx workflow.Context) error {
	if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
		return err
	}
	in := d.in
	in.Version = wire.Interpreter
	in.Workers, in.Suspects = d.workers, d.suspected()
	in.Parked = !d.want
	return workflow.NewContinueAsNewError(ctx, wire.WorkflowType, in)
}

// handle registers the query, the updates and the signal receivers.
func (d *dispatcher) handle(ctx workflow.Context) error {
	err := errors.Join(
		workflow.SetQueryHandler(ctx, wire.StateQuery, func() (dispatchtype.State, error) { return d.state(), nil }),
		workflow.SetUpdateHandlerWithOptions(ctx, wire.AdoptUpdate, d.adopt, workflow.UpdateHandlerOptions{
			Validator: d.admits,
		}),
		workflow.SetUpdateHandlerWithOptions(ctx, wire.RegisterUpdate, d.register, workflow.UpdateHandlerOptions{
			Validator: validate,
		}),
	)
	workflow.Go(ctx, func(ctx workflow.Context) {
		for workflow.GetSignalChannel(ctx, wire.DoorbellSignal).Receive(ctx, nil) {
			if d.routing == d.in.Owner.Epoch {
				d.rung = true
			} else {
				d.want = true
			}
		}
	})
	workflow.Go(ctx, func(ctx workflow.Context) {
		var late wire.Late
		for workflow.GetSignalChannel(ctx, wire.LateSignal).Receive(ctx, &late) {
			d.suspect(late.ServerIDs)
		}
	})
	return err
}

// admits rejects an adoption with an outdated epoch.
func (d *dispatcher) admits(a wire.Adoption) error {
	own := d.in.Owner
	switch {
	case a.ServerID == "":
		return temporal.NewApplicationError("an adoption without a server ID", "invalid")
	case a.Epoch < own.Epoch || a.Epoch == own.Epoch && a.ServerID != own.Holder:
		return temporal.NewApplicationError(
			fmt.Sprintf("epoch %d of %q does not follow epoch %d of %q", a.Epoch, a.ServerID, own.Epoch, own.Holder),
			wire.FencedError, d.state())
	}
	return nil
}

// adopt changes the dispatcher's owner, in place.
func (d *dispatcher) adopt(ctx workflow.Context, a wire.Adoption) (dispatchtype.State, error) {
	// Two adoptions in one task are both validated before either is executed.
	if err := d.admits(a); err != nil {
		return dispatchtype.State{}, err
	}
	d.updated = length(ctx)
	if a.Epoch == d.in.Owner.Epoch {
		return d.state(), nil
	}
	d.in.Owner = inbox.Owner{Epoch: a.Epoch, Holder: a.ServerID}
	err := workflow.UpsertMemo(ctx,
		wire.Memo{Name: d.in.Name, Owner: a.ServerID, Epoch: a.Epoch, Interpreter: d.in.Version}.Fields())
	if err != nil {
		return dispatchtype.State{}, err
	}
	d.busy = d.routing != 0
	d.routing, d.want, d.turn = 0, true, nil
	return d.state(), nil
}

func (d *dispatcher) state() dispatchtype.State {
	phase := dispatchtype.Parked
	if d.routing != 0 || d.want {
		phase = dispatchtype.Routing
	}
	return dispatchtype.State{
		Name: d.in.Name, Owner: d.in.Owner.Holder, Epoch: d.in.Owner.Epoch, Phase: phase, Interpreter: d.in.Version,
		Workers: d.workers,
	}
}
