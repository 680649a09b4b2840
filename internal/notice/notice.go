// Package notice tells those who wait in this process that something has changed, by name: a run, a project's events.
//
//	changed, stop := board.Subscribe(id)
//	defer stop()
//	board.Notify(id)
//
// It loses nothing that matters: whoever waits looks at the store anyway, only later.
package notice

import (
	"sync"
	"time"
)

// Board is where changes are told and heard. It is safe for concurrent use.
type Board struct {
	mu      sync.Mutex
	waiting map[string]*name
}

// name is one with subscriptions.
type name struct {
	subscriptions map[chan struct{}]struct{}
	notified      time.Time
}

// NewBoard returns a board on which nobody waits.
func NewBoard() *Board {
	return &Board{waiting: map[string]*name{}}
}

// Subscribe returns a channel that gets a value after changes of the name, several changes may share one, and a function that
// ends the subscription.
func (b *Board) Subscribe(of string) (<-chan struct{}, func()) {
	ch := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting[of] == nil {
		b.waiting[of] = &name{subscriptions: map[chan struct{}]struct{}{}}
	}
	b.waiting[of].subscriptions[ch] = struct{}{}
	return ch, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		n := b.waiting[of]
		if n == nil {
			return
		}
		delete(n.subscriptions, ch)
		if len(n.subscriptions) == 0 {
			delete(b.waiting, of)
		}
	}
}

// Notify tells those who wait for the name, without blocking.
func (b *Board) Notify(of string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.waiting[of]
	if n == nil {
		return
	}
	n.notified = time.Now()
	for ch := range n.subscriptions {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// Notified returns when the name was last notified of, for a subscriber: what was read later shows the change. The zero time where it
// was not since there are subscribers.
func (b *Board) Notified(of string) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := b.waiting[of]; n != nil {
		return n.notified
	}
	return time.Time{}
}
