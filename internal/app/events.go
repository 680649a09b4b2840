package app

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.temporal.io/sdk/worker"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/dispatch"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/app/crew"
	"github.com/signalbox-dev/signalbox/internal/app/journal"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/config/redisconfig"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/payload"
	"github.com/signalbox-dev/signalbox/internal/engine/schedule"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/event/match"
	"github.com/signalbox-dev/signalbox/internal/event/router"
	"github.com/signalbox-dev/signalbox/internal/health"
	"github.com/signalbox-dev/signalbox/internal/notice"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/telemetry"
	"github.com/signalbox-dev/signalbox/internal/workflow"
	"github.com/signalbox-dev/signalbox/lease"
	"github.com/signalbox-dev/signalbox/lease/redislease"
)

// eventing are the parts that turn events into deliveries.
type eventing struct {
	leases      lease.Store
	events      *event.Service
	inbox       *router.Router
	dispatchers *dispatch.Dispatchers
	overview    *dispatch.Overview
	schedules   *schedule.Keeper
}

// openLeases opens the store of leases: Redis, or the memory of this process where there is none.
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
	a.then(step{ender{func(context.Context) error { return leases.Close() }}, true})
	return leases, nil
}

// eventing makes the parts that take events and deliver them. Each process rings and asks; those with the role of a worker own
// dispatchers as well, once [dispatch.Dispatchers.Start] was called.
func (a *App) eventing(opts Options, serverID string, tel *telemetry.Telemetry, manager *conn.Manager, runs *run.Service, safe *sealing) (*eventing, error) {
	leases, err := a.openLeases()
	if err != nil {
		return nil, err
	}
	e := &eventing{leases: leases}
	hints, timers := notice.NewBoard(), a.store.Events()
	rows := safe.events
	e.events = event.NewService(rows, a.store, hints, e, event.Options{Limits: eventLimits(a.cfg), Now: time.Now})
	e.inbox = router.New(router.Options{Store: rows, Matcher: match.New(match.Options{}), Runs: runs, Waker: a.engine, Hints: hints, Reports: event.Platform{Service: e.events}})
	e.dispatchers, err = dispatch.New(dispatch.Options{
		ServerID: serverID, Build: opts.Version, Client: manager.Client, Namespace: a.cfg.Temporal.Namespace,
		Converter: payload.Converter(a.keys),
		Describe:  func() map[string]string { return describe(manager) },
		// A worker that does not come so far as to work owns nothing.
		Polls:  func(name dispatch.Name) bool { return manager.Polling(name.Project) },
		Leases: leases, Inbox: e.inbox, Journal: journal.New(e.events, a.store),
		Timing: timing(a.cfg), Supervisor: supervisor(a.cfg), Metrics: tel.Dispatch(), Log: a.log,
	})
	if err != nil {
		return nil, err
	}
	e.overview, err = dispatch.NewOverview(dispatch.OverviewOptions{
		Client: manager.Client, Namespace: a.cfg.Temporal.Namespace, Leases: leases, Inbox: e.inbox, Timing: timing(a.cfg),
		LegacyIDs: a.cfg.Supervisor.LegacyIDs, Converter: payload.Converter(a.keys), Names: a.dispatcherNames,
	})
	if err != nil {
		return nil, err
	}
	if err := tel.ObserveDispatch(a.dispatching(e, manager)); err != nil {
		return nil, err
	}
	e.schedules = schedule.New(schedule.Options{Client: manager.Client, Timers: timers, Store: a.store, Now: time.Now})
	a.then(step{e.events, false}, step{e.inbox, false})
	return e, nil
}

// dispatcherNames returns the names of the dispatchers of all projects, those included whose dispatcher was never started.
func (a *App) dispatcherNames(ctx context.Context) ([]dispatch.Name, error) {
	const page = 500
	var names []dispatch.Name
	for after := ""; ; {
		projects, err := a.store.ListProjects(ctx, after, page)
		if err != nil {
			return nil, err
		}
		for _, p := range projects {
			names, after = append(names, crew.NameOf(p.Name)), p.Name
		}
		if len(projects) < page {
			return names, nil
		}
	}
}

// dispatching is what is shown of dispatchers on this process, whatever its roles.
func (a *App) dispatching(e *eventing, manager *conn.Manager) telemetry.Dispatching {
	return telemetry.Dispatching{
		Backlogs: func(ctx context.Context) ([]telemetry.Backlog, error) {
			read, err := a.store.Events().Backlogs(ctx, timing(a.cfg).WithDefaults().StaleAfter)
			list := make([]telemetry.Backlog, len(read))
			for i, b := range read {
				list[i] = telemetry.Backlog(b)
			}
			return list, err
		},
		Begin: e.dispatchers.Begin,
		Usable: func() bool {
			_, err := manager.Client()
			return err == nil
		},
	}
}

// Ring implements [event.Bell].
func (e *eventing) Ring(ctx context.Context, project string) error {
	return e.dispatchers.Ring(ctx, crew.NameOf(project))
}

// work is what the worker of a project's task queue does for events, beside its runs.
func (e *eventing) work(_ string, r worker.Registry) {
	e.dispatchers.Register(r)
	schedule.Register(r, event.Platform{Service: e.events}, e.schedules)
}

// serve has this process own the dispatcher of a project, when nobody else does.
func (e *eventing) serve(project string) {
	_ = e.dispatchers.Serve(crew.NameOf(project)) // names of projects are names of dispatchers
}

// dependency is the store of leases in the process's health. Without it nothing is delivered late or lost, but ownership rests, and the API
// does not know which worker lives.
func (e *eventing) dependency() health.Dependency {
	return health.Dependency{Name: "leases", Used: []string{config.RoleAPI, config.RoleWorker}, Checker: health.CheckFunc(func(ctx context.Context) error {
		if _, err := e.leases.Get(ctx, "health"); err != nil && !errors.Is(err, lease.ErrNotFound) {
			return fmt.Errorf("redis does not answer: %w", err)
		}
		return nil
	})}
}

// describe is what the heartbeat of a worker says beside its server ID and version.
func describe(m *conn.Manager) map[string]string {
	facts := map[string]string{crew.InterpreterFact: strconv.Itoa(interp.Version), crew.ContractFact: contract.Fingerprint()}
	var last time.Time
	for _, w := range m.Status().Workers {
		if w.LastPoll.After(last) {
			last = w.LastPoll
		}
	}
	if !last.IsZero() {
		facts[crew.LastPollFact] = last.UTC().Format(time.RFC3339)
	}
	return facts
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

// definitions is the store as definitions see it. The keeper of schedules hears of every change.
type definitions struct {
	*store.Store

	changed func()
}

// Publish implements [workflow.Store].
func (d definitions) Publish(
	ctx context.Context, v workflow.Version, newer func(a, b string) bool, e audit.Entry,
) (workflow.Version, bool, error) {
	defer d.changed()
	return d.Store.Publish(ctx, v, newer, e)
}

// SetPaused implements [workflow.Store].
func (d definitions) SetPaused(ctx context.Context, project, name string, paused bool, reason string, e audit.Entry) (workflow.Workflow, error) {
	defer d.changed()
	return d.Store.SetPaused(ctx, project, name, paused, reason, e)
}

// DeleteWorkflow implements [workflow.Store].
func (d definitions) DeleteWorkflow(ctx context.Context, project, name string, e audit.Entry) error {
	defer d.changed()
	return d.Store.DeleteWorkflow(ctx, project, name, e)
}
