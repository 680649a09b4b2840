package record

import (
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/supervisor"
)

// The results of a cycle.
const (
	cycleOK        = "ok"
	cycleFailed    = "error"
	cyclePostponed = "postponed"
)

// Cleaned implements [supervisor.Recorder].
func (r *Record) Cleaned(name inbox.Name, quiet time.Duration) {
	r.project(name).Counter("dispatcher_stale_cleanups_total").Inc(1)
	if quiet > 0 {
		r.project(name).Timer("dispatcher_cleanup_seconds").Record(quiet)
	}
}

// CleanupFailed implements [supervisor.Recorder].
func (r *Record) CleanupFailed(name inbox.Name) {
	r.project(name).Counter("dispatcher_cleanup_errors_total").Inc(1)
}

// Cycled implements [supervisor.Recorder]. A failed cycle leaves the gauges of the last successful one.
func (r *Record) Cycled(c supervisor.Cycle) {
	result := cycleOK
	switch {
	case c.Err != nil:
		result = cycleFailed
	case c.Postponed > 0:
		result = cyclePostponed
	}
	r.metrics.WithTags(map[string]string{"result": result}).Counter("dispatcher_supervisor_cycles_total").Inc(1)
	r.metrics.Timer("dispatcher_supervisor_cycle_seconds").Record(c.Duration)
	for project, n := range c.Stale {
		r.project(inbox.Name{Project: project}).Gauge("dispatcher_stale").Update(float64(n))
	}
	for project, n := range c.Duplicates {
		r.project(inbox.Name{Project: project}).Gauge("dispatcher_duplicates").Update(float64(n))
	}
	for project, n := range c.Pending {
		r.project(inbox.Name{Project: project}).Gauge("dispatcher_inbox_pending").Update(float64(n))
	}
	for project, lag := range c.Lag {
		r.project(inbox.Name{Project: project}).Gauge("dispatcher_inbox_lag_seconds").Update(lag.Seconds())
	}
	if c.Err == nil {
		r.metrics.Gauge("dispatcher_supervisor_last_cycle_timestamp_seconds").Update(float64(time.Now().UnixMilli()) / 1000)
	}
}
