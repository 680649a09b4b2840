package app

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/engine"
	"github.com/signalbox-dev/signalbox/internal/engine/projection"
	"github.com/signalbox-dev/signalbox/internal/notice"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/telemetry"
)

// closer is a part that only needs closing.
type closer struct{ close func() }

func (closer) Start(context.Context) error { return nil }

func (c closer) Stop(context.Context) error {
	c.close()
	return nil
}

// ender is a part that is ready when it is made and takes time to end.
type ender struct {
	end func(ctx context.Context) error
}

func (ender) Start(context.Context) error { return nil }

func (e ender) Stop(ctx context.Context) error { return e.end(ctx) }

// observer passes what was projected on to watches and metrics.
type observer struct {
	changes *notice.Board
	runs    *telemetry.Runs
	ended   func(project string)
	// over is told of runs that have ended.
	over func(runIDs ...string)
}

func (o observer) Written(ctx context.Context, runIDs []string, transitions []run.Transition, lag time.Duration) {
	for _, id := range runIDs {
		o.changes.Notify(id)
	}
	o.Changed(ctx, transitions)
	o.runs.Projected(ctx, lag)
}

// Changed tells of changes of status, whoever has written them.
func (o observer) Changed(ctx context.Context, transitions []run.Transition) {
	for _, t := range transitions {
		if t.To.Terminal() {
			o.runs.Count(ctx, t.Project, string(t.To))
			o.ended(t.Project)
			o.over(t.RunID)
		}
	}
}

// whereabouts joins what the rows and Temporal tell of where the runs are.
type whereabouts struct {
	*store.Store

	engine *engine.Engine
}

func (w whereabouts) Place(ctx context.Context) (run.Place, error) { return w.engine.Place(ctx) }

// projecting makes what brings the records of workflow tasks to the rows, once Temporal has accepted the tasks.
func projecting(rows projection.Store, written projection.Observer, now func() time.Time) (*projection.Tap, *projection.Writer) {
	writer := projection.NewWriter(rows, written, now)
	tap := projection.NewTap(now, writer.Accept)
	tap.HoldBack(writer.Wait)
	tap.OnUnsure(writer.Unsure)
	return tap, writer
}

// holds reports whether this process has records of a run that are not written yet.
func holds(tap *projection.Tap, writer *projection.Writer) func(runID string) bool {
	return func(runID string) bool { return tap.Holds(runID) || writer.Holds(runID) }
}
