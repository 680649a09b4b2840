// This file limits rates per key with token buckets.
//
//	calls := permission.NewLimiter(permission.LimiterOptions{Rate: 500, Burst: 1000, Now: time.Now})
//	if wait := calls.Take(actor); wait > 0 { … try again after wait }
//
// Full buckets are dropped. Over the maximum number of keys the oldest half is dropped, which resets those keys.

package permission

import (
	"math"
	"slices"
	"sync"
	"time"
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

// Limiter is safe for concurrent use.
type Limiter struct {
	opts LimiterOptions

	mu      sync.Mutex
	buckets map[string]bucket
}

// bucket is the remaining allowance at a time.
type bucket struct {
	left float64
	at   time.Time
}

// NewLimiter returns a limiter.
func NewLimiter(opts LimiterOptions) *Limiter {
	opts.Burst = max(opts.Burst, 1)
	return &Limiter{opts: opts, buckets: map[string]bucket{}}
}

// Take consumes one unit and returns 0, or returns the wait until the next unit.
func (l *Limiter) Take(key string) time.Duration {
	if l.opts.Rate <= 0 {
		return 0
	}
	now := l.opts.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.at(key, now)
	wait := l.wait(b)
	if wait == 0 {
		b.left--
	}
	if _, known := l.buckets[key]; !known && len(l.buckets) >= most {
		l.forget(now)
	}
	l.buckets[key] = b
	return wait
}

// Wait returns what Take would return, without consuming.
func (l *Limiter) Wait(key string) time.Duration {
	if l.opts.Rate <= 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wait(l.at(key, l.opts.Now()))
}

// at returns the current bucket of a key.
func (l *Limiter) at(key string, now time.Time) bucket {
	b, ok := l.buckets[key]
	if !ok {
		return bucket{float64(l.opts.Burst), now}
	}
	filled := b.left + max(0, now.Sub(b.at).Seconds())*l.opts.Rate
	return bucket{min(filled, float64(l.opts.Burst)), now}
}

func (l *Limiter) wait(b bucket) time.Duration {
	if b.left >= 1 {
		return 0
	}
	return time.Duration(math.Ceil((1 - b.left) / l.opts.Rate * float64(time.Second)))
}

// forget drops the full buckets and, if that is not enough, the older half of the others.
func (l *Limiter) forget(now time.Time) {
	var times []time.Time
	for key, b := range l.buckets {
		if l.at(key, now).left >= float64(l.opts.Burst) {
			delete(l.buckets, key)
		} else {
			times = append(times, b.at)
		}
	}
	if len(l.buckets) < most/2 {
		return
	}
	slices.SortFunc(times, time.Time.Compare)
	oldest := times[len(times)/2]
	for key, b := range l.buckets {
		if !b.at.After(oldest) {
			delete(l.buckets, key)
		}
	}
}
