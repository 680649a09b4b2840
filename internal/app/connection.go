package app

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/client"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/config/temporalconfig"
	"github.com/signalbox-dev/signalbox/internal/engine"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/projection"
	"github.com/signalbox-dev/signalbox/internal/health"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/placement"
	"github.com/signalbox-dev/signalbox/internal/run/queue"
	"github.com/signalbox-dev/signalbox/internal/run/reconciler"
	"github.com/signalbox-dev/signalbox/internal/system"
	"github.com/signalbox-dev/signalbox/internal/telemetry"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

// connect makes the manager of the connection to Temporal. It dials nothing.
func (a *App) connect(serverID string, tel *telemetry.Telemetry, tap *projection.Tap, repeated *engine.Repeated) (*conn.Manager, error) {
	cfg := a.cfg.Temporal
	complete := func(options client.Options) client.Options {
		options.MetricsHandler = tel.Temporal()
		return engine.ClientOptions(options, serverID, a.keys, a.payloads, a.log, tap, repeated)
	}
	base, err := temporalconfig.Options(cfg)
	if err != nil {
		return nil, err
	}
	ended, err := tel.Connections()
	if err != nil {
		return nil, err
	}
	reload := temporalconfig.Reload(cfg)
	return conn.New(conn.Options{
		Client: complete(base),
		Reload: func() (client.Options, error) {
			options, err := reload()
			if err != nil {
				return client.Options{}, err
			}
			return complete(options), nil
		},
		Identity:        func() (string, error) { return temporalconfig.Identity(cfg) },
		ConnectionEnded: func(ctx context.Context, c conn.Ended) { ended.Connection(ctx, c.Address, c.Namespace, c.Lasted) },
		OutageEnded:     func(ctx context.Context, o conn.Ended) { ended.Outage(ctx, o.Address, o.Namespace, o.Lasted) },
		Logger:          a.log,
		CheckEvery:      cfg.CheckInterval,
		CheckTimeout:    cfg.CheckTimeout,
		ProbeEvery:      cfg.ProbeInterval,
		RebuildAfter:    cfg.RebuildAfter,
		DrainTimeout:    cfg.DrainTimeout,
		BreakerAfter:    cfg.Breaker.Failures,
		BreakerEvery:    cfg.Breaker.Interval,
	})
}

// fingerprint is what this process and the workers of its runs must agree about.
func (a *App) fingerprint(m *conn.Manager) worker.Fingerprint {
	return worker.Fingerprint{
		Contract: contract.Fingerprint(), Address: a.cfg.Temporal.Address, Namespace: a.cfg.Temporal.Namespace,
		NamespaceID: m.Status().NamespaceID,
	}
}

// placing compares the Temporal of this process with the one where the runs are and those of the live workers.
func (a *App) placing(own func() worker.Fingerprint) *placement.Monitor {
	return placement.New(placement.Options{
		Store: a.store, Registry: worker.NewRegistry(a.store, own), Here: func() run.Place { return placeOf(own()) },
		Works: a.cfg.HasRole(config.RoleWorker),
	})
}

// heartbeat gives the signs of life of a worker process, one of them as soon as it has reached Temporal.
func (a *App) heartbeat(serverID string, m *conn.Manager, own func() worker.Fingerprint) *worker.Heartbeat {
	h := worker.NewHeartbeat(a.store, serverID, a.cfg.Projects, own)
	m.OnConnect("signs of life", func(context.Context, client.Client) error {
		h.Wake()
		return nil
	})
	return h
}

// placeOf is where a process with the fingerprint is connected.
func placeOf(f worker.Fingerprint) run.Place {
	return run.Place{Address: f.Address, Namespace: f.Namespace, NamespaceID: f.NamespaceID}
}

// link shows the connection as the platform tells of it.
type link struct{ *conn.Manager }

// Connection implements system.Link.
func (l link) Connection() system.Connection {
	s := l.Status()
	c := system.Connection{
		State: string(s.State), Kind: string(s.Kind), Since: s.Since, Address: s.Address, Namespace: s.Namespace,
		NamespaceID: s.NamespaceID, LastError: s.LastError, LastErrorAt: s.LastErrorAt, Generation: s.Generation,
		Latency: s.Latency, Attempts: s.Attempts, NextAttempt: s.NextAttempt, Draining: s.Draining,
		Breaker: system.Breaker{
			State: string(s.Breaker.State), Failures: s.Breaker.Failures, OpenedAt: s.Breaker.OpenedAt, NextProbe: s.Breaker.NextProbe,
		},
		Statistics: system.Statistics(s.Statistics),
	}
	for _, w := range s.Workers {
		c.WorkerSets = append(c.WorkerSets, system.WorkerSet(w))
	}
	return c
}

// condition is the connection as the process's health tells of it.
func (l link) condition() health.Condition {
	s := l.Status()
	_, err := l.Client()
	c := health.Condition{State: string(s.State), Kind: string(s.Kind), Since: s.Since, Err: err, Usable: err == nil}
	if s.State == conn.Degraded {
		c.Err = fmt.Errorf("temporal at %s is degraded: %s", s.Address, s.Kind)
		if s.Kind == conn.Limited {
			c.Err = fmt.Errorf("%w: %s", c.Err, s.LastError)
		}
	}
	return c
}

// comparer shows the reconciler as the platform tells of it.
type comparer struct{ *reconciler.Reconciler }

// Last implements system.Reconciler.
func (c comparer) Last() system.Reconciliation {
	report, at, err := c.Reconciler.Last()
	out := system.Reconciliation{At: at, Checked: report.Checked, Corrections: report.Total, Failed: report.Failed}
	if err != nil {
		out.Error = err.Error()
	}
	return out
}

// wake tells those who wait for Temporal that it is back.
func wake(runs *run.Service, waiting *queue.Queue, r *reconciler.Reconciler) conn.Hook {
	return func(context.Context, client.Client) error {
		runs.Resume()
		waiting.Wake()
		r.Wake()
		return nil
	}
}
