package pubsub

import "sync"

// Collection collects the names of all changes until they are taken. It is safe for concurrent use.
type Collection struct {
	end  func()
	most int

	mu     sync.Mutex
	names  map[string]struct{}
	lost   bool
	signal chan struct{} // closed while there are names
}

// Collect returns a collection of the names of all changes from now on. It holds at most that many names; see
// [Collection.Take].
func (b *Notifier) Collect(most int) *Collection {
	c := &Collection{most: most, names: map[string]struct{}{}, signal: make(chan struct{})}
	c.end = func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.collections, c)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.collections[c] = struct{}{}
	return c
}

// Close ends the collection.
func (c *Collection) Close() { c.end() }

// Changed returns a channel that is closed once there are names to take. Each result of Take requires a new call.
func (c *Collection) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.signal
}

// Take returns up to limit names, each once, and removes them. lost reports that the collection was full since the last
// call: all its names were dropped, so anything may have changed.
func (c *Collection) Take(limit int) (names []string, lost bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.names {
		if len(names) == limit {
			break
		}
		names = append(names, name)
		delete(c.names, name)
	}
	lost, c.lost = c.lost, false
	if len(c.names) == 0 && (lost || len(names) > 0) {
		c.signal = make(chan struct{})
	}
	return names, lost
}

func (c *Collection) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.names) == 0 && !c.lost {
		close(c.signal)
	}
	c.names[name] = struct{}{}
	if len(c.names) > c.most {
		clear(c.names)
		c.lost = true
	}
}
