package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/worker"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/dispatch"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/config/redisconfig"
	"github.com/signalbox-dev/signalbox/internal/dispatcher"
	"github.com/signalbox-dev/signalbox/internal/dispatcher/router"
	"github.com/signalbox-dev/signalbox/internal/engine/codec"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/schedule"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/event/match"
	"github.com/signalbox-dev/signalbox/internal/health"
	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/telemetry"
	"github.com/signalbox-dev/signalbox/internal/workflow"
	"github.com/signalbox-dev/signalbox/lease"
	"github.com/signalbox-dev/signalbox/lease/redislease"
)

// eventParts holds the parts that store events, match them and deliver them.
type eventParts struct {
	leases      lease.Store
	events      *event.Service
	inbox       *router.Router
	dispatchers *dispatch.Dispatchers
	overview    *dispatch.Overview
	schedules   *schedule.Reconciler
}

// openLeases opens the lease store: Redis, or this process's memory if no Redis is configured.
func (a *App) openLeases() (lease.Store, error) {
	if !a.cfg.Redis.Used() {
		return lease.NewMemory(), nil
	}
	options, err := redisconfig.Options(a.cfg.Redis)
	if err != nil {
		return nil, err
	}
	leases, err := redislease.Open(options)
	if err != nil {
		return nil, err
	}
	a.add(step{stopper{func(context.Context) error { return leases.Close() }}, true})
	return leases, nil
}

// newEventParts creates the parts that accept and deliver events. Every process can notify and query dispatchers; a process with the worker role
// also owns dispatchers after [dispatch.Dispatchers.Start].
func (a *App) newEventParts(opts Options, serverID string, tel *telemetry.Telemetry, manager *conn.Manager, runs *run.Service, stores *sealedStores) (*eventParts, error) {
	leases, err := a.openLeases()
	if err != nil {
		return nil, err
	}
	e := &eventParts{leases: leases}
	hints, timers := pubsub.NewNotifier(), a.store.Events()
	rows := stores.events
	e.events = event.NewService(rows, a.store, hints, e, event.Options{Limits: eventLimits(a.cfg), Now: time.Now})
	e.inbox = router.New(router.Options{Store: rows, Matcher: match.New(match.Options{}), Runs: runs, Waker: a.engine, Hints: hints, Reports: event.Platform{Service: e.events}})
	e.dispatchers, err = dispatch.New(dispatch.Options{
		ServerID: serverID, Build: opts.Version, Client: manager.Client, Namespace: a.cfg.Temporal.Namespace,
		Converter: codec.Converter(a.keys),
		Describe:  func() map[string]string { return heartbeatFacts(manager) },
		// A worker that does not poll yet must not own a dispatcher.
		Polls:  func(name dispatch.Name) bool { return manager.Polling(name.Project) },
		Leases: leases, Inbox: e.inbox, Journal: dispatcher.NewJournal(e.events, a.store),
		Timing: timing(a.cfg), Supervisor: supervisor(a.cfg), Metrics: tel.Dispatch(), Log: a.log,
	})
	if err != nil {
		return nil, err
	}
	e.overview, err = dispatch.NewOverview(dispatch.OverviewOptions{
		Client: manager.Client, Namespace: a.cfg.Temporal.Namespace, Leases: leases, Inbox: e.inbox, Timing: timing(a.cfg),
		LegacyIDs: a.cfg.Supervisor.LegacyIDs, Converter: codec.Converter(a.keys), Names: a.dispatcherNames,
	})
	if err != nil {
		return nil, err
	}
	if err := tel.ObserveDispatch(a.dispatchMetrics(e, manager)); err != nil {
		return nil, err
	}
	e.schedules = schedule.New(schedule.Options{Client: manager.Client, Timers: timers, Store: a.store, Now: time.Now})
	a.add(step{e.events, false}, step{e.inbox, false})
	return e, nil
}

// dispatcherName returns the name of a project's dispatcher.
func dispatcherName(project string) dispatch.Name {
	return dispatch.Name{Project: project, TaskQueue: contract.TaskQueue(project)}
}

// dispatcherNames returns the dispatcher names of all projects, including projects with a dispatcher that was never started.
func (a *App) dispatcherNames(ctx context.Context) ([]dispatch.Name, error) {
	const page = 500
	var names []dispatch.Name
	for after := ""; ; {
		projects, err := a.store.ListProjects(ctx, after, page)
		if err != nil {
			return nil, err
		}
		for _, p := range projects {
			names, after = append(names, dispatcherName(p.Name)), p.Name
		}
		if len(projects) < page {
			return names, nil
		}
	}
}

// dispatchMetrics returns the sources of the dispatcher metrics of this process, whatever its roles.
func (a *App) dispatchMetrics(e *eventParts, manager *conn.Manager) telemetry.Dispatching {
	return telemetry.Dispatching{
		Dispatchers: e.overview.List,
		Backlogs: func(ctx context.Context) ([]event.Backlog, error) {
			return a.store.Events().Backlogs(ctx, timing(a.cfg).WithDefaults().StaleAfter)
		},
		Begin: e.dispatchers.InitMetrics,
		Usable: func() bool {
			_, err := manager.Client()
			return err == nil
		},
	}
}

// Wake implements [event.Waker].
func (e *eventParts) Wake(ctx context.Context, project string) error {
	return e.dispatchers.Ring(ctx, dispatcherName(project))
}

// work registers the event workflows and activities on the worker of a project's task queue.
func (e *eventParts) work(_ string, r worker.Registry) {
	e.dispatchers.Register(r)
	schedule.Register(r, event.Platform{Service: e.events}, e.schedules)
}

// serve makes this process a candidate for ownership of a project's dispatcher.
func (e *eventParts) serve(project string) {
	_ = e.dispatchers.Serve(dispatcherName(project)) // names of projects are names of dispatchers
}

// dependency reports the lease store in the process's health. Without it no delivery is late or lost, but ownership cannot change, and the
// API cannot determine which workers are alive.
func (e *eventParts) dependency() health.Dependency {
	return health.Dependency{Name: "leases", Used: []string{config.RoleAPI, config.RoleWorker}, Checker: health.CheckFunc(func(ctx context.Context) error {
		if _, err := e.leases.Get(ctx, "health"); err != nil && !errors.Is(err, lease.ErrNotFound) {
			return fmt.Errorf("redis does not answer: %w", err)
		}
		return nil
	})}
}

// heartbeatFacts returns the facts that a worker adds to its heartbeat besides server ID and version.
func heartbeatFacts(m *conn.Manager) map[string]string {
	facts := dispatcher.Facts{Interpreter: interp.Version, Contract: contract.Fingerprint()}
	for _, w := range m.Status().Workers {
		if w.LastPoll.After(facts.LastPoll) {
			facts.LastPoll = w.LastPoll
		}
	}
	return facts.Encode()
}

func eventLimits(cfg *config.Config) event.Limits {
	return event.Limits{MaxDataBytes: int(cfg.Events.MaxDataBytes), MaxBatch: cfg.Events.MaxBatch}
}

func timing(cfg *config.Config) dispatch.Timing {
	d := cfg.Dispatch
	return dispatch.Timing{
		TTL: d.TTL, Renew: d.Renew, Heartbeat: d.Heartbeat, StaleAfter: d.StaleAfter, Retention: d.Retention, Idle: d.Idle,
		CheckEvery: d.CheckInterval,
	}
}

func supervisor(cfg *config.Config) dispatch.SupervisorOptions {
	s := cfg.Supervisor
	return dispatch.SupervisorOptions{Interval: s.Interval, Confirm: s.Confirm, MaxTerminations: s.MaxTerminations, LegacyIDs: s.LegacyIDs}
}

// workflowStore is the workflow store with a callback: every change wakes the schedule keeper.
type workflowStore struct {
	*store.Store

	changed func()
}

// Publish implements [workflow.Store].
func (d workflowStore) Publish(
	ctx context.Context, v workflow.Version, newer func(a, b string) bool, e audit.Entry,
) (workflow.Version, bool, error) {
	defer d.changed()
	return d.Store.Publish(ctx, v, newer, e)
}

// SetPaused implements [workflow.Store].
func (d workflowStore) SetPaused(ctx context.Context, project, name string, paused bool, reason string, e audit.Entry) (workflow.Workflow, error) {
	defer d.changed()
	return d.Store.SetPaused(ctx, project, name, paused, reason, e)
}

// DeleteWorkflow implements [workflow.Store].
func (d workflowStore) DeleteWorkflow(ctx context.Context, project, name string, e audit.Entry) error {
	defer d.changed()
	return d.Store.DeleteWorkflow(ctx, project, name, e)
}
