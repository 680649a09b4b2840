package dispatcher

import (
	"context"
	"errors"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/event/match"
	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/start"
)

const (
	// routeLimit is the number of events that are matched at once.
	routeLimit = 200
	// routeFor limits how long a claim continues matching while no match yields a delivery.
	routeFor = time.Second
)

// Runs starts runs.
type Runs interface {
	Start(ctx context.Context, req start.Request) (run.Run, bool, error)
}

// Waker delivers events to a listening run, in their order. It may return [run.ErrNotKnown] and [run.ErrClosed] for
// runs that cannot receive them.
type Waker interface {
	Wake(ctx context.Context, runID string, events ...event.WakeEvent) error
}

// Reports publishes events of the platform.
type Reports interface {
	Publish(ctx context.Context, project string, events []event.Event) ([]event.Accepted, error)
}

// Turns are turns that projects share.
type Turns interface {
	// Acquire waits for a turn for a request of a kind, and returns the function that releases it; done reports whether
	// the request was fulfilled. The error is that of ctx.
	Acquire(ctx context.Context, project, kind string) (release func(done bool), err error)
}

// Rows reads the rows of runs.
type Rows interface {
	GetRun(ctx context.Context, project, id string) (run.Run, error)
}

// RouterOptions configure [NewRouter].
type RouterOptions struct {
	Store   event.Store
	Matcher *match.Matcher
	Runs    Runs
	Waker   Waker
	// Rows reads the runs that emitted events.
	Rows Rows
	// Reports publishes [RunRefused] events; nil publishes nothing.
	Reports Reports
	// Turns are the turns that the attempts of all projects in the process share.
	Turns Turns
	// Hints notifies of commits, of this process and of others.
	Hints *pubsub.Notifier
}

// Router is the [inbox.Inbox] of the dispatchers, over a store of events: it matches events with workflows and
// listening runs, and makes the resulting deliveries.
//
//	r := dispatcher.NewRouter(dispatcher.RouterOptions{Store: store, Matcher: matcher, Runs: runs, Waker: engine, …})
//	dispatch.New(dispatch.Options{Inbox: r, …})
//
// Package match decides which events match, and the store keeps all data. The outcome of an attempt depends on the
// class of its error: transient errors are retried without a limit, permanent ones make the delivery dead at once, with
// the reason for operators. A router is safe for concurrent use.
type Router struct {
	opts   RouterOptions
	watch  *eventWatcher
	runner loop.Runner
}

var _ inbox.Inbox = (*Router)(nil)

// NewRouter returns a router. [Router.Await] requires it to be started.
func NewRouter(o RouterOptions) *Router {
	return &Router{opts: o, watch: newEventWatcher(o.Store, o.Hints)}
}

// Start starts polling for commits of other processes, while something awaits them.
func (r *Router) Start(ctx context.Context) error {
	r.runner.Start(ctx, func(ctx, _ context.Context) { r.watch.run(ctx) })
	return nil
}

// Stop stops the polling and waits for its end. Calls of [Router.Await] continue until their contexts end.
func (r *Router) Stop(ctx context.Context) error {
	r.runner.Stop(ctx)
	return nil
}

// Fence implements [inbox.Inbox].
func (r *Router) Fence(ctx context.Context, name inbox.Name, holder string, above int64) (inbox.Owner, error) {
	return r.opts.Store.Fence(ctx, name.Project, name.TaskQueue, holder, above)
}

// Claim implements [inbox.Inbox]: it matches the new events, and claims the due deliveries. New events that exceed its
// time are left to the next claim.
func (r *Router) Claim(
	ctx context.Context, name inbox.Name, owner inbox.Owner, limit int, visible time.Duration,
) ([]inbox.Delivery, error) {
	for begin := time.Now(); ; {
		more, err := r.route(ctx, name, owner)
		if err != nil {
			return nil, err
		}
		due, err := r.opts.Store.Due(ctx, name.Project, owner, limit, visible)
		if err != nil {
			return nil, err
		}
		if len(due) > 0 || !more || time.Since(begin) >= routeFor {
			return deliveries(due), nil
		}
	}
}

// route matches a batch of new events, and reports whether there may be more.
func (r *Router) route(ctx context.Context, name inbox.Name, owner inbox.Owner) (more bool, err error) {
	batch, err := r.opts.Store.Unrouted(ctx, name.Project, routeLimit)
	if err != nil || len(batch.Events) == 0 {
		return false, err
	}
	evaluation := r.opts.Matcher.Evaluate(batch)
	found, err := r.opts.Store.FindListeners(ctx, name.Project, evaluation.Lookups())
	if err != nil {
		return false, err
	}
	routings := evaluation.Routings(found)
	err = r.opts.Store.CommitRouting(ctx, name.Project, owner, routings)
	if errors.Is(err, event.ErrRouted) {
		return true, nil // routed by another routing of the same owner, which was taken for dead
	}
	if err != nil {
		return false, err
	}
	return len(batch.Events) == routeLimit || len(routings) < len(batch.Events), nil
}

func deliveries(due []event.Delivery) []inbox.Delivery {
	out := make([]inbox.Delivery, len(due))
	for i, d := range due {
		out[i] = inbox.Delivery{ID: d.ID, Attempt: d.Attempts, Item: d}
		if d.Kind == event.Wake {
			out[i].Lane = d.RunID
		}
	}
	return out
}

// RecordOutcomes implements [inbox.Inbox].
func (r *Router) RecordOutcomes(ctx context.Context, name inbox.Name, owner inbox.Owner,
	outcomes []inbox.DeliveryOutcome) error {
	return r.opts.Store.RecordOutcomes(ctx, name.Project, owner, outcomes)
}

// Park implements [inbox.Inbox].
func (r *Router) Park(ctx context.Context, name inbox.Name, owner inbox.Owner) (bool, error) {
	return r.opts.Store.Park(ctx, name.Project, owner)
}

// Unpark implements [inbox.Inbox].
func (r *Router) Unpark(ctx context.Context, name inbox.Name, owner inbox.Owner) error {
	return r.opts.Store.Unpark(ctx, name.Project, owner)
}

// ParkedDue implements [inbox.Inbox].
func (r *Router) ParkedDue(ctx context.Context, limit int) ([]inbox.Name, error) {
	return r.opts.Store.ParkedDue(ctx, limit)
}

// Progress implements [inbox.Inbox].
func (r *Router) Progress(ctx context.Context, names ...inbox.Name) ([]inbox.Progress, error) {
	return r.opts.Store.Progress(ctx, names)
}

// Await implements [inbox.Inbox].
func (r *Router) Await(ctx context.Context, name inbox.Name) {
	changed, end := r.opts.Hints.Subscribe(name.Project)
	defer end()
	r.watch.enter(ctx)
	defer r.watch.leave()
	// The watcher sees commits from here on; earlier ones are in the database now.
	if found, err := r.opts.Store.Progress(ctx, []inbox.Name{name}); err == nil && len(found) > 0 && found[0].Due {
		return
	}
	select {
	case <-changed:
	case <-ctx.Done():
	}
}
