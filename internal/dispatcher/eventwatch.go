package dispatcher

import (
	"context"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/internal/pubsub"
)

const (
	// newsEvery is the interval at which this process polls for commits of other processes while something awaits them.
	newsEvery = 20 * time.Millisecond
	// newsPause is the pause after a failed request to the database.
	newsPause = time.Second
	// newsAfter is how long polling continues after the last waiter has left: waiters come and go.
	newsAfter = 2 * time.Second
)

// eventWatcher polls for news for all dispatchers of the process, while there are waiters.
type eventWatcher struct {
	store event.Store
	hints *pubsub.Notifier
	// wake receives a value when a waiter enters.
	wake chan struct{}

	mu      sync.Mutex
	waiting int
	// left is the time at which the last waiter left.
	left time.Time
	// marked is closed while the watcher has a mark: it sees every later commit.
	marked chan struct{}
}

func newEventWatcher(store event.Store, hints *pubsub.Notifier) *eventWatcher {
	return &eventWatcher{store: store, hints: hints, wake: make(chan struct{}, 1), marked: make(chan struct{})}
}

// enter returns once every later commit will be seen, or when ctx ends.
func (w *eventWatcher) enter(ctx context.Context) {
	w.mu.Lock()
	w.waiting++
	marked := w.marked
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
	select {
	case <-marked:
	case <-ctx.Done():
	}
}

func (w *eventWatcher) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting--; w.waiting == 0 {
		w.left = time.Now()
	}
}

// idle reports whether there was no waiter for a while. From then on, the next waiter waits for a new mark.
func (w *eventWatcher) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting > 0 || time.Since(w.left) < newsAfter {
		return false
	}
	select {
	case <-w.marked:
		w.marked = make(chan struct{})
	default:
	}
	return true
}

func (w *eventWatcher) run(ctx context.Context) {
	for {
		select {
		case <-w.wake:
			w.poll(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// poll polls for news until there was no waiter for a while.
func (w *eventWatcher) poll(ctx context.Context) {
	heads := map[string]int64{}
	var mark int64
	failing := false
	for !w.idle() {
		pause := newsEvery
		news, next, err := w.store.News(ctx, mark)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			pause = newsPause
			if !failing {
				logger.FromContext(ctx).WarnContext(ctx, "Commits of other processes cannot be read; trying again", "error", err)
			}
		case mark == 0:
			w.mu.Lock()
			close(w.marked)
			w.mu.Unlock()
		}
		failing = err != nil
		if err == nil {
			mark = next
		}
		for _, n := range news {
			// The same head is returned several times in a row.
			if n.Due || n.Head > heads[n.Project] {
				heads[n.Project] = n.Head
				w.hints.Notify(n.Project)
			}
		}
		if !loop.Sleep(ctx, pause) {
			return
		}
	}
}
