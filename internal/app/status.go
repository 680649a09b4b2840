package app

import (
	"context"
	"errors"
	"time"

	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/health"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/rpc/permission"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/sealingkey"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/system"
	"github.com/signalbox-dev/signalbox/internal/telemetry"
	"github.com/signalbox-dev/signalbox/internal/webhook/sender"
	"github.com/signalbox-dev/signalbox/lease"
)

// newHealth creates the health of the process, with the dependencies of its roles.
func newHealth(c *components) *health.Health {
	both := []string{config.RoleAPI, config.RoleWorker}

	dependencies := []health.Dependency{
		{Name: "store", Checker: health.CheckFunc(c.storage.Ping), Required: both},
		{Name: "temporal", Condition: c.connection.condition, Required: []string{config.RoleWorker, config.RoleRunner},
			Used: []string{config.RoleAPI}},
		{Name: "placement", Checker: health.CheckFunc(c.connection.placement.Healthy), Title: c.connection.placement.Title,
			Used: both},
		{Name: "memory", Checker: c.memory, Used: both},
	}
	if c.cfg.Payloads.Store != config.PayloadsDatabase {
		// Most runs have no large values, and go on. In the database, the dependency "store" covers them.
		dependencies = append(dependencies,
			health.Dependency{Name: "payloads", Checker: health.CheckFunc(c.storage.values.Writable), Used: both})
	}
	if certificate := c.connection.certificate; certificate.used() {
		dependencies = append(dependencies,
			health.Dependency{Name: "certificate", Condition: certificate.condition, Used: both})
	}
	// Without leases no delivery is late or lost, but ownership cannot change, and the API cannot determine which workers
	// are alive.
	dependencies = append(dependencies,
		health.Dependency{Name: "leases", Checker: health.CheckFunc(c.events.checkLeases), Used: both})
	if c.workers != nil {
		dependencies = append(dependencies,
			health.Dependency{Name: "pollers", Checker: c.workers, Required: []string{config.RoleWorker}})
	}
	if c.runner != nil {
		dependencies = append(dependencies,
			health.Dependency{Name: "runner pollers", Checker: c.runner, Required: []string{config.RoleRunner}})
	}
	return health.New(time.Now, dependencies, c.roles()...)
}

// newStatus creates the service of the status of the platform.
func newStatus(c *components) *system.Service {
	queue := c.cfg.Runs.QueueWhenUnavailable
	return system.NewService(c.connection.manager, c.storage, c.runs.reconciler, c.storage, c.storage, system.Options{
		Version: c.version, ServerID: c.serverID, Roles: c.roles(), StartedAt: time.Now(), Now: time.Now,
		Fingerprint: c.connection.fingerprint, Health: c.health.Report, Maintenance: c.maintenance,
		Placement: c.connection.placement,
		Store:     c.storage.Facts, Projects: c.storage.ListProjects, QueueName: contract.TaskQueue,
		Queue:     c.connection.engine.Queue,
		Runners:   c.connection.engine.Runners,
		Permitted: func(p project.Project) []string { return permittedKinds(p, c.cfg.Runner.Kinds) },
		Restore:   restoreSources{c.storage.Store, c}, Processor: c.processor.State,
		QueueMode: system.QueueMode{Enabled: queue.Enabled, MaxRuns: queue.MaxRuns, TTL: queue.TTL},
	})
}

// restoreSources has what a restored database is compared with: the store, and the following.
type restoreSources struct {
	*store.Store

	c *components
}

// LacksPayload implements [system.RestoreSources].
func (s restoreSources) LacksPayload(ctx context.Context, runID string) (bool, error) {
	return s.c.connection.engine.LacksPayload(ctx, runID)
}

// Schedules implements [system.RestoreSources].
func (s restoreSources) Schedules(ctx context.Context) (expected int, lacking []string, err error) {
	return s.c.connection.engine.Schedules().Lacking(ctx)
}

// Dispatchers implements [system.RestoreSources].
func (s restoreSources) Dispatchers(ctx context.Context) (all int, unowned []string, err error) {
	list, err := s.c.events.overview.List(ctx)
	for _, d := range list {
		if !d.Unserved && (d.Lease == nil || d.Lease.State != lease.Held) {
			unowned = append(unowned, d.Name.Project)
		}
	}
	return len(list), unowned, err
}

// SealingKeys implements [system.RestoreSources].
func (s restoreSources) SealingKeys(ctx context.Context) ([]sealingkey.State, error) {
	return sealingkey.List(ctx, s.Store, s.c.keys)
}

// observe registers the gauges of the process.
func (c *components) observe() error {
	states := telemetry.HealthStates{
		Dependencies: []string{health.Up, health.Impaired, health.Down},
		Roles:        []string{health.Ready, health.Degraded, health.Unavailable},
	}
	err := errors.Join(
		c.telemetry.ObserveHealth(states, c.healthStates), c.telemetry.ObservePools(c.storage.Pools),
		c.telemetry.ObserveClockSkew(c.storage.ClockSkew),
		c.telemetry.ObserveProcessor(c.processor.Totals), c.telemetry.ObserveActions(c.connection.engine.Actions().Counts),
		c.telemetry.ObserveDiagnosis(c.connection.diagnosis, c.diagnosis.watcher.Undecided),
	)
	if err != nil {
		return err
	}
	queue := c.cfg.Runs.QueueWhenUnavailable
	var queueLimit int64
	if queue.Enabled {
		queueLimit = int64(queue.MaxRuns)
	}
	return c.telemetry.Observe(telemetry.Observed{
		Connection: c.connection.manager.Status, QueuedRuns: c.runs.queue.Len,
		SharedWorkers: []string{contract.HandedOverCalls, contract.Fires},
		QueueLimit:    queueLimit,
		StuckRuns:     c.diagnosis.watcher.Counts, Mismatch: func() bool { return c.connection.placement.Title() != "" },
		Maintenance: func() (on, known bool) {
			state, known := c.maintenance.Last()
			return state.On, known
		},
		Memory: c.memory.Used, CertificateEnds: c.connection.certificate.ends,
	})
}

// healthStates returns the health of the process for its metrics.
func (c *components) healthStates(ctx context.Context) telemetry.Health {
	report, found := c.health.Report(ctx), telemetry.Health{Dependencies: map[string]string{}, Roles: map[string]string{}}
	for _, d := range report.Dependencies {
		found.Dependencies[d.Name] = d.State
	}
	for _, r := range report.Roles {
		found.Roles[r.Role] = r.Status
	}
	return found
}

// beginSeries exports the counters that do not belong to a project at 0, so that their rates include the first event.
// Those of the dispatchers begin with the first scrape after the creation of a project.
func (c *components) beginSeries(ctx context.Context) {
	for _, kind := range run.CorrectionKinds() {
		c.telemetry.Runs.BeginCorrections(ctx, string(kind))
	}
	c.telemetry.API.Begin(ctx, permission.RefusalReasons()...)
	c.telemetry.Runs.BeginSteps(ctx, endedSteps()...)
	c.telemetry.Webhooks.Begin(ctx, sender.Outcomes()...)
	c.telemetry.Batches.Begin(ctx, endedOutcomes()...)
}
