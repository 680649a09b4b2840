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

	"github.com/signalbox-dev/signalbox/dispatch/internal/contract"
	"github.com/signalbox-dev/signalbox/dispatch/internal/pace"
	"github.com/signalbox-dev/signalbox/lease"
)

const (
	// heedAgain is the pause before hints are asked for again, requestsEvery the pace at which requests are looked for that no hint told of.
	heedAgain     = time.Second
	requestsEvery = 5 * time.Second
	// sweepEvery is the pace at which owners look for dispatchers that sleep although there is work, sweepLimit how many at once.
	// Every sweepOthers-th time, a process looks for those as well that it only serves: while the leases are away, nobody owns them.
	sweepEvery  = 2 * time.Second
	sweepLimit  = 1000
	sweepOthers = 5
	// inspectEvery is how often an owner looks whether a dispatcher is still open; a process looks at inspectPace a second at most.
	inspectEvery = 30 * time.Second
	inspectPace  = 20
	// clientEvery is the pace at which a process looks whether it has another client.
	clientEvery = 250 * time.Millisecond
	choreLimit  = 5 * time.Second
	// absentTTL is for how long one hint that a dispatcher is not open stands for all.
	absentTTL = time.Second
)

// every calls what there is to do at a pace, spread a little, until ctx ends.
func every(ctx context.Context, interval time.Duration, do func(context.Context)) {
	for {
		timer := time.NewTimer(interval - rand.N(interval/5+1)) //nolint:gosec // spreads load, guards nothing
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
			do(ctx)
		}
	}
}

// heed passes the hints of the store of leases on.
func (d *Dispatchers) heed(ctx context.Context) {
	for ctx.Err() == nil {
		keys, err := d.o.Leases.Watch(ctx)
		if err != nil {
			pace.Sleep(ctx, heedAgain)
			continue
		}
		d.roster.Forget() // what changed before is not announced
		for key := range keys {
			d.roster.Hint(key)
			name, ok := contract.NameOf(key)
			if !ok {
				continue
			}
			s := d.service(name)
			switch {
			case s == nil:
			case strings.HasPrefix(key, contract.OwnerPrefix):
				s.loop.Hint()
			case s.loop.Owned() == nil:
			case strings.HasPrefix(key, contract.AbsentPrefix):
				s.loop.Look()
			default:
				d.request(ctx, name, key)
			}
		}
		pace.Sleep(ctx, heedAgain)
	}
}

// heedRequests looks for requests to hand over.
func (d *Dispatchers) heedRequests(ctx context.Context) {
	every(ctx, requestsEvery, func(ctx context.Context) {
		if len(d.owned()) == 0 {
			return
		}
		for entry, err := range d.o.Leases.List(ctx, contract.HandoverPrefix) {
			if err != nil {
				continue // the next round is soon
			}
			name, ok := contract.NameOf(entry.Key)
			if s := d.service(name); ok && s != nil && s.loop.Owned() != nil && entry.State == lease.Held {
				d.heedRequest(ctx, name, entry)
			}
		}
	})
}

func (d *Dispatchers) request(ctx context.Context, name Name, key string) {
	ctx, cancel := context.WithTimeout(ctx, choreLimit)
	defer cancel()
	if entry, err := d.o.Leases.Get(ctx, key); err == nil && entry.State == lease.Held {
		d.heedRequest(ctx, name, entry)
	}
}

// heedRequest hands over if it is this process that takes the request away: the next owner must not find it.
func (d *Dispatchers) heedRequest(ctx context.Context, name Name, entry lease.Entry) {
	if d.o.Leases.Delete(ctx, entry.Key, entry.Token, entry.Revision) != nil {
		return
	}
	var r contract.Request
	if err := json.Unmarshal(entry.Value, &r); err != nil {
		r.By = entry.Holder
	}
	if s := d.service(name); s != nil {
		s.loop.HandOver(r)
	}
}

// sweep rings for dispatchers that sleep although there is work, because a doorbell was not heard, or the time of a retry has come.
// That several processes ring for one does no harm.
func (d *Dispatchers) sweep(ctx context.Context) {
	round := rand.N(sweepOthers) //nolint:gosec // spreads load, guards nothing
	every(ctx, sweepEvery, func(ctx context.Context) {
		round = (round + 1) % sweepOthers
		others := round == 0
		if len(d.owned()) == 0 && (!others || len(d.services()) == 0) {
			return
		}
		bounded, cancel := context.WithTimeout(ctx, choreLimit)
		defer cancel()
		asleep, err := d.o.Inbox.Asleep(bounded, sweepLimit)
		if err != nil {
			return // whoever routes says that the inbox is away
		}
		for _, name := range asleep {
			s := d.service(name)
			if s == nil || !others && s.loop.Owned() == nil {
				continue
			}
			if err := d.Ring(ctx, name); err != nil && !errors.Is(err, ErrNotOpen) {
				return // Temporal is away; the next sweep is soon
			}
		}
	})
}

// inspect looks whether what this process owns is still open, one after another.
func (d *Dispatchers) inspect(ctx context.Context) {
	for ctx.Err() == nil {
		owned := d.owned()
		step := max(inspectEvery/time.Duration(max(len(owned), 1)), time.Second/inspectPace)
		if len(owned) == 0 {
			pace.Sleep(ctx, inspectEvery/time.Duration(inspectPace))
		}
		for _, o := range owned {
			pace.Sleep(ctx, step-rand.N(step/5+1)) //nolint:gosec // spreads load, guards nothing
			if s := d.service(o.Name); s != nil && ctx.Err() == nil {
				s.loop.Look()
			}
		}
	}
}

// watchClient tells those who wait for a client, or for polls over it, that there is one, and registers again when there is another, or one again.
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
			d.roll.Add(d.names()...)
		}
		first, last = false, c
	})
}

// ready waits until Temporal can be used. One asks for all: there may be thousands who wait.
func (d *Dispatchers) ready(ctx context.Context) error {
	return d.await(ctx, func() bool { return true })
}

// fit waits until this process may own a dispatcher: it can use Temporal, and works for whoever owns it.
func (d *Dispatchers) fit(ctx context.Context, name Name) error {
	return d.await(ctx, func() bool { return d.o.Polls == nil || d.o.Polls(name) })
}

// await waits until Temporal can be used and more is so.
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

// registrar registers when Temporal can be used.
type registrar struct{ d *Dispatchers }

func (r registrar) Register(ctx context.Context, name Name, as contract.Registration) error {
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

// beat is what this process says of itself.
func (d *Dispatchers) beat() contract.Beat {
	b := contract.Beat{ServerID: d.o.ServerID, Build: d.o.Build, Interpreter: contract.Interpreter, StartedAt: d.born}
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

// workers are who works for a dispatcher that is started: this process, and who says so in its heartbeat.
func (d *Dispatchers) workers(name Name) []contract.Worker {
	d.mu.Lock()
	lives := d.lives
	d.mu.Unlock()
	now := time.Now()
	list := []contract.Worker{{ServerID: d.o.ServerID, TaskQueue: name.TaskQueue, Build: d.o.Build, RegisteredAt: now}}
	for id, life := range lives {
		if id != d.o.ServerID && life.Alive && life.Serves(name.Project) {
			list = append(list, contract.Worker{ServerID: id, TaskQueue: name.TaskQueue, Build: life.Beat.Build, RegisteredAt: now})
		}
	}
	slices.SortFunc(list, func(a, b contract.Worker) int { return strings.Compare(a.ServerID, b.ServerID) })
	return list
}

// lookAfter has the owner look whether the dispatcher is there, in whichever process. That is a hint: an owner that does not get it
// looks at its own pace.
func (d *Dispatchers) lookAfter(ctx context.Context, name Name) {
	if s := d.service(name); s != nil && s.loop.Owned() != nil {
		s.loop.Look()
		return
	}
	ctx, cancel := context.WithTimeout(ctx, choreLimit)
	defer cancel()
	terms := lease.Terms{TTL: absentTTL, Retention: absentTTL}
	_, _, err := d.o.Leases.Acquire(ctx, contract.AbsentKey(name), d.o.ServerID, nil, terms)
	if err != nil && !errors.Is(err, lease.ErrHeld) { // the owner got the hint a moment ago
		d.o.Log.DebugContext(ctx, "Owner of a dispatcher that is not open could not be told", "workflow_id", name.DispatcherID(), "error", err)
	}
}
