package app

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/config/clientconfig"
	"github.com/signalbox-dev/signalbox/internal/engine"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/health"
	"github.com/signalbox-dev/signalbox/internal/payload"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/start"
	"github.com/signalbox-dev/signalbox/internal/sealed"
	"github.com/signalbox-dev/signalbox/internal/telemetry"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

// connection is the connection to Temporal, with the engine that runs workflows over it.
type connection struct {
	temporal config.Temporal
	manager  *conn.Manager
	engine   *engine.Engine
	// starter is the engine for starts: it replaces marks in inputs by the originals.
	starter     *sealed.Starter
	placement   *start.PlacementMonitor
	certificate *clientCertificate
}

// newConnection creates the engine with its connection, which does not dial yet.
func newConnection(p *process, s *storage, r *records) (_ *connection, err error) {
	c := &connection{temporal: p.cfg.Temporal}
	options, err := c.options(p)
	if err != nil {
		return nil, err
	}
	c.engine, err = engine.New(engine.Options{
		Connection: options, Address: c.temporal.Address, Namespace: c.temporal.Namespace, ServerID: p.serverID,
		Keys: p.keys, Values: s.values, MaxValueBytes: payload.MaxBytes, Documents: s.documents, Records: s.sealed.rows,
		Observer: r, Ended: r.endedSteps, Schedules: s.Events(), Store: s, Tracing: p.telemetry.Tracing,
		Sensitive: s.sealed.Sensitive, Listeners: restoredListeners{s.sealed.events},
		MaxSteps: stepLimit(s, p.cfg.Runs.MaxSteps), Steps: s.Quotas(), CallTimeout: p.cfg.Calls.Timeout,
		CallResult: int64(p.cfg.Calls.MaxResponseBytes), ProgramTimeout: p.cfg.Runner.Timeout, Log: p.log, Now: time.Now,
	})
	if err != nil {
		return nil, err
	}
	c.manager, c.starter = c.engine.Manager(), s.sealed.Engine(c.engine)
	r.onEnded(func(project, _ string) { c.engine.Schedules().Ended(project) })
	c.placement = start.NewPlacementMonitor(start.PlacementOptions{
		Store: s, Registry: worker.NewRegistry(s, c.fingerprint), Here: func() run.ClusterID {
			return clusterOf(c.fingerprint())
		},
		ExecutesRuns: p.cfg.HasRole(config.RoleWorker),
	})
	c.certificate = &clientCertificate{temporal: c.temporal, now: time.Now, log: p.log}
	return c, nil
}

// restoredListeners commits listeners that a database lacks. Deliveries of earlier events are found by polling.
type restoredListeners struct{ events *sealed.Events }

// Listen implements [engine.Listeners].
func (r restoredListeners) Listen(ctx context.Context, l event.Listener) error {
	_, err := r.events.Listen(ctx, l)
	return err
}

// options returns the options of the connection.
func (c *connection) options(p *process) (conn.Options, error) {
	cfg := c.temporal
	base, err := clientconfig.Temporal(cfg)
	if err != nil {
		return conn.Options{}, err
	}
	ended, err := p.telemetry.Connections(cfg.Address, cfg.Namespace)
	if err != nil {
		return conn.Options{}, err
	}
	base.MetricsHandler = p.telemetry.Temporal()
	reload := clientconfig.ReloadTemporal(cfg)
	return conn.Options{
		Client: base,
		Reload: func() (client.Options, error) {
			options, err := reload()
			options.MetricsHandler = base.MetricsHandler
			return options, err
		},
		Identity:        func() (string, error) { return clientconfig.TemporalIdentity(cfg) },
		ConnectionEnded: func(ctx context.Context, c conn.Ended) { ended.Connection(ctx, c.Address, c.Namespace, c.Lasted) },
		OutageEnded:     func(ctx context.Context, o conn.Ended) { ended.Outage(ctx, o.Address, o.Namespace, o.Lasted) },
		Logger:          p.log,
		CheckEvery:      cfg.CheckInterval,
		CheckTimeout:    cfg.CheckTimeout,
		ProbeEvery:      cfg.ProbeInterval,
		RebuildAfter:    cfg.RebuildAfter,
		DrainTimeout:    cfg.DrainTimeout,
		BreakerAfter:    cfg.Breaker.Failures,
		BreakerEvery:    cfg.Breaker.Interval,
	}, nil
}

// onConnect calls wake each time the connection has come up.
func (c *connection) onConnect(name string, wake func()) {
	c.manager.OnConnect(name, func(context.Context, client.Client) error {
		wake()
		return nil
	})
}

// fingerprint returns the values in which this process and the workers of its runs must agree.
func (c *connection) fingerprint() worker.Fingerprint {
	return worker.Fingerprint{
		Contract: contract.Fingerprint(), Address: c.temporal.Address, Namespace: c.temporal.Namespace,
		NamespaceID: c.manager.Status().NamespaceID,
	}
}

// clusterOf returns the Temporal that a process with the fingerprint is connected to.
func clusterOf(f worker.Fingerprint) run.ClusterID {
	return run.ClusterID{Address: f.Address, Namespace: f.Namespace, NamespaceID: f.NamespaceID}
}

// diagnosis returns what the process has spent on diagnosis.
func (c *connection) diagnosis() telemetry.Diagnosis {
	budget := c.engine.Budget()
	spent := budget.Counts()
	return telemetry.Diagnosis{
		Limit: budget.Limit(), Granted: spent.Granted, Delayed: spent.Delayed, Refused: spent.Refused}
}

// usable reports whether Temporal can be used.
func (c *connection) usable() bool {
	_, err := c.manager.Client()
	return err == nil
}

// condition returns the state of the connection for the process's health.
func (c *connection) condition() health.Condition {
	s := c.manager.Status()
	_, err := c.manager.Client()
	found := health.Condition{State: string(s.State), Kind: string(s.Kind), Since: s.Since, Err: err, Usable: err == nil}
	switch s.State { //nolint:exhaustive // the error of the client describes the others
	case conn.Connecting:
		found.Pending, found.Err = true, fmt.Errorf("connecting to Temporal at %s, first attempt", s.Address)
	case conn.Degraded:
		found.Err = fmt.Errorf("temporal at %s is degraded: %s", s.Address, s.Kind)
		if s.Kind == conn.Limited {
			found.Err = fmt.Errorf("%w: %s", found.Err, s.LastError)
		}
	}
	return found
}

// projectReader reads a project with its settings.
type projectReader interface {
	GetProject(ctx context.Context, name string) (project.Project, error)
}

// stepLimit returns how many steps a new run of a project may enter: the configured number, or the project's own if
// that is lower.
func stepLimit(projects projectReader, configured int) func(ctx context.Context, name string) (int64, error) {
	return func(ctx context.Context, name string) (int64, error) {
		p, err := projects.GetProject(ctx, name)
		if err != nil {
			return 0, err
		}
		if own := p.Settings.MaxSteps; own > 0 {
			return min(own, int64(configured)), nil
		}
		return int64(configured), nil
	}
}

// generationLimit returns the largest generation of a run of a project: the project's own, or the configured one.
func generationLimit(projects projectReader, configured int) func(ctx context.Context, name string) (int, error) {
	return func(ctx context.Context, name string) (int, error) {
		p, err := projects.GetProject(ctx, name)
		if err != nil {
			return 0, err
		}
		return cmp.Or(int(p.Settings.MaxGeneration), configured), nil
	}
}
