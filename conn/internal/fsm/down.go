package fsm

import (
	"time"

	"github.com/signalbox-dev/signalbox/conn/conntype"
	"github.com/signalbox-dev/signalbox/internal/backoff"
)

const (
	// signInterval is the minimum time from the end of an attempt that a sign of life caused to the next one that the same
	// kind causes.
	signInterval = 500 * time.Millisecond
	// attemptSpread and probeSpread are the maximum shares of jitter in a pause, so that many processes do not connect at
	// once.
	attemptSpread = 0.2
	probeSpread   = 0.1
)

// A sign of life ends a back-off early. These are its kinds.
const (
	ready   = iota // gRPC has a connection
	changed        // the identity has changed
	reset          // an operator reset the breaker
	probed         // a light probe was answered
	signKinds
)

// signState is the state of one kind of sign of life.
type signState struct {
	due   time.Time // when the attempt that it asks for is due; zero: it asks for none
	cause bool      // of the attempt that is under way
	ended time.Time // of the last attempt that it caused
}

// retry is the state of connecting again.
type retry struct {
	outageAt time.Time // when the outage began; zero before the first connection
	number   int64     // of the last attempt of this outage
	total    int64     // attempts since New
	backoffs int       // of this outage's back-off sequence
	backoff  time.Duration
	next     time.Time // the attempt by the sequence; still ahead while a sign of life has cut it short
	answered time.Time // when the attempt was whose client is to be built upon
	signs    [signKinds]signState
}

// breaker is the state of the circuit breaker.
type breaker struct {
	failures int
	open     bool
	openedAt time.Time
}

// planDown is plan while connecting or down. A probe that could still run when an attempt is due is omitted.
func (m *Machine) planDown() (step, time.Time) {
	r := m.retry
	if !r.answered.IsZero() {
		return step{Command{Op: Build, Fresh: true, Number: r.number}, r.answered}, time.Time{}
	}
	at := m.attemptAt()
	attempt := step{Command{Op: Attempt, Number: r.number + 1, Backoff: r.backoff}, at}
	if m.nextProbe.Add(m.settings.ProbeEvery).After(at) {
		return attempt, time.Time{}
	}
	return attempt, m.nextProbe
}

// attemptAt returns when the next attempt is due: by the back-off sequence, or earlier by a sign of life.
func (m *Machine) attemptAt() time.Time {
	at := m.retry.next
	for _, s := range m.retry.signs {
		at = earliest(at, s.due)
	}
	return at
}

// signPending reports whether a sign of life asks for an attempt.
func (m *Machine) signPending() bool {
	for _, s := range m.retry.signs {
		if !s.due.IsZero() {
			return true
		}
	}
	return false
}

// signOfLife records a sign of life. While up it matters only where a running operation or a confirmation may still end
// in an outage.
func (m *Machine) signOfLife(now time.Time, kind int) {
	if m.up() && m.operation.Op == Nothing && m.health.missedAt.IsZero() {
		return
	}
	s := &m.retry.signs[kind]
	s.due = earliest(s.due, latest(now, s.ended.Add(signInterval)))
}

// beginAttempt counts an attempt. It satisfies all signs of life so far.
func (r *retry) beginAttempt() {
	r.number++
	r.total++
	for i := range r.signs {
		s := &r.signs[i]
		s.cause, s.due = !s.due.IsZero(), time.Time{}
	}
}

// clearSigns drops the signs of life that ask for an attempt.
func (r *retry) clearSigns() {
	for i := range r.signs {
		r.signs[i].due = time.Time{}
	}
}

// goDown begins an outage with its first sign at outageAt.
func (m *Machine) goDown(now, outageAt time.Time, kind conntype.Kind) {
	m.setState(outageAt, conntype.Down, kind)
	m.statistics.Outages++
	m.statistics.ConnectedSince = time.Time{}
	m.retry.outageAt = outageAt
	m.scheduleRetry(now)
}

// scheduleRetry schedules the next attempt after the next pause of the back-off sequence.
func (m *Machine) scheduleRetry(now time.Time) {
	r := &m.retry
	r.backoff = m.settings.backoff(r.backoffs)
	r.backoffs++
	r.next = now.Add(r.backoff)
}

// attemptAnswered processes an attempt that was answered.
func (m *Machine) attemptAnswered(now time.Time, ended Command, e Checked) {
	m.recordLatency(now, e.Took)
	if ended.Fresh && (!e.CurrentAnswered || m.replacement.pending() || !m.pollersSurvived(now)) {
		m.retry.answered = now
		m.retry.signs[ready].due = time.Time{} // the answer supersedes it
		return
	}
	if now.Sub(m.retry.outageAt) >= m.settings.RebuildAfter { // it was short when the attempt began
		m.requestRebuild(now)
	}
	m.comeUp(now)
}

// keepCurrent ends an outage with the current client, which is answered while no new one could be made: the old
// generation serves for as long as it can. A pending replacement stays pending.
func (m *Machine) keepCurrent(now time.Time) {
	if !m.pollersSurvived(now) {
		m.requestRebuild(now)
	}
	m.comeUp(now)
	if m.replacement.pending() {
		m.replacementFailed(now)
	}
}

// pollersSurvived reports whether the workers of the current client, which is answered again, can be kept: their polls
// have waited for the connection, were not refused, and did not wait for too long.
func (m *Machine) pollersSurvived(now time.Time) bool {
	refused := m.kind == conntype.NamespaceMissing || m.kind == conntype.AuthFailed
	return !refused && now.Sub(m.retry.outageAt) < m.settings.RebuildAfter
}

// attemptFailed processes an attempt that failed, or the failure of its build.
func (m *Machine) attemptFailed(now time.Time, kind conntype.Kind, fresh bool) {
	if kind != conntype.None {
		m.setState(now, conntype.Down, kind)
	}
	m.health.suspectedAt = time.Time{}
	m.expireSigns(now, kind, fresh)
	b := &m.breaker
	b.failures++
	if b.failures >= m.settings.BreakerAfter {
		if !b.open {
			b.open, b.openedAt = true, now
		}
		m.retry.backoff = m.settings.spread(m.settings.BreakerEvery, attemptSpread)
		m.retry.next = now.Add(m.retry.backoff)
		return
	}
	if !m.retry.next.After(now) { // otherwise a sign of life caused this attempt early, and the schedule stays as it is
		m.scheduleRetry(now)
	}
}

// expireSigns drops or delays signs of life after a failed attempt: those that caused it, and those that arrived during
// it.
func (m *Machine) expireSigns(now time.Time, kind conntype.Kind, fresh bool) {
	r := &m.retry.signs[ready]
	// A new client has its own connection, so every fresh attempt may cause a Ready by itself. Where the server has
	// answered, that Ready is dropped. Where the server hangs, it may cause one more attempt, and no third.
	answered := kind == conntype.None || kind == conntype.NamespaceMissing || kind == conntype.AuthFailed
	if answered || fresh && kind == conntype.Hung && r.cause {
		r.due = time.Time{}
	}
	for i := range m.retry.signs {
		s := &m.retry.signs[i]
		if !s.cause {
			continue
		}
		s.cause, s.ended = false, now
		if !s.due.IsZero() {
			s.due = latest(s.due, now.Add(signInterval))
		}
	}
}

// comeUp ends an outage, or state Connecting.
func (m *Machine) comeUp(now time.Time) {
	r, s := &m.retry, &m.statistics
	outageAt := r.outageAt
	*r = retry{total: r.total, signs: r.signs}
	r.clearSigns()
	m.breaker = breaker{}
	m.updateGrade(now)
	if !outageAt.IsZero() {
		s.LastOutage = now.Sub(outageAt)
		s.LongestOutage = max(s.LongestOutage, s.LastOutage)
	}
	s.Connections++
	s.ConnectedSince = now
}

// backoff returns the pause that follows n earlier ones.
func (s Settings) backoff(n int) time.Duration {
	return s.spread(backoff.Delay(s.BackoffFirst, s.BackoffMax, n+1), attemptSpread)
}

// probeInterval returns the time from the end of any check to the next probe.
func (m *Machine) probeInterval() time.Duration {
	return m.settings.spread(m.settings.ProbeEvery, probeSpread)
}

// spread lengthens a pause by a random part of it, at most by the given share.

func (s Settings) spread(pause time.Duration, share float64) time.Duration {
	return pause + time.Duration(float64(pause)*share*s.Random())
}
