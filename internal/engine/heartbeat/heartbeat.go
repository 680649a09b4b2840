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
func Keep(ctx context.Context) (stop func()) { return KeepReporting(ctx, nil) }

// reportEvery is how often heartbeats report what has changed.
const reportEvery = 2 * time.Second

// KeepReporting is Keep with details in each heartbeat. details returns them, and whether they have changed since it
// was called last: changed ones are sent within two seconds. nil: there are none.
func KeepReporting(ctx context.Context, details func() (value any, changed bool)) (stop func()) {
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
		sent := began
		ticker := time.NewTicker(min(limit/3, flow.HeartbeatsWithin))
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				prompt := time.Since(began) < promptFor
				if details == nil {
					activity.RecordHeartbeat(ctx)
					if !prompt {
						ticker.Reset(limit / 3) // which tolerates the loss of one heartbeat
					}
					continue
				}
				if value, changed := details(); prompt || changed || time.Since(sent) >= limit/3-flow.HeartbeatsWithin {
					activity.RecordHeartbeat(ctx, value)
					sent = time.Now()
				}
				if !prompt {
					ticker.Reset(min(limit/3, reportEvery))
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
