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
	"golang.org/x/time/rate"

	"github.com/signalbox-dev/signalbox/dispatch/internal/dispatcherflow"
	"github.com/signalbox-dev/signalbox/dispatch/internal/heartbeat"
	"github.com/signalbox-dev/signalbox/dispatch/internal/owner"
	"github.com/signalbox-dev/signalbox/dispatch/internal/record"
	"github.com/signalbox-dev/signalbox/dispatch/internal/remote"
	"github.com/signalbox-dev/signalbox/dispatch/internal/supervisor"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
)

const (
	// acquiresPerSecond and acquireBurst limit the attempts of a process to acquire leases: the rate, and the burst.
	acquiresPerSecond = 500
	acquireBurst      = 200
	// maxTakeovers is how many dispatchers a process starts, adopts or replaces at the same time.
	maxTakeovers = 32
	// listEvery is the number of heartbeats between two full listings of all heartbeats. In between, the process reads
	// only those of live workers.
	listEvery = 12
)

// Dispatchers serves dispatchers in one process, and owns those whose leases the process holds. It is safe for
// concurrent use.
type Dispatchers struct {
	o             Options
	temporal      *remote.Temporal
	process       *owner.Process
	activities    *dispatcherflow.Activities
	record        *record.Record
	heartbeat     *heartbeat.Heartbeat
	heartbeats    *heartbeat.Workers
	registrations *heartbeat.Registrations
	supervisor    *supervisor.Supervisor
	rings         singleflight.Group
	startedAt     time.Time

	// changed has capacity 1 and receives a value after each change of served.
	changed chan struct{}

	mu        sync.Mutex
	served    map[Name]*service
	ctx       context.Context //nolint:containedctx // of all goroutines between Start and Stop; nil outside
	processes map[string]heartbeat.Process
	usable    chan struct{} // closed and replaced while Temporal is usable

	cancel  context.CancelFunc
	joined  sync.WaitGroup
	journal struct {
		cancel context.CancelFunc
		joined sync.WaitGroup
	}
}

// service is a dispatcher that this process serves.
type service struct {
	loop   *owner.Loop
	cancel context.CancelFunc
	done   chan struct{}
}

// New validates the options and returns the dispatchers of a process. Ring, RequestHandover and Reconcile do not need
// Start.
func New(o Options) (*Dispatchers, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	d := &Dispatchers{o: o, served: map[Name]*service{}, startedAt: time.Now(), usable: make(chan struct{}),
		changed: make(chan struct{}, 1)}
	d.temporal = &remote.Temporal{
		Client: o.Client, Namespace: o.Namespace, Converter: o.Converter, CheckEvery: o.Timing.CheckEvery}
	d.record = record.New(o.Journal, o.Metrics, o.Log)
	d.registrations = heartbeat.NewRegistrations(registrar{d}, o.ServerID, o.Build, o.Log)
	d.heartbeats = heartbeat.NewWorkers(o.Leases, listEvery*o.Timing.Heartbeat)
	d.heartbeat = &heartbeat.Heartbeat{
		Leases: o.Leases, ServerID: o.ServerID, Every: o.Timing.Heartbeat, Lifetime: o.Timing.Worker(), Beat: d.beat,
		Changed: d.changed, Log: o.Log,
		Returned: func() { d.registrations.Add(d.names()...) },
	}
	d.activities = &dispatcherflow.Activities{
		ServerID: o.ServerID, Inbox: o.Inbox, Leases: o.Leases, Idle: o.Timing.Idle, Evicted: d.record.Evicted, Left: o.Left,
		Canceled: d.notifyOwner, Metrics: o.Metrics, Log: o.Log,
	}
	d.process = &owner.Process{
		ServerID: o.ServerID, Leases: o.Leases, Inbox: o.Inbox, Temporal: d.temporal, Timing: o.Timing,
		MayOwn: d.mayOwn, StoreFailed: d.heartbeat.StoreFailed, Workers: d.workers,
		Pace: rate.NewLimiter(acquiresPerSecond, acquireBurst), Slots: make(chan struct{}, maxTakeovers), Observer: d.record,
		Log: o.Log,
	}
	d.supervisor = d.newSupervisor()
	return d, nil
}

// Register registers the dispatcher's workflow and activities on the worker of a task queue. Call it for each task
// queue that is served.
func (d *Dispatchers) Register(r worker.Registry) { d.activities.Register(r) }

// Start starts serving and owning dispatchers. It returns at once.
func (d *Dispatchers) Start(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx != nil {
		return errors.New("start dispatchers: already started")
	}
	journal, endJournal := context.WithCancel(context.WithoutCancel(ctx))
	d.journal.cancel = endJournal
	d.journal.joined.Go(func() { d.record.Run(journal) })
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	d.ctx, d.cancel = running, cancel
	for _, loop := range []func(context.Context){
		d.heartbeat.Run, d.registrations.Run, d.watchHints, d.pollHandovers, d.ringParked, d.checkOwned, d.watchWorkers,
		d.watchClient, d.supervisor.Run,
	} {
		d.joined.Go(func() { loop(running) })
	}
	for name, s := range d.served {
		d.run(running, name, s)
	}
	return nil
}

// Stop resigns the leases that this process holds; the dispatchers keep running. It returns once every goroutine has
// ended, or when ctx ends. Dispatchers cannot be started again after Stop.
func (d *Dispatchers) Stop(ctx context.Context) error {
	d.mu.Lock()
	started := d.ctx != nil
	if started {
		d.cancel() // with the lock held, so that Serve starts no goroutine that the join below would miss
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

// Serve makes this process serve a dispatcher: the process has a worker on the dispatcher's task queue, with
// [Dispatchers.Register] done. From now on the process registers with the dispatcher, and acquires its lease when it is
// free. Serving the same name again changes nothing.
func (d *Dispatchers) Serve(name Name) error {
	if err := wire.Validate(name); err != nil {
		return fmt.Errorf("serve dispatcher: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.served[name] != nil {
		return nil
	}
	d.record.InitMetrics(name.Project)
	s := &service{loop: owner.New(d.process, name)}
	d.served[name] = s
	d.notifyChanged()
	if d.ctx != nil && d.ctx.Err() == nil {
		d.run(d.ctx, name, s)
	}
	return nil
}

// notifyChanged makes the heartbeat write the served projects at once. Otherwise lists would show projects without a
// worker until the next heartbeat.
func (d *Dispatchers) notifyChanged() {
	select {
	case d.changed <- struct{}{}:
	default: // the previous value has not been received yet
	}
}

// InitMetrics creates the metrics of a project's dispatchers, with the value 0. Serve does so for the projects that it
// serves; a process that exports metrics of other projects calls InitMetrics for those.
func (d *Dispatchers) InitMetrics(project string) { d.record.InitMetrics(project) }

// run is called with the lock held.
func (d *Dispatchers) run(ctx context.Context, name Name, s *service) {
	ctx, cancel := context.WithCancel(ctx)
	s.cancel, s.done = cancel, make(chan struct{})
	d.joined.Go(func() {
		defer close(s.done)
		defer cancel()
		s.loop.Run(ctx)
	})
	d.registrations.Add(name)
}

// Leave reverses Serve. If this process owns the dispatcher, it resigns the lease. Leave returns when that is done, or
// when ctx ends.
func (d *Dispatchers) Leave(ctx context.Context, name Name) error {
	d.mu.Lock()
	s := d.served[name]
	delete(d.served, name)
	d.notifyChanged()
	d.registrations.Remove(name)
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

// Retire is Leave for a name without work: if this process owns the dispatcher, it also ends the workflow, so that
// nothing of it is left in Temporal. The next process that serves the name starts it again. Nothing is lost: the inbox
// has all events. After an error the process still serves the name, unless the error is that of Leave.
func (d *Dispatchers) Retire(ctx context.Context, name Name, reason string) error {
	if s := d.service(name); s != nil {
		if o := s.loop.Owned(); o != nil {
			err := d.temporal.Terminate(ctx, name, o.RunID, reason)
			if err != nil && !errors.Is(err, remote.ErrGone) {
				return fmt.Errorf("retire dispatcher %q: %w", name.DispatcherID(), err)
			}
		}
	}
	return d.Leave(ctx, name)
}

// Owns reports whether this process owns a dispatcher.
func (d *Dispatchers) Owns(name Name) bool {
	s := d.service(name)
	return s != nil && s.loop.Owned() != nil
}

// Owned is a dispatcher that this process owns.
type Owned struct {
	Name  Name
	RunID string
	Epoch int64
	Since time.Time
}

// Owned returns the dispatchers that this process owns, ordered by name.
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

// names returns the served names, sorted.
func (d *Dispatchers) names() []Name {
	return slices.SortedFunc(maps.Keys(d.services()), Name.Compare)
}
