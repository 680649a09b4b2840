// Package stopwatch measures durations in tests, without the time in which the machine did not run the process, because
// it was busy with others. Time in which the process itself waits counts in full.
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
	// pace is how often the watch checks that the process runs.
	pace = 5 * time.Millisecond
	// late is the gap between two checks from which on the process counts as stalled.
	late = 4 * pace
)

// Watch is a running stopwatch. It is safe for concurrent use.
type Watch struct {
	began time.Time

	mu      sync.Mutex
	seen    time.Time
	stalled time.Duration
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
				w.check()
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

// Elapsed returns the time since the start without the stalls.
func (w *Watch) Elapsed() time.Duration { return w.check() }

// check records that the process runs now, and returns the elapsed time.
func (w *Watch) check() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if gap := now.Sub(w.seen); gap > late {
		w.stalled += gap - pace
	}
	w.seen = now
	return now.Sub(w.began) - w.stalled
}
