// Package diary writes the log lines of a connection manager: what changed, once, and what goes on, once a minute.
package diary

import (
	"log/slog"
	"time"

	"github.com/signalbox-dev/signalbox/conn/internal/machine"
)

// repeatEvery is how often a failure is logged that goes on.
const repeatEvery = time.Minute

// Diary remembers what was written. It is not safe for concurrent use.
type Diary struct {
	log       *slog.Logger
	connected bool // has been connected before
	attempted time.Time
	failed    time.Time
}

// New returns an empty diary that writes to log.
func New(log *slog.Logger) *Diary { return &Diary{log: log} }

// Place is where the connection leads now.
type Place struct {
	Address, Namespace string
	Generation         int
}

// Attempt notes that an attempt begins.
func (d *Diary) Attempt(now time.Time, c machine.Command) {
	if !d.connected && c.Number == 1 || now.Sub(d.attempted) < repeatEvery {
		return
	}
	d.attempted = now
	d.log.Info("Attempting Temporal reconnection", "attempt", c.Number, "backoff", rounded(c.Backoff))
}

// Note writes what changed.
func (d *Diary) Note(now time.Time, before, after machine.View, p Place) {
	changed := before.State != after.State || before.Kind != after.Kind
	if changed {
		d.attempted, d.failed = time.Time{}, time.Time{}
		d.change(before, after, p)
	} else if after.State == machine.Down && after.LastErrAt.After(before.LastErrAt) && now.Sub(d.failed) >= repeatEvery {
		d.failed = now
		d.log.Warn("Temporal reconnection failed, will retry", "kind", after.Kind, "error", after.LastErr, "next_attempt", after.NextAttempt)
	}
	if after.Breaker.State == machine.BreakerOpen && before.Breaker.State == machine.BreakerClosed {
		d.log.Error("Temporal circuit breaker opened", "failures", after.Breaker.Failures, "next_attempt", after.Breaker.NextProbe)
	}
}

func (d *Diary) change(before, after machine.View, p Place) {
	up := after.State == machine.Connected || after.State == machine.Degraded
	was := before.State == machine.Connected || before.State == machine.Degraded
	switch {
	case after.State == machine.Closed:
		d.log.Info("Temporal connection closed")
	case up && !was && !d.connected:
		d.connected = true
		d.log.Info("Initial Temporal connection successful", "address", p.Address, "namespace", p.Namespace,
			"after", rounded(after.Statistics.Downtime), "attempts", after.Attempts)
	case up && !was:
		d.log.Info("Temporal reconnected successfully", "address", p.Address, "outage", rounded(after.Statistics.LastOutage),
			"generation", p.Generation, "attempts", after.Attempts)
	case !up && was:
		d.log.Warn("Temporal connection unhealthy, initiating reconnection", "kind", after.Kind, "error", after.LastErr)
	case before.State == machine.Connecting:
		d.log.Warn("Failed initial Temporal connection - will retry automatically", "kind", after.Kind, "error", after.LastErr)
	case after.State == machine.Down:
		d.log.Warn("Temporal reconnection failed, will retry", "kind", after.Kind, "error", after.LastErr)
	case after.Kind == machine.Limited:
		d.log.Warn("Temporal connection degraded", "kind", after.Kind, "error", after.LastErr)
	case after.State == machine.Degraded:
		d.log.Warn("Temporal connection degraded", "kind", after.Kind)
	case after.State == machine.Connected:
		d.log.Info("Temporal connection is well again")
	}
}

// rounded is a duration as people write it, whatever the log's format makes of numbers.
func rounded(d time.Duration) string { return d.Round(time.Millisecond).String() }
