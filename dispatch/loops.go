package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/lease"
)

const (
	// watchPause is the pause before Watch is called again. handoverEvery is the interval at which handover requests are
	// listed: a hint may be missed.
	watchPause    = time.Second
	handoverEvery = 5 * time.Second
	// ringEvery is the interval at which owners ring parked dispatchers that have due work, ringLimit how many at once. In
	// every ringServedEvery-th round, a process also rings dispatchers that it only serves: they have no owner while the
	// leases are unavailable.
	ringEvery       = 2 * time.Second
	ringLimit       = 1000
	ringServedEvery = 5
	// checkEvery is the interval at which an owner checks that a dispatcher is still open. A process makes at most
	// checksPerSecond of these checks.
	checkEvery      = 30 * time.Second
	checksPerSecond = 20
	// clientEvery is the interval at which a process checks for a new client.
	clientEvery    = 250 * time.Millisecond
	requestTimeout = 5 * time.Second
	// absentTTL is the time during which one hint that a dispatcher is not open stands for all of them.
	absentTTL = time.Second
)

// every calls do at an interval, shortened by up to a fifth at random, until ctx ends.
func every(ctx context.Context, interval time.Duration, do func(context.Context)) {
	for loop.Sleep(ctx, interval-rand.N(interval/5+1)) { //nolint:gosec // spreads load, guards nothing
		do(ctx)
	}
}

// watchHints forwards the hints of the lease store.
func (d *Dispatchers) watchHints(ctx context.Context) {
	for ctx.Err() == nil {
		keys, err := d.o.Leases.Watch(ctx)
		if err != nil {
			loop.Sleep(ctx, watchPause)
			continue
		}
		d.heartbeats.Invalidate() // earlier changes are not announced
		for key := range keys {
			d.heartbeats.Hint(key)
			name, ok := wire.NameOf(key)
			if !ok {
				continue
			}
			s := d.service(name)
			switch {
			case s == nil:
			case strings.HasPrefix(key, wire.OwnerPrefix):
				s.loop.Hint()
			case s.loop.Owned() == nil:
			case strings.HasPrefix(key, wire.AbsentPrefix):
				s.loop.Check()
			default:
				d.readHandover(ctx, name, key)
			}
		}
		loop.Sleep(ctx, watchPause)
	}
}

// pollHandovers lists the handover requests of owned dispatchers.
func (d *Dispatchers) pollHandovers(ctx context.Context) {
	every(ctx, handoverEvery, func(ctx context.Context) {
		if len(d.owned()) == 0 {
			return
		}
		for entry, err := range d.o.Leases.List(ctx, wire.HandoverPrefix) {
			if err != nil {
				continue // the next round retries
			}
			name, ok := wire.NameOf(entry.Key)
			if s := d.service(name); ok && s != nil && s.loop.Owned() != nil && entry.State == lease.Held {
				d.handOver(ctx, name, entry)
			}
		}
	})
}

func (d *Dispatchers) readHandover(ctx context.Context, name Name, key string) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if entry, err := d.o.Leases.Get(ctx, key); err == nil && entry.State == lease.Held {
		d.handOver(ctx, name, entry)
	}
}

// handOver hands the dispatcher over if this process deletes the request: the next owner must not find it.
func (d *Dispatchers) handOver(ctx context.Context, name Name, entry lease.Entry) {
	if d.o.Leases.Delete(ctx, entry.Key, entry.Token, entry.Revision) != nil {
		return
	}
	var r wire.Request
	if err := json.Unmarshal(entry.Value, &r); err != nil {
		r.By = entry.Holder
	}
	if s := d.service(name); s != nil {
		s.loop.HandOver(r)
	}
}

// ringParked rings parked dispatchers that have due work, because a doorbell signal was lost or the time of a retry has
// come. Doorbells of several processes for one dispatcher do no harm.
func (d *Dispatchers) ringParked(ctx context.Context) {
	round := rand.N(ringServedEvery) //nolint:gosec // spreads load, guards nothing
	every(ctx, ringEvery, func(ctx context.Context) {
		round = (round + 1) % ringServedEvery
		others := round == 0
		if len(d.owned()) == 0 && (!others || len(d.services()) == 0) {
			return
		}
		bounded, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		asleep, err := d.o.Inbox.ParkedDue(bounded, ringLimit)
		if err != nil {
			return // the routing logs that the inbox cannot be reached
		}
		for _, name := range asleep {
			s := d.service(name)
			if s == nil || !others && s.loop.Owned() == nil {
				continue
			}
			if err := d.Ring(ctx, name); err != nil && !errors.Is(err, ErrNotOpen) {
				return // Temporal cannot be reached; the next round retries
			}
		}
	})
}

// checkOwned checks one after another that the owned dispatchers are still open.
func (d *Dispatchers) checkOwned(ctx context.Context) {
	for ctx.Err() == nil {
		owned := d.owned()
		step := max(checkEvery/time.Duration(max(len(owned), 1)), time.Second/checksPerSecond)
		if len(owned) == 0 {
			loop.Sleep(ctx, checkEvery/time.Duration(checksPerSecond))
		}
		for _, o := range owned {
			loop.Sleep(ctx, step-rand.N(step/5+1)) //nolint:gosec // spreads load, guards nothing
			if s := d.service(o.Name); s != nil && ctx.Err() == nil {
				s.loop.Check()
			}
		}
	}
}

// watchClient wakes the goroutines that wait for a client, or for its polls, while there is one. It registers with all
// dispatchers again when the client was replaced or is available again.
func (d *Dispatchers) watchClient(ctx context.Context) {
	var last client.Client
	first := true
	every(ctx, clientEvery, func(context.Context) {
		c, err := d.o.Client()
		if err != nil {
			last = nil
			return
		}
		d.mu.Lock()
		close(d.usable)
		d.usable = make(chan struct{})
		d.mu.Unlock()
		if !first && !same(c, last) {
			d.registrations.Add(d.names()...)
		}
		first, last = false, c
	})
}

// ready waits until there is a client. One goroutine polls for all: thousands may wait.
func (d *Dispatchers) ready(ctx context.Context) error {
	return d.await(ctx, func() bool { return true })
}

// mayOwn waits until this process may own a dispatcher: it has a client, and its worker polls the task queue.
func (d *Dispatchers) mayOwn(ctx context.Context, name Name) error {
	return d.await(ctx, func() bool { return d.o.Polls == nil || d.o.Polls(name) })
}

// await waits until there is a client and more returns true.
func (d *Dispatchers) await(ctx context.Context, more func() bool) error {
	for {
		d.mu.Lock()
		usable := d.usable
		d.mu.Unlock()
		if _, err := d.o.Client(); err == nil && more() {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-usable:
		}
	}
}

// registrar registers with a dispatcher once there is a client.
type registrar struct{ d *Dispatchers }

func (r registrar) Register(ctx context.Context, name Name, as wire.Registration) error {
	if err := r.d.ready(ctx); err != nil {
		return err
	}
	return r.d.temporal.Register(ctx, name, as)
}

func same(a, b client.Client) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return reflect.TypeOf(a).Comparable() && a == b
}

// beat returns the content of this process's heartbeat.
func (d *Dispatchers) beat() dispatchtype.Heartbeat {
	b := dispatchtype.Heartbeat{
		ServerID: d.o.ServerID, Build: d.o.Build, Interpreter: wire.Interpreter, StartedAt: d.startedAt}
	for _, name := range d.names() {
		b.Projects = append(b.Projects, name.Project)
	}
	b.Projects = slices.Compact(b.Projects)
	b.Serves = len(b.Projects)
	if d.o.Describe != nil {
		b.Facts = d.o.Describe()
	}
	return b
}

// workers returns the initial workers of a dispatcher: this process, and the live processes whose heartbeats name the
// project.
func (d *Dispatchers) workers(name Name) []dispatchtype.RegisteredWorker {
	d.mu.Lock()
	processes := d.processes
	d.mu.Unlock()
	now := time.Now()
	list := []dispatchtype.RegisteredWorker{
		{ServerID: d.o.ServerID, TaskQueue: name.TaskQueue, Build: d.o.Build, RegisteredAt: now}}
	for id, p := range processes {
		if id != d.o.ServerID && p.Alive && p.Serves(name.Project) {
			list = append(list, dispatchtype.RegisteredWorker{
				ServerID: id, TaskQueue: name.TaskQueue, Build: p.Beat.Build, RegisteredAt: now})
		}
	}
	slices.SortFunc(list, func(a, b dispatchtype.RegisteredWorker) int { return strings.Compare(a.ServerID, b.ServerID) })
	return list
}

// notifyOwner makes the owner, in this process or another, check that the dispatcher is open. The notification is a
// hint: an owner that misses it finds out at its next periodic check.
func (d *Dispatchers) notifyOwner(ctx context.Context, name Name) {
	if s := d.service(name); s != nil && s.loop.Owned() != nil {
		s.loop.Check()
		return
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	terms := lease.Lifetime{TTL: absentTTL, Retention: absentTTL}
	_, _, err := d.o.Leases.Acquire(ctx, wire.AbsentKey(name), d.o.ServerID, nil, terms)
	if err != nil && !errors.Is(err, lease.ErrHeld) { // the owner received the hint less than absentTTL ago
		d.o.Log.DebugContext(ctx, "Owner could not be notified of a closed dispatcher", "workflow_id", name.DispatcherID(),
			"error", err)
	}
}
