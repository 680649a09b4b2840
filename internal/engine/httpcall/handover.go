package httpcall

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/heartbeat"
)

const (
	// unattachedFor is the time for which a request that was handed over continues, or its result is stored, until an
	// activity attaches to it. After the loss of a workflow task, no activity ever attaches to its requests.
	unattachedFor = time.Minute
	// drainUnattached is the time for which a stopping process waits for activities to attach to requests that were
	// handed over.
	drainUnattached = 2 * time.Second
	// maxHandedOver is the number of handed over requests that a process has in flight before new calls become
	// activities at once, of which a worker executes a limited number.
	maxHandedOver = 1000
)

// exchange is one request in flight that outlives the local activity that started it.
type exchange struct {
	cancel   context.CancelFunc
	done     chan struct{} // closed when response and err are set
	response flow.HTTPResponse
	err      error

	attached bool
	expiry   *time.Timer
}

// exchanges holds the requests of this process that were handed over. It is safe for concurrent use.
type exchanges struct {
	queue string

	mu       sync.Mutex
	requests map[string]*exchange
	changed  chan struct{} // closed and replaced when requests changes
}

func newExchanges(queue string) *exchanges {
	return &exchanges{queue: queue, requests: map[string]*exchange{}, changed: make(chan struct{})}
}

// full reports whether the limit of handed over requests is reached.
func (e *exchanges) full() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.requests) >= maxHandedOver
}

// handOver hands x over to an activity.
func (e *exchanges) handOver(x *exchange) *flow.Continued {
	id := rand.Text()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.requests[id] = x
	x.expiry = time.AfterFunc(unattachedFor, func() {
		if e.remove(id, false) {
			x.cancel()
		}
	})
	e.notify()
	return &flow.Continued{Queue: e.queue, ID: id}
}

// attach returns an exchange to which no other activity has attached.
func (e *exchanges) attach(id string) (*exchange, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x, ok := e.requests[id]
	if !ok || x.attached {
		return nil, false
	}
	x.attached = true
	x.expiry.Stop()
	e.notify()
	return x, true
}

// remove removes an exchange. It returns false if the exchange does not exist, or if its state of attachment differs
// from attached.
func (e *exchanges) remove(id string, attached bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	x, ok := e.requests[id]
	if !ok || x.attached != attached {
		return false
	}
	delete(e.requests, id)
	e.notify()
	return true
}

// notify wakes the callers of count. The lock must be held.
func (e *exchanges) notify() {
	close(e.changed)
	e.changed = make(chan struct{})
}

// count returns the numbers of exchanges with and without an attached activity, and a channel that is closed when they
// change.
func (e *exchanges) count() (attached, unattached int, changed <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, x := range e.requests {
		if x.attached {
			attached++
		} else {
			unattached++
		}
	}
	return attached, unattached, e.changed
}

// begin starts a request that outlives ctx.
func (c *Caller) begin(ctx context.Context, r flow.HTTPRequest) *exchange {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	x := &exchange{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(x.done)
		defer cancel()
		x.response, x.err = c.perform(ctx, r)
	}()
	return x
}

// callLocally performs a request for a local activity until its patience expires, and then hands it over.
func (c *Caller) callLocally(ctx context.Context, r flow.HTTPRequest) (flow.HTTPResponse, error) {
	// Temporal retries a workflow task without a bound, and does not store the local activities of failed tries. So
	// only an activity may repeat a request that an earlier try may have sent, and the run counts it.
	if before := c.attemptsBefore(ctx); len(before) > 0 || c.exchanges.full() {
		return flow.HTTPResponse{Postponed: true, Attempts: before}, nil
	}
	x := c.begin(ctx, r)
	patience := time.NewTimer(r.Patience)
	defer patience.Stop()
	select {
	case <-x.done:
		if int64(x.response.Size()) <= r.Inline && c.storage.canStore(ctx, x.response) {
			return x.response, x.err
		}
	case <-patience.C:
	case <-ctx.Done():
		x.cancel()
		<-x.done
		return flow.HTTPResponse{}, flow.Interrupted(fmt.Sprintf("%s: %v", subject(r), ctx.Err()))
	}
	return flow.HTTPResponse{Continued: c.exchanges.handOver(x)}, nil
}

// Attach is the activity that continues a request which a local activity has handed over. Its cancellation ends the
// request.
func (c *Caller) Attach(ctx context.Context, r flow.AttachRequest) (flow.HTTPResponse, error) {
	x, ok := c.exchanges.attach(r.ID)
	if !ok {
		return flow.HTTPResponse{}, flow.Interrupted("the request is not in flight in this process")
	}
	defer c.exchanges.remove(r.ID, true)
	stop := heartbeat.Keep(ctx)
	defer stop()
	select {
	case <-x.done:
		return c.storage.await(ctx, x.response, x.err)
	case <-ctx.Done():
		x.cancel()
		<-x.done
		return flow.HTTPResponse{}, flow.Interrupted(fmt.Sprintf("the request was ended with its activity: %v", ctx.Err()))
	}
}

// Queue is the task queue on which this process continues the calls that its local activities hand over.
func (c *Caller) Queue() string { return c.exchanges.queue }

// Drain waits until the requests that were handed over have ended. When ctx ends, it cancels the rest: the runs repeat
// them from another process, unless that is forbidden.
func (c *Caller) Drain(ctx context.Context) {
	patience := time.NewTimer(drainUnattached)
	defer patience.Stop()
	expired := patience.C
	waiting := true
	for {
		attached, unattached, changed := c.exchanges.count()
		if attached == 0 && (unattached == 0 || !waiting) {
			return
		}
		select {
		case <-changed:
		case <-expired:
			expired, waiting = nil, false
		case <-ctx.Done():
			c.exchanges.cancelAll()
			return
		}
	}
}

// cancelAll cancels all requests that were handed over.
func (e *exchanges) cancelAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, x := range e.requests {
		x.cancel()
	}
}

// attemptsBefore returns the requests that an earlier try of the same workflow task may have sent.
func (c *Caller) attemptsBefore(ctx context.Context) []flow.Attempt {
	if !activity.IsActivity(ctx) || !c.repeated(activity.GetInfo(ctx).WorkflowExecution.RunID) {
		return nil
	}
	return []flow.Attempt{{EndedAt: attemptTime(), Unknown: true}}
}
