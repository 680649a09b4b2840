package app

import (
	"time"

	"github.com/signalbox-dev/signalbox/internal/engine/projection"
	"github.com/signalbox-dev/signalbox/internal/run/repair"
	"github.com/signalbox-dev/signalbox/internal/telemetry"
)

// newRepairer creates the part that rebuilds rows that are behind Temporal. Only processes with the worker role start it.
func (a *App) newRepairer(
	rows repair.Store, tap *projection.Tap, writer *projection.Writer, written observer, tel *telemetry.Telemetry,
) *repair.Repairer {
	return repair.New(rows, a.engine, repair.Options{
		Suspended: a.shedsLoad, Holds: holds(tap, writer), Permanent: projection.Unusable, Changed: written.Changed, Changes: written.changes,
		Metrics: tel.Runs, Now: time.Now,
	})
}
