// Package heartbeat sends the heartbeats of activities that take long. They detect the loss of a worker, and their
// answers report a cancellation.
//
//	defer heartbeat.Keep(ctx)()
package heartbeat

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/signalbox-dev/signalbox/internal/engine/flow"
)

// promptFor is how long an activity sends its heartbeats at the shortest interval. Most that are canceled, because
// another branch was faster or a timeout ran out, are canceled in that time, and end within two seconds then. Later ones
// end within five: a heartbeat costs a write.
const promptFor = 10 * time.Second

// Keep sends heartbeats, which also makes the activity cancelable, until the returned function is called. Without an
// activity, or for one without a heartbeat timeout, it sends none.
func Keep(ctx context.Context) (stop func()) {
	if !activity.IsActivity(ctx) {
		return func() {}
	}
	limit := activity.GetInfo(ctx).HeartbeatTimeout
	if limit <= 0 {
		return func() {}
	}
	done, joined := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(joined)
		began := time.Now()
		ticker := time.NewTicker(min(limit/3, flow.HeartbeatsWithin))
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				activity.RecordHeartbeat(ctx)
				if time.Since(began) >= promptFor {
					ticker.Reset(limit / 3) // which tolerates the loss of one heartbeat
				}
			case <-done:
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		close(done)
		<-joined
	}
}
