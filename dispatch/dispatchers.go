package dispatch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/worker"
	"golang.org/x/sync/singleflight"

	"github.com/signalbox-dev/signalbox/dispatch/internal/contract"
	"github.com/signalbox-dev/signalbox/dispatch/internal/flow"
	"github.com/signalbox-dev/signalbox/dispatch/internal/heart"
	"github.com/signalbox-dev/signalbox/dispatch/internal/owner"
	"github.com/signalbox-dev/signalbox/dispatch/internal/pace"
	"github.com/signalbox-dev/signalbox/dispatch/internal/record"
	"github.com/signalbox-dev/signalbox/dispatch/internal/remote"
	"github.com/signalbox-dev/signalbox/dispatch/internal/roll"
	"github.com/signalbox-dev/signalbox/dispatch/internal/supervise"
)

const (
	// The attempts to win leases of a process: per second, and at once.
	winsPerSecond = 500
	winsAtOnce    = 200
	// ownings is how many dispatchers a process starts, adopts or replaces at the same time.
	ownings = 32
	// listEvery is how many heartbeats pass until a process lists those of all others again; in between it reads those of the living.
	listEvery = 12
)

// Dispatchers are the dispatchers that a process works for, and those among them that it owns.
type Dispatchers struct {
	o          Options
	temporal   *remote.Temporal
	process    *owner.Process
	activities *flow.Activities
	record     *record.Record
	heart      *heart.Heart
	roster     *heart.Roster
	roll       *roll.Roll
	supervisor *supervise.Supervisor
	rings      singleflight.Group
	born       time.Time

	// changed has room for one notice that served has changed.
	changed chan struct{}

	mu     sync.Mutex
	served map[Name]*service
	ctx    context.Context //nolint:containedctx // of everything that runs between Start and Stop; nil outside
	lives  map[string]heart.Life
	usable chan struct{} // closed and replaced when Temporal can be used

	cancel  context.CancelFunc
	joined  sync.WaitGroup
	journal struct {
		cancel context.CancelFunc
		joined sync.WaitGroup
	}
}

// service is a dispatcher that the process works for.
type service struct {
	loop   *owner.Loop
	cancel context.CancelFunc
	done   chan struct{}
}

// New returns the dispatchers of a process. Without Start, it can ring doorbells and ask for handovers.
func New(o Options) (*Dispatchers, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	d := &Dispatchers{o: o, served: map[Name]*service{}, born: time.Now(), usable: make(chan struct{}), changed: make(chan struct{}, 1)}
	d.temporal = &remote.Temporal{Client: o.Client, Namespace: o.Namespace, Converter: o.Converter, CheckEvery: o.Timing.CheckEvery}
	d.record = record.New(o.Journal, o.Metrics, o.Log)
	d.roll = roll.New(registrar{d}, o.ServerID, o.Build, o.Log)
	d.roster = heart.NewRoster(o.Leases, listEvery*o.Timing.Heartbeat)
	d.heart = &heart.Heart{
		Leases: o.Leases, ServerID: o.ServerID, Every: o.Timing.Heartbeat, Terms: o.Timing.Worker(), Beat: d.beat, Changed: d.changed, Log: o.Log,
		Returned: func() { d.roll.Add(d.names()...) },
	}
	d.activities = &flow.Activities{
		ServerID: o.ServerID, Inbox: o.Inbox, Leases: o.Leases, Idle: o.Timing.Idle, Evicted: d.record.Evicted, Canceled: d.lookAfter, Metrics: o.Metrics,
		Log: o.Log,
	}
	d.process = &owner.Process{
		ServerID: o.ServerID, Leases: o.Leases, Inbox: o.Inbox, Temporal: d.temporal, Timing: o.Timing,
		Fit: d.fit, StoreFailed: d.heart.StoreFailed, Workers: d.workers,
		Pace: pace.NewLimit(winsPerSecond, winsAtOnce), Slots: make(chan struct{}, ownings), Observer: d.record, Log: o.Log,
	}
	d.supervisor = d.supervise()
	return d, nil
}

// Register puts what dispatchers need on the worker of a task queue. It must be done for each task queue that is served.
func (d *Dispatchers) Register(r worker.Registry) { d.activities.Register(r) }

// Start begins to own and to work for what is served. It waits for nothing.
func (d *Dispatchers) Start(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx != nil {
		return errors.New("start dispatchers: they were started already")
	}
	journal, endJournal := context.WithCancel(context.WithoutCancel(ctx))
	d.journal.cancel = endJournal
	d.journal.joined.Go(func() { d.record.Run(journal) })
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	d.ctx, d.cancel = running, cancel
	for _, chore := range []func(context.Context){
		d.heart.Run, d.roll.Run, d.heed, d.heedRequests, d.sweep, d.inspect, d.watchWorkers, d.watchClient, d.supervisor.Run,
	} {
		d.joined.Go(func() { chore(running) })
	}
	for name, s := range d.served {
		d.run(running, name, s)
	}
	return nil
}

// Stop gives up what this process owns, and nothing else: the dispatchers run on. It returns when everything has ended, or with
// ctx. They cannot be started again.
func (d *Dispatchers) Stop(ctx context.Context) error {
	d.mu.Lock()
	started := d.ctx != nil
	if started {
		d.cancel() // with the lock held, so that Serve begins nothing that the join below would miss
	}
	d.mu.Unlock()
	if !started {
		return nil
	}
	if err := join(ctx, &d.joined); err != nil {
		return fmt.Errorf("stop dispatchers: %w", err)
	}
	d.journal.cancel()
	if err := join(ctx, &d.journal.joined); err != nil {
		return fmt.Errorf("stop dispatchers: write the journal: %w", err)
	}
	return nil
}

func join(ctx context.Context, group *sync.WaitGroup) error {
	joined := make(chan struct{})
	go func() {
		defer close(joined)
		group.Wait()
	}()
	select {
	case <-joined:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Serve says that this process has a worker on a dispatcher's task queue, with [Dispatchers.Register] done. From now on it works for
// the dispatcher, and owns it when nobody else does. To serve again what is served changes nothing.
func (d *Dispatchers) Serve(name Name) error {
	if err := contract.Validate(name); err != nil {
		return fmt.Errorf("serve dispatcher: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.served[name] != nil {
		return nil
	}
	d.record.Begin(name.Project)
	s := &service{loop: owner.New(d.process, name)}
	d.served[name] = s
	d.announce()
	if d.ctx != nil && d.ctx.Err() == nil {
		d.run(d.ctx, name, s)
	}
	return nil
}

// announce has the heartbeat say at once what is served now. Until then, lists would show projects without a worker that have one.
func (d *Dispatchers) announce() {
	select {
	case d.changed <- struct{}{}:
	default: // the notice before has not been read yet
	}
}

// Begin makes the counters of a project's dispatchers, at 0. Serve does so for what this process works for; a process that serves other
// projects' metrics as well begins those.
func (d *Dispatchers) Begin(project string) { d.record.Begin(project) }

// run is called with the lock held.
func (d *Dispatchers) run(ctx context.Context, name Name, s *service) {
	ctx, cancel := context.WithCancel(ctx)
	s.cancel, s.done = cancel, make(chan struct{})
	d.joined.Go(func() {
		defer close(s.done)
		defer cancel()
		s.loop.Run(ctx)
	})
	d.roll.Add(name)
}

// Leave ends what Serve began: the process gives the dispatcher up if it owns it. It returns when that is done, or with ctx.
func (d *Dispatchers) Leave(ctx context.Context, name Name) error {
	d.mu.Lock()
	s := d.served[name]
	delete(d.served, name)
	d.announce()
	d.roll.Remove(name)
	d.mu.Unlock()
	if s == nil || s.cancel == nil {
		return nil
	}
	s.cancel()
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("leave dispatcher %q: %w", name.DispatcherID(), context.Cause(ctx))
	}
}

// Owned is a dispatcher that this process owns.
type Owned struct {
	Name  Name
	RunID string
	Epoch int64
	Since time.Time
}

// Owned returns what this process owns, in the order of names.
func (d *Dispatchers) Owned() []Owned {
	var list []Owned
	for _, o := range d.owned() {
		list = append(list, Owned{Name: o.Name, RunID: o.RunID, Epoch: o.Owner.Epoch, Since: o.Since})
	}
	return list
}

func (d *Dispatchers) owned() []owner.Ownership {
	var list []owner.Ownership
	for _, s := range d.services() {
		if o := s.loop.Owned(); o != nil {
			list = append(list, *o)
		}
	}
	slices.SortFunc(list, func(a, b owner.Ownership) int { return a.Name.Compare(b.Name) })
	return list
}

func (d *Dispatchers) services() map[Name]*service {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.served)
}

func (d *Dispatchers) service(name Name) *service {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.served[name]
}

// names returns what is served, in order.
func (d *Dispatchers) names() []Name {
	return slices.SortedFunc(maps.Keys(d.services()), Name.Compare)
}
