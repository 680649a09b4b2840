// Package fsm is the finite state machine of a connection manager. It decides which state the connection is in, which
// operation to run next, and when.
//
// It is pure: it reads no clock, starts no goroutine and does no I/O. The manager owns a Machine from one goroutine,
// passes events to it, runs the operation that each call returns, and passes the result of the operation back as an
// event:
//
//	m := fsm.New(settings, time.Now())
//	for {
//		select {
//		case <-timerAt(m.Deadline()): run(m.Tick(time.Now()))
//		case e := <-events:           run(m.Handle(time.Now(), e))
//		}
//	}
//
// One operation runs at a time. Until its result is passed in, the machine returns no operation, needs no tick, and
// records what events ask for. After a call that returned Nothing while no operation runs, Deadline is later than the
// time of that call.
//
// While the connection is up, one failed check is confirmed by a second check before the state becomes Down. An outage
// ends with a Build where the current client cannot be kept: its connection is dead, its pollers were refused and back
// off, or their polls have waited for too long. Where no new client can be made, the current client is kept as soon as
// the server answers it, and the replacement is retried with a back-off of its own. While down, attempts back off, a
// sign of life ends the back-off early, and after many failures a circuit breaker makes attempts rare. Probes continue
// meanwhile, but none is started that could delay an attempt, provided that the manager limits the duration of a probe
// to Settings.ProbeEvery.
//
// The package does not classify errors, holds no client, and sets no time limit on operations: an operation that never
// ends blocks the machine.
package fsm

import (
	"time"

	"github.com/signalbox-dev/signalbox/conn/conntype"
)

// Machine is the state of one connection. It is not safe for concurrent use.
type Machine struct {
	settings Settings
	state    conntype.State
	kind     conntype.Kind
	since    time.Time

	lastErr   error
	lastErrAt time.Time
	latency   time.Duration
	polling   bool

	operation Command // the running operation; Nothing: none
	started   time.Time
	nextCheck time.Time
	nextProbe time.Time

	health      health
	retry       retry
	breaker     breaker
	replacement replacement

	statistics   conntype.Statistics
	countedUntil time.Time // statistics hold the time until then
}

// New returns a machine in state Connecting. Its first Tick returns the first attempt.
func New(s Settings, now time.Time) *Machine {
	return &Machine{settings: s, state: conntype.Connecting, since: now, polling: true, nextProbe: now.Add(s.ProbeEvery),
		retry: retry{next: now}, countedUntil: now}
}

// Handle processes an event and returns the operation that is due after it. The result of an operation that is not
// running is ignored.
func (m *Machine) Handle(now time.Time, e Event) Command {
	if m.state == conntype.Closed {
		return Command{}
	}
	switch e := e.(type) {
	case Checked:
		m.checked(now, e)
	case Built:
		m.built(now, e)
	case Ready:
		m.connectionReady(now)
		m.signOfLife(now, ready)
	case Lost:
		m.connectionLost(now)
		m.requestCheck(now, suspectInterval)
	case Suspected:
		interval := suspectInterval
		if m.health.limited() { // the cause is established, and each check adds a request to a server that refuses requests
			interval = m.settings.ProbeEvery
		}
		m.requestCheck(now, interval)
	case Changed:
		m.identityChanged(now)
		m.signOfLife(now, changed)
	case Polling:
		m.polling = e.OK
		if m.up() {
			m.updateGrade(now)
		}
	case Requests:
		m.requestsReported(now, e)
	case Reset:
		if !m.breaker.open {
			m.breaker.failures = 0
		}
		m.signOfLife(now, reset)
	case Close:
		m.setState(now, conntype.Closed, conntype.None)
		m.statistics.ConnectedSince = time.Time{}
	}
	return m.Tick(now)
}

// Tick returns the operation that is due.
func (m *Machine) Tick(now time.Time) Command {
	if m.busy() {
		return Command{}
	}
	main, probe := m.plan()
	if !main.at.After(now) {
		return m.begin(now, main.command)
	}
	if !probe.IsZero() && !probe.After(now) {
		return m.begin(now, Command{Op: Probe})
	}
	return Command{}
}

// Deadline returns when to call Tick next. It is zero while an operation runs, and in state Closed.
func (m *Machine) Deadline() time.Time {
	if m.busy() {
		return time.Time{}
	}
	main, probe := m.plan()
	return earliest(main.at, probe)
}

// View returns a snapshot of the machine at the given time.
func (m *Machine) View(now time.Time) View {
	v := View{
		State: m.state, Kind: m.kind, Since: m.since,
		LastErr: m.lastErr, LastErrAt: m.lastErrAt, Latency: m.latency,
		Attempts: m.retry.total, Statistics: m.statisticsAt(now),
	}
	trying := m.operation.Op == Attempt || m.operation.Op == Build
	if !m.up() && m.state != conntype.Closed && !trying {
		v.NextAttempt = latest(m.attemptAt(), now)
	}
	v.Breaker = conntype.Breaker{State: conntype.BreakerClosed, Failures: m.breaker.failures, OpenedAt: m.breaker.openedAt}
	if m.breaker.open {
		v.Breaker.NextProbe = v.NextAttempt
		v.Breaker.State = conntype.BreakerOpen
		if trying || m.signPending() {
			v.Breaker.State = conntype.BreakerHalfOpen
		}
	}
	return v
}

// step is an operation and the time at which it is due.
type step struct {
	command Command
	at      time.Time
}

// plan returns the next operation, and when a probe is due; zero: no probe before that operation.
func (m *Machine) plan() (main step, probe time.Time) {
	if m.up() {
		return m.planUp()
	}
	return m.planDown()
}

// begin records the start of an operation, and drops the recorded requests for checks and attempts that it satisfies.
func (m *Machine) begin(now time.Time, c Command) Command {
	if c.Op == Attempt {
		c.Fresh = m.replacement.outdated() || now.Sub(m.retry.outageAt) >= m.settings.FreshAfter
	}
	m.operation, m.started = c, now
	switch c.Op {
	case Check:
		if h := &m.health; !h.suspectedAt.IsZero() {
			h.suspectedAt, h.suspectStart = time.Time{}, now
		}
		m.retry.signs[ready].due = time.Time{} // the check's result is newer
	case Attempt:
		m.retry.beginAttempt()
	case Build:
		m.retry.answered = time.Time{}
	}
	if c.Fresh && (c.Op == Attempt || m.up()) {
		m.replacement.triedIdentity = m.replacement.identity
	}
	return c
}

// checked processes the result of a probe, a check or an attempt.
func (m *Machine) checked(now time.Time, e Checked) {
	ended := m.operation
	if ended.Op == Nothing || ended.Op == Build {
		return
	}
	m.operation = Command{}
	m.nextProbe = now.Add(m.probeInterval())
	if ended.Op != Probe {
		m.nextCheck = m.started.Add(m.settings.CheckEvery)
	}
	if e.Kind != conntype.None {
		m.lastErr, m.lastErrAt = e.Err, now
	} else if ended.Op != Probe {
		m.latency = e.Took
	}
	switch {
	case m.up() && e.Kind == conntype.None:
		m.answered(now, e.Took)
	case m.up():
		m.missed(now, e.Kind)
	case ended.Op == Attempt && e.Kind == conntype.None:
		m.attemptAnswered(now, ended, e)
	case ended.Op == Attempt && e.CurrentAnswered:
		m.keepCurrent(now)
	case ended.Op == Attempt:
		m.attemptFailed(now, e.Kind, ended.Fresh)
	case e.Kind == conntype.None:
		m.signOfLife(now, probed)
	default:
		m.setState(now, conntype.Down, e.Kind)
	}
}

// built processes the result of a build.
func (m *Machine) built(now time.Time, e Built) {
	if m.operation.Op != Build {
		return
	}
	m.operation = Command{}
	if e.Err != nil || e.Kind != conntype.None {
		m.lastErr, m.lastErrAt = e.Err, now
		switch {
		case m.up():
			m.replacementFailed(now)
			if e.Kind != conntype.None {
				m.requestCheck(now, suspectInterval) // the build used another client, but the current one may fail in the same way
			}
		case e.CurrentAnswered:
			m.keepCurrent(now)
		default:
			m.attemptFailed(now, e.Kind, true)
		}
		return
	}
	m.clientReplaced()
	if !m.up() {
		m.comeUp(now)
		return
	}
	m.retry.clearSigns()
}

// busy reports whether the machine may return no operation: one is running, or the machine is closed.
func (m *Machine) busy() bool { return m.operation.Op != Nothing || m.state == conntype.Closed }

// up reports whether requests may be sent.
func (m *Machine) up() bool { return m.state.Up() }

// setState changes state and kind at a time that may be past, since an outage begins with its first sign. Time before
// it counts for the previous state. A change of kind while down does not change the begin of the outage.
func (m *Machine) setState(at time.Time, s conntype.State, k conntype.Kind) {
	if m.state == s && m.kind == k {
		return
	}
	m.statistics, m.countedUntil = m.statisticsAt(at), at
	if m.state != conntype.Down || s != conntype.Down {
		m.since = at
	}
	m.state, m.kind = s, k
}

// statisticsAt returns the statistics at the given time.
func (m *Machine) statisticsAt(now time.Time) conntype.Statistics {
	s := m.statistics
	switch {
	case m.up():
		s.Uptime += now.Sub(m.countedUntil)
	case m.state != conntype.Closed:
		s.Downtime += now.Sub(m.countedUntil)
	}
	if began := m.retry.outageAt; m.state == conntype.Down && !began.IsZero() {
		s.LastOutage = now.Sub(began)
		s.LongestOutage = max(s.LongestOutage, s.LastOutage)
	}
	return s
}

// earliest returns the earlier of two times, where zero means never.
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
