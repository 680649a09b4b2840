// Package pace has the waiting primitives of a process's loops: context-aware sleep and jitter.
package pace

import (
	"context"
	"math/rand/v2"
	"time"
)

// Sleep waits for d. It reports false if ctx has ended.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Jitter returns between half of d and d.
func Jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d/2+1) //nolint:gosec // spreads load, guards nothing
}
