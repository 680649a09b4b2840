// Package router is the inbox of a project's dispatcher: it has the events matched with those who want them, and makes the
// deliveries that come of it.
//
//	r := router.New(router.Options{Store: store, Matcher: match.New(match.Options{}), Runs: runs, Waker: engine, Hints: hints})
//	dispatch.New(dispatch.Options{Inbox: r, …})
//
// It decides nothing about events, which is package match's, and keeps nothing, which is the store's. What an attempt came
// to is decided in one place, by the kind of the refusal: what may pass is tried again for as long as it takes, what will not
// is given up at once with its reason, for people.
package router

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/notice"
	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	// routeLimit is how many events are matched at once.
	routeLimit = 200
	// routeFor bounds how long a claim goes on matching while nothing of it is to be delivered.
	routeFor = time.Second
)

// Matcher decides what events are for: of all events of a batch, or of the first ones.
type Matcher interface {
	Match(b event.Batch) []event.Routing
}

// Runs starts runs.
type Runs interface {
	Start(ctx context.Context, req run.StartRequest) (run.Run, bool, error)
}

// Waker hands an event, in the JSON form of CloudEvents, to a run that listens, with the texts that are to be hidden in it. It may answer [run.ErrNotKnown] and [run.ErrClosed].
type Waker interface {
	Wake(ctx context.Context, runID, listener string, position int64, cloudEvent json.RawMessage, sensitive []string) error
}

// Reports publishes events of the platform.
type Reports interface {
	Publish(ctx context.Context, project string, events []event.Event) ([]event.Accepted, error)
}

// Options are what a router works with.
type Options struct {
	Store   event.Store
	Matcher Matcher
	Runs    Runs
	Waker   Waker
	// Reports publishes what becomes of events; nil: nothing is published.
	Reports Reports
	// Hints are told of what other processes commit, and tell of what this one does.
	Hints *notice.Board
}

// Router is an [inbox.Inbox] over a store of events. It is safe for concurrent use.
type Router struct {
	opts  Options
	watch *watcher
	stop  context.CancelFunc
	done  chan struct{}
}

var _ inbox.Inbox = (*Router)(nil)

// New returns a router. [Router.Await] needs it to be started.
func New(o Options) *Router {
	return &Router{opts: o, watch: newWatcher(o.Store, o.Hints)}
}

// Start begins to look for what other processes commit, as long as somebody waits for it.
func (r *Router) Start(ctx context.Context) error {
	ctx, r.stop = context.WithCancel(context.WithoutCancel(ctx))
	r.done = make(chan struct{})
	go func() {
		defer close(r.done)
		r.watch.run(ctx)
	}()
	return nil
}

// Stop joins what looks. Those who wait go on waiting until their contexts end.
func (r *Router) Stop(context.Context) error {
	if r.stop != nil {
		r.stop()
		<-r.done
	}
	return nil
}

// Fence implements [inbox.Inbox].
func (r *Router) Fence(ctx context.Context, name inbox.Name, holder string, above int64) (inbox.Owner, error) {
	return r.opts.Store.Fence(ctx, name.Project, name.TaskQueue, holder, above)
}

// Claim implements [inbox.Inbox]: it has the new events matched, and takes what is due. Where there are more new events than it
// matches in its time, it leaves the rest to the next claim.
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

// route has a batch of new events matched, and tells whether there may be more of them.
func (r *Router) route(ctx context.Context, name inbox.Name, owner inbox.Owner) (more bool, err error) {
	batch, err := r.opts.Store.Unrouted(ctx, name.Project, routeLimit)
	if err != nil || len(batch.Events) == 0 {
		return false, err
	}
	routings := r.opts.Matcher.Match(batch)
	err = r.opts.Store.CommitRouting(ctx, name.Project, owner, routings)
	if errors.Is(err, event.ErrRouted) {
		return true, nil // by another routing of the same owner, which was taken for dead
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

// Settle implements [inbox.Inbox].
func (r *Router) Settle(ctx context.Context, name inbox.Name, owner inbox.Owner, settled []inbox.Settled) error {
	return r.opts.Store.Settle(ctx, name.Project, owner, settled)
}

// Park implements [inbox.Inbox].
func (r *Router) Park(ctx context.Context, name inbox.Name, owner inbox.Owner) (bool, error) {
	return r.opts.Store.Park(ctx, name.Project, owner)
}

// Unpark implements [inbox.Inbox].
func (r *Router) Unpark(ctx context.Context, name inbox.Name, owner inbox.Owner) error {
	return r.opts.Store.Unpark(ctx, name.Project, owner)
}

// Asleep implements [inbox.Inbox].
func (r *Router) Asleep(ctx context.Context, limit int) ([]inbox.Name, error) {
	return r.opts.Store.Asleep(ctx, limit)
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
	// What is committed from here on is seen by the watcher; what was before is there now.
	if found, err := r.opts.Store.Progress(ctx, []inbox.Name{name}); err == nil && len(found) > 0 && found[0].Due {
		return
	}
	select {
	case <-changed:
	case <-ctx.Done():
	}
}
