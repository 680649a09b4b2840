package conn

import (
	"log/slog"
	"time"

	"github.com/signalbox-dev/signalbox/conn/internal/machine"
)

// repeatEvery is how often a failure is logged that goes on.
const repeatEvery = time.Minute

// diary writes the manager's log lines. What repeats is written once per change of state and then once a minute.
type diary struct {
	log       *slog.Logger
	connected bool // has been connected before
	attempted time.Time
	failed    time.Time
}

// attempt notes that an attempt begins.
func (d *diary) attempt(now time.Time, c machine.Command) {
	if !d.connected && c.Number == 1 || now.Sub(d.attempted) < repeatEvery {
		return
	}
	d.attempted = now
	d.log.Info("Attempting Temporal reconnection", "attempt", c.Number, "backoff", c.Backoff)
}

// note writes what changed.
func (d *diary) note(now time.Time, before, after machine.View, g *generation) {
	changed := before.State != after.State || before.Kind != after.Kind
	if changed {
		d.attempted, d.failed = time.Time{}, time.Time{}
		d.change(before, after, g)
	} else if after.State == Down && after.Attempts > before.Attempts && now.Sub(d.failed) >= repeatEvery {
		d.failed = now
		d.log.Warn("Temporal reconnection failed, will retry", "kind", after.Kind, "error", after.LastErr, "next_attempt", after.NextAttempt)
	}
	if after.Breaker.State == BreakerOpen && before.Breaker.State == BreakerClosed {
		d.log.Error("Temporal circuit breaker opened", "failures", after.Breaker.Failures, "next_attempt", after.Breaker.NextProbe)
	}
}

func (d *diary) change(before, after machine.View, g *generation) {
	up := after.State == Connected || after.State == Degraded
	was := before.State == Connected || before.State == Degraded
	switch {
	case after.State == Closed:
		d.log.Info("Temporal connection closed")
	case up && !was && !d.connected:
		d.connected = true
		d.log.Info("Initial Temporal connection successful", "address", g.address, "namespace", g.namespace,
			"after", after.Statistics.Downtime, "attempts", after.Attempts)
	case up && !was:
		d.log.Info("Temporal reconnected successfully", "address", g.address, "outage", after.Statistics.LastOutage,
			"generation", g.number, "attempts", after.Attempts)
	case !up && was:
		d.log.Warn("Temporal connection unhealthy, initiating reconnection", "kind", after.Kind, "error", after.LastErr)
	case before.State == Connecting:
		d.log.Warn("Failed initial Temporal connection - will retry automatically", "kind", after.Kind, "error", after.LastErr)
	case after.State == Down:
		d.log.Warn("Temporal reconnection failed, will retry", "kind", after.Kind, "error", after.LastErr)
	case after.State == Degraded:
		d.log.Warn("Temporal connection degraded", "kind", after.Kind)
	case after.State == Connected:
		d.log.Info("Temporal connection is well again")
	}
}
