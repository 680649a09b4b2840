package repair

import "time"

const (
	// allowedFirst bounds a first attempt, so that a long one lets short ones through; allowedMost bounds the later ones.
	allowedFirst = 10 * time.Second
	allowedMost  = 2 * time.Minute
	// Attempts are repeated after backOffFirst and up to backOffMost; after permanentFirst and up to permanentMost where only a
	// deploy, a key or a document helps.
	backOffFirst, backOffMost     = 5 * time.Second, 10 * time.Minute
	permanentFirst, permanentMost = time.Minute, 6 * time.Hour
	// lease is how long a claim lasts that is not extended. A process that is killed, for whatever reason, delays the repairs that it
	// had claimed by that much. After leasesAlike attempts without success, the repair itself may be what ends the processes:
	// the lease is doubled with each further attempt, up to leaseMost, so that it does not end them in a loop.
	lease       = 15 * time.Second
	leaseMost   = 32 * time.Minute
	leasesAlike = 3
	// maxDoublings keeps shifts from overflowing.
	maxDoublings = 20
)

// allowed is how long an attempt, from 1, may take.
func allowed(attempt int) time.Duration { return doubled(allowedFirst, allowedMost, attempt) }

// leaseOf is how long the claim of an attempt, from 1, lasts.
func leaseOf(attempt int) time.Duration { return doubled(lease, leaseMost, attempt-leasesAlike+1) }

// backOff is how long after a failed attempt, from 1, the next one is due.
func backOff(attempt int, permanent bool) time.Duration {
	if permanent {
		return doubled(permanentFirst, permanentMost, attempt)
	}
	return doubled(backOffFirst, backOffMost, attempt)
}

func doubled(first, most time.Duration, attempt int) time.Duration {
	return min(most, first<<min(max(attempt-1, 0), maxDoublings))
}
