package read

import (
	"sync"
	"time"

	"github.com/jellydator/ttlcache/v3"
)

const (
	// compareEvery is the minimum interval between two comparisons of a run with Temporal in one process.
	compareEvery = 5 * time.Second
	// compareRest is how long no read compares after Temporal was slow.
	compareRest = 2 * time.Second
	// maxComparing limits concurrent comparisons in one process. A read that gets no slot returns the row uncompared.
	maxComparing = 8
	// maxCompared is how many runs are remembered as compared.
	maxCompared = 10_000
)

// comparisonPace decides when a read of a run compares its row with Temporal, so that reads neither wait for a slow
// Temporal nor add to its load. It remembers when runs were last compared, and is safe for concurrent use.
type comparisonPace struct {
	slots chan struct{}
	at    *ttlcache.Cache[string, time.Time]

	mu   sync.Mutex
	slow time.Time
}

// newComparisonPace returns a pace of runs that were never compared.
func newComparisonPace() *comparisonPace {
	return &comparisonPace{slots: make(chan struct{}, maxComparing),
		at: ttlcache.New(ttlcache.WithCapacity[string, time.Time](maxCompared))}
}

// Begin reports whether a run is to be compared now; then End must be called.
func (c *comparisonPace) Begin(id string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last := c.at.Get(id); last != nil && now.Sub(last.Value()) < compareEvery || now.Sub(c.slow) < compareRest {
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
func (c *comparisonPace) End(now time.Time, slow bool) {
	<-c.slots
	if slow {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.slow = now
	}
}
