package reconcile

import (
	"time"

	"github.com/signalbox-dev/signalbox/internal/backoff"
)

const (
	// allowedFirst limits a first attempt, so that a long one does not block short ones; allowedMost limits later ones.
	allowedFirst = 10 * time.Second
	allowedMost  = 2 * time.Minute
	// Attempts are repeated after backOffFirst, increasing to backOffMost; after permanentFirst, increasing to
	// permanentMost, where only a deployment, a key or a document helps.
	backOffFirst, backOffMost     = 5 * time.Second, 10 * time.Minute
	permanentFirst, permanentMost = time.Minute, 6 * time.Hour
	// firstLease is how long a claim lasts without an extension. A killed process, for whatever reason, delays the repairs
	// that it had claimed by that time. After leasesAlike unsuccessful attempts, the repair itself may be what crashes
	// the processes: each further attempt doubles the lease, up to leaseMost, so that it does not crash them in a loop.
	firstLease  = 15 * time.Second
	maxLease    = 32 * time.Minute
	leasesAlike = 3
)

// allowed returns how long an attempt, from 1, may take.
func allowed(attempt int) time.Duration { return backoff.Delay(allowedFirst, allowedMost, attempt) }

// leaseOf returns how long the claim of an attempt, from 1, lasts.
func leaseOf(attempt int) time.Duration {
	return backoff.Delay(firstLease, maxLease, max(attempt-leasesAlike+1, 1))
}

// backOff returns how long after a failed attempt, from 1, the next one is due.
func backOff(attempt int, permanent bool) time.Duration {
	if permanent {
		return backoff.Delay(permanentFirst, permanentMost, attempt)
	}
	return backoff.Delay(backOffFirst, backOffMost, attempt)
}
