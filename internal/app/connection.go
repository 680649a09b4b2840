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
	"github.com/signalbox-dev/signalbox/internal/run/pending"
	"github.com/signalbox-dev/signalbox/internal/run/placement"
	"github.com/signalbox-dev/signalbox/internal/run/reconcile"
	"github.com/signalbox-dev/signalbox/internal/telemetry"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

// connect creates the manager of the connection to Temporal. It does not dial.
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

// fingerprint returns the values in which this process and the workers of its runs must agree.
func (a *App) fingerprint(m *conn.Manager) worker.Fingerprint {
	return worker.Fingerprint{
		Contract: contract.Fingerprint(), Address: a.cfg.Temporal.Address, Namespace: a.cfg.Temporal.Namespace,
		NamespaceID: m.Status().NamespaceID,
	}
}

// newPlacementMonitor creates the part that compares the Temporal of this process with the one that holds the runs and with those of
// the live workers.
func (a *App) newPlacementMonitor(own func() worker.Fingerprint) *placement.Monitor {
	return placement.New(placement.Options{
		Store: a.store, Registry: worker.NewRegistry(a.store, own), Here: func() run.ClusterID { return clusterOf(own()) },
		ExecutesRuns: a.cfg.HasRole(config.RoleWorker),
	})
}

// newHeartbeat creates the part that registers a worker process periodically, and immediately after each connection to Temporal.
func (a *App) newHeartbeat(serverID string, m *conn.Manager, own func() worker.Fingerprint) *worker.Heartbeat {
	h := worker.NewHeartbeat(a.store, serverID, a.cfg.Projects, own)
	m.OnConnect("worker heartbeat", func(context.Context, client.Client) error {
		h.Wake()
		return nil
	})
	return h
}

// clusterOf returns the Temporal that a process with the fingerprint is connected to.
func clusterOf(f worker.Fingerprint) run.ClusterID {
	return run.ClusterID{Address: f.Address, Namespace: f.Namespace, NamespaceID: f.NamespaceID}
}

// connectionCondition returns the state of the connection for the process's health.
func connectionCondition(m *conn.Manager) health.Condition {
	s := m.Status()
	_, err := m.Client()
	c := health.Condition{State: string(s.State), Kind: string(s.Kind), Since: s.Since, Err: err, Usable: err == nil}
	if s.State == conn.Degraded {
		c.Err = fmt.Errorf("temporal at %s is degraded: %s", s.Address, s.Kind)
		if s.Kind == conn.Limited {
			c.Err = fmt.Errorf("%w: %s", c.Err, s.LastError)
		}
	}
	return c
}

// resumeOnConnect returns a hook that resumes waiting runs, the queue and the reconciler when Temporal is connected again.
func resumeOnConnect(runs *run.Service, waiting *pending.Queue, r *reconcile.Reconciler) conn.Hook {
	return func(context.Context, client.Client) error {
		runs.Resume()
		waiting.Wake()
		r.Wake()
		return nil
	}
}
