// Package stopwatch measures for tests how long something took, without the moments in which the machine stood still: those
// that a machine which is busy with other things gives to others. What waits for something is measured in full.
//
//	watch := stopwatch.Start(t)
//	stop()
//	require.Less(t, watch.Elapsed(), time.Second)
package stopwatch

import (
	"sync"
	"testing"
	"time"
)

const (
	// pace is how often the watch looks whether it gets to run.
	pace = 5 * time.Millisecond
	// late is from when on the machine is taken to have stood still meanwhile.
	late = 4 * pace
)

// Watch is a running stopwatch. It is safe for concurrent use.
type Watch struct {
	began time.Time

	mu    sync.Mutex
	seen  time.Time
	still time.Duration
}

// Start starts a stopwatch that runs until the test ends.
func Start(t testing.TB) *Watch {
	t.Helper()
	now := time.Now()
	w := &Watch{began: now, seen: now}
	ended := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(pace)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				w.look()
			case <-ended:
				return
			}
		}
	})
	t.Cleanup(func() {
		close(ended)
		running.Wait()
	})
	return w
}

// Elapsed is the time since the start in which the machine did not stand still.
func (w *Watch) Elapsed() time.Duration { return w.look() }

// look notes that the process runs now, and returns what has elapsed.
func (w *Watch) look() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if gap := now.Sub(w.seen); gap > late {
		w.still += gap - pace
	}
	w.seen = now
	return now.Sub(w.began) - w.still
}
