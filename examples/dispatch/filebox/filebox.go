//go:build unix

// Package filebox is an [inbox.Inbox] in one file, which any number of processes on one host share. It shows the
// minimum that an inbox requires: transactions, and a number that grows.
//
//	in, err := filebox.New("data/inbox.json", deliver)
//	wake, err := in.Publish(name, "ada", letter) // durable; wake: the dispatcher is parked, call Ring
//
// Each change locks the file, reads it and replaces it durably, so a process that is killed during a change leaves the
// file as it was before. A change takes milliseconds, and longer with more pending events: enough for some hundred
// events. A process that is frozen while it has the lock blocks the others. For higher loads use a database, in which
// each change is one transaction.
package filebox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
)

// lookEvery is how often Await reads the file, which other processes write too.
const lookEvery = 25 * time.Millisecond

// Deliver makes one attempt; see [inbox.Inbox]. The delivery's Item is what was published, as a json.RawMessage.
type Deliver func(ctx context.Context, name inbox.Name, d inbox.Delivery) inbox.Outcome

// Inbox keeps events in a file.
type Inbox struct {
	path    string
	deliver Deliver
}

// New returns the inbox in a file, which is created by the first change. Its folder must exist.
func New(path string, deliver Deliver) (*Inbox, error) {
	folder := filepath.Dir(path)
	if info, err := os.Stat(folder); err != nil {
		return nil, fmt.Errorf("open inbox %q: %w", path, err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("open inbox %q: %q is no folder", path, folder)
	}
	return &Inbox{path: path, deliver: deliver}, nil
}

// Publish accepts an event. When it returns, the event is durable. wake reports that the dispatcher is parked: the
// caller must call Ring.
func (i *Inbox) Publish(name inbox.Name, lane string, event any) (wake bool, err error) {
	item, err := json.Marshal(event)
	if err != nil {
		return false, fmt.Errorf("publish to %q: %w", i.path, err)
	}
	err = i.change(func(b *book, now time.Time) error {
		q := b.queue(name)
		q.Head++
		q.Waiting = append(q.Waiting, &waiting{
			ID: fmt.Sprintf("%s/%s/%d", name.Project, name.TaskQueue, q.Head), Lane: lane, Item: item, Accepted: now, Due: now,
		})
		wake = q.Parked
		return nil
	})
	return wake, err
}

// Fence is [inbox.Inbox].
func (i *Inbox) Fence(ctx context.Context, name inbox.Name, holder string, above int64) (owner inbox.Owner, err error) {
	if err := ctx.Err(); err != nil {
		return inbox.Owner{}, err
	}
	err = i.change(func(b *book, _ time.Time) error {
		q := b.queue(name)
		q.Owner = inbox.Owner{Epoch: max(q.Owner.Epoch, above) + 1, Holder: holder}
		owner = q.Owner
		return nil
	})
	return owner, err
}

// Claim is [inbox.Inbox].
func (i *Inbox) Claim(ctx context.Context, name inbox.Name, owner inbox.Owner, limit int,
	visible time.Duration) (claimed []inbox.Delivery, err error) {
	err = i.fenced(ctx, name, owner, func(q *queue, now time.Time) error {
		claimed = q.claim(now, limit, visible)
		return nil
	})
	return claimed, err
}

// Deliver is [inbox.Inbox].
func (i *Inbox) Deliver(ctx context.Context, name inbox.Name, d inbox.Delivery) inbox.Outcome {
	return i.deliver(ctx, name, d)
}

// RecordOutcomes is [inbox.Inbox].
func (i *Inbox) RecordOutcomes(ctx context.Context, name inbox.Name, owner inbox.Owner,
	outcomes []inbox.DeliveryOutcome) error {
	return i.fenced(ctx, name, owner, func(q *queue, now time.Time) error {
		q.record(now, outcomes)
		return nil
	})
}

// Park is [inbox.Inbox].
func (i *Inbox) Park(ctx context.Context, name inbox.Name, owner inbox.Owner) (parked bool, err error) {
	err = i.fenced(ctx, name, owner, func(q *queue, now time.Time) error {
		q.Parked = !q.due(now)
		parked = q.Parked
		return nil
	})
	return parked, err
}

// Unpark is [inbox.Inbox].
func (i *Inbox) Unpark(ctx context.Context, name inbox.Name, owner inbox.Owner) error {
	return i.fenced(ctx, name, owner, func(q *queue, _ time.Time) error {
		q.Parked = false
		return nil
	})
}

// Await is [inbox.Inbox].
func (i *Inbox) Await(ctx context.Context, name inbox.Name) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		if b, err := i.read(); err == nil && b.queue(name).due(time.Now()) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
	}
}

// ParkedDue is [inbox.Inbox].
func (i *Inbox) ParkedDue(ctx context.Context, limit int) (names []inbox.Name, err error) {
	b, err := i.read()
	now := time.Now()
	for _, q := range b.Queues {
		if len(names) < limit && q.Parked && q.due(now) {
			names = append(names, q.Name)
		}
	}
	return names, errors.Join(err, ctx.Err())
}

// Progress is [inbox.Inbox].
func (i *Inbox) Progress(ctx context.Context, names ...inbox.Name) (list []inbox.Progress, err error) {
	b, err := i.read()
	now := time.Now()
	asked := map[inbox.Name]bool{}
	for _, name := range names {
		asked[name] = true
	}
	for _, q := range b.Queues {
		if len(names) == 0 || asked[q.Name] {
			list = append(list, q.progress(now))
		}
	}
	return list, errors.Join(err, ctx.Err())
}

// fenced is a change that fails unless owner is the current owner.
func (i *Inbox) fenced(ctx context.Context, name inbox.Name, owner inbox.Owner,
	do func(*queue, time.Time) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return i.change(func(b *book, now time.Time) error {
		q := b.queue(name)
		if owner.Epoch == 0 || q.Owner != owner {
			return inbox.ErrFenced
		}
		return do(q, now)
	})
}

// change is a transaction: it excludes other changes, and is made completely or not at all. An error of do cancels it.
func (i *Inbox) change(do func(*book, time.Time) error) error {
	// The lock is on a separate file, since the file itself is replaced. The kernel releases it when the process ends.
	lock, err := os.OpenFile(i.path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("lock inbox: %w", err)
	}
	defer func() { _ = lock.Close() }() // nothing was written to it
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock inbox %q: %w", i.path, err)
	}
	b, err := i.read()
	if err != nil {
		return err
	}
	if err := do(&b, time.Now()); err != nil {
		return err
	}
	return i.write(b)
}

// read needs no lock: the file is replaced as a whole.
func (i *Inbox) read() (b book, err error) {
	text, err := os.ReadFile(i.path)
	if errors.Is(err, os.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return b, fmt.Errorf("read inbox: %w", err)
	}
	if err := json.Unmarshal(text, &b); err != nil {
		return b, fmt.Errorf("read inbox %q: %w", i.path, err)
	}
	return b, nil
}

// write makes the new file durable before it replaces the old one.
func (i *Inbox) write(b book) error {
	text, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("write inbox %q: %w", i.path, err)
	}
	next, err := os.OpenFile(i.path+".next", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write inbox: %w", err)
	}
	_, err = next.Write(text)
	if err := errors.Join(err, next.Sync(), next.Close()); err != nil {
		return fmt.Errorf("write inbox: %w", err)
	}
	if err := os.Rename(i.path+".next", i.path); err != nil {
		return fmt.Errorf("write inbox: %w", err)
	}
	return nil
}
