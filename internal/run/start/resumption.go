package start

import (
	"context"
	"sync"
)

// resumption cancels attempts to start runs, so that they are repeated. It is safe for concurrent use.
type resumption struct {
	mu   sync.Mutex
	next chan struct{} // closed by Resume
}

// newResumption returns a resumption without attempts.
func newResumption() *resumption { return &resumption{next: make(chan struct{})} }

// Attempt returns a context for one attempt, which ends with ctx, with the next Resume, or when it is canceled.
func (r *resumption) Attempt(ctx context.Context) (context.Context, context.CancelFunc) {
	r.mu.Lock()
	resumed := r.next
	r.mu.Unlock()
	attempt, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-resumed:
			cancel()
		case <-attempt.Done():
		}
	}()
	return attempt, cancel
}

// Resume cancels the attempts in progress.
func (r *resumption) Resume() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.next)
	r.next = make(chan struct{})
}
