package event

import "sync"

// Hints tell whoever waits in this process that a project's events or deliveries have changed, so that they need not wait for
// their next look at the store. They lose nothing that matters: those who wait look anyway.
type Hints struct {
	mu      sync.Mutex
	waiting map[string]map[chan struct{}]struct{}
}

// NewHints returns an empty Hints.
func NewHints() *Hints {
	return &Hints{waiting: map[string]map[chan struct{}]struct{}{}}
}

// Subscribe returns a channel that gets a value after changes of the project, several changes may share one, and a function that
// ends the subscription.
func (h *Hints) Subscribe(project string) (<-chan struct{}, func()) {
	ch := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiting[project] == nil {
		h.waiting[project] = map[chan struct{}]struct{}{}
	}
	h.waiting[project][ch] = struct{}{}
	return ch, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.waiting[project], ch)
		if len(h.waiting[project]) == 0 {
			delete(h.waiting, project)
		}
	}
}

// Notify tells those who wait for the project, without blocking.
func (h *Hints) Notify(project string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for ch := range h.waiting[project] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}
