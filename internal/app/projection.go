package app

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/engine"
	"github.com/signalbox-dev/signalbox/internal/engine/projection"
	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/telemetry"
)

// closer adapts a close function to a part.
type closer struct{ close func() }

func (closer) Start(context.Context) error { return nil }

func (c closer) Stop(context.Context) error {
	c.close()
	return nil
}

// stopper adapts a stop function with a context to a part. It needs no start.
type stopper struct {
	stop func(ctx context.Context) error
}

func (stopper) Start(context.Context) error { return nil }

func (s stopper) Stop(ctx context.Context) error { return s.stop(ctx) }

// observer forwards projected changes to watches, metrics and the components that react to the end of a run.
type observer struct {
	changes         *pubsub.Notifier
	runs            *telemetry.Runs
	projectRunEnded func(project string)
	// runsEnded is called with the IDs of runs that have ended.
	runsEnded func(runIDs ...string)
}

func (o observer) Written(ctx context.Context, runIDs []string, transitions []run.Transition, lag time.Duration) {
	for _, id := range runIDs {
		o.changes.Notify(id)
	}
	o.Changed(ctx, transitions)
	o.runs.Projected(ctx, lag)
}

// Changed reports status transitions from any writer.
func (o observer) Changed(ctx context.Context, transitions []run.Transition) {
	for _, t := range transitions {
		if t.To.Terminal() {
			o.runs.Count(ctx, t.Project, string(t.To))
			o.projectRunEnded(t.Project)
			o.runsEnded(t.RunID)
		}
	}
}

// clusterReader reads the Temporals that may hold runs, from the rows and from Temporal.
type clusterReader struct {
	*store.Store

	engine *engine.Engine
}

func (w clusterReader) ClusterID(ctx context.Context) (run.ClusterID, error) {
	return w.engine.ClusterID(ctx)
}

// newProjection creates the tap and the writer that store the records of workflow tasks after Temporal acknowledges the tasks.
func newProjection(rows projection.Store, written projection.Observer, now func() time.Time) (*projection.Tap, *projection.Writer) {
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
