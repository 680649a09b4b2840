// Package crew shows the dispatchers and workers of the library as the platform tells of them.
package crew

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/dispatcher"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/logger"
)

// The facts in a worker's heartbeat.
const (
	InterpreterFact = "interpreter"
	ContractFact    = "contract"
	LastPollFact    = "lastPoll"
)

// askAgain is when it is worth asking again for what was away.
const askAgain = 2 * time.Second

// Crew is a dispatcher.Source.
type Crew struct {
	overview    *dispatch.Overview
	dispatchers *dispatch.Dispatchers
}

var _ dispatcher.Source = Crew{}

// New returns what there is, as this process sees it.
func New(overview *dispatch.Overview, dispatchers *dispatch.Dispatchers) Crew {
	return Crew{overview, dispatchers}
}

// NameOf is the dispatcher of a project.
func NameOf(project string) inbox.Name {
	return inbox.Name{Project: project, TaskQueue: contract.TaskQueue(project)}
}

// List implements [dispatcher.Source].
func (s Crew) List(ctx context.Context) ([]dispatcher.Dispatcher, error) {
	found, err := s.overview.List(ctx)
	if err != nil {
		return nil, unreadable(ctx, err)
	}
	all := make([]dispatcher.Dispatcher, len(found))
	for i := range found {
		all[i] = shown(ctx, &found[i])
	}
	return all, nil
}

// Get implements [dispatcher.Source].
func (s Crew) Get(ctx context.Context, project string) (dispatcher.Dispatcher, error) {
	found, err := s.overview.Get(ctx, NameOf(project))
	if err != nil {
		return dispatcher.Dispatcher{}, unreadable(ctx, err)
	}
	return shown(ctx, &found), nil
}

// Workers implements [dispatcher.Source].
func (s Crew) Workers(ctx context.Context) (dispatcher.Workers, error) {
	found, failed, err := s.overview.Workers(ctx)
	if err != nil {
		return dispatcher.Workers{}, unreadable(ctx, err)
	}
	all := dispatcher.Workers{Errors: reasons(ctx, failed)}
	for _, w := range found {
		worker := dispatcher.Worker{
			ServerID: w.ServerID, State: dispatcher.WorkerState(w.Status), Build: w.Beat.Build, Contract: w.Beat.Facts[ContractFact],
			Projects: w.Beat.Projects, StartedAt: w.Beat.StartedAt, BeatAt: w.BeatAt, StaleIn: w.StaleIn,
		}
		worker.Interpreter, _ = strconv.Atoi(w.Beat.Facts[InterpreterFact])       // 0 where it does not say
		worker.LastPoll, _ = time.Parse(time.RFC3339, w.Beat.Facts[LastPollFact]) // the same
		for _, r := range w.Registrations {
			worker.Registrations = append(worker.Registrations, dispatcher.Registration{Name: r.Name, At: r.RegisteredAt})
		}
		all.Workers = append(all.Workers, worker)
	}
	return all, nil
}

// HandOver implements [dispatcher.Source].
func (s Crew) HandOver(ctx context.Context, project, by, reason string) (inbox.Owner, error) {
	name := NameOf(project)
	before, err := s.overview.Get(ctx, name)
	if err != nil {
		return inbox.Owner{}, unreadable(ctx, err)
	}
	err = s.dispatchers.RequestHandover(ctx, name, by, reason)
	switch {
	case errors.Is(err, dispatch.ErrNotOwned):
		return inbox.Owner{}, fault.New(fault.Refused, fault.DispatcherNotOwned,
			"the dispatcher of project %q has no owner that could hand it over; `signalbox dispatcher show %s` tells how it is", project, project)
	case err != nil:
		return inbox.Owner{}, fault.New(fault.Unavailable, fault.LeasesUnavailable,
			"the leases cannot be asked; see redis in the configuration").WithRetry(askAgain).WithCause(err)
	case before.Lease == nil:
		return inbox.Owner{}, nil
	}
	return before.Lease.Owner, nil
}

// Reconcile implements [dispatcher.Source].
func (s Crew) Reconcile(ctx context.Context, dryRun bool) (dispatcher.Report, error) {
	report, err := s.dispatchers.Reconcile(ctx, dryRun)
	if err != nil && len(report.Items) == 0 {
		return dispatcher.Report{}, unreadable(ctx, err)
	}
	out := dispatcher.Report{
		Dispatchers: report.Dispatchers, Healthy: report.Healthy, Stale: report.Stale, Unknown: report.Unknown, Took: report.Took, DryRun: report.DryRun,
	}
	for _, i := range report.Items {
		out.Items = append(out.Items, dispatcher.Item{
			Action: dispatcher.Action(i.Action), Kind: i.Kind, Name: i.Name, WorkflowID: i.WorkflowID, RunID: i.RunID, Owner: i.Owner,
			Reason: i.Reason, Applied: i.Applied, Error: i.Error,
		})
	}
	return out, nil
}

// shown turns one dispatcher.
func shown(ctx context.Context, d *dispatch.Dispatcher) dispatcher.Dispatcher {
	out := dispatcher.Dispatcher{
		Name: d.Name, WorkflowID: d.WorkflowID, State: dispatcher.State(d.Status), Progress: d.Progress, Errors: reasons(ctx, d.Errors),
	}
	if d.Status != dispatch.Routing && d.Status != dispatch.Parked {
		out.Detail = d.Why
	}
	if l := d.Lease; l != nil {
		out.Lease = &dispatcher.Lease{
			State: string(l.State), Owner: l.Owner, AcquiredAt: l.AcquiredAt, RenewedAt: l.RenewedAt, Remaining: l.Remaining,
		}
	}
	if e := d.Execution; e != nil {
		out.Execution = &dispatcher.Execution{
			RunID: e.RunID, StartedAt: e.StartedAt, Owner: e.Owner, Interpreter: e.Interpreter, HistoryLength: e.HistoryLength,
		}
	}
	if d.State != nil {
		for _, w := range d.State.Workers {
			out.Workers = append(out.Workers, dispatcher.Registered{
				ServerID: w.ServerID, TaskQueue: w.TaskQueue, Build: w.Build, At: w.RegisteredAt, Missed: w.Missed,
			})
		}
	}
	return out
}

// reasons say what could not be asked. What exactly went wrong may name hosts, and is for the log.
func reasons(ctx context.Context, failed []dispatch.PartError) []string {
	var lines []string
	for _, e := range failed {
		logger.FromContext(ctx).WarnContext(ctx, "A part of what is known of dispatchers is missing", "part", string(e.Part), "error", e.Err)
		lines = append(lines, fmt.Sprintf("%s: %s; the server's log says why", e.Part, unanswered(e.Part)))
	}
	return lines
}

// unanswered says which side did not answer, and what to check.
func unanswered(p dispatch.Part) string {
	switch p {
	case dispatch.PartLeases:
		return "Redis, which has the leases, does not answer; check redis in the configuration"
	case dispatch.PartInbox:
		return "the database does not answer; check store.dsn"
	case dispatch.PartTemporal:
		return "Temporal does not answer; check `signalbox system status`"
	case dispatch.PartState:
		return "the dispatcher's workflow does not answer for its workers; check `signalbox worker list` and `signalbox system status`"
	default:
		return "it does not answer"
	}
}

// unreadable is the fault for what no side tells. As with [reasons], what exactly went wrong is for the log.
func unreadable(ctx context.Context, err error) error {
	if _, ok := fault.From(err); ok {
		return err
	}
	logger.FromContext(ctx).WarnContext(ctx, "What is known of dispatchers cannot be read", "error", err)
	return fault.New(fault.Unavailable, fault.LeasesUnavailable,
		"what is known of dispatchers cannot be read; the server's log says why").WithRetry(askAgain).WithCause(err)
}
