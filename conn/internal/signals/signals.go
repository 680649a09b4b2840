// Package signals is what anybody may tell a connection manager's loop without waiting for it.
package signals

import "sync/atomic"

// Signals are raised by anybody and taken by the loop. One that is raised twice before the loop looks is one signal.
type Signals struct {
	Ready, Lost, Suspected, Changed, Reset, Tend atomic.Bool
	// Woken holds one token while a signal is raised.
	Woken chan struct{}
}

// New returns signals of which none is raised.
func New() *Signals { return &Signals{Woken: make(chan struct{}, 1)} }

// Raise raises one of the signals.
func (s *Signals) Raise(which *atomic.Bool) {
	which.Store(true)
	select {
	case s.Woken <- struct{}{}:
	default:
	}
}
