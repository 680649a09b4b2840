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
	"github.com/signalbox-dev/signalbox/internal/run/read"
	"github.com/signalbox-dev/signalbox/internal/run/reconcile"
	"github.com/signalbox-dev/signalbox/internal/run/start"
	"github.com/signalbox-dev/signalbox/internal/store"
)

// runService starts, controls and reads runs.
type runService struct {
	*control.Service
	*read.Reader
}

// runs starts, controls and reads runs.
type runs struct {
	service runService
	starts  *start.Service
	options start.Options
	// queue submits the runs that were accepted while Temporal was unavailable.
	queue *start.Queue
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
	options := start.Options{
		MaxInputBytes: int(cfg.MaxInputBytes), StartTimeout: cfg.StartTimeout, AnswerWithin: cfg.AnswerWithin,
		Queue: start.QueueOptions{
			Enabled: waiting.Enabled, MaxRuns: waiting.MaxRuns, TTL: waiting.TTL, Rate: float64(waiting.Rate)},
		Workers: c.placement, Interpreter: interp.Version, Now: time.Now, Metrics: p.telemetry.Runs,
		Redact: s.sealed.Text, Mask: s.sealed.Mask, Digests: p.keys, Admit: p.memory.Admit,
		MaxGeneration: generationLimit(s, cfg.MaxGeneration),
		Maintenance:   m.Check, Executes: c.engine.Executes, Projected: r.projected,
	}
	starts := start.New(rows, c.starter, d.workflows, s.documents, r.changes, options)
	controls := control.New(starts, rows, c.starter, r.changes, control.Options{
		MaxInputBytes: options.MaxInputBytes, StartTimeout: cfg.StartTimeout, Originals: s.sealed.Sealer,
		Requested: repairer.Wake, Changed: r.changed, Now: time.Now, Metrics: p.telemetry.Runs,
	})
	controls.SetClusterReader(clusterReader{s.Store, c.engine})
	service := runService{controls, read.New(rows, c.starter, d.workflows, r.changes,
		read.Options{Holds: c.engine.Holds, Requested: repairer.Wake, Now: time.Now})}
	made := &runs{
		service: service, starts: starts, options: options, repairer: repairer,
		queue:        start.NewQueue(starts, rows, r.changes, options),
		children:     child.New(service, s, child.Options{MaxDepth: cfg.MaxDepth}),
		childWatcher: child.NewWatcher(s.Awaited(), s, service, c.engine, s.Exclusive),
		reconciler: reconcile.New(rows, c.engine, starts, reconcile.Options{
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
