package match

import (
	"container/list"
	"sync"
)

// lru keeps the values that were asked for last.
type lru[K comparable, V any] struct {
	mu    sync.Mutex
	size  int
	order *list.List
	items map[K]*list.Element
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

func newLRU[K comparable, V any](size int) *lru[K, V] {
	return &lru[K, V]{size: size, order: list.New(), items: map[K]*list.Element{}}
}

// get returns what is kept under key, or makes it. Two callers at once may both make it.
func (l *lru[K, V]) get(key K, build func() V) V {
	if v, ok := l.find(key); ok {
		return v
	}
	v := build()
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.items[key]; ok {
		l.order.MoveToFront(e)
		return e.Value.(entry[K, V]).value //nolint:forcetypeassert // only entries are put in
	}
	l.items[key] = l.order.PushFront(entry[K, V]{key, v})
	if l.order.Len() > l.size {
		last := l.order.Back()
		delete(l.items, l.order.Remove(last).(entry[K, V]).key) //nolint:forcetypeassert // only entries are put in
	}
	return v
}

func (l *lru[K, V]) find(key K) (V, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.items[key]; ok {
		l.order.MoveToFront(e)
		return e.Value.(entry[K, V]).value, true //nolint:forcetypeassert // only entries are put in
	}
	var none V
	return none, false
}
