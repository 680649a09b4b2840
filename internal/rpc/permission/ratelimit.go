package permission

import (
	"math"
	"time"

	"github.com/jellydator/ttlcache/v3"
	"golang.org/x/time/rate"
)

// most bounds the number of keys.
const most = 20_000

// LimiterOptions configure a limiter.
type LimiterOptions struct {
	// Rate is the allowed rate per second; 0 means unlimited.
	Rate float64
	// Burst is the maximum at once, at least 1.
	Burst int
	Now   func() time.Time
}

// Limiter limits rates per key with token buckets. It is safe for concurrent use.
//
//	calls := permission.NewLimiter(permission.LimiterOptions{Rate: 500, Burst: 1000, Now: time.Now})
//	if wait := calls.Take(actor); wait > 0 { … try again after wait }
//
// Beyond the maximum number of keys, the least recently used one is reset.
type Limiter struct {
	opts    LimiterOptions
	buckets *ttlcache.Cache[string, *rate.Limiter]
}

// NewLimiter returns a limiter.
func NewLimiter(opts LimiterOptions) *Limiter {
	opts.Burst = max(opts.Burst, 1)
	return &Limiter{opts, ttlcache.New(ttlcache.WithCapacity[string, *rate.Limiter](most))}
}

// Take consumes one unit and returns 0, or returns the wait until the next unit.
func (l *Limiter) Take(key string) time.Duration {
	if l.opts.Rate <= 0 {
		return 0
	}
	now := l.opts.Now()
	bucket, _ := l.buckets.GetOrSetFunc(key, func() *rate.Limiter {
		return rate.NewLimiter(rate.Limit(l.opts.Rate), l.opts.Burst)
	})
	if bucket.Value().AllowN(now, 1) {
		return 0
	}
	return l.wait(bucket.Value(), now)
}

// Wait returns what Take would return, without consuming.
func (l *Limiter) Wait(key string) time.Duration {
	bucket := l.buckets.Get(key)
	if bucket == nil {
		return 0
	}
	return l.wait(bucket.Value(), l.opts.Now())
}

// wait does not use reservations: one that is canceled while others are made returns less than it took.
func (l *Limiter) wait(bucket *rate.Limiter, now time.Time) time.Duration {
	missing := max(0, 1-bucket.TokensAt(now))
	return time.Duration(math.Ceil(missing / l.opts.Rate * float64(time.Second)))
}
