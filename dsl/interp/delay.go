package interp

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
)

// retryDelay is the time before the n-th retry: the policy's delay, grown by its back-off, or the least one if it has
// none, or asked if that is longer, plus jitter.
func (m *Machine) retryDelay(f *frame, p *dsl.RetryPolicy, n int, vars map[string]any,
	asked time.Duration) (time.Duration, *dsl.Error) {
	at := f.task.Pointer
	delay := m.leastDelay(n)
	if p.Delay != nil {
		first, failed := m.duration(p.Delay, f.input, vars, at)
		if failed != nil {
			return 0, failed
		}
		delay = grownDelay(first, p.Backoff.Kind, n)
	}
	delay = max(delay, asked)
	if p.Jitter == nil {
		return delay, nil
	}
	from, failed := m.duration(p.Jitter.From, f.input, vars, at)
	if failed != nil {
		return 0, failed
	}
	to, failed := m.duration(p.Jitter.To, f.input, vars, at)
	if failed != nil {
		return 0, failed
	}
	return delay + from + jitterDelay(m.start.RunID, f.path, n, to-from), nil
}

// leastDelay is the time before the n-th retry of a policy that gives no delay: 100 ms, then twice as long each time,
// up to a minute. Without it, a task that always fails would be repeated as fast as the platform can.
func (m *Machine) leastDelay(n int) time.Duration {
	if !m.atLeast(2) {
		return 0
	}
	return min(grownDelay(100*time.Millisecond, dsl.BackoffExponential, n), time.Minute)
}

// grownDelay applies a back-off to the delay before the n-th retry: constant, n times or 2^(n-1) times, up to a year.
func grownDelay(delay time.Duration, kind dsl.BackoffKind, n int) time.Duration {
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

// jitterDelay returns a duration up to span that is distributed like a random one but the same at every replay.
func jitterDelay(runID, path string, n int, span time.Duration) time.Duration {
	if span <= 0 {
		return 0
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d", runID, path, n))
	return time.Duration(binary.BigEndian.Uint64(sum[:8])>>1) % (span + 1) // 63 bits fit
}
