package httpcall

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/signalbox-dev/signalbox/internal/engine/flow"
)

const (
	// unattachedFor is how long a request that was handed over goes on, or its result is kept, until an activity takes it. A workflow
	// task that was lost meanwhile leaves one that no activity ever takes.
	unattachedFor = time.Minute
	// drainUnattached is how long a process that stops waits for activities to take what was handed over.
	drainUnattached = 2 * time.Second
	// maxKept is how many requests that were handed over a process has in flight before calls go to activities from the start, of
	// which a worker takes a limited number.
	maxKept = 1000
)

// exchange is one request in flight that outlives the local activity that began it.
type exchange struct {
	cancel   context.CancelFunc
	done     chan struct{} // closed when response and err are set
	response flow.HTTPResponse
	err      error

	attached bool
	expiry   *time.Timer
}

// exchanges are the requests of this process that were handed over. It is safe for concurrent use.
type exchanges struct {
	queue string

	mu      sync.Mutex
	kept    map[string]*exchange
	changed chan struct{} // closed and replaced when kept changes
}

func newExchanges(queue string) *exchanges {
	return &exchanges{queue: queue, kept: map[string]*exchange{}, changed: make(chan struct{})}
}

// full returns whether enough was handed over.
func (e *exchanges) full() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.kept) >= maxKept
}

// keep hands x over to an activity.
func (e *exchanges) keep(x *exchange) *flow.Continued {
	id := rand.Text()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kept[id] = x
	x.expiry = time.AfterFunc(unattachedFor, func() {
		if e.remove(id, false) {
			x.cancel()
		}
	})
	e.notify()
	return &flow.Continued{Queue: e.queue, ID: id}
}

// attach takes an exchange that no other activity has taken.
func (e *exchanges) attach(id string) (*exchange, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x, ok := e.kept[id]
	if !ok || x.attached {
		return nil, false
	}
	x.attached = true
	x.expiry.Stop()
	e.notify()
	return x, true
}

// remove forgets an exchange; false: it is not there, or an activity has taken it and attached is false.
func (e *exchanges) remove(id string, attached bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	x, ok := e.kept[id]
	if !ok || x.attached != attached {
		return false
	}
	delete(e.kept, id)
	e.notify()
	return true
}

// notify wakes waitIdle. The lock is held.
func (e *exchanges) notify() {
	close(e.changed)
	e.changed = make(chan struct{})
}

// count returns how many exchanges an activity has taken, and how many not.
func (e *exchanges) count() (attached, unattached int, changed <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, x := range e.kept {
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

// callLocally performs a request for a local activity for as long as its patience lasts, and then hands it over.
func (c *Caller) callLocally(ctx context.Context, r flow.HTTPRequest) (flow.HTTPResponse, error) {
	// Temporal repeats a workflow task without bound, and keeps nothing of local activities in those that failed. So what may have been sent
	// in one is sent again by an activity alone, which the run counts.
	if before := c.attemptsBefore(ctx, r); len(before) > 0 || c.exchanges.full() {
		return flow.HTTPResponse{Postponed: true, Attempts: before}, nil
	}
	x := c.begin(ctx, r)
	patience := time.NewTimer(r.Patience)
	defer patience.Stop()
	select {
	case <-x.done:
		if int64(x.response.Size()) <= r.Inline && c.storage.takes(ctx, x.response) {
			return x.response, x.err
		}
	case <-patience.C:
	case <-ctx.Done():
		x.cancel()
		<-x.done
		return flow.HTTPResponse{}, flow.Interrupted(fmt.Sprintf("%s: %v", subject(r), ctx.Err()))
	}
	return flow.HTTPResponse{Continued: c.exchanges.keep(x)}, nil
}

// Attach is the activity that takes over a request which a local activity has handed over. Its cancellation ends the request.
func (c *Caller) Attach(ctx context.Context, r flow.AttachRequest) (flow.HTTPResponse, error) {
	x, ok := c.exchanges.attach(r.ID)
	if !ok {
		return flow.HTTPResponse{}, flow.Interrupted("the request is not in flight in this process")
	}
	defer c.exchanges.remove(r.ID, true)
	stop := heartbeat(ctx)
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

// Queue is the task queue on which this process takes over what its local activities hand over.
func (c *Caller) Queue() string { return c.exchanges.queue }

// Drain waits until the requests that were handed over have ended, until ctx ends. Then it cancels those that are left: the runs send
// them again from another process, where they may.
func (c *Caller) Drain(ctx context.Context) {
	patience := time.NewTimer(drainUnattached)
	defer patience.Stop()
	give := patience.C
	waiting := true
	for {
		attached, unattached, changed := c.exchanges.count()
		if attached == 0 && (unattached == 0 || !waiting) {
			return
		}
		select {
		case <-changed:
		case <-give:
			give, waiting = nil, false
		case <-ctx.Done():
			c.exchanges.cancelAll()
			return
		}
	}
}

// cancelAll ends all requests that were handed over.
func (e *exchanges) cancelAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, x := range e.kept {
		x.cancel()
	}
}

// attemptsBefore are the requests that an earlier try of the same workflow task may have sent.
func (c *Caller) attemptsBefore(ctx context.Context, r flow.HTTPRequest) []flow.Attempt {
	if !r.ReportAttempts || !activity.IsActivity(ctx) || !c.repeated(activity.GetInfo(ctx).WorkflowExecution.RunID) {
		return nil
	}
	return []flow.Attempt{{EndedAt: attemptTime(), Unknown: true}}
}
