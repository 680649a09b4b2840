package machine

import "time"

const (
	// slowAnswers is how many slow answers running make a connection slow.
	slowAnswers = 3
	// slowHurry is how many times sooner than a confirmation the check after a slow answer is: each takes its time already.
	slowHurry = 4
	// suspectPause is the least time between the starts of two checks that failing requests caused. While it is known that
	// requests fail and checks do not, that is Settings.ProbeEvery.
	suspectPause = 250 * time.Millisecond
)

// watch is what is remembered of a connection that is up.
type watch struct {
	missedAt     time.Time // of a miss that is not confirmed yet
	confirmAt    time.Time // when that is to be confirmed
	lostAt       time.Time // when gRPC lost the connection, until an answer proves it back
	regainedAt   time.Time // when gRPC had one again after lostAt
	suspectedAt  time.Time // when a check that events ask for is due
	suspectStart time.Time // when the last such check started
	slow         int       // slow answers running
	trouble      Requests  // of others, as last reported
	troubleAt    time.Time // when that began
	confirmed    bool      // a check that began after it was answered: the trouble is not that of the connection
}

// limited reports whether the server is well by its checks and does not serve requests. Late requests mean nothing more where checks are
// slow as well.
func (w watch) limited() bool {
	return w.confirmed && (w.trouble.Failing || w.trouble.Late && w.slow == 0)
}

// renewal is what is known of replacing the client.
type renewal struct {
	identity int // counts the changes
	tried    int // the identity of the client that was made last
	current  int // the identity of the client in use
	exists   bool
	rebuild  bool // the workers of the client in use are deep in their back-off
	failures int  // of builds, while up
	due      time.Time
	failedAt time.Time
}

// wanted tells whether the client in use should be replaced.
func (r renewal) wanted() bool { return r.rebuild || r.outdated() }

// outdated tells whether there is no client with today's identity.
func (r renewal) outdated() bool { return !r.exists || r.current != r.identity }

// planUp plans while up. What is due first goes first, so that a storm of suspicions does not starve a build.
func (m *Machine) planUp() (step, time.Time) {
	w := m.watch
	if !w.missedAt.IsZero() {
		return step{Command{Do: Check}, w.confirmAt}, time.Time{}
	}
	main, probe := step{Command{Do: Check}, earliest(m.nextCheck, w.suspectedAt)}, m.nextProbe
	if w.slow > 0 {
		// A light probe may be quick where the check is slow; only the check can tell that slowness is over.
		main.at, probe = earliest(main.at, probe), time.Time{}
	}
	if m.renewal.wanted() && !m.renewal.due.After(main.at) {
		main = step{Command{Do: Build, Fresh: true}, m.renewal.due}
	}
	return main, probe
}

// answered takes an answer while up.
func (m *Machine) answered(now time.Time, took time.Duration) {
	m.recovered(now)
	m.retry.forget()
	if w := &m.watch; !w.troubleAt.IsZero() && !m.started.Before(w.troubleAt) {
		w.confirmed = true
	}
	m.measure(now, took)
	m.grade(now)
}

// recovered ends what an answer ends, and wants new workers where it had lasted.
func (m *Machine) recovered(now time.Time) {
	w := &m.watch
	var outage time.Duration
	switch {
	case !w.missedAt.IsZero():
		outage = now.Sub(m.outageStart())
	case !w.lostAt.IsZero() && !m.started.Before(w.lostAt):
		// No check failed: gRPC held it back until there was a connection, and may have waited for a slow answer after that.
		end := now
		if !w.regainedAt.IsZero() {
			end = w.regainedAt
		}
		outage = end.Sub(w.lostAt)
	}
	w.missedAt = time.Time{}
	if !m.started.Before(w.lostAt) { // an older check knows nothing of the loss
		w.lostAt, w.regainedAt = time.Time{}, time.Time{}
	}
	if outage >= m.settings.RebuildAfter {
		m.rebuild(now)
	}
}

// outageStart is when the outage of an unconfirmed miss began.
func (m *Machine) outageStart() time.Time { return earliest(m.watch.missedAt, m.watch.lostAt) }

// missed takes a miss while up: the first one is to be confirmed, the second one is an outage.
func (m *Machine) missed(now time.Time, kind Kind) {
	w := &m.watch
	w.suspectedAt = time.Time{} // the confirmation answers it
	if w.missedAt.IsZero() {
		w.missedAt, w.confirmAt = now, now.Add(m.settings.spread(m.settings.ConfirmAfter, attemptSpread))
		return
	}
	m.fall(now, m.outageStart(), kind)
	*w = watch{suspectStart: w.suspectStart}
}

// measure takes the time that an answer took.
func (m *Machine) measure(now time.Time, took time.Duration) {
	if took <= m.settings.SlowAfter {
		m.watch.slow = 0
		return
	}
	m.watch.slow = min(m.watch.slow+1, slowAnswers)
	if m.watch.slow < slowAnswers {
		m.nextProbe = now.Add(m.settings.ConfirmAfter / slowHurry)
	}
}

// grade chooses between Connected and Degraded.
func (m *Machine) grade(now time.Time) {
	switch {
	case m.watch.limited():
		if m.kind != Limited {
			m.lastErr, m.lastErrAt = m.watch.trouble.Err, now
		}
		m.become(now, Degraded, Limited)
	case m.watch.slow >= slowAnswers:
		m.become(now, Degraded, Slow)
	case !m.polling:
		m.become(now, Degraded, NotPolling)
	default:
		m.become(now, Connected, None)
	}
}

// lost notes when gRPC lost the connection.
func (m *Machine) lost(now time.Time) {
	if w := &m.watch; m.up() {
		w.lostAt, w.regainedAt = earliest(w.lostAt, now), time.Time{}
	}
}

// regained notes when gRPC had a connection again.
func (m *Machine) regained(now time.Time) {
	if w := &m.watch; !w.lostAt.IsZero() && w.regainedAt.IsZero() {
		w.regainedAt = now
	}
}

// requests takes how the requests of others are served. Trouble asks for a check, whose answer or miss says whether it is the connection's.
func (m *Machine) requests(now time.Time, e Requests) {
	if !m.up() {
		return
	}
	w := &m.watch
	if m.kind == Limited && e.Failing && !w.trouble.Failing {
		m.lastErr, m.lastErrAt = e.Err, now
	}
	w.trouble = e
	switch {
	case !e.Late && !e.Failing:
		w.troubleAt, w.confirmed = time.Time{}, false
	case w.troubleAt.IsZero():
		w.troubleAt = now
		m.suspect(now, suspectPause)
	}
	m.grade(now)
}

// suspect wants a check at once, or a pause after the last such check. While down only what happens during an attempt, which may end it, is
// of interest.
func (m *Machine) suspect(now time.Time, pause time.Duration) {
	w := &m.watch
	connecting := m.running.Do == Attempt || m.running.Do == Build
	if !m.up() && !connecting {
		return
	}
	w.suspectedAt = earliest(w.suspectedAt, latest(now, w.suspectStart.Add(pause)))
}

// changed wants a client with another identity. After a failure it waits a little, as changes may come in storms.
func (m *Machine) changed(now time.Time) {
	m.renewal.identity++
	m.renewal.due = latest(now, m.renewal.failedAt.Add(signPause))
}

// rebuild wants a new client and its workers in the place of those that sat through an outage.
func (m *Machine) rebuild(now time.Time) {
	m.renewal.rebuild, m.renewal.due = true, now
}

// renewalFailed takes a new client that could not be had while the one in use is well: it is tried again later.
func (m *Machine) renewalFailed(now time.Time) {
	r := &m.renewal
	if r.tried == r.identity { // else a change during the build has set the time already
		r.due = now.Add(m.settings.backoff(r.failures))
	} else {
		r.due = latest(r.due, now.Add(signPause))
	}
	r.failures++
	r.failedAt = now
	m.retry.forget()
}

// renewed takes a build that succeeded. What gRPC lost before was another client's connection.
func (m *Machine) renewed() {
	r := &m.renewal
	*r = renewal{identity: r.identity, tried: r.tried, current: r.tried, exists: true, due: r.due}
	m.watch.lostAt, m.watch.regainedAt = time.Time{}, time.Time{}
}
