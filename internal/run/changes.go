package run

import "sync"

// Changes tells watches in this process that a run has changed, so that they need not wait for their next look at the
// store. It loses nothing that matters: watches look anyway.
type Changes struct {
	mu       sync.Mutex
	watchers map[string]map[chan struct{}]struct{}
}

// NewChanges returns an empty Changes.
func NewChanges() *Changes {
	return &Changes{watchers: map[string]map[chan struct{}]struct{}{}}
}

// Subscribe returns a channel that gets a value after changes of the run, several changes may share one, and a function that
// ends the subscription.
func (c *Changes) Subscribe(id string) (<-chan struct{}, func()) {
	ch := make(chan struct{}, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watchers[id] == nil {
		c.watchers[id] = map[chan struct{}]struct{}{}
	}
	c.watchers[id][ch] = struct{}{}
	return ch, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.watchers[id], ch)
		if len(c.watchers[id]) == 0 {
			delete(c.watchers, id)
		}
	}
}

// Notify tells the run's watches, without blocking.
func (c *Changes) Notify(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ch := range c.watchers[id] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}
