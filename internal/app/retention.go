package app

import (
	"time"

	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/retention"
	"github.com/signalbox-dev/signalbox/internal/telemetry"
)

// keeper is the part that deletes what is not to be kept. Every process has one; one of all works.
func (a *App) keeper(tel *telemetry.Telemetry) *retention.Keeper {
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
