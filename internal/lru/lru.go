// Package lru implements a cache in memory that is bounded by the weight of its values, and drops the least recently used ones.
//
//	c := lru.New[string](16<<20, func(b []byte) int { return len(b) })
//	c.Put("a", value)
//	value, found := c.Get("a")
//
// When each value weighs one, the limit is a number of values. A cache does not expire values. When several callers miss a value at the
// same time, each of them builds it.
package lru

import (
	"container/list"
	"sync"
)

// Cache holds the most recently used values. It is safe for concurrent use.
type Cache[K comparable, V any] struct {
	limit int
	weigh func(V) int

	mu      sync.Mutex
	weight  int
	byKey   map[K]*list.Element
	ordered *list.List // of entry; the most recently used one is first
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

// New returns an empty cache whose values weigh at most limit together. The weight of a value must not change while it is in the cache.
func New[K comparable, V any](limit int, weigh func(V) int) *Cache[K, V] {
	return &Cache[K, V]{limit: limit, weigh: weigh, byKey: map[K]*list.Element{}, ordered: list.New()}
}

// One is the weight of each value of a cache that is bounded by the number of its values.
func One[V any](V) int { return 1 }

// Get returns the value of a key. Callers share it and must not change it.
func (c *Cache[K, V]) Get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.get(key)
}

// Put adds a value, and drops others while the total weight exceeds the limit. It returns the value of the key: the earlier one where
// there is one. A value that alone weighs more than the limit is not cached.
func (c *Cache[K, V]) Put(key K, value V) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	if kept, found := c.get(key); found {
		return kept
	}
	weight := c.weigh(value)
	if weight > c.limit {
		return value
	}
	c.byKey[key] = c.ordered.PushFront(entry[K, V]{key, value})
	for c.weight += weight; c.weight > c.limit; {
		dropped, _ := c.ordered.Remove(c.ordered.Back()).(entry[K, V])
		delete(c.byKey, dropped.key)
		c.weight -= c.weigh(dropped.value)
	}
	return value
}

// GetOrBuild returns the value of a key, or builds and adds it. Two callers at the same time may both build it; they get the same value.
func (c *Cache[K, V]) GetOrBuild(key K, build func() V) V {
	if value, found := c.Get(key); found {
		return value
	}
	return c.Put(key, build())
}

func (c *Cache[K, V]) get(key K) (value V, found bool) {
	e, found := c.byKey[key]
	if !found {
		return value, false
	}
	c.ordered.MoveToFront(e)
	kept, _ := e.Value.(entry[K, V])
	return kept.value, true
}
