// Package limit bounds how often something happens, per key: a bucket of tokens each, filled at a rate.
//
//	calls := limit.New(limit.Options{Rate: 500, Burst: 1000, Now: time.Now})
//	if wait := calls.Take(actor); wait > 0 { … try again after wait }
//
// Buckets that are full again are forgotten, and there are at most so many: over it the oldest half goes, which lets its keys begin anew.
package limit

import (
	"math"
	"slices"
	"sync"
	"time"
)

// most bounds the keys that are remembered.
const most = 20_000

// Options say how much is let through.
type Options struct {
	// Rate is how many per second; 0 lets all through.
	Rate float64
	// Burst is how many at once, at least 1.
	Burst int
	Now   func() time.Time
}

// Limiter is safe for concurrent use.
type Limiter struct {
	opts Options

	mu      sync.Mutex
	buckets map[string]bucket
}

// bucket is what was left in it at a time.
type bucket struct {
	left float64
	at   time.Time
}

// New returns a limiter.
func New(opts Options) *Limiter {
	opts.Burst = max(opts.Burst, 1)
	return &Limiter{opts: opts, buckets: map[string]bucket{}}
}

// Take lets one through and returns 0, or returns after what time the next one may be.
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

// Wait returns what Take would, and takes nothing.
func (l *Limiter) Wait(key string) time.Duration {
	if l.opts.Rate <= 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wait(l.at(key, l.opts.Now()))
}

// at returns the bucket of a key as it is now.
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

// forget drops the buckets that are full, and of the others the older half where that is not enough.
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
