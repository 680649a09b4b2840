package livelist

import linked "container/list"

// journal holds the latest value of each ID in the order of the changes. Each change has a revision. Beyond its bounds
// it drops the values with the oldest changes.
type journal[T any] struct {
	maxEntries, maxBytes int

	revision int64 // of the last change
	floor    int64 // of the last change that was dropped
	bytes    int
	byID     map[string]*linked.Element
	order    *linked.List // of entries, the oldest change first
}

type entry[T any] struct {
	id       string
	revision int64
	size     int
	value    T
}

// entryOf returns the value of an element; all are entries.
func entryOf[T any](e *linked.Element) *entry[T] {
	return e.Value.(*entry[T]) //nolint:forcetypeassert // put adds no other values
}

func newJournal[T any](maxEntries, maxBytes int) *journal[T] {
	return &journal[T]{maxEntries: maxEntries, maxBytes: maxBytes, byID: map[string]*linked.Element{}, order: linked.New()}
}

func (j *journal[T]) get(id string) (value T, ok bool) {
	if e := j.byID[id]; e != nil {
		return entryOf[T](e).value, true
	}
	return value, false
}

// put records a change. The entries for which keep returns true are not dropped for it.
func (j *journal[T]) put(id string, value T, size int, keep func(id string) bool) {
	if old := j.byID[id]; old != nil {
		j.remove(old)
	}
	j.revision++
	j.byID[id] = j.order.PushBack(&entry[T]{id: id, revision: j.revision, size: size, value: value})
	j.bytes += size
	for e := j.order.Front(); e != nil && (len(j.byID) > j.maxEntries || j.bytes > j.maxBytes); {
		dropped, next := entryOf[T](e), e.Next()
		if dropped.id != id && !keep(dropped.id) {
			j.floor = max(j.floor, dropped.revision)
			j.remove(e)
		}
		e = next
	}
}

func (j *journal[T]) remove(e *linked.Element) {
	old := entryOf[T](e)
	j.order.Remove(e)
	j.bytes -= old.size
	delete(j.byID, old.id)
}

// since returns the first changes after a revision, oldest first; false if some of them were dropped.
func (j *journal[T]) since(revision int64, limit int) (found []*entry[T], complete bool) {
	if revision < j.floor {
		return nil, false
	}
	e := j.order.Back()
	for e != nil && entryOf[T](e).revision > revision {
		e = e.Prev()
	}
	if e == nil {
		e = j.order.Front()
	} else {
		e = e.Next()
	}
	for ; e != nil && len(found) < limit; e = e.Next() {
		found = append(found, entryOf[T](e))
	}
	return found, true
}

// reset drops everything.
func (j *journal[T]) reset() {
	j.revision++
	j.floor, j.bytes = j.revision, 0
	clear(j.byID)
	j.order.Init()
}
