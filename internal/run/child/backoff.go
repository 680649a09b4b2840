package child

import (
	"sync"
	"time"
)

// longestDelay is the maximum delay before a link is processed again.
const longestDelay = 5 * time.Minute

// backoff delays repeated attempts per run; each delay is twice as long as the one before. It is local to this process,
// and affects only how often Temporal is called in vain.
type backoff struct {
	mu     sync.Mutex
	delays map[string]delay
}

type delay struct {
	since, until time.Time
	length       time.Duration
}

// elapsed reports whether the run's delay is over, or there is none.
func (b *backoff) elapsed(runID string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !time.Now().Before(b.delays[runID].until)
}

// extend delays the run for twice as long as before.
func (b *backoff) extend(runID string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.delays[runID]
	if d.since.IsZero() {
		d.since = time.Now()
	}
	d.length = min(max(2*d.length, scanEvery), longestDelay)
	d.until = time.Now().Add(d.length)
	b.delays[runID] = d
}

// age returns the time since the run's first delay; zero when it has none.
func (b *backoff) age(runID string) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d, delayed := b.delays[runID]; delayed {
		return time.Since(d.since)
	}
	return 0
}

// sweep removes delays that ended long ago: their links no longer need an attempt, or another process made it.
func (b *backoff) sweep() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, d := range b.delays {
		if time.Since(d.until) > longestDelay {
			delete(b.delays, id)
		}
	}
}
