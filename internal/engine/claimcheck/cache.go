package claimcheck

import (
	"container/list"
	"sync"
)

// cache keeps the values that were used last, up to a number of bytes. It is safe for concurrent use.
type cache struct {
	mu      sync.Mutex
	limit   int
	size    int
	byKey   map[key]*list.Element
	ordered *list.List // of entry; the one that was used last is first
}

// key names a value.
type key struct{ run, digest string }

type entry struct {
	key   key
	value []byte
}

func newCache(limit int) *cache {
	return &cache{limit: limit, byKey: map[key]*list.Element{}, ordered: list.New()}
}

// get returns a value, which is not to be changed.
func (c *cache) get(k key) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byKey[k]
	if !ok {
		return nil, false
	}
	c.ordered.MoveToFront(e)
	found, _ := e.Value.(entry)
	return found.value, true
}

// put keeps a value, and drops those that were not used for longest. A value over the limit is not kept.
func (c *cache) put(k key, value []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.byKey[k]; ok || len(value) > c.limit {
		return
	}
	c.byKey[k] = c.ordered.PushFront(entry{k, value})
	c.size += len(value)
	for c.size > c.limit {
		last := c.ordered.Back()
		dropped, _ := c.ordered.Remove(last).(entry)
		delete(c.byKey, dropped.key)
		c.size -= len(dropped.value)
	}
}
