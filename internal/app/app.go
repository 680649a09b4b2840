// Package app composes one Signalbox process from its parts, as a library: a program, a test or another program's
// process makes as many as it wants.
//
//	a, err := app.New(ctx, app.Options{Config: cfg, Version: version, Log: log})
//	err = a.Start(ctx)   // listens; does not wait for Temporal
//	a.Addr()
//	err = a.Stop(ctx)    // drains within ctx
//
// It holds no state outside an [App], handles no signals, and never ends the process.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"connectrpc.com/connect"
	"github.com/google/uuid"
	temporalworker "go.temporal.io/sdk/worker"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/app/crew"
	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/config/sealconfig"
	"github.com/signalbox-dev/signalbox/internal/dispatcher"
	"github.com/signalbox-dev/signalbox/internal/engine"
	"github.com/signalbox-dev/signalbox/internal/engine/claimcheck"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/httpcall"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/health"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/memory"
	"github.com/signalbox-dev/signalbox/internal/notice"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/quota"
	"github.com/signalbox-dev/signalbox/internal/rpc"
	"github.com/signalbox-dev/signalbox/internal/rpc/handler"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/control"
	"github.com/signalbox-dev/signalbox/internal/run/placement"
	"github.com/signalbox-dev/signalbox/internal/run/queue"
	"github.com/signalbox-dev/signalbox/internal/run/reconciler"
	"github.com/signalbox-dev/signalbox/internal/run/vault"
	"github.com/signalbox-dev/signalbox/internal/seal"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/payloads"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/system"
	"github.com/signalbox-dev/signalbox/internal/telemetry"
	"github.com/signalbox-dev/signalbox/internal/worker"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

// Options say what to compose.
type Options struct {
	Config  *config.Config
	Version string
	Log     *slog.Logger
	// Memory is the memory limit of the process, which main has applied. The zero value is none.
	Memory memory.Limit
	// Keys seal sensitive values; nil: those that the configuration names.
	Keys *seal.Ring
}

// giveUpWithin bounds the clean-up after a start that failed.
const giveUpWithin = 5 * time.Second

// part is anything with a life of its own.
type part interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
}

// step is a part in its place in the order.
type step struct {
	part
	// opened tells that the part holds something from New on, and must be stopped even where it never started.
	opened bool
}

// App is one process's worth of Signalbox. It is started once and stopped once.
type App struct {
	cfg    *config.Config
	log    *slog.Logger
	keys   *seal.Ring
	health *health.Health
	memory *memory.Monitor
	store  *store.Store
	// payloads are what Temporal refers to.
	payloads *claimcheck.Storage
	engine   *engine.Engine
	api      *rpc.Server

	// steps in the order they start; they stop in reverse. started counts those that did.
	steps   []step
	started int
}

// New opens the store and wires everything. Nothing listens, polls or migrates before Start.
func New(ctx context.Context, opts Options) (*App, error) {
	cfg := opts.Config
	a := &App{cfg: cfg, log: opts.Log, keys: opts.Keys}
	if a.keys == nil {
		keys, err := sealconfig.Ring(cfg.Encryption)
		if err != nil {
			return nil, err
		}
		a.keys = keys
	}
	tel, err := telemetry.New(telemetry.Options{ServiceName: cfg.Telemetry.ServiceName, Version: opts.Version, Log: opts.Log})
	if err != nil {
		return nil, err
	}
	a.then(step{tel, true})
	a.memory = memory.NewMonitor(memory.Options{Limit: opts.Memory, Relieve: temporalworker.PurgeStickyWorkflowCache, Log: opts.Log})
	a.then(step{a.memory, false})
	a.store, err = store.Open(ctx, store.Options{
		Driver: sqldb.Driver(cfg.Store.Driver), DSN: cfg.Store.DSN.Reveal(), AutoMigrate: cfg.Store.AutoMigrate,
	})
	if err != nil {
		return nil, errors.Join(err, a.unwind(ctx))
	}
	a.then(step{a.store, true})
	a.payloads = claimcheck.New(a.store.Payloads(), claimcheck.Options{MaxBytes: payloads.MaxBytes})
	if err := a.wire(opts, tel); err != nil { //nolint:contextcheck // a handshake brings its own
		return nil, errors.Join(err, a.unwind(ctx))
	}
	return a, nil
}

// then adds steps to the order.
func (a *App) then(steps ...step) { a.steps = append(a.steps, steps...) }

// wire makes the parts above the store.
func (a *App) wire(opts Options, tel *telemetry.Telemetry) error {
	cfg, now := a.cfg, time.Now
	serverID := newServerID()
	limits := dsl.DefaultLimits()
	limits.MaxBytes = int(cfg.Workflows.MaxDefinitionBytes)

	changes := notice.NewBoard()
	var events *eventing // made below, of what is made here
	ended := func(project string) { events.schedules.Ended(project) }
	var kids *children // as well
	over := func(runIDs ...string) { kids.watch.Ended(runIDs...) }
	documents := engine.NewDocuments(a.store, limits)
	safe := newSealing(a.keys, a.store, documents)
	rows := safe.rows
	written := observer{changes, tel.Runs, ended, over}
	tap, writer := projecting(rows, written, now)
	repeated := engine.NewRepeated()
	manager, err := a.connect(serverID, tel, tap, repeated)
	if err != nil {
		return err
	}
	a.engine = engine.New(engine.Options{
		Connection: manager, Address: cfg.Temporal.Address, Namespace: cfg.Temporal.Namespace,
		ServerID: serverID, Keys: a.keys, Payloads: a.payloads, Sensitive: safe.Sensitive, Limits: flowLimits(cfg), MaxSteps: stepLimit(a.store, cfg.Runs.MaxSteps),
		Log: a.log, Now: now,
	}, documents, tap)
	starter := safe.Engine(a.engine)
	a.then(step{writer, false}, step{manager, false})

	projects := project.NewService(a.store, now)
	workflows := workflow.NewService(definitions{a.store, func() { events.schedules.Wake() }}, a.store, limits, now)
	workflows.LookFor(secrets(cfg.Secrets))
	fingerprint := func() worker.Fingerprint { return a.fingerprint(manager) }
	placed := a.placing(fingerprint)
	repairs := a.repairing(rows, tap, writer, written, tel)
	options := run.Options{
		MaxInputBytes: int(cfg.Runs.MaxInputBytes), StartTimeout: cfg.Runs.StartTimeout, AnswerWithin: cfg.Runs.AnswerWithin,
		Queue: queueOptions(cfg), Workers: placed, Interpreter: interp.Version,
		Now: now, Metrics: tel.Runs, Originals: safe.Vault, Redact: safe.Text, Digests: a.keys, Admit: a.memory.Admit, Holds: holds(tap, writer), Requested: repairs.Wake,
		Changed: written.Changed,
	}
	runs := control.New(run.NewService(rows, starter, workflows, documents, changes, options), rows, starter, changes, options)
	runs.Locate(whereabouts{a.store, a.engine})
	a.then(step{ender{runs.Close}, false})
	kids = a.children(runs)
	if events, err = a.eventing(opts, serverID, tel, manager, runs.Service, safe); err != nil {
		return err
	}
	quotas, err := a.quotas(runs, starter, manager, changes, options, tel)
	if err != nil {
		return err
	}
	batches := a.batching(manager, workflows, runs, safe.batches)
	waiting := queue.New(runs.Service, rows, starter, changes, options)
	watcher, failures := a.stuck(manager, tap, changes, events.events, fingerprint, safe, runs)
	compare := reconciler.New(rows, inspecting{starter, a.engine}, reconciler.Options{
		StartTimeout: cfg.Runs.StartTimeout, Now: now, Metrics: tel.Runs, Changes: changes, Imports: a.store,
		Requested: repairs.Wake,
	})
	manager.OnConnect("queue and reconciler", wake(runs.Service, waiting, compare))
	platform := system.NewService(link{manager}, a.store, comparer{compare}, a.store, a.store, system.Options{
		Version: opts.Version, ServerID: serverID, Roles: roles(cfg), StartedAt: now(), Now: now,
		Fingerprint: fingerprint, Mismatch: placed.Mismatch, Dependencies: a.dependenciesNow,
		QueueMode: system.QueueMode{
			Enabled: cfg.Runs.QueueWhenUnavailable.Enabled, MaxRuns: cfg.Runs.QueueWhenUnavailable.MaxRuns, TTL: cfg.Runs.QueueWhenUnavailable.TTL,
		},
	})
	if err := tel.Observe(telemetry.Observed{Connection: link{manager}.Connection, CallWorkers: contract.HandedOverCalls, QueuedRuns: waiting.Len, StuckRuns: watcher.Counts,
		Mismatch: func() bool { return placed.Mismatch() != "" }, Memory: a.memory.Used}); err != nil {
		return err
	}
	dependencies := append(a.dependencies(link{manager}, placed), events.dependency())
	var workers *engine.Workers
	if cfg.HasRole(config.RoleWorker) {
		caller := httpcall.New(httpcall.Options{
			AllowPrivate: cfg.Calls.Networks(), UserAgent: "signalbox/" + opts.Version, Secrets: secrets(cfg.Secrets), Repeated: repeated.Has, Writable: a.payloads.Writable,
		})
		workers = engine.NewWorkers(a.engine, a.store, caller, workerOptions(cfg, events, kids, quotas))
		dependencies = append(dependencies, health.Dependency{Name: "pollers", Checker: workers, Required: []string{config.RoleWorker}})
		a.then(step{closer{caller.Close}, true})
	}
	a.health = health.New(now, dependencies, roles(cfg)...)
	codec, err := a.codec()
	if err != nil {
		return err
	}
	a.api, err = a.listener(tel, a.rpcOptions(opts.Version, serverID, tel, services{workflows, runs, projects, platform, events.events,
		dispatcher.NewService(crew.New(events.overview, events.dispatchers), events.events, a.store, now), events.schedules, batches.service, quotas.service, vault.NewViewer(safe.Vault, runs, a.store, now), a.explaining(safe, documents), codec}))
	if err != nil {
		return err
	}
	a.then(step{a.api, false}, step{placed, false}, step{waiting, false}, step{quotas.admission, false}, step{quotas.service, false}, step{batches.runner, false}, step{a.keeper(tel), false}, step{events.schedules, false}, step{watcher, false}, step{failures, false})
	a.migration(tel)
	if workers != nil {
		heartbeat := a.heartbeat(serverID, manager, fingerprint)
		a.then(step{workers, false}, step{heartbeat, false}, step{repairs, false}, step{compare, false}, step{events.dispatchers, false})
	}
	return nil
}

// dependencies are what every process needs, whatever its roles.
func (a *App) dependencies(temporal link, placed *placement.Monitor) []health.Dependency {
	return []health.Dependency{
		{Name: "store", Checker: health.CheckFunc(a.store.Ping), Required: []string{config.RoleAPI, config.RoleWorker}},
		{Name: "temporal", Condition: temporal.condition, Required: []string{config.RoleWorker}, Used: []string{config.RoleAPI}},
		{Name: "placement", Checker: health.CheckFunc(placed.Healthy), Used: []string{config.RoleAPI, config.RoleWorker}},
		{Name: "memory", Checker: a.memory, Used: []string{config.RoleAPI, config.RoleWorker}},
	}
}

// dependenciesNow returns the states that /readyz shows.
func (a *App) dependenciesNow(ctx context.Context) []system.Dependency {
	var list []system.Dependency
	for _, d := range a.health.Report(ctx).Dependencies {
		shown := system.Dependency{Name: d.Name, State: d.State, Since: d.Since}
		if d.State != health.Up {
			shown.Error = d.LastError
		}
		list = append(list, shown)
	}
	return list
}

// services are what the API is a face of.
type services struct {
	workflows *workflow.Service
	runs      *control.Service
	projects  *project.Service
	platform  *system.Service
	events    *event.Service

	dispatchers *dispatcher.Service
	clock       handler.Clock
	batches     *batch.Service
	quotas      *quota.Service
	unredacted  handler.Unredacted
	explainer   handler.Explainer
	codec       rpc.Codec
}

// shedding reports whether diagnosis and repair are suspended for want of memory.
func (a *App) shedding() bool { return a.memory.Level() >= memory.High }

// rpcOptions describes the listener. A process without the API role serves health and metrics alone.
func (a *App) rpcOptions(version, serverID string, tel *telemetry.Telemetry, s services) rpc.Options {
	options := rpc.Options{
		Address: a.cfg.Listen, MaxConnections: a.cfg.API.MaxConnections,
		Metrics: tel.Handler(), Livez: http.HandlerFunc(a.health.Livez), Readyz: http.HandlerFunc(a.health.Readyz),
		Serving:           func(ctx context.Context) bool { return a.health.Report(ctx).Status != health.Unavailable },
		Interceptors:      []connect.Interceptor{tel.API},
		MaxRequestBytes:   int64(a.cfg.API.MaxRequestBytes),
		System:            handler.SystemInfo{Version: version, Interpreter: interp.Version, ServerID: serverID},
		TemporalNamespace: a.cfg.Temporal.Namespace, TaskQueue: contract.TaskQueue, Platform: s.platform,
	}
	if a.cfg.HasRole(config.RoleAPI) {
		options.Unredacted, options.Explainer, options.Codec = s.unredacted, s.explainer, s.codec
		options.Workflows, options.Runs, options.Projects, options.Audit = s.workflows, s.runs, s.projects, a.store
		options.Events, options.EventLimits, options.Dispatchers = s.events, eventLimits(a.cfg), s.dispatchers
		options.Touched, options.Clock, options.Batches = s.events, s.clock, s.batches
		options.Quotas = s.quotas
	}
	return options
}

// Start starts all parts in order. When one fails, everything is stopped and closed, and its error is returned.
func (a *App) Start(ctx context.Context) error {
	ctx = config.WithContext(logger.WithContext(ctx, a.log), a.cfg)
	for _, s := range a.steps {
		if err := s.Start(ctx); err != nil {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveUpWithin)
			defer cancel()
			return errors.Join(err, a.Stop(ctx))
		}
		a.started++
	}
	return nil
}

// Stop makes the process unavailable, then stops the parts in reverse order, each within what is left of ctx. It also
// closes what New opened for an app that was never started.
func (a *App) Stop(ctx context.Context) error {
	a.health.Drain()
	return a.unwind(logger.WithContext(ctx, a.log))
}

// unwind stops what has started and closes what was opened, the last one first.
func (a *App) unwind(ctx context.Context) error {
	var errs []error
	for i, s := range slices.Backward(a.steps) {
		if i < a.started || s.opened {
			errs = append(errs, s.Stop(ctx))
		}
	}
	a.steps, a.started = nil, 0
	return errors.Join(errs...)
}

// Addr returns where the process listens, once started.
func (a *App) Addr() net.Addr { return a.api.Addr() }

// Health returns the state of the process.
func (a *App) Health(ctx context.Context) health.Report { return a.health.Report(ctx) }

func workerOptions(cfg *config.Config, e *eventing, kids *children, q quotaParts) engine.WorkerOptions {
	return engine.WorkerOptions{
		Children:        kids.service,
		Events:          e.events,
		Quota:           q.grant,
		Extend:          e.work,
		Served:          e.serve,
		Projects:        cfg.Projects,
		WorkflowTasks:   cfg.Worker.MaxConcurrentWorkflowTasks,
		Activities:      cfg.Worker.MaxConcurrentActivities,
		LocalActivities: cfg.Worker.MaxConcurrentLocalActivities,
		StopTimeout:     cfg.Worker.StopTimeout,
	}
}

func queueOptions(cfg *config.Config) run.QueueOptions {
	q := cfg.Runs.QueueWhenUnavailable
	return run.QueueOptions{Enabled: q.Enabled, MaxRuns: q.MaxRuns, TTL: q.TTL, Rate: float64(q.Rate)}
}

// projectReader reads a project with its settings.
type projectReader interface {
	GetProject(ctx context.Context, name string) (project.Project, error)
}

// stepLimit gives how many steps a new run of a project may enter: the configured number, or the project's where that is lower.
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

func flowLimits(cfg *config.Config) flow.Limits {
	limits := flow.DefaultLimits()
	limits.CallTimeout, limits.CallResult = cfg.Calls.Timeout, int64(cfg.Calls.MaxResponseBytes)
	return limits
}

// roles lists the process's roles, the one that decides its health first.
func roles(cfg *config.Config) []string {
	var out []string
	for _, role := range []string{config.RoleAPI, config.RoleWorker} {
		if cfg.HasRole(role) {
			out = append(out, role)
		}
	}
	return out
}

// newServerID identifies this start of the process; it never becomes part of a workflow ID.
func newServerID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	const random = 8
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), uuid.NewString()[:random])
}
