// Package pause is how loops wait: for a time, and no longer than their context goes on.
package pause

import (
	"context"
	"time"
)

// For waits, and tells whether ctx still goes on.
func For(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
