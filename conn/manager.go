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

	connclient "github.com/signalbox-dev/signalbox/conn/internal/client"
	"github.com/signalbox-dev/signalbox/conn/internal/fsm"
	"github.com/signalbox-dev/signalbox/conn/internal/traffic"
	"github.com/signalbox-dev/signalbox/conn/internal/workers"
	"github.com/signalbox-dev/signalbox/internal/loop"
)

// Factory makes a worker of a client, with workflows and activities registered and not started. It is called again for
// every generation. The client must be passed to worker.New as it is, and must not be kept.
type Factory = workers.Factory

// Manager maintains a connection to Temporal and the workers on it. Its methods are safe for concurrent use. It can be
// started once and stopped once.
type Manager struct {
	opts Options
	log  *slog.Logger
	sets *workers.Registry

	view    atomic.Pointer[view]
	signals *signals
	hooks   *hookList
	traffic *traffic.Tracker

	mu      sync.Mutex
	started bool
	stopped bool
	// done is closed when every goroutine and connection of the manager has ended.
	done chan struct{}

	draining atomic.Int64

	// lifetime ends when Stop begins, drainCtx when the context of Stop ends.
	lifetime    context.Context //nolint:containedctx // the manager's own lifetime
	endLifetime context.CancelFunc
	drainCtx    context.Context //nolint:containedctx // limits the draining
	endDrain    context.CancelFunc
	loopDone    chan struct{}
	tasks       sync.WaitGroup
}

// view is the published state, replaced as a whole.
type view struct {
	client client.Client // nil while down is not
	down   *DownError

	machine    fsm.View
	at         time.Time
	generation *generation
	address    string
	namespace  string
	// namespaceID is a copy: that of the generation may be set after the generation was published.
	namespaceID string
	// replaced is closed when there is a newer view.
	replaced chan struct{}
}

// generation is one client with the properties that it was made with.
type generation struct {
	number    int
	client    *connclient.Client
	address   string
	namespace string
	tls       *tls.Config          // nil without TLS
	identity  *connclient.Identity // nil before the first answered check
}

// New returns a manager that does nothing before [Manager.Start]. The error contains every violation of the options.
func New(options Options) (*Manager, error) {
	opts, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	log := opts.Logger.With("component", "temporal-connection")
	m := &Manager{
		opts: opts, log: log, sets: workers.NewRegistry(), hooks: newHookList(log, opts.HookTimeout),
		signals: newSignals(), loopDone: make(chan struct{}), done: make(chan struct{}),
		traffic: traffic.New(opts.SlowAfter, time.Now),
	}
	now := time.Now()
	m.publish(fsm.New(opts.settings(nil), now).View(now), nil, now)
	return m, nil
}

// Register adds a worker set. Its worker is started as soon as the connection is up, again in every generation, and
// again when it dies. Register may be called before and after Start.
func (m *Manager) Register(name string, factory Factory) error {
	if name == "" || factory == nil {
		return errors.New("a worker set needs a name and a factory")
	}
	if err := m.sets.Add(workers.New(name, factory)); err != nil {
		return err
	}
	m.signals.raise(&m.signals.workersDue)
	return nil
}

// Unregister removes a worker set and stops its worker, which may finish the tasks it has begun. If ctx ends first,
// Unregister returns an error and the stop continues in the background.
func (m *Manager) Unregister(ctx context.Context, name string) error {
	set, err := m.sets.Remove(name)
	if err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if r := set.Retire(); r != nil {
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

// OnConnect adds a hook. Hooks are called with the current client each time the connection has come up, and after each
// replacement of the generation, while the old generation still works. They run in the order of their registration,
// each limited by HookTimeout. A failing hook is logged, and the others are called all the same. Code that keeps a
// client needs a hook; code that calls [Manager.Client] for each request does not.
func (m *Manager) OnConnect(name string, hook Hook) { m.hooks.add(name, hook) }

// Start begins to connect and returns at once. The manager runs until Stop; the end of ctx does not stop it.
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
	m.lifetime, m.endLifetime = context.WithCancel(context.WithoutCancel(ctx))
	m.drainCtx, m.endDrain = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(m.loopDone)
		newEventLoop(m).run(m.lifetime)
	}()
	return nil
}

// Client returns the current client, or a [*DownError] while the connection is not up. It never blocks. The client may
// be replaced and closed at any time: call Client for each request, and use [Manager.Borrow] for a sequence of
// requests.
func (m *Manager) Client() (client.Client, error) {
	v := m.view.Load()
	if v.down != nil {
		return nil, v.down
	}
	return v.client, nil
}

// Borrow is [Manager.Client] for longer use: if the generation is replaced, its client is not closed before release is
// called, or until Options.DrainTimeout has passed. Release must be called.
func (m *Manager) Borrow() (c client.Client, release func(), err error) {
	for {
		v := m.view.Load()
		if v.down != nil {
			return nil, nil, v.down
		}
		c := v.generation.client
		c.Acquire()
		// A generation that was replaced between Load and Acquire may have been found idle, and closed.
		if now := m.view.Load(); now.generation == v.generation {
			return v.client, sync.OnceFunc(c.Release), nil
		}
		c.Release()
	}
}

// Await returns when the connection is up. If ctx ends or the manager is stopped first, it returns the last
// [*DownError].
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

// ResetBreaker closes the circuit breaker and starts an attempt at once.
func (m *Manager) ResetBreaker() { m.signals.raise(&m.signals.reset) }

// Status returns a snapshot. It never blocks.
func (m *Manager) Status() Status {
	v, now := m.view.Load(), time.Now()
	s := Status{
		State: v.machine.State, Kind: v.machine.Kind, Since: v.machine.Since, Address: v.address, Namespace: v.namespace,
		LastErrorAt: v.machine.LastErrAt, Latency: v.machine.Latency, Attempts: v.machine.Attempts,
		NextAttempt: v.machine.NextAttempt,
		Breaker:     v.machine.Breaker, Statistics: v.machine.Statistics, Draining: int(m.draining.Load()),
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

// Polling reports whether the task queues of a worker set are polled now, over a connection that is up. It is cheaper
// than [Manager.Status] for frequent calls, and never blocks.
func (m *Manager) Polling(name string) bool { return m.sets.Polling(name, m.view.Load().down == nil) }

// publish replaces the view.
func (m *Manager) publish(state fsm.View, g *generation, now time.Time) {
	v := &view{machine: state, at: now, generation: g, replaced: make(chan struct{}), address: m.opts.Client.HostPort,
		namespace: m.opts.Client.Namespace}
	if g != nil {
		g.client.SetServerDown(state.State == Down)
		v.address, v.namespace, v.namespaceID = g.address, g.namespace, g.identity.NamespaceID
	}
	if state.State.Up() {
		v.client = g.client.SDK()
	} else {
		v.down = &DownError{
			State: state.State, Kind: state.Kind, Since: state.Since, Address: v.address, Namespace: v.namespace,
			Cause:       state.LastErr,
			NextAttempt: state.NextAttempt,
		}
	}
	if before := m.view.Swap(v); before != nil {
		close(before.replaced)
	}
}

// Stop ends all attempts to connect, lets workers and borrowers finish until ctx ends, closes every client and waits
// for every goroutine. If ctx ends first, clients are closed although they are in use, Stop returns an error, and the
// rest continues in the background. A further call of Stop waits for it. Stop returns nil only when no goroutine and no
// connection is left. A manager that was stopped cannot be started, even if it was never started before.
func (m *Manager) Stop(ctx context.Context) error {
	m.mu.Lock()
	if !m.stopped {
		m.stopped = true
		m.beginStop()
	}
	m.mu.Unlock()
	select {
	case <-m.done:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-m.done: // select chooses at random where both are ready
		return nil
	default:
		m.endDrain()
		return fmt.Errorf("stopping the connection to Temporal: %w", ctx.Err())
	}
}

// beginStop starts the stop. The caller holds mu.
func (m *Manager) beginStop() {
	if !m.started {
		now := time.Now()
		closed := fsm.New(m.opts.settings(nil), now)
		closed.Handle(now, fsm.Close{})
		m.publish(closed.View(now), nil, now)
		close(m.done)
		return
	}
	m.endLifetime()
	go func() {
		defer close(m.done)
		defer m.endDrain()
		<-m.loopDone
		m.tasks.Wait()
	}()
}

// idleCheckInterval is how often a draining generation is checked for use.
const idleCheckInterval = 20 * time.Millisecond

// drain ends a generation that is no longer the current one. It first waits for DrainGrace: tasks may be on their way
// to its workers, and a caller that has just been given its client may not have sent its request yet.
func (m *Manager) drain(old *generation, running []*workers.Running) {
	if old != nil || len(running) > 0 {
		loop.Sleep(m.lifetime, m.opts.DrainGrace)
	}
	if len(running) > 0 {
		m.log.Info("Stopping old workers", "workers", len(running))
	}
	m.stopGeneration(old, running)
}

// stopGeneration stops workers, and closes the generation once it is idle or DrainTimeout has passed. A worker set
// whose new worker has not started yet keeps its old worker, and so the old client, for as long as that takes.
func (m *Manager) stopGeneration(old *generation, running []*workers.Running) {
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		var group sync.WaitGroup
		for _, r := range running {
			group.Go(r.Stop)
		}
		group.Wait()
	}()
	defer func() { <-stopped }()
	if old == nil {
		return
	}
	defer old.client.Close()
	for m.lifetime.Err() == nil && m.sets.UsesClient(old.client) {
		loop.Sleep(m.lifetime, time.Second)
	}
	budget, cancel := context.WithTimeout(m.drainCtx, m.opts.DrainTimeout)
	defer cancel()
	select {
	case <-stopped:
	case <-budget.Done():
		return
	}
	for !old.client.Idle() && budget.Err() == nil {
		loop.Sleep(budget, idleCheckInterval)
	}
}
