package app

import (
	"context"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/dispatch"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/config/clientconfig"
	"github.com/signalbox-dev/signalbox/internal/dispatcher"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/event/match"
	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/telemetry"
	"github.com/signalbox-dev/signalbox/internal/worker"
	"github.com/signalbox-dev/signalbox/lease"
	"github.com/signalbox-dev/signalbox/lease/redislease"
)

// events accepts events, matches them and delivers them by dispatchers. Every process can notify and query dispatchers;
// a process with the worker role also owns dispatchers after [dispatch.Dispatchers.Start].
type events struct {
	leases      lease.Store
	service     *event.Service
	inbox       *dispatcher.Router
	dispatchers *dispatch.Dispatchers
	overview    *dispatch.Overview
}

// openLeases opens the lease store: Redis, or this process's memory if no Redis is configured.
func openLeases(cfg config.Redis) (lease.Store, stopOnly, error) {
	if !cfg.Used() {
		return lease.NewMemory(), func(context.Context) error { return nil }, nil
	}
	options, err := clientconfig.Redis(cfg)
	if err != nil {
		return nil, nil, err
	}
	leases, err := redislease.Open(options)
	if err != nil {
		return nil, nil, err
	}
	return leases, func(context.Context) error { return leases.Close() }, nil
}

func newEvents(p *process, s *storage, c *connection, runs *runs, leases lease.Store) (_ *events, err error) {
	e := &events{leases: leases}
	hints, rows, manager := pubsub.NewNotifier(), s.sealed.events, c.manager
	e.service = event.NewService(rows, s, hints, e, event.Options{Limits: eventLimits(p.cfg), Now: time.Now})
	e.inbox = dispatcher.NewRouter(dispatcher.RouterOptions{
		Store: rows, Matcher: match.New(match.Options{}), Runs: runs.starts, Waker: c.engine, Rows: s, Hints: hints,
		Turns: p.turns, Reports: event.Platform{Service: e.service},
	})
	e.dispatchers, err = dispatch.New(dispatch.Options{
		ServerID: p.serverID, Build: p.version, Client: manager.Client, Namespace: p.cfg.Temporal.Namespace,
		Converter: c.engine.Converter(),
		Describe:  func() map[string]string { return heartbeatFacts(manager) },
		// A worker that does not poll yet must not own a dispatcher.
		Polls:  func(name dispatch.Name) bool { return manager.Polling(name.Project) },
		Left:   func(ctx context.Context, serverIDs []string) ([]string, error) { return worker.Left(ctx, s, serverIDs) },
		Leases: leases, Inbox: e.inbox, Journal: dispatcher.NewJournal(e.service, s),
		Timing: timing(p.cfg), Supervisor: supervisor(p.cfg), Metrics: p.telemetry.Dispatch(), Log: p.log,
	})
	if err != nil {
		return nil, err
	}
	e.overview, err = dispatch.NewOverview(dispatch.OverviewOptions{
		Client: manager.Client, Namespace: p.cfg.Temporal.Namespace, Leases: leases, Inbox: e.inbox, Timing: timing(p.cfg),
		LegacyIDs: p.cfg.Supervisor.LegacyIDs, Converter: c.engine.Converter(), Names: s.dispatcherNames,
	})
	if err != nil {
		return nil, err
	}
	return e, p.telemetry.ObserveDispatch(telemetry.Dispatching{
		Dispatchers: e.overview.List, Begin: e.dispatchers.InitMetrics, Usable: c.usable,
		Backlogs: func(ctx context.Context) ([]event.Backlog, error) {
			return s.Events().Backlogs(ctx, timing(p.cfg).WithDefaults().StaleAfter)
		},
	})
}

// endedOutcomes lists the outcomes that signalbox_batch_runs_ended_total counts.
func endedOutcomes() []string {
	var counted []string
	for _, outcome := range batch.AllOutcomes() {
		if outcome != batch.RunOpen {
			counted = append(counted, string(outcome))
		}
	}
	return counted
}

// endedSteps lists the statuses that signalbox_steps_total counts.
func endedSteps() []string {
	return slices.DeleteFunc(run.StepStatuses(), func(status string) bool {
		return status == "running" || status == "waiting"
	})
}

// dispatcherName returns the name of a project's dispatcher.
func dispatcherName(project string) dispatch.Name {
	return dispatch.Name{Project: project, TaskQueue: contract.TaskQueue(project)}
}

// dispatcherNames returns the dispatcher names of all projects, including projects with a dispatcher that was never
// started, and those of the parked projects.
func (s *storage) dispatcherNames(ctx context.Context) (names, parked []dispatch.Name, err error) {
	const page = 500
	for after := ""; ; {
		projects, err := s.ListProjects(ctx, after, page)
		if err != nil {
			return nil, nil, err
		}
		for _, p := range projects {
			names, after = append(names, dispatcherName(p.Name)), p.Name
			if !p.ParkedAt.IsZero() {
				parked = append(parked, dispatcherName(p.Name))
			}
		}
		if len(projects) < page {
			return names, parked, nil
		}
	}
}

// Wake implements [event.Waker].
func (e *events) Wake(ctx context.Context, project string) error {
	return e.dispatchers.Ring(ctx, dispatcherName(project))
}

// serve makes this process a candidate for ownership of a project's dispatcher.
func (e *events) serve(project string) {
	_ = e.dispatchers.Serve(dispatcherName(project)) // names of projects are names of dispatchers
}

// owns reports whether this process owns the dispatcher of a project.
func (e *events) owns(project string) bool { return e.dispatchers.Owns(dispatcherName(project)) }

// retire ends the service of a parked project's dispatcher by this process, and the dispatcher if the process owns it.
func (e *events) retire(ctx context.Context, project string) error {
	return e.dispatchers.Retire(ctx, dispatcherName(project), "its project is parked: nothing happens in it")
}

// checkLeases reports whether the lease store can be used. Memory always can.
func (e *events) checkLeases(ctx context.Context) error {
	if shared, ok := e.leases.(*redislease.Store); ok {
		return shared.Check(ctx)
	}
	return nil
}

// heartbeatFacts returns the facts that a worker adds to its heartbeat besides server ID and version.
func heartbeatFacts(m *conn.Manager) map[string]string {
	facts := dispatcher.Facts{Interpreter: interp.Version, Contract: contract.Fingerprint()}
	for _, w := range m.Status().Workers {
		if w.LastPoll.After(facts.LastPoll) {
			facts.LastPoll = w.LastPoll
		}
		if since := w.BusySince; !since.IsZero() && (facts.BusySince.IsZero() || since.Before(facts.BusySince)) {
			facts.BusySince = since
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
	return dispatch.SupervisorOptions{
		Interval: s.Interval, Confirm: s.Confirm, MaxTerminations: s.MaxTerminations, LegacyIDs: s.LegacyIDs}
}
