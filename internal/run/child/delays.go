package child

import (
	"sync"
	"time"

	"github.com/jellydator/ttlcache/v3"

	"github.com/signalbox-dev/signalbox/internal/backoff"
)

const (
	// longestDelay is the maximum delay before a link is processed again.
	longestDelay = 5 * time.Minute
	// maxDelays bounds the number of runs with a delay.
	maxDelays = 100_000
)

// delays holds the delays of repeated attempts per run. It is local to this process, and affects only how often
// Temporal is called in vain. A delay that ended long ago is removed: its link no longer needs an attempt, or another
// process made it.
type delays struct {
	mu    sync.Mutex
	byRun *ttlcache.Cache[string, delay]
}

type delay struct {
	since, until time.Time
	failures     int
}

func newDelays() *delays {
	return &delays{byRun: ttlcache.New(ttlcache.WithCapacity[string, delay](maxDelays),
		ttlcache.WithDisableTouchOnHit[string, delay]())}
}

// elapsed reports whether the run's delay is over, or there is none.
func (d *delays) elapsed(runID string) bool {
	current := d.byRun.Get(runID)
	return current == nil || !time.Now().Before(current.Value().until)
}

// extend delays the run for twice as long as before.
func (d *delays) extend(runID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	next := delay{since: now}
	if current := d.byRun.Get(runID); current != nil {
		next = current.Value()
	}
	next.failures++
	length := backoff.Delay(scanEvery, longestDelay, next.failures)
	next.until = now.Add(length)
	d.byRun.Set(runID, next, length+longestDelay)
}

// age returns the time since the run's first delay; zero when it has none.
func (d *delays) age(runID string) time.Duration {
	if current := d.byRun.Get(runID); current != nil {
		return time.Since(current.Value().since)
	}
	return 0
}
