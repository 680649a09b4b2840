// Package comparison decides when a read of a run compares its row with Temporal, so that reads neither wait for a slow
// Temporal nor add to its load.
//
//	pace := comparison.NewPace()
//	if pace.Begin(id, now) { …; pace.End(now, slow) }
package comparison

import (
	"sync"
	"time"

	"github.com/jellydator/ttlcache/v3"
)

const (
	// every is the minimum interval between two comparisons of a run with Temporal in one process.
	every = 5 * time.Second
	// rest is how long no read compares after Temporal was slow.
	rest = 2 * time.Second
	// atOnce limits concurrent comparisons in one process. A read that gets no slot returns the row uncompared.
	atOnce = 8
	// maxCompared is how many runs are remembered as compared.
	maxCompared = 10_000
)

// Pace remembers when runs were last compared with Temporal. It is safe for concurrent use.
type Pace struct {
	slots chan struct{}
	at    *ttlcache.Cache[string, time.Time]

	mu   sync.Mutex
	slow time.Time
}

// NewPace returns a pace of runs that were never compared.
func NewPace() *Pace {
	return &Pace{slots: make(chan struct{}, atOnce),
		at: ttlcache.New(ttlcache.WithCapacity[string, time.Time](maxCompared))}
}

// Begin reports whether a run is to be compared now; then End must be called.
func (c *Pace) Begin(id string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last := c.at.Get(id); last != nil && now.Sub(last.Value()) < every || now.Sub(c.slow) < rest {
		return false
	}
	select {
	case c.slots <- struct{}{}:
	default:
		return false
	}
	c.at.Set(id, now, ttlcache.NoTTL)
	return true
}

// End ends a comparison. slow reports that Temporal did not answer in time.
func (c *Pace) End(now time.Time, slow bool) {
	<-c.slots
	if slow {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.slow = now
	}
}
