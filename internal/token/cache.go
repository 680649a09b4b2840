package token

import (
	"sync"
	"time"

	"github.com/jellydator/ttlcache/v3"
)

const (
	// freshFor is how long an answer of the store is used, and staleFor how long it is used while another caller reads the
	// store again.
	freshFor = time.Second
	staleFor = 2 * time.Second
	// mostKnown bounds the memory.
	mostKnown = 10_000
)

// known is the store's answer for a token.
type known struct {
	token Token
	hash  []byte
	at    time.Time

	mu     sync.Mutex
	used   time.Time // the last use that was, or will be, written
	asking bool
}

// isUsed records a use, and reports whether it is to be written.
func (k *known) isUsed(now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now.Sub(k.used) < usedEvery {
		return false
	}
	k.used = now
	return true
}

// cache holds recently used tokens.
type cache struct {
	mu     sync.Mutex
	tokens *ttlcache.Cache[string, *known]
	// epoch counts calls of forget: what was read from the store before one of them must not be cached after it.
	epoch int64
}

func newCache() *cache {
	return &cache{tokens: ttlcache.New(ttlcache.WithCapacity[string, *known](mostKnown))}
}

// get returns the cached token, nil for none, and whether it may be used. When it is no longer fresh, one caller at a
// time gets false and reads the store, so that the others do not wait.
func (c *cache) get(id string, now time.Time) (*known, bool) {
	cached := c.tokens.Get(id)
	if cached == nil {
		return nil, false
	}
	k := cached.Value()
	age := now.Sub(k.at)
	k.mu.Lock()
	defer k.mu.Unlock()
	if age < freshFor || age < staleFor && k.asking {
		return k, true
	}
	k.asking = true
	return k, false
}

func (c *cache) now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.epoch
}

// put caches an answer of the store, unless forget was called since the epoch, and returns it.
func (c *cache) put(k *known, epoch int64) *known {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.epoch != epoch {
		return k
	}
	if cached := c.tokens.Get(k.token.ID); cached != nil {
		old := cached.Value()
		old.mu.Lock()
		if old.used.After(k.used) {
			k.used = old.used
		}
		old.mu.Unlock()
	}
	c.tokens.Set(k.token.ID, k, ttlcache.NoTTL)
	return k
}

func (c *cache) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	c.tokens.Delete(id)
}
