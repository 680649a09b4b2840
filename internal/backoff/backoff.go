// Package backoff computes the delays between attempts that fail: each is twice as long as the one before, up to a longest one.
package backoff

import (
	"math/rand/v2"
	"time"
)

// Delay returns the delay after a number of consecutive failures: first after one, doubled by each further one, at most the longest. It
// is zero without failures.
func Delay(first, longest time.Duration, failures int) time.Duration {
	if failures <= 0 {
		return 0
	}
	delay := min(first, longest)
	for ; failures > 1 && delay < longest; failures-- {
		delay += min(delay, longest-delay)
	}
	return delay
}

// Jitter returns a random duration between half of d and d, so that attempts that failed together are not repeated together.
func Jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d/2+1) //nolint:gosec // spreads load, guards nothing
}
