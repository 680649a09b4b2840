// Package pubsub notifies subscribers within this process of changes, by name: a run, a project's events.
//
//	notifier := pubsub.NewNotifier()
//	changed, stop := notifier.Subscribe(id)
//	defer stop()
//	notifier.Notify(id)
//
// A missed notification only causes delay: subscribers also poll the store.
package pubsub

import (
	"sync"
	"time"
)

// Notifier connects notifications with subscriptions. It is safe for concurrent use.
type Notifier struct {
	mu          sync.Mutex
	waiting     map[string]*topic
	collections map[*Collection]struct{}
}

// topic holds the subscriptions of one name.
type topic struct {
	subscriptions map[chan struct{}]struct{}
	notified      time.Time
}

// NewNotifier returns a notifier without subscriptions.
func NewNotifier() *Notifier {
	return &Notifier{waiting: map[string]*topic{}, collections: map[*Collection]struct{}{}}
}

// Subscribe returns a channel that receives a value after changes of the name (several changes may share one value),
// and a function that ends the subscription.
func (b *Notifier) Subscribe(of string) (<-chan struct{}, func()) {
	ch := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting[of] == nil {
		b.waiting[of] = &topic{subscriptions: map[chan struct{}]struct{}{}}
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

// Notify notifies the subscribers of the name, without blocking.
func (b *Notifier) Notify(of string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.collections {
		c.add(of)
	}
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

// Notified returns the time of the name's last notification, for a subscriber: data that was read later includes the
// change. It returns the zero time when there was none since the first of the current subscriptions.
func (b *Notifier) Notified(of string) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := b.waiting[of]; n != nil {
		return n.notified
	}
	return time.Time{}
}
