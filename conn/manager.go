package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/signalbox-dev/signalbox/conn/internal/hooks"
	"github.com/signalbox-dev/signalbox/conn/internal/link"
	"github.com/signalbox-dev/signalbox/conn/internal/machine"
	"github.com/signalbox-dev/signalbox/conn/internal/signals"
	"github.com/signalbox-dev/signalbox/conn/internal/traffic"
	"github.com/signalbox-dev/signalbox/conn/internal/workerset"
)

// Factory makes a worker of the client that it is given, with everything registered and not started. It is called again for
// every generation. The client must go to worker.New as it is; it must not be kept.
type Factory = workerset.Factory

// Hook is told of the client of a new generation.
type Hook func(ctx context.Context, c client.Client) error

// Manager keeps up a connection to Temporal and the workers on it. Its methods are safe for concurrent use. It is started
// once and stopped once.
type Manager struct {
	opts Options
	log  *slog.Logger
	sets *workerset.Registry

	view    atomic.Pointer[view]
	signals *signals.Signals
	hooks   *hooks.List
	traffic *traffic.Tracker

	mu      sync.Mutex
	started bool
	stopped bool
	// done is closed when nothing is left.
	done chan struct{}

	draining atomic.Int64

	// life ends when Stop begins, hurry when Stop has no time left.
	life      context.Context //nolint:containedctx // the manager's own lifetime
	end       context.CancelFunc
	hurry     context.Context //nolint:containedctx // the end of the patience of Stop
	impatient context.CancelFunc
	looping   chan struct{}
	joined    sync.WaitGroup
}

// view is what everybody may know, replaced as a whole.
type view struct {
	client client.Client // nil while down is not
	down   *DownError

	machine    machine.View
	at         time.Time
	generation *generation
	address    string
	namespace  string
	// namespaceID is a copy: a generation may learn its own only after it was published.
	namespaceID string
	// replaced is closed when there is a newer view.
	replaced chan struct{}
}

// generation is one client, as it was made and checked.
type generation struct {
	number    int
	link      *link.Link
	address   string
	namespace string
	tls       *tls.Config    // nil without TLS
	identity  *link.Identity // nil before it was checked
}

// New returns a manager that does nothing before [Manager.Start]. It returns every problem of the options at once.
func New(options Options) (*Manager, error) {
	opts, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	log := opts.Logger.With("component", "temporal-connection")
	m := &Manager{
		opts: opts, log: log, sets: workerset.NewRegistry(), hooks: hooks.New(log, opts.HookTimeout),
		signals: signals.New(), looping: make(chan struct{}), done: make(chan struct{}),
		traffic: traffic.New(opts.SlowAfter, time.Now),
	}
	now := time.Now()
	m.publish(machine.New(opts.settings(nil), now).View(now), nil, now)
	return m, nil
}

// Register adds a worker set. Its worker is started as soon as Temporal is there, again in every generation, and again
// when it dies. It may be called before and after Start.
func (m *Manager) Register(name string, factory Factory) error {
	if name == "" || factory == nil {
		return errors.New("a worker set needs a name and a factory")
	}
	if err := m.sets.Add(workerset.New(name, factory)); err != nil {
		return err
	}
	m.signals.Raise(&m.signals.Tend)
	return nil
}

// Unregister removes a worker set and stops its worker, which may finish what it has begun. When ctx ends first, the
// worker is still being stopped.
func (m *Manager) Unregister(ctx context.Context, name string) error {
	one, err := m.sets.Remove(name)
	if err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if r := one.Retire(); r != nil {
			r.Stop()
		}
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stopping the workers of %q: %w", name, ctx.Err())
	}
}

// OnConnect adds a hook that is called with the current client whenever the connection has come up, and after every swap,
// while the old generation still works: in the order of their registration, each within HookTimeout. A failing hook is
// logged and does not keep the others back. Whoever keeps a client needs one; whoever asks [Manager.Client] each time does not.
func (m *Manager) OnConnect(name string, hook Hook) { m.hooks.Add(name, hook) }

// Start begins to connect and returns at once; the manager lives until Stop, whatever becomes of ctx.
func (m *Manager) Start(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.stopped:
		return errors.New("the connection manager was stopped; make a new one")
	case m.started:
		return errors.New("the connection manager was started before; make a new one")
	}
	m.started = true
	m.life, m.end = context.WithCancel(context.WithoutCancel(ctx))
	m.hurry, m.impatient = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(m.looping)
		newLoop(m).run(m.life)
	}()
	return nil
}

// Client returns the current client, or a [*DownError] while Temporal must not be used. It never blocks. The client may be
// replaced at any time: ask again for the next request, and use [Manager.Borrow] for what takes several.
func (m *Manager) Client() (client.Client, error) {
	v := m.view.Load()
	if v.down != nil {
		return nil, v.down
	}
	return v.client, nil
}

// Borrow is [Manager.Client] for longer use: a replaced generation is not closed before release was called, or the drain's
// time is over. Release must be called once.
func (m *Manager) Borrow() (c client.Client, release func(), err error) {
	for {
		v := m.view.Load()
		if v.down != nil {
			return nil, nil, v.down
		}
		l := v.generation.link
		l.Acquire()
		// A generation that was replaced in between may not have seen us.
		if now := m.view.Load(); now.generation == v.generation {
			return v.client, sync.OnceFunc(l.Release), nil
		}
		l.Release()
	}
}

// Await returns when there is a client to use, or the last [*DownError] when ctx ends or the manager is stopped first.
func (m *Manager) Await(ctx context.Context) error {
	for {
		v := m.view.Load()
		if v.down == nil {
			return nil
		}
		if v.machine.State == Closed {
			return v.down
		}
		select {
		case <-v.replaced:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), v.down)
		}
	}
}

// ResetBreaker closes the circuit breaker and makes an attempt at once.
func (m *Manager) ResetBreaker() { m.signals.Raise(&m.signals.Reset) }

// Status returns what is known now. It never blocks.
func (m *Manager) Status() Status {
	v, now := m.view.Load(), time.Now()
	s := Status{
		State: v.machine.State, Kind: v.machine.Kind, Since: v.machine.Since, Address: v.address, Namespace: v.namespace,
		LastErrorAt: v.machine.LastErrAt, Latency: v.machine.Latency, Attempts: v.machine.Attempts, NextAttempt: v.machine.NextAttempt,
		Breaker: v.machine.Breaker, Statistics: v.machine.Statistics, Draining: int(m.draining.Load()),
	}
	if v.machine.LastErr != nil {
		s.LastError = v.machine.LastErr.Error()
	}
	if v.generation != nil {
		s.Generation, s.NamespaceID = v.generation.number, v.namespaceID
	}
	usable := v.down == nil
	switch {
	case usable:
		s.Statistics.Uptime += now.Sub(v.at)
	case s.State != Closed:
		s.Statistics.Downtime += now.Sub(v.at)
		if s.Statistics.Outages > 0 && s.State == Down {
			s.Statistics.LastOutage += now.Sub(v.at)
			s.Statistics.LongestOutage = max(s.Statistics.LongestOutage, s.Statistics.LastOutage)
		}
	}
	s.Workers = m.sets.Status(usable)
	return s
}

// Polling tells whether the task queues of a worker set are polled now, over a connection that is up: [WorkerStatus] of one, for those who
// ask often. It never blocks.
func (m *Manager) Polling(name string) bool { return m.sets.Polling(name, m.view.Load().down == nil) }

// publish replaces the view.
func (m *Manager) publish(known machine.View, g *generation, now time.Time) {
	v := &view{machine: known, at: now, generation: g, replaced: make(chan struct{}), address: m.opts.Client.HostPort, namespace: m.opts.Client.Namespace}
	if g != nil {
		g.link.Down(known.State == Down)
		v.address, v.namespace, v.namespaceID = g.address, g.namespace, g.identity.NamespaceID
	}
	if up(known.State) {
		v.client = g.link.Client()
	} else {
		v.down = &DownError{
			State: known.State, Kind: known.Kind, Since: known.Since, Address: v.address, Namespace: v.namespace, Cause: known.LastErr,
			NextAttempt: known.NextAttempt,
		}
	}
	if before := m.view.Swap(v); before != nil {
		close(before.replaced)
	}
}

// Stop ends the connecting, lets workers and borrowers finish within ctx, closes every client and joins everything. When
// ctx ends first, clients are closed under what still uses them, and the rest of the joining goes on without the caller, who
// may wait for it by calling Stop again: it returns nil only when nothing is left. A manager that was never started cannot be
// started after it.
func (m *Manager) Stop(ctx context.Context) error {
	m.mu.Lock()
	if !m.stopped {
		m.stopped = true
		m.wind()
	}
	m.mu.Unlock()
	select {
	case <-m.done:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-m.done: // as well
		return nil
	default:
		m.impatient()
		return fmt.Errorf("stopping the connection to Temporal: %w", ctx.Err())
	}
}

// wind begins to end everything.
func (m *Manager) wind() {
	if !m.started {
		now := time.Now()
		closed := machine.New(m.opts.settings(nil), now)
		closed.On(now, machine.Close{})
		m.publish(closed.View(now), nil, now)
		close(m.done)
		return
	}
	m.end()
	go func() {
		defer close(m.done)
		defer m.impatient()
		<-m.looping
		m.joined.Wait()
	}()
}

// drainPace is how often a draining generation is looked at.
const drainPace = 20 * time.Millisecond

// drain lets a generation that is no longer the current one come to its end after the grace: tasks may be on their way to its
// workers, and whoever was given its client a moment ago may not have sent anything yet.
func (m *Manager) drain(old *generation, workers []*workerset.Running) {
	if old != nil || len(workers) > 0 {
		pause(m.life, m.opts.DrainGrace)
	}
	if len(workers) > 0 {
		m.log.Info("Stopping old workers", "workers", len(workers))
	}
	m.finish(old, workers)
}

// finish stops workers and closes the generation when nobody uses it, or the time is over. A worker set that has no successor
// yet may go on with its old worker for as long as that takes.
func (m *Manager) finish(old *generation, workers []*workerset.Running) {
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		var group sync.WaitGroup
		for _, w := range workers {
			group.Go(w.Stop)
		}
		group.Wait()
	}()
	defer func() { <-stopped }()
	if old == nil {
		return
	}
	defer old.link.Close()
	for m.life.Err() == nil && m.sets.Uses(old.link) {
		pause(m.life, time.Second)
	}
	budget, cancel := context.WithTimeout(m.hurry, m.opts.DrainTimeout)
	defer cancel()
	select {
	case <-stopped:
	case <-budget.Done():
		return
	}
	for !old.link.Idle() && budget.Err() == nil {
		pause(budget, drainPace)
	}
}

// pause waits for d, or less when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
