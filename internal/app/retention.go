package app

import (
	"time"

	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/retention"
)

// newRetention creates the part that deletes data past its retention limits. Every process has one; one elected process
// does the work.
func newRetention(p *process, s *storage, c *connection) *retention.Cleaner {
	r := p.cfg.Retention
	limits := func(l config.RetentionLimits) retention.Limits {
		return retention.Limits{MaxAge: l.MaxAge, MaxCount: l.MaxCount}
	}
	var stores []retention.Payloads
	for _, store := range s.values.All() {
		stores = append(stores, store)
	}
	return retention.New(s, retention.Options{
		Payloads: stores, Executions: c.engine,
		WebhookDeliveries: p.cfg.Webhooks.KeepDeliveries, Every: r.Interval, Now: time.Now, Metrics: p.telemetry.Retention,
		Policy: retention.Policy{
			retention.Runs: limits(r.Runs), retention.Events: limits(r.Events), retention.Audit: limits(r.Audit),
			retention.Owners: limits(r.Owners), retention.Batches: limits(r.Batches),
		},
	})
}
