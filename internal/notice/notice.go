// Package notice tells those who wait in this process that something has changed, by name: a run, a project's events.
//
//	changed, stop := board.Subscribe(id)
//	defer stop()
//	board.Notify(id)
//
// It loses nothing that matters: whoever waits looks at the store anyway, only later.
package notice

import "sync"

// Board is where changes are told and heard. It is safe for concurrent use.
type Board struct {
	mu      sync.Mutex
	waiting map[string]map[chan struct{}]struct{}
}

// NewBoard returns a board on which nobody waits.
func NewBoard() *Board {
	return &Board{waiting: map[string]map[chan struct{}]struct{}{}}
}

// Subscribe returns a channel that gets a value after changes of the name, several changes may share one, and a function that
// ends the subscription.
func (b *Board) Subscribe(name string) (<-chan struct{}, func()) {
	ch := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting[name] == nil {
		b.waiting[name] = map[chan struct{}]struct{}{}
	}
	b.waiting[name][ch] = struct{}{}
	return ch, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.waiting[name], ch)
		if len(b.waiting[name]) == 0 {
			delete(b.waiting, name)
		}
	}
}

// Notify tells those who wait for the name, without blocking.
func (b *Board) Notify(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for ch := range b.waiting[name] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}
