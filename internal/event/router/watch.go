package router

import (
	"context"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/notice"
)

const (
	// newsEvery is how soon this process sees what another one commits, while somebody waits.
	newsEvery = 20 * time.Millisecond
	// newsPause is how long the database is left alone when it did not answer.
	newsPause = time.Second
	// newsAfter is how long it is looked on after the last one has left: those who wait come and go.
	newsAfter = 2 * time.Second
)

// watcher asks for news for all dispatchers of the process at once, while somebody waits.
type watcher struct {
	store event.Store
	hints *notice.Board
	// wanted gets a value when somebody comes.
	wanted chan struct{}

	mu      sync.Mutex
	waiting int
	// left is when the last one went.
	left time.Time
	// marked is closed while a mark is held: what is committed after it is seen.
	marked chan struct{}
}

func newWatcher(store event.Store, hints *notice.Board) *watcher {
	return &watcher{store: store, hints: hints, wanted: make(chan struct{}, 1), marked: make(chan struct{})}
}

// enter returns when whatever is committed afterwards will be seen, or ctx ends.
func (w *watcher) enter(ctx context.Context) {
	w.mu.Lock()
	w.waiting++
	marked := w.marked
	w.mu.Unlock()
	select {
	case w.wanted <- struct{}{}:
	default:
	}
	select {
	case <-marked:
	case <-ctx.Done():
	}
}

func (w *watcher) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting--; w.waiting == 0 {
		w.left = time.Now()
	}
}

// forget tells whether nobody has waited for a while. From then on, who comes waits for a new mark.
func (w *watcher) forget() bool {
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

func (w *watcher) run(ctx context.Context) {
	for {
		select {
		case <-w.wanted:
			w.look(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// look asks for news until nobody has waited for a while.
func (w *watcher) look(ctx context.Context) {
	heads := map[string]int64{}
	var mark int64
	failing := false
	for !w.forget() {
		pause := newsEvery
		news, next, err := w.store.News(ctx, mark)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			pause = newsPause
			if !failing {
				logger.FromContext(ctx).WarnContext(ctx, "What other processes commit cannot be seen; trying again", "error", err)
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
			// The same head is told several times in a row.
			if n.Due || n.Head > heads[n.Project] {
				heads[n.Project] = n.Head
				w.hints.Notify(n.Project)
			}
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}
