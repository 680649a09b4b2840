package app

import (
	"time"

	"github.com/signalbox-dev/signalbox/internal/engine/projection"
	"github.com/signalbox-dev/signalbox/internal/run/repair"
	"github.com/signalbox-dev/signalbox/internal/telemetry"
)

// repairing makes what brings rows up to Temporal that are behind. It is started in processes with the worker role alone.
func (a *App) repairing(
	rows repair.Store, tap *projection.Tap, writer *projection.Writer, written observer, tel *telemetry.Telemetry,
) *repair.Repairer {
	return repair.New(rows, a.engine, repair.Options{
		Suspended: a.shedding, Holds: holds(tap, writer), Permanent: projection.Unusable, Changed: written.Changed, Changes: written.changes,
		Metrics: tel.Runs, Now: time.Now,
	})
}
