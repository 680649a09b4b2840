package flow

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/contract"
	"github.com/signalbox-dev/signalbox/dispatch/internal/route"
)

// Input is what a dispatcher is started with, and carries over when it continues as new.
type Input struct {
	// Version is that of the workflow's own code, which decides how it goes on.
	Version int               `json:"version"`
	Name    inbox.Name        `json:"name"`
	Owner   inbox.Owner       `json:"owner"`
	Workers []contract.Worker `json:"workers,omitempty"`
	// CheckEvery is the pace at which it looks after its workers while it routes.
	CheckEvery time.Duration `json:"checkEvery"`
	// Parked: it waits for its doorbell. Suspects are workers that may be gone.
	Parked   bool     `json:"parked,omitempty"`
	Suspects []string `json:"suspects,omitempty"`
}

const (
	// maxEvents is the length of history at which it continues as new even if the server does not suggest it.
	maxEvents = 4000
	// turns is the version from which on a dispatcher ends its routing to continue as new, and turnEvents the length of history at which it does:
	// doorbells may come by the thousands while it routes.
	turns      = 2
	turnEvents = 2000
	// settleFor is how long continuing as new is put off after an update in the same task: what arrives meanwhile makes the
	// server refuse the task, and with it the update. It is put off maxPuts times: a history takes so many updates, and no more.
	settleFor = time.Second
	maxPuts   = 5
	// troubled is the pause after a routing that failed for good.
	troubled = time.Second
	// misses is how many checks running must miss a worker.
	misses = 2
)

// dispatcher is the workflow's state. Everything happens in its coroutines, one at a time.
type dispatcher struct {
	in      Input
	workers []contract.Worker // in the order of their server IDs

	want    bool  // a routing is to be started
	busy    bool  // it was routing when it was adopted: look for more as long as one does after work
	routing int64 // the epoch of the routing that counts, 0 where there is none
	under   int   // routings under way, of whatever epoch
	rung    bool  // the doorbell rang while it was routing
	checks  bool  // workers are being looked after
	// turn ends the routing that counts, so that it is started again; nil where there is none, or it was called.
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
	// After those who receive signals: coroutines take turns in the order in which they began. What woke the workflow is noted before it is
	// decided to continue as new, and so carried over.
	ended, end := workflow.NewFuture(ctx)
	workflow.Go(ctx, func(ctx workflow.Context) { end.SetError(d.live(ctx)) })
	return ended.Get(ctx, nil)
}

// live does what there is to do until the workflow ends.
func (d *dispatcher) live(ctx workflow.Context) error {
	puts := 0
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
		case d.updated == length(ctx) && puts < maxPuts:
			puts++
			if _, err := workflow.AwaitWithTimeout(ctx, settleFor, func() bool { return d.updated != length(ctx) && d.want }); err != nil {
				return err
			}
		default:
			return d.next(ctx)
		}
	}
}

// start begins a routing for the owner there is.
func (d *dispatcher) start(ctx workflow.Context) {
	d.want, d.rung = false, false
	owner := d.in.Owner
	in := RouteInput{Name: d.in.Name, Owner: owner, Busy: d.busy}
	d.busy = false
	d.routing = owner.Epoch
	d.under++
	var turn workflow.CancelFunc
	routing := ctx
	if d.in.Version >= turns {
		routing, turn = workflow.WithCancel(ctx)
	}
	d.turn = turn
	routed := workflow.ExecuteActivity(workflow.WithActivityOptions(routing, workflow.ActivityOptions{
		StartToCloseTimeout: routeTimeout,
		HeartbeatTimeout:    heartbeatTimeout,
		WaitForCancellation: d.in.Version >= turns, // it then says whether there is more to do
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: retryFirst, BackoffCoefficient: 2, MaximumInterval: retryMost,
		},
	}), contract.RouteActivity, in)
	workflow.Go(ctx, func(ctx workflow.Context) {
		var end route.End
		err := routed.Get(ctx, &end)
		d.under--
		if owner.Epoch != d.routing {
			return // of an owner before
		}
		d.turn = nil
		if turn != nil && temporal.IsCanceledError(err) {
			end, err = route.Turned, nil // before it began
		}
		if err != nil {
			workflow.GetLogger(ctx).Error("Routing failed; starting it again", "error", err)
			_ = workflow.Sleep(ctx, troubled)
			if owner.Epoch != d.routing {
				return
			}
		}
		d.routing = 0
		d.want = d.want || err != nil || end == route.Turned || d.rung
		d.busy = end == route.Turned
	})
}

// full tells whether the history is long enough to begin another.
func (d *dispatcher) full(ctx workflow.Context) bool {
	most := maxEvents
	if d.in.Version >= turns {
		most = turnEvents
	}
	return workflow.GetInfo(ctx).GetContinueAsNewSuggested() || length(ctx) > most
}

// quiet tells whether nothing is half-done.
func (d *dispatcher) quiet() bool { return d.under == 0 && d.routing == 0 && !d.checks }

func length(ctx workflow.Context) int { return workflow.GetInfo(ctx).GetCurrentHistoryLength() }

// next returns the error that continues as new.
func (d *dispatcher) next(ctx workflow.Context) error {
	if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
		return err
	}
	in := d.in
	in.Version = contract.Interpreter
	in.Workers, in.Suspects = d.workers, d.suspected()
	in.Parked = !d.want
	return workflow.NewContinueAsNewError(ctx, contract.WorkflowType, in)
}

// handle sets up what the workflow answers to.
func (d *dispatcher) handle(ctx workflow.Context) error {
	err := errors.Join(
		workflow.SetQueryHandler(ctx, contract.StateQuery, func() (contract.State, error) { return d.state(), nil }),
		workflow.SetUpdateHandlerWithOptions(ctx, contract.AdoptUpdate, d.adopt, workflow.UpdateHandlerOptions{
			Validator: d.admits,
		}),
		workflow.SetUpdateHandlerWithOptions(ctx, contract.RegisterUpdate, d.register, workflow.UpdateHandlerOptions{
			Validator: validate,
		}),
	)
	workflow.Go(ctx, func(ctx workflow.Context) {
		for workflow.GetSignalChannel(ctx, contract.DoorbellSignal).Receive(ctx, nil) {
			if d.routing == d.in.Owner.Epoch {
				d.rung = true
			} else {
				d.want = true
			}
		}
	})
	workflow.Go(ctx, func(ctx workflow.Context) {
		var late contract.Late
		for workflow.GetSignalChannel(ctx, contract.LateSignal).Receive(ctx, &late) {
			d.suspect(late.ServerIDs)
		}
	})
	return err
}

// admits refuses an owner who is late.
func (d *dispatcher) admits(a contract.Adoption) error {
	own := d.in.Owner
	switch {
	case a.ServerID == "":
		return temporal.NewApplicationError("an adoption without a server ID", "invalid")
	case a.Epoch < own.Epoch || a.Epoch == own.Epoch && a.ServerID != own.Holder:
		return temporal.NewApplicationError(fmt.Sprintf("epoch %d of %q does not follow epoch %d of %q", a.Epoch, a.ServerID, own.Epoch, own.Holder),
			contract.FencedError, d.state())
	}
	return nil
}

// adopt gives the dispatcher another owner, in place.
func (d *dispatcher) adopt(ctx workflow.Context, a contract.Adoption) (contract.State, error) {
	// Of two adoptions in one task, both were admitted before either was made.
	if err := d.admits(a); err != nil {
		return contract.State{}, err
	}
	d.updated = length(ctx)
	if a.Epoch == d.in.Owner.Epoch {
		return d.state(), nil
	}
	d.in.Owner = inbox.Owner{Epoch: a.Epoch, Holder: a.ServerID}
	err := workflow.UpsertMemo(ctx, contract.Memo{Name: d.in.Name, Owner: a.ServerID, Epoch: a.Epoch, Interpreter: d.in.Version}.Fields())
	if err != nil {
		return contract.State{}, err
	}
	d.busy = d.routing != 0
	d.routing, d.want, d.turn = 0, true, nil
	return d.state(), nil
}

func (d *dispatcher) state() contract.State {
	phase := contract.Parked
	if d.routing != 0 || d.want {
		phase = contract.Routing
	}
	return contract.State{
		Name: d.in.Name, Owner: d.in.Owner.Holder, Epoch: d.in.Owner.Epoch, Phase: phase, Interpreter: d.in.Version, Workers: d.workers,
	}
}
