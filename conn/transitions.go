package conn

import (
	"log/slog"
	"time"

	"github.com/signalbox-dev/signalbox/conn/conntype"
	"github.com/signalbox-dev/signalbox/conn/internal/fsm"
)

// repeatEvery is how often a lasting failure is logged.
const repeatEvery = time.Minute

// transitionLog writes the log lines of state changes, and repeats those of a lasting failure at most once in
// repeatEvery. It is not safe for concurrent use.
type transitionLog struct {
	log       *slog.Logger
	connected bool      // the first connection has been logged
	attempted time.Time // when an attempt was last logged in this state
	failed    time.Time // when a failure was last logged in this state
}

// endpoint is the server of the current client.
type endpoint struct {
	address, namespace string
	generation         int
}

// attempt logs the begin of an attempt. The first attempt of all is not logged: it is no reconnection.
func (t *transitionLog) attempt(now time.Time, c fsm.Command) {
	if !t.connected && c.Number == 1 || now.Sub(t.attempted) < repeatEvery {
		return
	}
	t.attempted = now
	t.log.Info("Attempting Temporal reconnection", "attempt", c.Number, "backoff_seconds", seconds(c.Backoff))
}

// transition logs the difference between two views.
func (t *transitionLog) transition(now time.Time, before, after fsm.View, e endpoint) {
	if before.State != after.State || before.Kind != after.Kind {
		t.attempted, t.failed = time.Time{}, time.Time{}
		t.changed(before, after, e)
	} else if after.State == Down && after.LastErrAt.After(before.LastErrAt) && now.Sub(t.failed) >= repeatEvery {
		t.failed = now
		t.log.Warn("Temporal reconnection failed, will retry", "kind", after.Kind, "error", after.LastErr,
			"next_attempt", after.NextAttempt)
	}
	if after.Breaker.State == conntype.BreakerOpen && before.Breaker.State == conntype.BreakerClosed {
		t.log.Error("Temporal circuit breaker opened", "failures", after.Breaker.Failures,
			"next_attempt", after.Breaker.NextProbe)
	}
}

// changed logs a change of state or kind.
func (t *transitionLog) changed(before, after fsm.View, e endpoint) {
	isUp, wasUp := after.State.Up(), before.State.Up()
	switch {
	case after.State == Closed:
		t.log.Info("Temporal connection closed")
	case isUp && !wasUp && !t.connected:
		t.connected = true
		t.log.Info("Initial Temporal connection successful", "address", e.address, "namespace", e.namespace,
			"after_seconds", seconds(after.Statistics.Downtime), "attempts", after.Attempts)
	case isUp && !wasUp:
		t.log.Info("Temporal reconnected successfully", "address", e.address,
			"outage_seconds", seconds(after.Statistics.LastOutage),
			"generation", e.generation, "attempts", after.Attempts)
	case !isUp && wasUp:
		t.log.Warn("Temporal connection unhealthy, initiating reconnection", "kind", after.Kind, "error", after.LastErr)
	case before.State == Connecting:
		t.log.Warn("Failed initial Temporal connection - will retry automatically", "kind", after.Kind,
			"error", after.LastErr)
	case after.State == Down:
		t.log.Warn("Temporal reconnection failed, will retry", "kind", after.Kind, "error", after.LastErr)
	case after.Kind == Limited:
		t.log.Warn("Temporal connection degraded", "kind", after.Kind, "error", after.LastErr)
	case after.State == Degraded:
		t.log.Warn("Temporal connection degraded", "kind", after.Kind)
	case after.State == Connected:
		t.log.Info("Temporal connection no longer degraded")
	}
}

// seconds returns a duration for the log, to the millisecond. slog would write it with varying units as text, in
// nanoseconds as JSON.
func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }
