package conn

import "sync/atomic"

// signals are flags that any goroutine sets and the manager's loop takes, without waiting for each other. A flag that
// is set twice before the loop takes it counts once.
type signals struct {
	ready, lost, suspected, changed, reset, workersDue atomic.Bool
	// woken holds one token while a flag is set.
	woken chan struct{}
}

func newSignals() *signals { return &signals{woken: make(chan struct{}, 1)} }

// raise sets a flag and wakes the loop.
func (s *signals) raise(flag *atomic.Bool) {
	flag.Store(true)
	select {
	case s.woken <- struct{}{}:
	default:
	}
}
