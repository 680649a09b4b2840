// Package machine decides for a connection manager: what state the connection is in, and what to do next and when.
//
// It is pure: it reads no clock, starts nothing and waits for nothing. The manager owns a Machine from one goroutine, tells it
// what happened, does what it is asked for, and reports how that ended:
//
//	m := machine.New(settings, time.Now())
//	for {
//		select {
//		case <-timerAt(m.Deadline()): do(m.Tick(time.Now()))
//		case e := <-events:           do(m.On(time.Now(), e))
//		}
//	}
//
// One operation is under way at a time. Until its end is reported the machine asks for nothing, wants no tick, and remembers
// what events ask for. After a call that returned Nothing, and with nothing under way, Deadline lies after the call's time.
//
// While up, a miss is confirmed before the connection counts as down. An outage ends with a Build where the current client
// cannot go on: its connection is dead, its pollers were refused and are in their back-off, or have waited for too long. Where no
// new client is to be had, the current one goes on all the same as soon as it is answered, and its replacement is tried again
// at a pace of its own. While down, attempts back off, a sign of life cuts the back-off short, and after many failures a breaker
// slows them. Probes go on all the while, but never where one would delay an attempt: that holds as long as the manager bounds
// a probe by Settings.ProbeEvery.
//
// It does not classify errors, knows no client, and bounds no operation: an operation that never ends stops the machine.
package machine

import "time"

// Machine is the state of one connection. It is not safe for concurrent use.
type Machine struct {
	settings Settings
	state    State
	kind     Kind
	since    time.Time

	lastErr   error
	lastErrAt time.Time
	latency   time.Duration
	polling   bool

	running   Command // what is under way, if anything
	started   time.Time
	nextCheck time.Time
	nextProbe time.Time

	watch   watch
	retry   retry
	breaker breaker
	renewal renewal

	statistics Statistics
	counted    time.Time // statistics hold the time until then
}

// New makes a machine that is Connecting. Its first Tick asks for the first attempt.
func New(s Settings, now time.Time) *Machine {
	return &Machine{settings: s, state: Connecting, since: now, polling: true, nextProbe: now.Add(s.ProbeEvery), retry: retry{next: now}, counted: now}
}

// On tells the machine what happened and returns what is due then. The end of an operation that is not under way is ignored.
func (m *Machine) On(now time.Time, e Event) Command {
	if m.state == Closed {
		return Command{}
	}
	switch e := e.(type) {
	case Checked:
		m.checked(now, e)
	case Built:
		m.built(now, e)
	case Ready:
		m.regained(now)
		m.sign(now, ready)
	case Lost:
		m.lost(now)
		m.suspect(now, suspectPause)
	case Suspected:
		pause := suspectPause
		if m.watch.limited() { // what fails is known, and each check is one request more
			pause = m.settings.ProbeEvery
		}
		m.suspect(now, pause)
	case Changed:
		m.changed(now)
		m.sign(now, changed)
	case Polling:
		m.polling = e.OK
		if m.up() {
			m.grade(now)
		}
	case Requests:
		m.requests(now, e)
	case Reset:
		if !m.breaker.open {
			m.breaker.failures = 0
		}
		m.sign(now, reset)
	case Close:
		m.become(now, Closed, None)
		m.statistics.ConnectedSince = time.Time{}
	}
	return m.Tick(now)
}

// Tick returns what is due.
func (m *Machine) Tick(now time.Time) Command {
	if m.busy() {
		return Command{}
	}
	main, probe := m.plan()
	if !main.at.After(now) {
		return m.begin(now, main.do)
	}
	if !probe.IsZero() && !probe.After(now) {
		return m.begin(now, Command{Do: Probe})
	}
	return Command{}
}

// Deadline is when Tick is wanted next. It is zero while an operation is under way, whose end comes first, and once closed.
func (m *Machine) Deadline() time.Time {
	if m.busy() {
		return time.Time{}
	}
	main, probe := m.plan()
	return earliest(main.at, probe)
}

// View says what is known at the given time.
func (m *Machine) View(now time.Time) View {
	v := View{
		State: m.state, Kind: m.kind, Since: m.since,
		LastErr: m.lastErr, LastErrAt: m.lastErrAt, Latency: m.latency,
		Attempts: m.retry.total, Statistics: m.count(now),
	}
	trying := m.running.Do == Attempt || m.running.Do == Build
	if !m.up() && m.state != Closed && !trying {
		v.NextAttempt = latest(m.attemptAt(), now)
	}
	v.Breaker = Breaker{State: BreakerClosed, Failures: m.breaker.failures, OpenedAt: m.breaker.openedAt}
	if m.breaker.open {
		v.Breaker.NextProbe = v.NextAttempt
		v.Breaker.State = BreakerOpen
		if trying || m.signalled() {
			v.Breaker.State = BreakerHalfOpen
		}
	}
	return v
}

// step is an operation and when it is due.
type step struct {
	do Command
	at time.Time
}

// plan says what is due first, and when a light probe is (zero: not before that).
func (m *Machine) plan() (main step, probe time.Time) {
	if m.up() {
		return m.planUp()
	}
	return m.planDown()
}

// begin starts an operation, which answers what was remembered until now.
func (m *Machine) begin(now time.Time, do Command) Command {
	if do.Do == Attempt {
		do.Fresh = m.renewal.outdated() || now.Sub(m.retry.outageAt) >= m.settings.FreshAfter
	}
	m.running, m.started = do, now
	switch do.Do {
	case Check:
		if w := &m.watch; !w.suspectedAt.IsZero() {
			w.suspectedAt, w.suspectStart = time.Time{}, now
		}
		m.retry.signs[ready].due = time.Time{} // older than what the check will tell
	case Attempt:
		m.retry.begin()
	case Build:
		m.retry.answered = time.Time{}
	}
	if do.Fresh && (do.Do == Attempt || m.up()) {
		m.renewal.tried = m.renewal.identity
	}
	return do
}

// checked takes the end of a probe, a check or an attempt.
func (m *Machine) checked(now time.Time, e Checked) {
	ended := m.running
	if ended.Do == Nothing || ended.Do == Build {
		return
	}
	m.running = Command{}
	m.nextProbe = now.Add(m.probePace())
	if ended.Do != Probe {
		m.nextCheck = m.started.Add(m.settings.CheckEvery)
	}
	if e.Kind != None {
		m.lastErr, m.lastErrAt = e.Err, now
	} else if ended.Do != Probe {
		m.latency = e.Took
	}
	switch {
	case m.up() && e.Kind == None:
		m.answered(now, e.Took)
	case m.up():
		m.missed(now, e.Kind)
	case ended.Do == Attempt && e.Kind == None:
		m.attemptAnswered(now, ended, e)
	case ended.Do == Attempt && e.Current:
		m.goOn(now)
	case ended.Do == Attempt:
		m.failed(now, e.Kind, ended.Fresh)
	case e.Kind == None:
		m.sign(now, probed)
	default:
		m.become(now, Down, e.Kind)
	}
}

// built takes the end of a build.
func (m *Machine) built(now time.Time, e Built) {
	if m.running.Do != Build {
		return
	}
	m.running = Command{}
	if e.Err != nil || e.Kind != None {
		m.lastErr, m.lastErrAt = e.Err, now
		switch {
		case m.up():
			m.renewalFailed(now)
			if e.Kind != None {
				m.suspect(now, suspectPause) // the client in use is another one, but its connection may be to blame
			}
		case e.Current:
			m.goOn(now)
		default:
			m.failed(now, e.Kind, true)
		}
		return
	}
	m.renewed()
	if !m.up() {
		m.connect(now)
		return
	}
	m.retry.forget()
}

// busy tells whether nothing can be asked for.
func (m *Machine) busy() bool { return m.running.Do != Nothing || m.state == Closed }

// up tells whether requests may be sent.
func (m *Machine) up() bool { return m.state == Connected || m.state == Degraded }

// become changes state and kind, and what time is counted as.
func (m *Machine) become(now time.Time, s State, k Kind) {
	if m.state == s && m.kind == k {
		return
	}
	m.statistics, m.counted = m.count(now), now
	m.state, m.kind, m.since = s, k, now
}

// count is the statistics at a given time.
func (m *Machine) count(now time.Time) Statistics {
	s := m.statistics
	switch {
	case m.up():
		s.Uptime += now.Sub(m.counted)
	case m.state != Closed:
		s.Downtime += now.Sub(m.counted)
	}
	if began := m.retry.outageAt; m.state == Down && !began.IsZero() {
		s.LastOutage = now.Sub(began)
		s.LongestOutage = max(s.LongestOutage, s.LastOutage)
	}
	return s
}

// earliest is the smaller of two times where zero means never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
