// Package backoff computes the delays between the attempts of a try, the same at every replay.
package backoff

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
)

// Grown applies a back-off to the delay before the n-th retry: constant, n times or 2^(n-1) times, up to a year.
func Grown(delay time.Duration, kind dsl.BackoffKind, n int) time.Duration {
	const year = 365 * 24 * time.Hour
	factor := int64(1)
	switch kind {
	case dsl.BackoffLinear:
		factor = int64(n)
	case dsl.BackoffExponential:
		factor = int64(1) << min(n-1, 40)
	}
	if delay > 0 && factor > int64(year/delay) {
		return max(delay, year)
	}
	return delay * time.Duration(factor)
}

// Jitter returns a duration up to span that is distributed like a random one but the same at every replay.
func Jitter(runID, path string, n int, span time.Duration) time.Duration {
	if span <= 0 {
		return 0
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d", runID, path, n))
	return time.Duration(binary.BigEndian.Uint64(sum[:8])>>1) % (span + 1) // 63 bits fit
}
