package conn

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/signalbox-dev/signalbox/conn/internal/diary"
	"github.com/signalbox-dev/signalbox/conn/internal/link"
	"github.com/signalbox-dev/signalbox/conn/internal/machine"
	"github.com/signalbox-dev/signalbox/conn/internal/workerset"
)

const (
	// tendEvery is the pace at which worker sets are looked after.
	tendEvery = time.Second
	// silentFor is how long a worker set may be without polls before it counts as not polling.
	silentFor = 3 * time.Second
	// buildTimeout bounds the starting of all workers of a generation: it takes a tenth of a second where all is well, and
	// nothing else is checked meanwhile.
	buildTimeout = 5 * time.Second
	// never is a wait that something else ends.
	never = time.Hour
)

// loop is the one goroutine that knows the machine. It carries out one operation of the machine at a time, in a goroutine
// of its own, and never waits for one.
type loop struct {
	*Manager

	machine *machine.Machine
	diary   *diary.Diary
	current *generation
	// candidate is the client of the next generation, kept over failed attempts.
	candidate *generation
	number    int
	// results has room for the one operation that is under way.
	results chan result
	busy    bool
	// building tells that the operation under way is a build: workers may run on its client.
	building bool
	// silent is since when a worker set does not poll; zero while all do.
	silent time.Time
	// identity is the last answer of Options.Identity; stale tells that the operation under way began before it.
	identity string
	stale    bool
}

// result is the end of an operation.
type result struct {
	event machine.Event
	// made is a client that the operation made; used is the one that it worked on.
	made, used *generation
	identity   *link.Identity // nil where it was not asked for, or there was no answer
	// outcomes are the workers that a build has started, or tried to.
	outcomes []workerset.Started
}

func newLoop(m *Manager) *loop {
	return &loop{
		Manager: m, machine: machine.New(m.opts.settings(rand.Float64), time.Now()), results: make(chan result, 1),
		diary: diary.New(m.log),
	}
}

func (l *loop) run(ctx context.Context) {
	l.log.Info("Starting Temporal health monitor", "address", l.opts.Client.HostPort, "namespace", l.opts.Client.Namespace,
		"check_every", l.opts.CheckEvery.String(), "probe_every", l.opts.ProbeEvery.String())
	tend := time.NewTicker(tendEvery)
	defer tend.Stop()
	watch := time.NewTicker(l.opts.ProbeEvery)
	defer watch.Stop()
	due := time.NewTimer(0)
	defer due.Stop()
	l.identity, _ = l.ask() // a first failure is met again by the first attempt
	for {
		select {
		case <-ctx.Done():
			l.shut() //nolint:contextcheck // what it drains has the time that Stop gives, which ctx has not
			return
		case r := <-l.results:
			l.busy, l.building = false, false
			l.settle(r) //nolint:contextcheck // hooks have the life of the manager
		case <-l.signals.Woken:
			l.heed() //nolint:contextcheck // what hears of a connection's end has the life of the manager
		case <-tend.C:
			l.tend() //nolint:contextcheck // as above
		case <-watch.C:
			if text, ok := l.ask(); ok && text != l.identity {
				l.identity = text
				l.signals.Raise(&l.signals.Changed)
			}
		case <-due.C:
			l.tick(time.Now())
		}
		due.Reset(l.wait())
	}
}

// wait is the time to the machine's deadline.
func (l *loop) wait() time.Duration {
	deadline := l.machine.Deadline()
	if deadline.IsZero() {
		return never
	}
	return max(time.Until(deadline), 0)
}

// ask returns the identity that a new client would have.
func (l *loop) ask() (string, bool) {
	if l.opts.Identity == nil {
		return "", false
	}
	text, err := l.opts.Identity()
	return text, err == nil
}

// tick does what is due, and lets everybody know that it is under way.
func (l *loop) tick(now time.Time) {
	command := l.machine.Tick(now)
	if command.Do != machine.Nothing {
		l.publish(l.machine.View(now), l.current, now)
	}
	l.do(command)
}

// tell gives the machine an event, lets everybody know what came of it, and does what it asks for. It tells whether the
// connection has come up by it.
func (l *loop) tell(event machine.Event) (cameUp bool) {
	now := time.Now()
	before := l.machine.View(now)
	command := l.machine.On(now, event)
	after := l.machine.View(now)
	l.publish(after, l.current, now)
	l.diary.Note(now, before, after, l.place())
	l.report(context.WithoutCancel(l.life), now, before.Statistics, after.Statistics)
	l.do(command)
	return up(after.State) && !up(before.State)
}

// report passes on the connection or the outage that has ended between two statistics.
func (l *loop) report(ctx context.Context, now time.Time, before, after Statistics) {
	view := l.view.Load()
	ended := Ended{Address: view.address, Namespace: view.namespace}
	if since := before.ConnectedSince; l.opts.ConnectionEnded != nil && !since.IsZero() && after.ConnectedSince.IsZero() {
		ended.Lasted = now.Sub(since)
		l.opts.ConnectionEnded(ctx, ended)
	}
	if l.opts.OutageEnded != nil && after.Connections > before.Connections && after.Outages > 0 {
		ended.Lasted = after.LastOutage
		l.opts.OutageEnded(ctx, ended)
	}
}

// up tells whether requests may be sent.
func up(s State) bool { return s == Connected || s == Degraded }

// place is where the current client leads.
func (l *loop) place() diary.Place {
	if l.current == nil {
		return diary.Place{}
	}
	return diary.Place{Address: l.current.address, Namespace: l.current.namespace, Generation: l.current.number}
}

// heed gives the machine the signals that were raised.
func (l *loop) heed() {
	for _, s := range []struct {
		raised *atomic.Bool
		event  machine.Event
	}{
		{&l.signals.Lost, machine.Lost{}},
		{&l.signals.Ready, machine.Ready{}},
		{&l.signals.Suspected, machine.Suspected{}},
		{&l.signals.Reset, machine.Reset{}},
	} {
		if s.raised.Swap(false) {
			l.tell(s.event)
		}
	}
	if l.signals.Changed.Swap(false) {
		l.stale = l.busy
		if !l.building {
			l.discard() // it was made with what has changed
		}
		l.tell(machine.Changed{})
	}
	if l.signals.Tend.Swap(false) {
		l.tend()
	}
}

// do begins an operation.
func (l *loop) do(c machine.Command) {
	if c.Do == machine.Nothing {
		return
	}
	if c.Do == machine.Attempt {
		l.diary.Attempt(time.Now(), c)
	}
	target := l.current
	if c.Fresh || target == nil || (c.Do == machine.Probe && l.candidate != nil) {
		target = l.candidate
	}
	current, number := l.current, l.number+1
	l.busy, l.building = true, c.Do == machine.Build
	if target == nil && c.Do == machine.Probe { // no client could be made yet: nothing new is known
		l.results <- result{event: machine.Checked{Kind: l.view.Load().machine.Kind, Err: l.view.Load().machine.LastErr}}
		return
	}
	go func() {
		switch c.Do {
		case machine.Nothing:
		case machine.Probe:
			l.results <- l.probe(l.life, target)
		case machine.Check:
			l.results <- l.check(l.life, target, number)
		case machine.Attempt:
			l.results <- l.attempt(l.life, current, target, number)
		case machine.Build:
			l.results <- l.build(l.life, current, target, number)
		}
	}()
}

// settle takes in the end of an operation.
func (l *loop) settle(r result) {
	if r.made != nil {
		l.candidate = r.made
	}
	var finish func()
	switch event := r.event.(type) {
	case machine.Checked:
		if event.Kind == machine.None && r.used != nil {
			l.compare(r)
		}
		if event.Kind == machine.Hung && r.used != nil && r.used == l.candidate && r.used.link.Connected() {
			l.discard() // its connection may be dead in a way that a new one is not
		}
	case machine.Built:
		if event.Err != nil {
			l.abandon(r)
		} else {
			finish = l.swap(r)
		}
	}
	if l.stale {
		l.stale = false
		l.discard()
	}
	cameUp := l.tell(r.event)
	switch { // now that everybody gets the client: a hook may ask for it
	case finish != nil:
		l.joined.Go(finish)
	case cameUp:
		g := l.current
		l.joined.Go(func() { l.hooks.Tell(l.life, g.link.Client(), g.number) })
	}
	if l.current != nil && !l.busy && up(l.machine.View(time.Now()).State) {
		l.discard() // the current client recovered first
	}
}

// compare notices that the server behind a client is not the one that the client was made for.
func (l *loop) compare(r result) {
	switch {
	case r.identity == nil:
	case r.used.identity == nil || r.used.identity.NamespaceID == "": // not known yet
		r.used.identity = r.identity
	case !r.used.identity.Same(*r.identity) && r.used == l.current:
		l.signals.Raise(&l.signals.Changed)
	}
}

// abandon ends what an operation has begun that comes to nothing. Workers that a build has started may have taken tasks: they
// finish those, as the workers of a generation do that is replaced, before their client is closed.
func (l *loop) abandon(r result) {
	var workers []*workerset.Running
	for _, o := range r.outcomes {
		if o.Running != nil {
			workers = append(workers, o.Running)
		}
		o.Give()
	}
	if len(workers) == 0 {
		l.discard()
		return
	}
	l.candidate = nil
	l.draining.Add(1)
	l.joined.Go(func() {
		defer l.draining.Add(-1)
		pause(l.life, l.opts.DrainGrace)
		l.finish(r.used, workers)
	})
}

// discard closes the candidate.
func (l *loop) discard() {
	if l.candidate == nil {
		return
	}
	old := l.candidate
	l.candidate = nil
	l.joined.Go(old.link.Close)
}

// swap puts a generation whose workers were started in the place of the current one. What it returns lets the hooks know and
// the one before come to its end.
func (l *loop) swap(r result) (finish func()) {
	old := l.current
	l.current, l.candidate = r.used, nil
	l.number = r.used.number
	var replaced []*workerset.Running
	failed := 0
	for _, o := range r.outcomes {
		switch {
		case o.Err != nil:
			failed++
			o.Set.Failed(o.Err, time.Now())
			l.log.Error("Failed to start worker", "worker", o.Set.Name, "generation", l.number, "error", o.Err)
		default:
			before, ok := o.Set.Put(o.Running)
			if !ok {
				before = o.Running // the set was removed meanwhile
			}
			if before != nil {
				replaced = append(replaced, before)
			}
		}
		o.Give()
	}
	if len(r.outcomes) > 0 && failed == 0 {
		message := "All Temporal workers started"
		if old != nil {
			message = "Workers restarted successfully"
		}
		l.log.Info(message, "workers", len(r.outcomes), "generation", l.number)
	}
	l.silent = time.Time{}
	g := l.current
	l.draining.Add(1)
	return func() {
		defer l.draining.Add(-1)
		l.hooks.Tell(l.life, g.link.Client(), g.number)
		l.drain(old, replaced)
	}
}

// shut ends everything: the operation under way, the candidate, the workers, the current generation.
func (l *loop) shut() {
	l.tell(machine.Close{})
	if l.busy {
		r := <-l.results
		if r.made != nil {
			l.candidate = r.made
		}
		l.abandon(r)
	}
	l.discard()
	var workers []*workerset.Running
	for _, one := range l.sets.List() {
		if r := one.Retire(); r != nil {
			workers = append(workers, r)
		}
	}
	l.drain(l.current, workers)
}
