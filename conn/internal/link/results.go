package link

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
	// resultsWithin is how long after the begin of a stop the results of tasks may wait for a server that cannot be used. The SDK tries
	// each for 10 s, and the worker that is being stopped waits for it.
	resultsWithin = 5 * time.Second
	// unconnectedFor is for how long there must have been no connection by then, unless the server is known to be down: frontends close
	// their connections from time to time.
	unconnectedFor = time.Second
	// resultsPace is how often a stop checks that.
	resultsPace = 50 * time.Millisecond
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

// results keeps the reports of results under way, so that a stop of workers need not wait for those that cannot be delivered.
type results struct {
	connected, down func() bool // what is known of the server

	mu          sync.Mutex
	leaving     int       // workers that are being stopped
	left        time.Time // begin of the stop: of the first of several between which the server could not be used
	unconnected time.Time // since when a stop has found no connection; zero: there is one
	underWay    map[int]context.CancelFunc
	last        int
}

func newResults(connected, down func() bool) *results {
	return &results{connected: connected, down: down, underWay: map[int]context.CancelFunc{}}
}

// leave notes that a worker is being stopped until back is called. Meanwhile results that cannot be delivered are given up in time.
func (r *results) leave() (back func()) {
	usable := r.connected() && !r.down()
	r.mu.Lock()
	r.leaving++
	if usable || r.left.IsZero() {
		r.left = time.Now()
	}
	r.mu.Unlock()
	stopped := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		ticker := time.NewTicker(resultsPace)
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
		r.leaving--
	}
}

// check ends the reports under way once they are to be given up.
func (r *results) check() {
	connected := r.connected()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case connected:
		r.unconnected = time.Time{}
	case r.unconnected.IsZero():
		r.unconnected = time.Now()
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
	if r.leaving == 0 || time.Since(r.left) < resultsWithin {
		return false
	}
	return r.down() || !r.unconnected.IsZero() && time.Since(r.unconnected) >= unconnectedFor
}

// report sends a result. While a worker is being stopped, the result waits for the connection instead of failing without one: the SDK
// would wait for up to several seconds before it tries again. A result that is given up has an error that the SDK does not retry.
func (r *results) report(ctx context.Context, send func(ctx context.Context, opts ...grpc.CallOption) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.mu.Lock()
	var opts []grpc.CallOption
	if r.leaving > 0 {
		opts = append(opts, grpc.WaitForReady(true))
	}
	if r.givenUp() {
		cancel()
	}
	r.last++
	number := r.last
	r.underWay[number] = cancel
	r.mu.Unlock()
	err := send(ctx, opts...)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.underWay, number)
	if status.Code(err) == codes.Canceled && r.givenUp() {
		return status.Error(codes.Canceled, "the worker is being stopped, and Temporal cannot be used")
	}
	return err
}
