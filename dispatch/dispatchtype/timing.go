// Package dispatchtype has the plain types of package dispatch: durations and supervisor options, what is reported of
// dispatchers and workers, and the changes that a journal receives. It does not import Temporal's SDK, so that a
// package which shows, counts or records dispatchers does not link it.
package dispatchtype

import (
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/lease"
)

// MaxCleanup bounds the time from a crash to the end of what it left behind.
const MaxCleanup = 2 * time.Minute

// Timing has the durations of leases, heartbeats and checks. A zero field gets the default given here.
type Timing struct {
	// TTL is the lifetime of an owner's lease without a renewal; 9 s. Renew is the interval of renewals; 3 s.
	TTL, Renew time.Duration
	// Margin is how long before the end of its lease an owner stops trusting it; 1 s.
	Margin time.Duration
	// Heartbeat is the interval of a process's heartbeats; 5 s. StaleAfter is the time without a heartbeat after which a
	// process counts as dead; 20 s.
	Heartbeat, StaleAfter time.Duration
	// Retention is how long entries stay readable after their leases have ended; 10 min.
	Retention time.Duration
	// Idle is how long a dispatcher without work waits for more before it is parked; 1 min.
	Idle time.Duration
	// CheckEvery is the interval at which a routing dispatcher checks its workers; 30 s.
	CheckEvery time.Duration
}

// WithDefaults returns the timing with defaults in place of zero fields.
func (t Timing) WithDefaults() Timing {
	for _, d := range []struct {
		value *time.Duration
		def   time.Duration
	}{
		{&t.TTL, 9 * time.Second},
		{&t.Renew, 3 * time.Second},
		{&t.Margin, time.Second},
		{&t.Heartbeat, 5 * time.Second},
		{&t.StaleAfter, 20 * time.Second},
		{&t.Retention, 10 * time.Minute},
		{&t.Idle, time.Minute},
		{&t.CheckEvery, 30 * time.Second},
	} {
		if *d.value == 0 {
			*d.value = d.def
		}
	}
	return t
}

// Validate returns all violations of a timing with defaults, joined.
func (t Timing) Validate() error {
	var violations []error
	positive := func(name string, d time.Duration) {
		if d <= 0 {
			violations = append(violations, fmt.Errorf("%s: %s is not positive", name, d))
		}
	}
	positive("ttl", t.TTL)
	positive("renew", t.Renew)
	positive("margin", t.Margin)
	positive("heartbeat", t.Heartbeat)
	positive("stale after", t.StaleAfter)
	positive("retention", t.Retention)
	positive("idle", t.Idle)
	positive("check every", t.CheckEvery)
	less := func(small string, a time.Duration, large string, b time.Duration) {
		if a >= b {
			violations = append(violations, fmt.Errorf("%s %s is not shorter than %s %s", small, a, large, b))
		}
	}
	less("renew", t.Renew, "ttl", t.TTL)
	less("renew and margin", t.Renew+t.Margin, "ttl", t.TTL)
	less("heartbeat", t.Heartbeat, "stale after", t.StaleAfter)
	less("stale after", t.StaleAfter, "retention", t.Retention)
	less("ttl", t.TTL, "retention", t.Retention)
	return errors.Join(violations...)
}

// Owner returns the lifetime of an owner's lease.
func (t Timing) Owner() lease.Lifetime { return lease.Lifetime{TTL: t.TTL, Retention: t.Retention} }

// Worker returns the lifetime of a heartbeat.
func (t Timing) Worker() lease.Lifetime {
	return lease.Lifetime{TTL: t.StaleAfter, Retention: t.Retention}
}

// Supervisor configures the supervisor, which cleans up after crashed processes. A zero field gets the default given
// here.
type Supervisor struct {
	// Interval is the interval of cycles; 1 min.
	Interval time.Duration
	// Confirm is the time between the two readings of a cycle; 2 s. The second reading decides.
	Confirm time.Duration
	// MaxTerminations is the limit of terminations in one cycle; 20. The rest is left to the next cycle.
	MaxTerminations int
	// Rate is the limit of requests to Temporal per second; 20.
	Rate float64
	// LegacyIDs are patterns of the workflow IDs of dispatchers of older programs: {project} and {task_queue} stand for
	// the names, * for any text, and {project} is required. Without patterns, such dispatchers are left alone.
	LegacyIDs []string
}

// WithDefaults returns the options with defaults in place of zero fields.
func (s Supervisor) WithDefaults() Supervisor {
	if s.Interval == 0 {
		s.Interval = time.Minute
	}
	if s.Confirm == 0 {
		s.Confirm = 2 * time.Second
	}
	if s.MaxTerminations == 0 {
		s.MaxTerminations = 20
	}
	if s.Rate == 0 {
		s.Rate = 20
	}
	return s
}

// Validate returns all violations of options with defaults, joined. stale is [Timing.StaleAfter].
func (s Supervisor) Validate(stale time.Duration) error {
	var violations []error
	for name, d := range map[string]time.Duration{"interval": s.Interval, "confirm": s.Confirm} {
		if d <= 0 {
			violations = append(violations, fmt.Errorf("%s: %s is not positive", name, d))
		}
	}
	if s.MaxTerminations < 1 {
		violations = append(violations, fmt.Errorf("max terminations: %d is not positive", s.MaxTerminations))
	}
	if s.Rate <= 0 {
		violations = append(violations, fmt.Errorf("rate: %g is not positive", s.Rate))
	}
	if sum := stale + s.Confirm + s.Interval; sum > MaxCleanup {
		violations = append(violations, fmt.Errorf("stale after %s, confirm %s and interval %s add up to %s: what a crash "+
			"leaves behind must be gone within %s",
			stale, s.Confirm, s.Interval, sum, MaxCleanup))
	}
	return errors.Join(violations...)
}
