package client

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// resultsTimeout is how long after the begin of a worker's stop the results of tasks may wait for a server that cannot
	// be used. The SDK retries each for 10 s, and the worker's stop waits for it.
	resultsTimeout = 5 * time.Second
	// minUnconnected is how long there must have been no connection by then, unless the manager's state is down: frontends
	// close their connections regularly.
	minUnconnected = time.Second
	// resultsCheckInterval is how often a stop checks both.
	resultsCheckInterval = 50 * time.Millisecond
)

// isResult reports whether a request reports the result of a task.
func isResult(req any) bool {
	switch req.(type) {
	case *workflowservice.RespondWorkflowTaskCompletedRequest, *workflowservice.RespondWorkflowTaskFailedRequest,
		*workflowservice.RespondActivityTaskCompletedRequest, *workflowservice.RespondActivityTaskFailedRequest,
		*workflowservice.RespondActivityTaskCanceledRequest:
		return true
	}
	return false
}

// results holds the results of tasks that are being reported, so that a stop of workers does not wait for those that
// cannot be delivered.
type results struct {
	connected, down func() bool // state of the server

	mu               sync.Mutex
	stopping         int       // number of workers that are being stopped
	stopBegan        time.Time // begin of the stop; of several stops while the server could not be used, of the first
	unconnectedSince time.Time // since when there was no connection during a stop; zero: there is one
	underWay         map[int]context.CancelFunc
	lastID           int
}

func newResults(connected, down func() bool) *results {
	return &results{connected: connected, down: down, underWay: map[int]context.CancelFunc{}}
}

// stop is called when a worker begins to stop, and resume once it has stopped. In between, results that cannot be
// delivered are given up.
func (r *results) stop() (resume func()) {
	usable := r.connected() && !r.down()
	r.mu.Lock()
	r.stopping++
	if usable || r.stopBegan.IsZero() {
		r.stopBegan = time.Now()
	}
	r.mu.Unlock()
	stopped := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		ticker := time.NewTicker(resultsCheckInterval)
		defer ticker.Stop()
		for {
			r.check()
			select {
			case <-ticker.C:
			case <-stopped:
				return
			}
		}
	})
	return func() {
		close(stopped)
		watching.Wait()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.stopping--
	}
}

// check cancels the results under way once they are to be given up.
func (r *results) check() {
	connected := r.connected()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case connected:
		r.unconnectedSince = time.Time{}
	case r.unconnectedSince.IsZero():
		r.unconnectedSince = time.Now()
	}
	if !r.givenUp() {
		return
	}
	for _, cancel := range r.underWay {
		cancel()
	}
}

// givenUp reports whether results are given up. The lock is held.
func (r *results) givenUp() bool {
	if r.stopping == 0 || time.Since(r.stopBegan) < resultsTimeout {
		return false
	}
	return r.down() || !r.unconnectedSince.IsZero() && time.Since(r.unconnectedSince) >= minUnconnected
}

// report sends a result. While a worker is being stopped, the result waits for the connection instead of failing
// without one: the SDK would wait for up to several seconds before it tries again. A result that is given up has an
// error that the SDK does not retry.
func (r *results) report(ctx context.Context, send func(ctx context.Context, opts ...grpc.CallOption) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.mu.Lock()
	var opts []grpc.CallOption
	if r.stopping > 0 {
		opts = append(opts, grpc.WaitForReady(true))
	}
	if r.givenUp() {
		cancel()
	}
	r.lastID++
	id := r.lastID
	r.underWay[id] = cancel
	r.mu.Unlock()
	err := send(ctx, opts...)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.underWay, id)
	if status.Code(err) == codes.Canceled && r.givenUp() {
		return status.Error(codes.Canceled, "the worker is being stopped, and Temporal cannot be used")
	}
	return err
}
