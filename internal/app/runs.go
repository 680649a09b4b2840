package app

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/engine"
	"github.com/signalbox-dev/signalbox/internal/maintenance"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/child"
	"github.com/signalbox-dev/signalbox/internal/run/control"
	"github.com/signalbox-dev/signalbox/internal/run/reconcile"
	"github.com/signalbox-dev/signalbox/internal/store"
)

// runs starts, controls and reads runs.
type runs struct {
	service *control.Service
	options run.Options
	// queue submits the runs that were accepted while Temporal was unavailable.
	queue *reconcile.Queue
	// children starts child runs. Each process notifies parents of the run ends that it writes; one elected process looks
	// for missed ones.
	children     *child.Service
	childWatcher *child.Watcher
	// repairer and reconciler correct rows that differ from Temporal. Only processes with the worker role start them.
	repairer   *reconcile.Repairer
	reconciler *reconcile.Reconciler
}

func newRuns(p *process, s *storage, r *records, c *connection, d *definitions, m *maintenance.Mode) *runs {
	cfg, rows := p.cfg.Runs, s.sealed.rows
	repairer := reconcile.NewRepairer(rows, c.engine, reconcile.RepairerOptions{
		Suspended: p.shedsLoad, Holds: c.engine.Holds, Permanent: c.engine.Permanent, Changed: r.changed, Changes: r.changes,
		Metrics: p.telemetry.Runs, Now: time.Now,
	})
	waiting := cfg.QueueWhenUnavailable
	options := run.Options{
		MaxInputBytes: int(cfg.MaxInputBytes), StartTimeout: cfg.StartTimeout, AnswerWithin: cfg.AnswerWithin,
		Queue: run.QueueOptions{
			Enabled: waiting.Enabled, MaxRuns: waiting.MaxRuns, TTL: waiting.TTL, Rate: float64(waiting.Rate)},
		Workers: c.placement, Interpreter: interp.Version, Now: time.Now, Metrics: p.telemetry.Runs,
		Originals: s.sealed.Sealer, Redact: s.sealed.Text, Mask: s.sealed.Mask, Digests: p.keys, Admit: p.memory.Admit,
		MaxGeneration: generationLimit(s, cfg.MaxGeneration),
		Maintenance:   m.Check, Holds: c.engine.Holds, Executes: c.engine.Executes, Projected: r.projected,
		Requested: repairer.Wake, Changed: r.changed,
	}
	service := control.New(run.NewService(rows, c.starter, d.workflows, s.documents, r.changes, options), rows, c.starter,
		r.changes, options)
	service.SetClusterReader(clusterReader{s.Store, c.engine})
	made := &runs{
		service: service, options: options, repairer: repairer,
		queue:        reconcile.NewQueue(service.Service, rows, r.changes, options),
		children:     child.New(service, s, child.Options{MaxDepth: cfg.MaxDepth}),
		childWatcher: child.NewWatcher(s.Awaited(), s, service, c.engine, s.Exclusive),
		reconciler: reconcile.New(rows, c.engine, service.Service, reconcile.Options{
			StartTimeout: cfg.StartTimeout, Now: time.Now, Metrics: p.telemetry.Runs, Changes: r.changes,
			Imports: s.migration.Rows(), Requested: repairer.Wake,
			Hold: m.Begin,
		}),
	}
	r.onEnded(func(_, runID string) { made.childWatcher.Ended(runID) })
	c.onConnect("queue and reconciler", func() {
		service.Resume()
		made.queue.Wake()
		made.reconciler.Wake()
	})
	return made
}

// clusterReader reads the Temporals that may hold runs, from the rows and from Temporal.
type clusterReader struct {
	*store.Store

	engine *engine.Engine
}

func (w clusterReader) ClusterID(ctx context.Context) (run.ClusterID, error) {
	return w.engine.ClusterID(ctx)
}
