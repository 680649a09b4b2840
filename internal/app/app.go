// Package app assembles one Signalbox process from its components, as a library: one program or test can run several.
//
//	a, err := app.New(ctx, app.Options{Config: cfg, Version: version, Log: log})
//	err = a.Start(ctx)   // listens; does not wait for Temporal
//	a.Addr()
//	err = a.Stop(ctx)    // drains within ctx
//
// All state is in an [App]. The package handles no signals and never exits the process.
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

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/config/sealconfig"
	"github.com/signalbox-dev/signalbox/internal/dispatcher"
	"github.com/signalbox-dev/signalbox/internal/engine"
	"github.com/signalbox-dev/signalbox/internal/engine/codec"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/httpcall"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/health"
	"github.com/signalbox-dev/signalbox/internal/keyring"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/memory"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/quota"
	"github.com/signalbox-dev/signalbox/internal/rpc"
	"github.com/signalbox-dev/signalbox/internal/rpc/handler"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/control"
	"github.com/signalbox-dev/signalbox/internal/run/pending"
	"github.com/signalbox-dev/signalbox/internal/run/placement"
	"github.com/signalbox-dev/signalbox/internal/run/reconcile"
	"github.com/signalbox-dev/signalbox/internal/sealed"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/payloads"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/system"
	"github.com/signalbox-dev/signalbox/internal/telemetry"
	"github.com/signalbox-dev/signalbox/internal/worker"
	"github.com/signalbox-dev/signalbox/internal/workflow"
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

// part is a component with a lifecycle.
type part interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
}

// step is a part in the start order.
type step struct {
	part
	// opened reports that the part holds resources from New on and must be stopped even if it was never started.
	opened bool
}

// App is one Signalbox process. It is started once and stopped once.
type App struct {
	cfg    *config.Config
	log    *slog.Logger
	keys   *keyring.Ring
	health *health.Health
	memory *memory.Monitor
	store  *store.Store
	// payloads stores the large payloads that Temporal histories refer to.
	payloads *codec.Storage
	engine   *engine.Engine
	api      *rpc.Server

	// steps are in start order; Stop runs them in reverse. started counts the steps whose Start succeeded.
	steps   []step
	started int
}

// New opens the store and wires all parts. Nothing listens, polls or migrates before Start.
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
	a.add(step{tel, true})
	a.memory = memory.NewMonitor(memory.Options{Limit: opts.Memory, Relieve: temporalworker.PurgeStickyWorkflowCache, Log: opts.Log})
	a.add(step{a.memory, false})
	a.store, err = store.Open(ctx, store.Options{
		Driver: sqldb.Driver(cfg.Store.Driver), DSN: cfg.Store.DSN.Reveal(), AutoMigrate: cfg.Store.AutoMigrate,
	})
	if err != nil {
		return nil, errors.Join(err, a.unwind(ctx))
	}
	a.add(step{a.store, true})
	a.payloads = codec.New(a.store.Payloads(), codec.Options{MaxBytes: payloads.MaxBytes})
	if err := a.wire(opts, tel); err != nil { //nolint:contextcheck // each TLS handshake has its own context
		return nil, errors.Join(err, a.unwind(ctx))
	}
	return a, nil
}

// add appends steps to the start order.
func (a *App) add(steps ...step) { a.steps = append(a.steps, steps...) }

// wire creates the parts above the store.
func (a *App) wire(opts Options, tel *telemetry.Telemetry) error {
	cfg, now := a.cfg, time.Now
	serverID := newServerID()
	limits := dsl.DefaultLimits()
	limits.MaxBytes = int(cfg.Workflows.MaxDefinitionBytes)

	changes := pubsub.NewNotifier()
	var events *eventParts // assigned below, after the parts it depends on
	projectRunEnded := func(project string) { events.schedules.Ended(project) }
	var childRuns *childParts // also assigned below
	runsEnded := func(runIDs ...string) { childRuns.watch.Ended(runIDs...) }
	documents := engine.NewDocuments(a.store, limits)
	stores := newSealedStores(a.keys, a.store, documents)
	rows := stores.rows
	written := observer{changes, tel.Runs, projectRunEnded, runsEnded}
	tap, writer := newProjection(rows, written, now)
	repeated := engine.NewRepeated()
	manager, err := a.connect(serverID, tel, tap, repeated)
	if err != nil {
		return err
	}
	a.engine = engine.New(engine.Options{
		Connection: manager, Address: cfg.Temporal.Address, Namespace: cfg.Temporal.Namespace,
		ServerID: serverID, Keys: a.keys, Payloads: a.payloads, Sensitive: stores.Sensitive, Limits: flowLimits(cfg), MaxSteps: stepLimit(a.store, cfg.Runs.MaxSteps),
		Log: a.log, Now: now,
	}, documents, tap)
	starter := stores.Engine(a.engine)
	a.add(step{writer, false}, step{manager, false})

	projects := project.NewService(a.store, now)
	workflows := workflow.NewService(workflowStore{a.store, func() { events.schedules.Wake() }}, a.store, limits, now)
	workflows.SetSecretProvider(secrets(cfg.Secrets))
	fingerprint := func() worker.Fingerprint { return a.fingerprint(manager) }
	placed := a.newPlacementMonitor(fingerprint)
	repairs := a.newRepairer(rows, tap, writer, written, tel)
	options := run.Options{
		MaxInputBytes: int(cfg.Runs.MaxInputBytes), StartTimeout: cfg.Runs.StartTimeout, AnswerWithin: cfg.Runs.AnswerWithin,
		Queue: queueOptions(cfg), Workers: placed, Interpreter: interp.Version,
		Now: now, Metrics: tel.Runs, Originals: stores.Sealer, Redact: stores.Text, Digests: a.keys, Admit: a.memory.Admit, Holds: holds(tap, writer), Requested: repairs.Wake,
		Changed: written.Changed,
	}
	runs := control.New(run.NewService(rows, starter, workflows, documents, changes, options), rows, starter, changes, options)
	runs.SetClusterReader(clusterReader{a.store, a.engine})
	a.add(step{stopper{runs.Close}, false})
	childRuns = a.newChildParts(runs)
	if events, err = a.newEventParts(opts, serverID, tel, manager, runs.Service, stores); err != nil {
		return err
	}
	quotas, err := a.newQuotaParts(runs, manager, changes, options, tel)
	if err != nil {
		return err
	}
	batches := a.newBatchParts(manager, workflows, runs, stores.batches)
	waiting := pending.NewQueue(runs.Service, rows, changes, options)
	watcher, failures := a.newDiagnosis(manager, tap, changes, events.events, fingerprint, stores, runs)
	compare := reconcile.New(rows, a.engine, runs.Service, reconcile.Options{
		StartTimeout: cfg.Runs.StartTimeout, Now: now, Metrics: tel.Runs, Changes: changes, Imports: a.store,
		Requested: repairs.Wake,
	})
	manager.OnConnect("queue and reconciler", resumeOnConnect(runs.Service, waiting, compare))
	platform := system.NewService(manager, a.store, compare, a.store, a.store, system.Options{
		Version: opts.Version, ServerID: serverID, Roles: roles(cfg), StartedAt: now(), Now: now,
		Fingerprint: fingerprint, Health: a.Health,
		QueueMode: system.QueueMode{
			Enabled: cfg.Runs.QueueWhenUnavailable.Enabled, MaxRuns: cfg.Runs.QueueWhenUnavailable.MaxRuns, TTL: cfg.Runs.QueueWhenUnavailable.TTL,
		},
	})
	certificate := &clientCertificate{temporal: a.cfg.Temporal, now: now, log: a.log}
	if err := tel.Observe(telemetry.Observed{Connection: manager.Status, CallWorkers: contract.HandedOverCalls, QueuedRuns: waiting.Len, StuckRuns: watcher.Counts,
		Mismatch: func() bool { return placed.Mismatch() != "" }, Memory: a.memory.Used, CertificateEnds: certificate.ends}); err != nil {
		return err
	}
	dependencies := append(a.dependencies(manager, certificate, placed), events.dependency())
	var workers *engine.Workers
	if cfg.HasRole(config.RoleWorker) {
		caller := httpcall.New(httpcall.Options{
			AllowPrivate: cfg.Calls.Networks(), UserAgent: "signalbox/" + opts.Version, Secrets: secrets(cfg.Secrets), Repeated: repeated.Has, Writable: a.payloads.Writable,
		})
		workers = engine.NewWorkers(a.engine, a.store, caller, workerOptions(cfg, events, childRuns, quotas))
		dependencies = append(dependencies, health.Dependency{Name: "pollers", Checker: workers, Required: []string{config.RoleWorker}})
		a.add(step{closer{caller.Close}, true})
	}
	a.health = health.New(now, dependencies, roles(cfg)...)
	codec, err := a.codecEndpoint()
	if err != nil {
		return err
	}
	a.api, err = a.newServer(tel, a.rpcOptions(opts.Version, serverID, tel, services{workflows, runs, projects, platform, events.events,
		dispatcher.NewService(dispatcher.Options{Overview: events.overview, Operator: events.dispatchers, History: events.events, Audit: a.store, Name: dispatcherName, Now: now}), events.schedules, batches.service, quotas.service, sealed.NewViewer(stores.Sealer, runs, a.store, now), a.newExplainer(stores, documents), codec}))
	if err != nil {
		return err
	}
	a.add(step{a.api, false}, step{placed, false}, step{waiting, false}, step{quotas.admission, false}, step{quotas.service, false}, step{batches.runner, false}, step{a.newRetention(tel), false}, step{events.schedules, false}, step{watcher, false}, step{failures, false})
	a.addMigration(tel)
	if workers != nil {
		heartbeat := a.newHeartbeat(serverID, manager, fingerprint)
		a.add(step{workers, false}, step{heartbeat, false}, step{repairs, false}, step{compare, false}, step{events.dispatchers, false})
	}
	return nil
}

// dependencies returns what every process depends on, whatever its roles.
func (a *App) dependencies(manager *conn.Manager, certificate *clientCertificate, placed *placement.Monitor) []health.Dependency {
	all := []health.Dependency{
		{Name: "store", Checker: health.CheckFunc(a.store.Ping), Required: []string{config.RoleAPI, config.RoleWorker}},
		{Name: "temporal", Condition: func() health.Condition { return connectionCondition(manager) }, Required: []string{config.RoleWorker}, Used: []string{config.RoleAPI}},
		{Name: "placement", Checker: health.CheckFunc(placed.Healthy), Used: []string{config.RoleAPI, config.RoleWorker}},
		{Name: "memory", Checker: a.memory, Used: []string{config.RoleAPI, config.RoleWorker}},
	}
	if certificate.used() {
		all = append(all, health.Dependency{Name: "certificate", Condition: certificate.condition, Used: []string{config.RoleAPI, config.RoleWorker}})
	}
	return all
}

// services are the domain services behind the API.
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

// shedsLoad reports whether diagnosis and repair are suspended because memory is short.
func (a *App) shedsLoad() bool { return a.memory.Level() >= memory.High }

// rpcOptions returns the options of the API server. A process without the API role serves only health, metrics and its own system status.
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
		options.RunDeliveries, options.Clock, options.Batches = s.events, s.clock, s.batches
		options.Quotas = s.quotas
	}
	return options
}

// Start starts all parts in order. If one fails, Start stops and closes all of them and returns the error.
func (a *App) Start(ctx context.Context) error {
	ctx = config.WithContext(logger.WithContext(ctx, a.log), a.cfg)
	for _, s := range a.steps {
		if err := s.Start(ctx); err != nil {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
			defer cancel()
			return errors.Join(err, a.Stop(ctx))
		}
		a.started++
	}
	return nil
}

// Stop makes the process unavailable, then stops the parts in reverse order within ctx. It also closes what New opened for an App
// that was never started.
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
		}
	}
	a.steps, a.started = nil, 0
	return errors.Join(errs...)
}

// Addr returns the listen address; the App must have been started.
func (a *App) Addr() net.Addr { return a.api.Addr() }

// Health returns the state of the process.
func (a *App) Health(ctx context.Context) health.Report { return a.health.Report(ctx) }

func workerOptions(cfg *config.Config, e *eventParts, childRuns *childParts, q quotaParts) engine.WorkerOptions {
	return engine.WorkerOptions{
		Children:        childRuns.service,
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

// stepLimit returns how many steps a new run of a project may enter: the configured number, or the project's own if that is lower.
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

// roles lists the roles of the process. The first one decides whether the process is ready.
func roles(cfg *config.Config) []string {
	var out []string
	for _, role := range []string{config.RoleAPI, config.RoleWorker} {
		if cfg.HasRole(role) {
			out = append(out, role)
		}
	}
	return out
}

// newServerID returns the identity of this start of the process. It is never part of a workflow ID.
func newServerID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	const random = 8
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), uuid.NewString()[:random])
}
