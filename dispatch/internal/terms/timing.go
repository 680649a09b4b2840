// Package terms holds the words that a dispatcher shares with whoever embeds it: how long things last, and what is told when
// something changed.
package terms

import (
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/lease"
)

// MostCleanup bounds the time from a crash to the end of what it left behind.
const MostCleanup = 2 * time.Minute

// Timing says how long things last. Zero fields have the defaults given.
type Timing struct {
	// TTL is how long an ownership counts without a renewal; 15 s. It is renewed every Renew; 5 s.
	TTL, Renew time.Duration
	// Margin is how long before its end an owner stops to trust its lease; 1 s.
	Margin time.Duration
	// Heartbeat is the pace of a process's signs of life; 5 s. After StaleAfter without one it counts as gone; 20 s.
	Heartbeat, StaleAfter time.Duration
	// Retention is how long entries stay readable after their leases; 10 min.
	Retention time.Duration
	// Idle is how long a dispatcher looks for more before it is parked; 1 min.
	Idle time.Duration
	// CheckEvery is the pace at which it looks after its workers while it routes; 30 s.
	CheckEvery time.Duration
}

// WithDefaults returns the timing with its defaults in place.
func (t Timing) WithDefaults() Timing {
	for _, d := range []struct {
		value *time.Duration
		def   time.Duration
	}{
		{&t.TTL, 15 * time.Second},
		{&t.Renew, 5 * time.Second},
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

// Validate returns what is wrong with a timing whose defaults are in place, all of it.
func (t Timing) Validate() error {
	var problems []error
	positive := func(name string, d time.Duration) {
		if d <= 0 {
			problems = append(problems, fmt.Errorf("%s: %s is not positive", name, d))
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
			problems = append(problems, fmt.Errorf("%s %s is not shorter than %s %s", small, a, large, b))
		}
	}
	less("renew", t.Renew, "ttl", t.TTL)
	less("renew and margin", t.Renew+t.Margin, "ttl", t.TTL)
	less("heartbeat", t.Heartbeat, "stale after", t.StaleAfter)
	less("stale after", t.StaleAfter, "retention", t.Retention)
	less("ttl", t.TTL, "retention", t.Retention)
	return errors.Join(problems...)
}

// Owner are the terms of an ownership, Worker those of a heartbeat.
func (t Timing) Owner() lease.Terms { return lease.Terms{TTL: t.TTL, Retention: t.Retention} }

// Worker are the terms of a heartbeat.
func (t Timing) Worker() lease.Terms {
	return lease.Terms{TTL: t.StaleAfter, Retention: t.Retention}
}

// Supervisor says how a process looks for what others left behind. Zero fields have the defaults given.
type Supervisor struct {
	// Interval is the pace of cycles; 1 min.
	Interval time.Duration
	// Confirm is how long after the first reading the one comes that decides; 2 s.
	Confirm time.Duration
	// MaxTerminations bounds a cycle; 20. The rest is done in the next.
	MaxTerminations int
	// Rate bounds the requests to Temporal, per second; 20.
	Rate float64
	// LegacyIDs are patterns of workflow IDs by which older releases named dispatchers: {project} and {task_queue} stand for
	// the names, * for any text, and {project} is obligatory. None: such dispatchers are left alone.
	LegacyIDs []string
}

// WithDefaults returns the options with their defaults in place.
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

// Validate returns what is wrong with options whose defaults are in place, all of it. stale is after how long a process
// counts as gone.
func (s Supervisor) Validate(stale time.Duration) error {
	var problems []error
	for name, d := range map[string]time.Duration{"interval": s.Interval, "confirm": s.Confirm} {
		if d <= 0 {
			problems = append(problems, fmt.Errorf("%s: %s is not positive", name, d))
		}
	}
	if s.MaxTerminations < 1 {
		problems = append(problems, fmt.Errorf("max terminations: %d is not positive", s.MaxTerminations))
	}
	if s.Rate <= 0 {
		problems = append(problems, fmt.Errorf("rate: %g is not positive", s.Rate))
	}
	if sum := stale + s.Confirm + s.Interval; sum > MostCleanup {
		problems = append(problems, fmt.Errorf("stale after %s, confirm %s and interval %s add up to %s: what a crash leaves behind must be gone within %s",
			stale, s.Confirm, s.Interval, sum, MostCleanup))
	}
	return errors.Join(problems...)
}
