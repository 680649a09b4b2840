package machine

import "time"

const (
	// signPause is the least time from the end of an attempt that a sign of life caused to the next one by the same kind of sign.
	signPause = 500 * time.Millisecond
	// attemptSpread and probeSpread are the largest share that chance adds to a pause, so that many processes do not come together.
	attemptSpread = 0.2
	probeSpread   = 0.1
)

// A sign of life cuts a back-off short. These are its kinds.
const (
	ready   = iota // gRPC has a connection
	changed        // the identity is another
	reset          // an operator says so
	probed         // a light probe was answered
	signKinds
)

// sign is what is remembered of one kind of sign of life.
type sign struct {
	due   time.Time // when the attempt that it asks for is due; zero: it asks for none
	cause bool      // of the attempt that is under way
	ended time.Time // of the last attempt that it caused
}

// retry is what is remembered of reaching Temporal again.
type retry struct {
	outageAt time.Time // when the outage began; zero before the first connection
	number   int64     // of the last attempt of this outage
	total    int64     // attempts since New
	pauses   int       // of this outage's back-off sequence
	pause    time.Duration
	next     time.Time // the attempt by the sequence; still ahead while a sign of life has cut it short
	answered time.Time // when the attempt was whose client is to be built upon
	signs    [signKinds]sign
}

// breaker is what is remembered of failed attempts.
type breaker struct {
	failures int
	open     bool
	openedAt time.Time
}

// planDown plans while connecting or down. A probe that could still be under way when an attempt is due is left out.
func (m *Machine) planDown() (step, time.Time) {
	r := m.retry
	if !r.answered.IsZero() {
		return step{Command{Do: Build, Fresh: true, Number: r.number}, r.answered}, time.Time{}
	}
	at := m.attemptAt()
	attempt := step{Command{Do: Attempt, Number: r.number + 1, Backoff: r.pause}, at}
	if m.nextProbe.Add(m.settings.ProbeEvery).After(at) {
		return attempt, time.Time{}
	}
	return attempt, m.nextProbe
}

// attemptAt is when the next attempt is due: by the back-off sequence, or sooner by a sign of life.
func (m *Machine) attemptAt() time.Time {
	at := m.retry.next
	for _, s := range m.retry.signs {
		at = earliest(at, s.due)
	}
	return at
}

// signalled tells whether a sign of life asks for an attempt.
func (m *Machine) signalled() bool {
	for _, s := range m.retry.signs {
		if !s.due.IsZero() {
			return true
		}
	}
	return false
}

// sign takes a sign of life. While up it is of use only where an operation or a confirmation may yet end in an outage.
func (m *Machine) sign(now time.Time, kind int) {
	if m.up() && m.running.Do == Nothing && m.watch.missedAt.IsZero() {
		return
	}
	s := &m.retry.signs[kind]
	s.due = earliest(s.due, latest(now, s.ended.Add(signPause)))
}

// begin counts an attempt, which answers all signs until now.
func (r *retry) begin() {
	r.number++
	r.total++
	for i := range r.signs {
		s := &r.signs[i]
		s.cause, s.due = !s.due.IsZero(), time.Time{}
	}
}

// forget drops the signs of life that ask for an attempt.
func (r *retry) forget() {
	for i := range r.signs {
		r.signs[i].due = time.Time{}
	}
}

// fall begins an outage.
func (m *Machine) fall(now, outageAt time.Time, kind Kind) {
	m.become(now, Down, kind)
	m.statistics.Outages++
	m.statistics.ConnectedSince = time.Time{}
	m.retry.outageAt = outageAt
	m.pause(now)
}

// pause puts the next attempt off by the next pause of the back-off sequence.
func (m *Machine) pause(now time.Time) {
	r := &m.retry
	r.pause = m.settings.backoff(r.pauses)
	r.pauses++
	r.next = now.Add(r.pause)
}

// attemptAnswered takes an attempt that was answered.
func (m *Machine) attemptAnswered(now time.Time, ended Command, e Checked) {
	m.measure(now, e.Took)
	if ended.Fresh && (!e.Current || m.renewal.wanted() || !m.pollersBore(now)) {
		m.retry.answered = now
		m.retry.signs[ready].due = time.Time{} // the answer is more than that
		return
	}
	if now.Sub(m.retry.outageAt) >= m.settings.RebuildAfter { // it was short when the attempt began
		m.rebuild(now)
	}
	m.connect(now)
}

// goOn ends an outage with the current client, which is answered, though no new one could be had: the old generation serves
// for as long as it can. What it needs is not forgotten.
func (m *Machine) goOn(now time.Time) {
	if !m.pollersBore(now) {
		m.rebuild(now)
	}
	m.connect(now)
	if m.renewal.wanted() {
		m.renewalFailed(now)
	}
}

// pollersBore tells whether the workers of the current client, which is answered again, can go on: their polls have waited for
// the connection, neither refused nor for too long.
func (m *Machine) pollersBore(now time.Time) bool {
	refused := m.kind == NamespaceMissing || m.kind == AuthFailed
	return !refused && now.Sub(m.retry.outageAt) < m.settings.RebuildAfter
}

// failed takes an attempt, or its build, that failed.
func (m *Machine) failed(now time.Time, kind Kind, fresh bool) {
	if kind != None {
		m.become(now, Down, kind)
	}
	m.watch.suspectedAt = time.Time{}
	m.refute(now, kind, fresh)
	b := &m.breaker
	b.failures++
	if b.failures >= m.settings.BreakerAfter {
		if !b.open {
			b.open, b.openedAt = true, now
		}
		m.retry.pause = m.settings.spread(m.settings.BreakerEvery, attemptSpread)
		m.retry.next = now.Add(m.retry.pause)
		return
	}
	if !m.retry.next.After(now) { // else a sign of life came before its time, and the sequence stands
		m.pause(now)
	}
}

// refute weighs the signs of life after an attempt that they caused, or that they came during, has failed.
func (m *Machine) refute(now time.Time, kind Kind, fresh bool) {
	r := &m.retry.signs[ready]
	// A new client has a connection of its own, so every fresh attempt may bring the sign Ready upon itself. Where the server
	// has answered, that says nothing; where it hangs, it is believed once.
	answered := kind == None || kind == NamespaceMissing || kind == AuthFailed
	if answered || fresh && kind == Hung && r.cause {
		r.due = time.Time{}
	}
	for i := range m.retry.signs {
		s := &m.retry.signs[i]
		if !s.cause {
			continue
		}
		s.cause, s.ended = false, now
		if !s.due.IsZero() {
			s.due = latest(s.due, now.Add(signPause))
		}
	}
}

// connect ends an outage, or the first connecting.
func (m *Machine) connect(now time.Time) {
	r, s := &m.retry, &m.statistics
	outageAt := r.outageAt
	*r = retry{total: r.total, signs: r.signs}
	r.forget()
	m.breaker = breaker{}
	m.grade(now)
	if !outageAt.IsZero() {
		s.LastOutage = now.Sub(outageAt)
		s.LongestOutage = max(s.LongestOutage, s.LastOutage)
	}
	s.Connections++
	s.ConnectedSince = now
}

// backoff is the pause after so many pauses before it.
func (s Settings) backoff(pauses int) time.Duration {
	pause := s.BackoffFirst
	for ; pauses > 0 && pause < s.BackoffMost; pauses-- {
		pause = min(pause, s.BackoffMost/2+1) * 2 // cannot overflow
	}
	return s.spread(min(pause, s.BackoffMost), attemptSpread)
}

// probePace is the time from the end of any check to the next probe.
func (m *Machine) probePace() time.Duration {
	return m.settings.spread(m.settings.ProbeEvery, probeSpread)
}

// spread lengthens a pause by chance, by the given share of it at most.
func (s Settings) spread(pause time.Duration, most float64) time.Duration {
	return pause + time.Duration(float64(pause)*most*s.Random())
}
