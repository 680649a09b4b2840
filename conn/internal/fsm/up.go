package fsm

import (
	"time"

	"github.com/signalbox-dev/signalbox/conn/conntype"
)

const (
	// slowThreshold is how many consecutive slow answers make a connection Slow.
	slowThreshold = 3
	// slowCheckDivisor divides ConfirmAfter for the check after a slow answer, which took long enough already.
	slowCheckDivisor = 4
	// suspectInterval is the minimum time between the starts of two checks that failing requests caused. While the
	// connection is Limited, it is Settings.ProbeEvery.
	suspectInterval = 250 * time.Millisecond
)

// health holds what checks and events have reported of a connection that is up.
type health struct {
	missedAt         time.Time // of a failed check that is not confirmed yet
	confirmAt        time.Time // when the confirming check is due
	lostAt           time.Time // when gRPC lost the connection, until a later check is answered
	regainedAt       time.Time // when gRPC had a connection again after lostAt
	suspectedAt      time.Time // when a check that events ask for is due
	suspectStart     time.Time // when the last such check started
	slowAnswers      int       // consecutive slow answers
	requests         Requests  // as last reported
	requestsBadSince time.Time // when requests became late or failing; zero: they are served
	checkedSince     bool      // a check that started after requestsBadSince was answered: the connection is not the cause
}

// limited reports whether the server answers checks but does not serve requests. Late requests say no more than slow
// checks do, so where checks are slow too, they do not count.
func (w health) limited() bool {
	return w.checkedSince && (w.requests.Failing || w.requests.Late && w.slowAnswers == 0)
}

// replacement holds the state of replacing the client.
type replacement struct {
	identity        int // counts the changes
	triedIdentity   int // the identity of the client that was made last
	currentIdentity int // the identity of the client in use
	hasClient       bool
	rebuild         bool // the workers of the client in use back off, or their polls have waited too long
	failures        int  // of builds, while up
	due             time.Time
	failedAt        time.Time
}

// pending reports whether the client in use should be replaced.
func (r replacement) pending() bool { return r.rebuild || r.outdated() }

// outdated reports whether there is no client with the present identity.
func (r replacement) outdated() bool { return !r.hasClient || r.currentIdentity != r.identity }

// planUp is plan while up. The operation that is due first is first, so that frequent suspicions do not starve a build.
func (m *Machine) planUp() (step, time.Time) {
	h := m.health
	if !h.missedAt.IsZero() {
		return step{Command{Op: Check}, h.confirmAt}, time.Time{}
	}
	main, probe := step{Command{Op: Check}, earliest(m.nextCheck, h.suspectedAt)}, m.nextProbe
	if h.slowAnswers > 0 {
		// A light probe may be quick where the check is slow; only an answered check shows that the server is no longer slow.
		main.at, probe = earliest(main.at, probe), time.Time{}
	}
	if m.replacement.pending() && !m.replacement.due.After(main.at) {
		main = step{Command{Op: Build, Fresh: true}, m.replacement.due}
	}
	return main, probe
}

// answered processes an answered check or probe while up.
func (m *Machine) answered(now time.Time, took time.Duration) {
	m.recovered(now)
	m.retry.clearSigns()
	if h := &m.health; !h.requestsBadSince.IsZero() && !m.started.Before(h.requestsBadSince) {
		h.checkedSince = true
	}
	m.recordLatency(now, took)
	m.updateGrade(now)
}

// recovered ends an unconfirmed miss and a lost connection, and requests new workers where that lasted for
// RebuildAfter.
func (m *Machine) recovered(now time.Time) {
	h := &m.health
	var outage time.Duration
	switch {
	case !h.missedAt.IsZero():
		outage = now.Sub(m.outageStart())
	case !h.lostAt.IsZero() && !m.started.Before(h.lostAt):
		// No check failed: gRPC delayed it until there was a connection, and the answer may have been slow after that.
		end := now
		if !h.regainedAt.IsZero() {
			end = h.regainedAt
		}
		outage = end.Sub(h.lostAt)
	}
	h.missedAt = time.Time{}
	if !m.started.Before(h.lostAt) { // an older check says nothing about the loss
		h.lostAt, h.regainedAt = time.Time{}, time.Time{}
	}
	if outage >= m.settings.RebuildAfter {
		m.requestRebuild(now)
	}
}

// outageStart returns when the outage of an unconfirmed miss began.
func (m *Machine) outageStart() time.Time { return earliest(m.health.missedAt, m.health.lostAt) }

// missed processes a failed check while up: the first one is to be confirmed, the second one is an outage.
func (m *Machine) missed(now time.Time, kind conntype.Kind) {
	h := &m.health
	h.suspectedAt = time.Time{} // the confirming check replaces it
	if h.missedAt.IsZero() {
		h.missedAt, h.confirmAt = now, now.Add(m.settings.spread(m.settings.ConfirmAfter, attemptSpread))
		return
	}
	m.goDown(now, m.outageStart(), kind)
	*h = health{suspectStart: h.suspectStart}
}

// recordLatency counts consecutive slow answers, and brings the next check forward while there are some.
func (m *Machine) recordLatency(now time.Time, took time.Duration) {
	if took <= m.settings.SlowAfter {
		m.health.slowAnswers = 0
		return
	}
	m.health.slowAnswers = min(m.health.slowAnswers+1, slowThreshold)
	if m.health.slowAnswers < slowThreshold {
		m.nextProbe = now.Add(m.settings.ConfirmAfter / slowCheckDivisor)
	}
}

// updateGrade chooses between Connected and Degraded.
func (m *Machine) updateGrade(now time.Time) {
	switch {
	case m.health.limited():
		if m.kind != conntype.Limited {
			m.lastErr, m.lastErrAt = m.health.requests.Err, now
		}
		m.setState(now, conntype.Degraded, conntype.Limited)
	case m.health.slowAnswers >= slowThreshold:
		m.setState(now, conntype.Degraded, conntype.Slow)
	case !m.polling:
		m.setState(now, conntype.Degraded, conntype.NotPolling)
	default:
		m.setState(now, conntype.Connected, conntype.None)
	}
}

// connectionLost records when gRPC lost the connection.
func (m *Machine) connectionLost(now time.Time) {
	if h := &m.health; m.up() {
		h.lostAt, h.regainedAt = earliest(h.lostAt, now), time.Time{}
	}
}

// connectionReady records when gRPC had a connection again.
func (m *Machine) connectionReady(now time.Time) {
	if h := &m.health; !h.lostAt.IsZero() && h.regainedAt.IsZero() {
		h.regainedAt = now
	}
}

// requestsReported processes a report on requests. Late or failing requests cause a check, whose result shows whether
// the connection is the cause.
func (m *Machine) requestsReported(now time.Time, e Requests) {
	if !m.up() {
		return
	}
	h := &m.health
	if m.kind == conntype.Limited && e.Failing && !h.requests.Failing {
		m.lastErr, m.lastErrAt = e.Err, now
	}
	h.requests = e
	switch {
	case !e.Late && !e.Failing:
		h.requestsBadSince, h.checkedSince = time.Time{}, false
	case h.requestsBadSince.IsZero():
		h.requestsBadSince = now
		m.requestCheck(now, suspectInterval)
	}
	m.updateGrade(now)
}

// requestCheck schedules a check at once, or an interval after the start of the last such check. While not up it has an
// effect only during an attempt or a build, which may end in state Connected.
func (m *Machine) requestCheck(now time.Time, interval time.Duration) {
	h := &m.health
	connecting := m.operation.Op == Attempt || m.operation.Op == Build
	if !m.up() && !connecting {
		return
	}
	h.suspectedAt = earliest(h.suspectedAt, latest(now, h.suspectStart.Add(interval)))
}

// identityChanged requests a client with the new identity. After a failure it waits for signInterval, since changes may
// come in bursts.
func (m *Machine) identityChanged(now time.Time) {
	m.replacement.identity++
	m.replacement.due = latest(now, m.replacement.failedAt.Add(signInterval))
}

// requestRebuild requests a new client and new workers, because the present ones were affected by an outage.
func (m *Machine) requestRebuild(now time.Time) {
	m.replacement.rebuild, m.replacement.due = true, now
}

// replacementFailed processes a new client that could not be made while the one in use is answered: it is tried again
// later.
func (m *Machine) replacementFailed(now time.Time) {
	r := &m.replacement
	if r.triedIdentity == r.identity { // otherwise a change during the build has set the time already
		r.due = now.Add(m.settings.backoff(r.failures))
	} else {
		r.due = latest(r.due, now.Add(signInterval))
	}
	r.failures++
	r.failedAt = now
	m.retry.clearSigns()
}

// clientReplaced processes a build that succeeded. A connection that gRPC lost before was that of the previous client.

func (m *Machine) clientReplaced() {
	r := &m.replacement
	*r = replacement{identity: r.identity, triedIdentity: r.triedIdentity, currentIdentity: r.triedIdentity,
		hasClient: true, due: r.due}
	m.health.lostAt, m.health.regainedAt = time.Time{}, time.Time{}
}
