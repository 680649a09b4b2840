package app

import (
	"time"

	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/retention"
	"github.com/signalbox-dev/signalbox/internal/telemetry"
)

// newRetention creates the part that deletes data past its retention limits. Every process has one; one elected process does the work.
func (a *App) newRetention(tel *telemetry.Telemetry) *retention.Cleaner {
	r := a.cfg.Retention
	limits := func(l config.RetentionLimits) retention.Limits {
		return retention.Limits{MaxAge: l.MaxAge, MaxCount: l.MaxCount}
	}
	return retention.New(a.store, retention.Options{
		Every: r.Interval, Now: time.Now, Metrics: tel.Retention,
		Policy: retention.Policy{
			retention.Runs: limits(r.Runs), retention.Events: limits(r.Events), retention.Audit: limits(r.Audit),
			retention.Owners: limits(r.Owners), retention.Batches: limits(r.Batches),
		},
	})
}
