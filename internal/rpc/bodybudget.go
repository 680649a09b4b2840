package rpc

import (
	"container/list"
	"sync"
)

// bounds are those of the bodies of authenticated callers.
type bounds struct {
	// memory is what all bodies may take together, in bytes.
	memory int64
	// fair is what a caller may take in any case while there is memory; at least an eighth of the memory.
	fair int64
	// readingEach and readingAll bound the bodies that have not arrived completely: of one caller, and of all.
	readingEach, readingAll int
}

// callers counts the bodies of authenticated callers. Everyone may use the first half of the memory; the second half is
// for callers that hold little, so that the bodies of one caller do not lock out the others.
type callers struct {
	bounds bounds

	mu      sync.Mutex
	memory  int64
	reading int
	each    map[string]*usage
}

// usage is what one caller holds.
type usage struct {
	memory  int64
	reading int
}

func newCallers(b bounds) *callers {
	const share = 8
	b.fair = max(b.fair, b.memory/share)
	return &callers{bounds: b, each: map[string]*usage{}}
}

// enter counts a body that begins to arrive with so many bytes; false if there is no room for it.
func (c *callers) enter(key string, bytes int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.usage(key)
	if c.reading >= c.bounds.readingAll || u.reading >= c.bounds.readingEach || !c.fits(u, bytes) {
		return false
	}
	c.add(key, u, bytes, 1)
	return true
}

// grow counts further bytes of a body; false if there is no room for them.
func (c *callers) grow(key string, bytes int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.usage(key)
	if !c.fits(u, bytes) {
		return false
	}
	c.add(key, u, bytes, 0)
	return true
}

// leave ends the arrival of a body; its bytes stay counted.
func (c *callers) leave(key string) { c.subtract(key, 0, 1) }

// free returns bytes.
func (c *callers) free(key string, bytes int64) { c.subtract(key, bytes, 0) }

func (c *callers) fits(u *usage, bytes int64) bool {
	const half = 2
	total := c.memory + bytes
	return total <= c.bounds.memory/half || total <= c.bounds.memory && u.memory+bytes <= c.bounds.fair
}

func (c *callers) usage(key string) *usage {
	if u := c.each[key]; u != nil {
		return u
	}
	return &usage{}
}

func (c *callers) add(key string, u *usage, bytes int64, reading int) {
	c.memory, u.memory = c.memory+bytes, u.memory+bytes
	c.reading, u.reading = c.reading+reading, u.reading+reading
	c.each[key] = u
}

func (c *callers) subtract(key string, bytes int64, reading int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.usage(key)
	c.add(key, u, -bytes, -reading)
	if u.memory == 0 && u.reading == 0 {
		delete(c.each, key)
	}
}

// strangers counts the bodies of callers without an identity that have not arrived completely.
type strangers struct {
	each, all int

	mu     sync.Mutex
	bodies *list.List // of place, the one that has been read for the longest time first
	places map[*requestBody]*list.Element
	counts map[string]int
}

type place struct {
	body *requestBody
	key  string
}

func newStrangers(each, all int) *strangers {
	return &strangers{each: each, all: all, bodies: list.New(), places: map[*requestBody]*list.Element{},
		counts: map[string]int{}}
}

// enter counts a body, and returns the one whose place it has taken; nil if there was room. The caller evicts that one.
func (s *strangers) enter(b *requestBody, key string) (evicted *requestBody) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.counts[key] >= s.each:
		evicted = s.oldest(key)
	case s.bodies.Len() >= s.all:
		evicted = s.oldest("")
	}
	if evicted != nil {
		s.remove(evicted)
	}
	s.places[b] = s.bodies.PushBack(place{b, key})
	s.counts[key]++
	return evicted
}

// oldest returns the body that has been read for the longest time, of an address or, if it is empty, of all.
func (s *strangers) oldest(key string) *requestBody {
	for e := s.bodies.Front(); e != nil; e = e.Next() {
		if p, _ := e.Value.(place); key == "" || p.key == key {
			return p.body
		}
	}
	return nil
}

// leave ends the count of a body; one that was evicted is not counted any more.
func (s *strangers) leave(b *requestBody) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(b)
}

func (s *strangers) remove(b *requestBody) {
	element := s.places[b]
	if element == nil {
		return
	}
	p, _ := s.bodies.Remove(element).(place)
	delete(s.places, b)
	if s.counts[p.key]--; s.counts[p.key] == 0 {
		delete(s.counts, p.key)
	}
}
