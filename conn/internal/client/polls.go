package client

import (
	"context"
	"sync"
)

// pollWaits holds the polls under way, by task queue, so that those of a worker that is being stopped can be cancelled.
// The SDK relies on the server to end them, which is not possible without a connection.
type pollWaits struct {
	mu       sync.Mutex
	stopping map[string]int
	waiting  map[string]map[int]context.CancelFunc
	lastID   int
}

func newPollWaits() *pollWaits {
	return &pollWaits{stopping: map[string]int{}, waiting: map[string]map[int]context.CancelFunc{}}
}

// wait returns the context of a poll that may wait for a connection; done must be called when the poll has ended. ok is
// false for a queue with a worker that is being stopped.
func (w *pollWaits) wait(ctx context.Context, queue string) (waiting context.Context, done func(), ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopping[queue] > 0 {
		return ctx, func() {}, false
	}
	ctx, cancel := context.WithCancel(ctx)
	w.lastID++
	id := w.lastID
	if w.waiting[queue] == nil {
		w.waiting[queue] = map[int]context.CancelFunc{}
	}
	w.waiting[queue][id] = cancel
	return ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.waiting[queue], id)
		cancel()
	}, true
}

// stop lets no poll of the queues wait for a connection until resume is called. Without a connection it cancels the
// polls under way; with one, the server ends them.
func (w *pollWaits) stop(queues []string, connected bool) (resume func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, queue := range queues {
		w.stopping[queue]++
		if connected {
			continue
		}
		for _, cancel := range w.waiting[queue] {
			cancel()
		}
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, queue := range queues {
			w.stopping[queue]--
		}
	}
}

// cancelStopping cancels the polls under way of a queue with a worker that is being stopped.
func (w *pollWaits) cancelStopping(queue string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopping[queue] == 0 {
		return
	}
	for _, cancel := range w.waiting[queue] {
		cancel()
	}
}
