package conn

import "sync/atomic"

// signals are what anybody may tell the loop without waiting for it. A signal that is raised twice before the loop looks is
// one signal.
type signals struct {
	ready, lost, suspected, changed, reset, tend atomic.Bool
	// woken holds one token while a signal is raised.
	woken chan struct{}
}

func (s *signals) raise(which *atomic.Bool) {
	which.Store(true)
	select {
	case s.woken <- struct{}{}:
	default:
	}
}
