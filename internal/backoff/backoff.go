// Package backoff computes the delays between attempts that fail: each is twice as long as the one before, up to a
// longest one.
package backoff

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// Delay returns the delay after a number of consecutive failures: first after one, doubled by each further one, at most
// the longest. It is zero without failures.
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

// RetryAfter returns the delay that a Retry-After header asks for, in seconds or as a date, up to a longest one. It is
// zero for a header that is absent, not valid or in the past.
func RetryAfter(header string, now time.Time, longest time.Duration) time.Duration {
	if seconds, err := strconv.ParseInt(header, 10, 64); err == nil {
		if seconds > int64(longest/time.Second) {
			return longest
		}
		return max(time.Duration(seconds)*time.Second, 0)
	}
	if at, err := http.ParseTime(header); err == nil {
		return min(max(at.Sub(now), 0), longest)
	}
	return 0
}

// Jitter returns a random duration between half of d and d, so that attempts that failed together are not repeated
// together.
func Jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d/2+1) //nolint:gosec // spreads load, guards nothing
}
