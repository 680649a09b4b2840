// Package memory implements [inbox.Inbox] in memory, for tests, examples, and programs whose events need not outlive
// the process. Each published event is one delivery, made by a function of the caller.
//
//	in := memory.New(func(ctx context.Context, name inbox.Name, d inbox.Delivery) inbox.Outcome { … })
//	wake := in.Publish(name, "customer-7", event) // wake: the dispatcher is parked, ring its doorbell
//
// It keeps every promise of the interface except durability: nothing survives the process.
package memory

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
)

// Deliver makes one attempt; see [inbox.Inbox].
type Deliver func(ctx context.Context, name inbox.Name, d inbox.Delivery) inbox.Outcome

// Inbox stores events in memory.
type Inbox struct {
	deliver Deliver

	mu     sync.Mutex
	queues map[inbox.Name]*queue
}

// queue has the undelivered events of one dispatcher.
type queue struct {
	owner    inbox.Owner
	parked   bool
	head     int64
	items    []*item // in order of acceptance, neither done nor dead
	dead     []Dead
	progress time.Time
	changed  chan struct{} // closed and replaced when there is something new
}

type item struct {
	delivery inbox.Delivery
	accepted time.Time
	due      time.Time
	// claimed is the epoch of the last claim, 0 once the outcome of the claim is recorded.
	claimed int64
}

// Dead is a delivery that failed permanently.
type Dead struct {
	Delivery inbox.Delivery
	Reason   string
}

// New returns an empty inbox.
func New(deliver Deliver) *Inbox {
	return &Inbox{deliver: deliver, queues: map[inbox.Name]*queue{}}
}

func (i *Inbox) queue(name inbox.Name) *queue {
	q := i.queues[name]
	if q == nil {
		q = &queue{changed: make(chan struct{})}
		i.queues[name] = q
	}
	return q
}

// Publish accepts an event. wake reports that the dispatcher is parked: its doorbell must ring.
func (i *Inbox) Publish(name inbox.Name, lane string, event any) (wake bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	q := i.queue(name)
	q.head++
	now := time.Now()
	q.items = append(q.items, &item{
		delivery: inbox.Delivery{ID: fmt.Sprintf("%s/%s/%d", name.Project, name.TaskQueue, q.head), Lane: lane, Item: event},
		accepted: now, due: now,
	})
	close(q.changed)
	q.changed = make(chan struct{})
	return q.parked
}

// Dead returns the deliveries that failed permanently.
func (i *Inbox) Dead(name inbox.Name) []Dead {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]Dead(nil), i.queue(name).dead...)
}

// Fence implements [inbox.Inbox].
func (i *Inbox) Fence(ctx context.Context, name inbox.Name, holder string, above int64) (inbox.Owner, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return inbox.Owner{}, err
	}
	q := i.queue(name)
	q.owner = inbox.Owner{Epoch: max(q.owner.Epoch, above) + 1, Holder: holder}
	return q.owner, nil
}

// Claim implements [inbox.Inbox].
func (i *Inbox) Claim(ctx context.Context, name inbox.Name, owner inbox.Owner, limit int,
	visible time.Duration) ([]inbox.Delivery, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	q, err := i.fenced(ctx, name, owner)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	q.progress = now
	var claimed []inbox.Delivery
	blocked := map[string]bool{}
	for _, it := range q.items {
		if len(claimed) == limit {
			break
		}
		lane := it.delivery.Lane
		if lane != "" && blocked[lane] {
			continue
		}
		if !it.ready(now, owner.Epoch) {
			blocked[lane] = true
			continue
		}
		it.claimed, it.due = owner.Epoch, now.Add(visible)
		it.delivery.Attempt++
		claimed = append(claimed, it.delivery)
	}
	return claimed, nil
}

// ready reports whether an owner may claim the item: it is due, or an earlier owner claimed it.
func (it *item) ready(now time.Time, epoch int64) bool {
	return !it.due.After(now) || it.claimed != 0 && it.claimed < epoch
}

// Deliver implements [inbox.Inbox].
func (i *Inbox) Deliver(ctx context.Context, name inbox.Name, d inbox.Delivery) inbox.Outcome {
	return i.deliver(ctx, name, d)
}

// RecordOutcomes implements [inbox.Inbox].
func (i *Inbox) RecordOutcomes(ctx context.Context, name inbox.Name, owner inbox.Owner,
	outcomes []inbox.DeliveryOutcome) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	q, err := i.fenced(ctx, name, owner)
	if err != nil {
		return err
	}
	now := time.Now()
	q.progress = now
	byID := make(map[string]inbox.Outcome, len(outcomes))
	for _, o := range outcomes {
		byID[o.ID] = o.Outcome
	}
	kept := q.items[:0]
	for _, it := range q.items {
		outcome, ok := byID[it.delivery.ID]
		switch {
		case !ok:
		case outcome.Result == inbox.Retry:
			it.claimed, it.due = 0, now.Add(outcome.After)
		case outcome.Result == inbox.Released:
			it.claimed, it.due = 0, now
			it.delivery.Attempt--
		case outcome.Result == inbox.Dead:
			q.dead = append(q.dead, Dead{Delivery: it.delivery, Reason: outcome.Reason})
			continue
		default:
			continue
		}
		kept = append(kept, it)
	}
	clear(q.items[len(kept):])
	q.items = kept
	return nil
}

// Park implements [inbox.Inbox].
func (i *Inbox) Park(ctx context.Context, name inbox.Name, owner inbox.Owner) (bool, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	q, err := i.fenced(ctx, name, owner)
	if err != nil {
		return false, err
	}
	q.parked = !q.due(time.Now())
	return q.parked, nil
}

// Unpark implements [inbox.Inbox].
func (i *Inbox) Unpark(ctx context.Context, name inbox.Name, owner inbox.Owner) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	q, err := i.fenced(ctx, name, owner)
	if err != nil {
		return err
	}
	q.parked = false
	return nil
}

// Await implements [inbox.Inbox].
func (i *Inbox) Await(ctx context.Context, name inbox.Name) {
	i.mu.Lock()
	q := i.queue(name)
	changed, due := q.changed, q.due(time.Now())
	i.mu.Unlock()
	if due {
		return
	}
	select {
	case <-ctx.Done():
	case <-changed:
	}
}

// ParkedDue implements [inbox.Inbox].
func (i *Inbox) ParkedDue(ctx context.Context, limit int) ([]inbox.Name, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	var names []inbox.Name
	for name, q := range i.queues {
		if len(names) < limit && q.parked && q.due(time.Now()) {
			names = append(names, name)
		}
	}
	return names, ctx.Err()
}

// Progress implements [inbox.Inbox].
func (i *Inbox) Progress(ctx context.Context, names ...inbox.Name) ([]inbox.Progress, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(names) == 0 {
		for name := range i.queues {
			names = append(names, name)
		}
	}
	var list []inbox.Progress
	now := time.Now()
	for _, name := range names {
		q := i.queues[name]
		if q == nil {
			continue
		}
		p := inbox.Progress{
			Name: name, Owner: q.owner, Head: q.head, Routed: q.head, Pending: int64(len(q.items)), Due: q.due(now),
			Parked: q.parked, SinceProgress: -1,
		}
		if !q.progress.IsZero() {
			p.SinceProgress = now.Sub(q.progress)
		}
		for _, it := range q.items {
			p.Oldest = max(p.Oldest, now.Sub(it.accepted))
			if !it.due.After(now) {
				p.Lag = max(p.Lag, now.Sub(it.accepted))
			}
		}
		list = append(list, p)
	}
	return list, ctx.Err()
}

// fenced returns the queue, or [inbox.ErrFenced] if owner is not its current owner.
func (i *Inbox) fenced(ctx context.Context, name inbox.Name, owner inbox.Owner) (*queue, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	q := i.queue(name)
	if owner.Epoch == 0 || q.owner != owner {
		return nil, inbox.ErrFenced
	}
	return q, nil
}

// due reports whether something could be claimed now.
func (q *queue) due(now time.Time) bool {
	blocked := map[string]bool{}
	for _, it := range q.items {
		lane := it.delivery.Lane
		if lane != "" && blocked[lane] {
			continue
		}
		if it.ready(now, q.owner.Epoch) {
			return true
		}
		blocked[lane] = true
	}
	return false
}
