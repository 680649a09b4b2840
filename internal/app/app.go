// Package app assembles one Signalbox process from its components, as a library: one program or test can run several.
//
//	a, err := app.New(ctx, app.Options{Config: cfg, Version: version, Log: log})
//	err = a.Start(ctx)   // listens; does not wait for Temporal
//	a.Addr()
//	err = a.Stop(ctx)    // drains within ctx
//
// Each component is a struct in a file of its own: its constructor wires one subsystem from the components that it is
// given, and returns what it offers to others. [App] has them all, and the one ordered list of their steps.
//
// All state is in an [App]. The package handles no signals and never exits the process.
package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/internal/annotation"
	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/engine/httpcall"
	"github.com/signalbox-dev/signalbox/internal/health"
	"github.com/signalbox-dev/signalbox/internal/keyring"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/maintenance"
	"github.com/signalbox-dev/signalbox/internal/memory"
	"github.com/signalbox-dev/signalbox/internal/rpc"
	"github.com/signalbox-dev/signalbox/internal/sealingkey"
	"github.com/signalbox-dev/signalbox/internal/server"
	"github.com/signalbox-dev/signalbox/internal/telemetry"
)

// Options configure an App.
type Options struct {
	Config  *config.Config
	Version string
	Log     *slog.Logger
	// Memory is the memory limit that main has applied to the process. The zero value means no limit.
	Memory memory.Limit
	// Keys seal sensitive values. If nil, New loads the keys that the configuration names.
	Keys *keyring.Ring
}

// cleanupTimeout bounds the cleanup after a failed start.
const cleanupTimeout = 5 * time.Second

// part is a part of a component with a lifecycle.
type part interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
}

// stopOnly is a part that needs no start.
type stopOnly func(ctx context.Context) error

// Start implements [part].
func (stopOnly) Start(context.Context) error { return nil }

// Stop implements [part].
func (s stopOnly) Stop(ctx context.Context) error { return s(ctx) }

// startOnly is a part that only does something at the start of the process.
type startOnly func(ctx context.Context) error

// Start implements [part].
func (s startOnly) Start(ctx context.Context) error { return s(ctx) }

// Stop implements [part].
func (startOnly) Stop(context.Context) error { return nil }

// step is a named part in the start order.
type step struct {
	name string
	part
	// opened reports that the part holds resources from New on and must be stopped even if it was never started.
	opened bool
}

// components are the subsystems of one process.
type components struct {
	*process

	storage     *storage
	records     *records
	connection  *connection
	calls       *httpcall.Caller
	definitions *definitions
	maintenance *maintenance.Mode
	runs        *runs
	events      *events
	webhooks    *webhooks
	quotas      *quotaControl
	batches     *batches
	diagnosis   *diagnosis
	problems    *problems // nil without the API role
	workers     *workers  // nil without the role
	runner      *runner   // nil without the role
	heartbeat   *server.Heartbeat
	health      *health.Health
}

// App is one Signalbox process. It is started once and stopped once.
type App struct {
	components

	api *rpc.Server
	// steps are in start order; Stop runs them in reverse. started counts the steps whose Start succeeded.
	steps   []step
	started int
}

// New opens the store and wires all components. Nothing listens, polls or migrates before Start.
func New(ctx context.Context, opts Options) (*App, error) {
	p, err := newProcess(ctx, opts)
	if err != nil {
		return nil, err
	}
	a := &App{components: components{process: p}}
	wire := a.wire
	if p.cfg.RunsProgramsAlone() {
		wire = a.wireRunner
	}
	if err := wire(ctx); err != nil {
		return nil, errors.Join(err, a.unwind(ctx))
	}
	return a, nil
}

// wire creates the components and adds their steps, in start order.
func (a *App) wire(ctx context.Context) (err error) {
	a.open("telemetry", a.telemetry)
	a.add("memory monitor", a.memory)
	a.add("processor monitor", a.processor)
	if a.cfg.Telemetry.ProfileListen != "" {
		a.add("profiles", telemetry.NewProfiles(a.cfg.Telemetry.ProfileListen))
	}
	if a.storage, err = openStorage(ctx, a.process); err != nil {
		return err
	}
	a.open("store", a.storage.Store)
	a.open("payloads", stopOnly(a.storage.values.Stop))
	a.add("sealing keys", sealingkey.NewRecorder(a.storage, a.keys))

	a.heartbeat = server.NewHeartbeat(a.storage,
		server.Server{ID: a.serverID, Instance: instance(a.cfg.Listen), Roles: a.roles(), Version: a.version})
	a.maintenance = maintenance.New(a.storage, time.Now)
	a.add("maintenance mode", a.maintenance)

	a.records = newRecords(a.telemetry.Runs)
	if a.connection, err = newConnection(a.process, a.storage, a.records); err != nil {
		return err
	}
	a.add("row writer", a.connection.engine.Writer())
	a.add("connection", a.connection.manager)
	a.add("outages", annotation.NewRecorder(a.connection.manager.Status, a.storage.Annotations(), a.serverID, time.Now))

	a.calls = newCaller(&a.components)
	a.open("HTTP calls", stopOnly(func(context.Context) error {
		a.calls.Close()
		return nil
	}))
	a.definitions = newDefinitions(a.process, a.storage, a.connection, a.calls)
	a.runs = newRuns(a.process, a.storage, a.records, a.connection, a.definitions, a.maintenance)
	a.add("run service", stopOnly(a.runs.service.Close))
	a.add("child watcher", a.runs.childWatcher)

	leases, closeLeases, err := openLeases(a.cfg.Redis)
	if err != nil {
		return err
	}
	a.open("leases", closeLeases)
	if a.events, err = newEvents(a.process, a.storage, a.connection, a.runs, leases); err != nil {
		return err
	}
	a.add("events", a.events.service)
	a.add("inbox", a.events.inbox)

	if a.webhooks, err = newWebhooks(a.process, a.storage); err != nil {
		return err
	}
	if a.quotas, err = newQuotaControl(a.process, a.storage, a.records, a.connection, a.runs); err != nil {
		return err
	}
	a.batches = newBatches(a.storage, a.connection, a.definitions, a.runs, a.telemetry.Batches)
	a.diagnosis = newDiagnosis(&a.components)
	if a.cfg.HasRole(config.RoleWorker) {
		a.workers = newWorkers(&a.components)
	}
	if a.cfg.HasRole(config.RoleRunner) {
		if a.runner, err = newRunner(ctx, a.process, a.connection.manager, a.storage.Activity()); err != nil {
			return err
		}
		a.open("programs", a.runner.programs)
	}
	a.health = newHealth(&a.components)
	if err := a.observe(); err != nil {
		return err
	}
	if a.cfg.HasRole(config.RoleAPI) {
		if a.problems, err = newProblems(&a.components); err != nil {
			return err
		}
	}
	return a.wireAPI() //nolint:contextcheck // each TLS handshake has its own context
}

// wireAPI creates the API, and adds the steps of the parts that start once it listens. Dispatchers are owned last.
func (a *App) wireAPI() (err error) {
	tokens := newTokens(a.process, a.storage)
	if a.api, err = newAPI(&a.components, tokens); err != nil {
		return err
	}
	a.add("tokens", tokens)
	a.add("API server", a.api)
	a.add("server heartbeat", a.heartbeat)
	a.add("placement monitor", a.connection.placement)
	a.add("queue", a.runs.queue)
	a.add("admission", a.quotas.admission)
	a.add("quotas", a.quotas.service)
	a.add("batch runner", a.batches.runner)
	a.add("batch observer", a.batches.observer)
	a.add("secrets of webhooks", startOnly(a.webhooks.service.Reseal))
	a.add("webhooks", a.webhooks.sender)
	a.add("connection events", a.newConnectionEvents())
	a.add("failure events", a.newFailureEvents())
	a.add("retention", newRetention(a.process, a.storage, a.connection))
	a.add("schedules", a.connection.engine.Schedules())
	a.add("diagnosis", a.diagnosis.watcher)
	a.add("task failures", a.diagnosis.failures)
	if a.problems != nil {
		a.add("problems", a.problems.recorder)
	}
	a.add("migration", a.storage.migration)
	if a.workers != nil {
		a.add("parking", a.workers.parking)
		a.add("workers", a.workers.Workers)
		a.add("heartbeat", a.workers.heartbeat)
		a.add("repairer", a.runs.repairer)
		a.add("reconciler", a.runs.reconciler)
		a.add("dispatchers", a.events.dispatchers)
	}
	if a.runner != nil {
		a.add("runners", a.runner.Runners)
	}
	return nil
}

// add appends a part to the start order.
func (a *App) add(name string, p part) { a.steps = append(a.steps, step{name: name, part: p}) }

// open appends a part to the start order that holds resources already.
func (a *App) open(name string, p part) { a.steps = append(a.steps, step{name, p, true}) }

// Start starts all parts in order. If one fails, Start stops and closes all of them and returns the error.
func (a *App) Start(ctx context.Context) error {
	ctx = config.WithContext(logger.WithContext(ctx, a.log), a.cfg)
	a.beginSeries(ctx)
	for _, s := range a.steps {
		if err := s.Start(ctx); err != nil {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
			defer cancel()
			return errors.Join(err, a.Stop(ctx))
		}
		a.log.DebugContext(ctx, "Started", "part", s.name)
		a.started++
	}
	return nil
}

// Stop makes the process unavailable, then stops the parts in reverse order within ctx. It also closes what New opened
// for an App that was never started.
func (a *App) Stop(ctx context.Context) error {
	a.health.Drain()
	return a.unwind(logger.WithContext(ctx, a.log))
}

// unwind stops the started parts and closes the opened ones, in reverse order.
func (a *App) unwind(ctx context.Context) error {
	var errs []error
	for i, s := range slices.Backward(a.steps) {
		if i < a.started || s.opened {
			errs = append(errs, s.Stop(ctx))
			a.log.DebugContext(ctx, "Stopped", "part", s.name)
		}
	}
	a.steps, a.started = nil, 0
	return errors.Join(errs...)
}

// Addr returns the listen address; the App must have been started.
func (a *App) Addr() net.Addr { return a.api.Addr() }

// Health returns the state of the process.
func (a *App) Health(ctx context.Context) health.Report { return a.health.Report(ctx) }
