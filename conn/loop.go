package conn

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/signalbox-dev/signalbox/conn/conntype"
	connclient "github.com/signalbox-dev/signalbox/conn/internal/client"
	"github.com/signalbox-dev/signalbox/conn/internal/fsm"
	"github.com/signalbox-dev/signalbox/conn/internal/workers"
	"github.com/signalbox-dev/signalbox/internal/loop"
)

const (
	// maintainEvery is how often worker sets are checked.
	maintainEvery = time.Second
	// notPollingAfter is how long a worker set may be without polls before the connection counts as not polling.
	notPollingAfter = 3 * time.Second
	// buildTimeout limits the start of all workers of a generation. A start takes 0.1 s on a healthy server, and no check
	// runs meanwhile.
	buildTimeout = 5 * time.Second
	// never is the wait while the machine has no deadline; a result or a signal ends it.
	never = time.Hour
)

// eventLoop is the one goroutine that uses the machine. It runs one operation of the machine at a time, in a goroutine
// of its own, and never blocks on it.
type eventLoop struct {
	*Manager

	machine     *fsm.Machine
	transitions *transitionLog
	current     *generation
	// candidate is the next generation: a client that is not in use yet, kept over failed attempts.
	candidate *generation
	number    int // of the last generation in use
	// results has room for the result of the one running operation.
	results chan result
	busy    bool
	// building: the running operation is a build, so workers may run on its client.
	building bool
	// notPollingSince is since when a worker set does not poll; zero while all do.
	notPollingSince time.Time
	// identity is the last result of Options.Identity; stale: the running operation began before the last change of it.
	identity string
	stale    bool
}

// result is the result of an operation.
type result struct {
	event fsm.Event
	// made is the client that the operation made, used the one that it worked on.
	made, used *generation
	identity   *connclient.Identity // nil where it was not requested, or there was no answer
	// outcomes are the workers that a build has started, or failed to start.
	outcomes []workers.Started
}

func newEventLoop(m *Manager) *eventLoop {
	return &eventLoop{
		Manager: m, machine: fsm.New(m.opts.settings(rand.Float64), time.Now()), results: make(chan result, 1),
		transitions: &transitionLog{log: m.log},
	}
}

func (l *eventLoop) run(ctx context.Context) {
	l.log.Info("Starting Temporal health monitor", "address", l.opts.Client.HostPort, "namespace", l.opts.Client.Namespace,
		"check_every_seconds", l.opts.CheckEvery.Seconds(), "probe_every_seconds", l.opts.ProbeEvery.Seconds())
	maintain := time.NewTicker(maintainEvery)
	defer maintain.Stop()
	watch := time.NewTicker(l.opts.ProbeEvery)
	defer watch.Stop()
	due := time.NewTimer(0)
	defer due.Stop()
	l.identity, _ = l.readIdentity() // if this fails, the first attempt fails in the same way and reports it
	for {
		select {
		case <-ctx.Done():
			l.shutdown() //nolint:contextcheck // draining is limited by the context of Stop, not by ctx
			return
		case r := <-l.results:
			l.busy, l.building = false, false
			l.finishOperation(r) //nolint:contextcheck // hooks have the lifetime of the manager
		case <-l.signals.woken:
			l.handleSignals() //nolint:contextcheck // callbacks for the end of a connection have the lifetime of the manager
		case <-maintain.C:
			l.maintainWorkers() //nolint:contextcheck // as above
		case <-watch.C:
			if identity, ok := l.readIdentity(); ok && identity != l.identity {
				l.identity = identity
				l.signals.raise(&l.signals.changed)
			}
		case <-due.C:
			l.tick(time.Now())
		}
		due.Reset(l.wait())
	}
}

// wait returns the time to the machine's deadline.
func (l *eventLoop) wait() time.Duration {
	deadline := l.machine.Deadline()
	if deadline.IsZero() {
		return never
	}
	return max(time.Until(deadline), 0)
}

// readIdentity returns the identity that a new client would have; false where Options.Identity is not set or fails.
func (l *eventLoop) readIdentity() (string, bool) {
	if l.opts.Identity == nil {
		return "", false
	}
	identity, err := l.opts.Identity()
	return identity, err == nil
}

// tick starts the operation that is due, and publishes that it runs.
func (l *eventLoop) tick(now time.Time) {
	command := l.machine.Tick(now)
	if command.Op != fsm.Nothing {
		l.publish(l.machine.View(now), l.current, now)
	}
	l.startOperation(command)
}

// handle passes an event to the machine, publishes and logs the new state, and starts the operation that the machine
// returns. It reports whether the connection has come up.
func (l *eventLoop) handle(event fsm.Event) (cameUp bool) {
	now := time.Now()
	before := l.machine.View(now)
	command := l.machine.Handle(now, event)
	after := l.machine.View(now)
	l.publish(after, l.current, now)
	l.transitions.transition(now, before, after, l.endpoint())
	l.reportEnded(context.WithoutCancel(l.lifetime), before.Statistics, after)
	l.startOperation(command)
	return after.State.Up() && !before.State.Up()
}

// reportEnded calls ConnectionEnded or OutageEnded if a connection or an outage has ended since the statistics before.
func (l *eventLoop) reportEnded(ctx context.Context, before conntype.Statistics, now fsm.View) {
	after := now.Statistics
	view := l.view.Load()
	ended := Ended{Address: view.address, Namespace: view.namespace}
	if since := before.ConnectedSince; l.opts.ConnectionEnded != nil && !since.IsZero() && after.ConnectedSince.IsZero() {
		ended.Lasted = now.Since.Sub(since)
		l.opts.ConnectionEnded(ctx, ended)
	}
	if l.opts.OutageEnded != nil && after.Connections > before.Connections && after.Outages > 0 {
		ended.Lasted = after.LastOutage
		l.opts.OutageEnded(ctx, ended)
	}
}

// endpoint returns the server of the current client.
func (l *eventLoop) endpoint() endpoint {
	if l.current == nil {
		return endpoint{}
	}
	return endpoint{address: l.current.address, namespace: l.current.namespace, generation: l.current.number}
}

// handleSignals passes the signals that were raised to the machine.
func (l *eventLoop) handleSignals() {
	for _, s := range []struct {
		raised *atomic.Bool
		event  fsm.Event
	}{
		{&l.signals.lost, fsm.Lost{}},
		{&l.signals.ready, fsm.Ready{}},
		{&l.signals.suspected, fsm.Suspected{}},
		{&l.signals.reset, fsm.Reset{}},
	} {
		if s.raised.Swap(false) {
			l.handle(s.event)
		}
	}
	if l.signals.changed.Swap(false) {
		l.stale = l.busy
		if !l.building {
			l.closeCandidate() // it was made with the previous identity
		}
		l.handle(fsm.Changed{})
	}
	if l.signals.workersDue.Swap(false) {
		l.maintainWorkers()
	}
}

// startOperation starts an operation of the machine.
func (l *eventLoop) startOperation(c fsm.Command) {
	if c.Op == fsm.Nothing {
		return
	}
	if c.Op == fsm.Attempt {
		l.transitions.attempt(time.Now(), c)
	}
	target := l.current
	if c.Fresh || target == nil || (c.Op == fsm.Probe && l.candidate != nil) {
		target = l.candidate
	}
	current, number := l.current, l.number+1
	l.busy, l.building = true, c.Op == fsm.Build
	if target == nil && c.Op == fsm.Probe { // no client could be made yet: the last error stands
		l.results <- result{event: fsm.Checked{Kind: l.view.Load().machine.Kind, Err: l.view.Load().machine.LastErr}}
		return
	}
	go func() {
		switch c.Op {
		case fsm.Nothing:
		case fsm.Probe:
			l.results <- l.probe(l.lifetime, target)
		case fsm.Check:
			l.results <- l.check(l.lifetime, target, number)
		case fsm.Attempt:
			l.results <- l.attempt(l.lifetime, current, target, number)
		case fsm.Build:
			l.results <- l.build(l.lifetime, current, target, number)
		}
	}()
}

// finishOperation processes the result of an operation.
func (l *eventLoop) finishOperation(r result) {
	if r.made != nil {
		l.candidate = r.made
	}
	var finish func()
	switch event := r.event.(type) {
	case fsm.Checked:
		if event.Kind == None && r.used != nil {
			l.compareIdentity(r)
		}
		if event.Kind == Hung && r.used != nil && r.used == l.candidate && r.used.client.Connected() {
			l.closeCandidate() // its connection may be dead in a way that a new one is not
		}
	case fsm.Built:
		if event.Err != nil {
			l.abandonBuild(r)
		} else {
			finish = l.swap(r)
		}
	}
	if l.stale {
		l.stale = false
		l.closeCandidate()
	}
	cameUp := l.handle(r.event)
	switch { // only now, since a hook may call Manager.Client, which must return the new client
	case finish != nil:
		l.tasks.Go(finish)
	case cameUp:
		g := l.current
		l.tasks.Go(func() { l.hooks.run(l.lifetime, g.client.SDK(), g.number) })
	}
	if l.current != nil && !l.busy && l.machine.View(time.Now()).State.Up() {
		l.closeCandidate() // the current client recovered first
	}
}

// compareIdentity raises the changed signal if the server behind the current client is not the one that the client was
// made for.
func (l *eventLoop) compareIdentity(r result) {
	switch {
	case r.identity == nil:
	case r.used.identity == nil || r.used.identity.NamespaceID == "": // not determined yet
		r.used.identity = r.identity
	case !r.used.identity.Same(*r.identity) && r.used == l.current:
		l.signals.raise(&l.signals.changed)
	}
}

// abandonBuild ends what a failed build has started. Its workers may have taken tasks, also those whose start has not
// returned yet, so they are drained as those of a replaced generation are, before their client is closed.
func (l *eventLoop) abandonBuild(r result) {
	var started []*workers.Running
	for _, o := range r.outcomes {
		if o.Running != nil {
			started = append(started, o.Running)
		}
		o.Unlock()
	}
	polled := l.candidate != nil && l.candidate == r.used && r.used.client.Polls().Any()
	if len(started) == 0 && !polled {
		l.closeCandidate()
		return
	}
	l.candidate = nil
	l.draining.Add(1)
	l.tasks.Go(func() {
		defer l.draining.Add(-1)
		loop.Sleep(l.lifetime, l.opts.DrainGrace)
		l.stopGeneration(r.used, started)
	})
}

// closeCandidate closes the candidate, if there is one.
func (l *eventLoop) closeCandidate() {
	if l.candidate == nil {
		return
	}
	old := l.candidate
	l.candidate = nil
	l.tasks.Go(old.client.Close)
}

// swap replaces the current generation by one whose workers were started. The function that it returns runs the hooks
// and then drains the previous generation.
func (l *eventLoop) swap(r result) (finish func()) {
	old := l.current
	l.current, l.candidate = r.used, nil
	l.number = r.used.number
	var replaced []*workers.Running
	failed := 0
	for _, o := range r.outcomes {
		switch {
		case o.Err != nil:
			failed++
			o.Set.StartFailed(o.Err, time.Now())
			l.log.Error("Failed to start worker", "worker", o.Set.Name, "generation", l.number, "error", o.Err)
		default:
			before, ok := o.Set.Replace(o.Running)
			if !ok {
				before = o.Running // the set was removed meanwhile
			}
			if before != nil {
				replaced = append(replaced, before)
			}
		}
		o.Unlock()
	}
	if len(r.outcomes) > 0 && failed == 0 {
		message := "All Temporal workers started"
		if old != nil {
			message = "Workers restarted successfully"
		}
		l.log.Info(message, "workers", len(r.outcomes), "generation", l.number)
	}
	l.notPollingSince = time.Time{}
	g := l.current
	l.draining.Add(1)
	return func() {
		defer l.draining.Add(-1)
		l.hooks.run(l.lifetime, g.client.SDK(), g.number)
		l.drain(old, replaced)
	}
}

// shutdown ends the running operation, the candidate, the workers and the current generation.
func (l *eventLoop) shutdown() {
	l.handle(fsm.Close{})
	if l.busy {
		r := <-l.results
		if r.made != nil {
			l.candidate = r.made
		}
		l.abandonBuild(r)
	}
	l.closeCandidate()
	var running []*workers.Running
	for _, set := range l.sets.List() {
		if r := set.Retire(); r != nil {
			running = append(running, r)
		}
	}
	l.drain(l.current, running)
}
