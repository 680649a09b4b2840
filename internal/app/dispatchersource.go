// This file adapts dispatchers and workers of package dispatch to [dispatcher.Source].

package app

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/dispatcher"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/logger"
)

// Keys of the facts in a worker's heartbeat.
const (
	InterpreterFact = "interpreter"
	ContractFact    = "contract"
	LastPollFact    = "lastPoll"
)

// retryDelay is the retry delay returned when a backend did not answer.
const retryDelay = 2 * time.Second

// dispatcherSource implements [dispatcher.Source].
type dispatcherSource struct {
	overview    *dispatch.Overview
	dispatchers *dispatch.Dispatchers
}

var _ dispatcher.Source = dispatcherSource{}

// newDispatcherSource returns the dispatchers and workers as this process observes them.
func newDispatcherSource(overview *dispatch.Overview, dispatchers *dispatch.Dispatchers) dispatcherSource {
	return dispatcherSource{overview, dispatchers}
}

// dispatcherName returns the name of a project's dispatcher.
func dispatcherName(project string) inbox.Name {
	return inbox.Name{Project: project, TaskQueue: contract.TaskQueue(project)}
}

// List implements [dispatcher.Source].
func (s dispatcherSource) List(ctx context.Context) ([]dispatcher.Dispatcher, error) {
	found, err := s.overview.List(ctx)
	if err != nil {
		return nil, statusError(ctx, err)
	}
	all := make([]dispatcher.Dispatcher, len(found))
	for i := range found {
		all[i] = convertDispatcher(ctx, &found[i])
	}
	return all, nil
}

// Get implements [dispatcher.Source].
func (s dispatcherSource) Get(ctx context.Context, project string) (dispatcher.Dispatcher, error) {
	found, err := s.overview.Get(ctx, dispatcherName(project))
	if err != nil {
		return dispatcher.Dispatcher{}, statusError(ctx, err)
	}
	return convertDispatcher(ctx, &found), nil
}

// Workers implements [dispatcher.Source].
func (s dispatcherSource) Workers(ctx context.Context) (dispatcher.Workers, error) {
	found, failed, err := s.overview.Workers(ctx)
	if err != nil {
		return dispatcher.Workers{}, statusError(ctx, err)
	}
	all := dispatcher.Workers{Errors: partErrors(ctx, failed)}
	for _, w := range found {
		worker := dispatcher.Worker{
			ServerID: w.ServerID, State: dispatcher.WorkerState(w.Status), Build: w.Heartbeat.Build, Contract: w.Heartbeat.Facts[ContractFact],
			Projects: w.Heartbeat.Projects, StartedAt: w.Heartbeat.StartedAt, BeatAt: w.HeartbeatAt, StaleIn: w.StaleIn,
		}
		worker.Interpreter, _ = strconv.Atoi(w.Heartbeat.Facts[InterpreterFact])       // 0 if absent
		worker.LastPoll, _ = time.Parse(time.RFC3339, w.Heartbeat.Facts[LastPollFact]) // zero if absent
		for _, r := range w.Registrations {
			worker.Registrations = append(worker.Registrations, dispatcher.Registration{Name: r.Name, At: r.RegisteredAt})
		}
		all.Workers = append(all.Workers, worker)
	}
	return all, nil
}

// HandOver implements [dispatcher.Source].
func (s dispatcherSource) HandOver(ctx context.Context, project, by, reason string) (inbox.Owner, error) {
	name := dispatcherName(project)
	before, err := s.overview.Get(ctx, name)
	if err != nil {
		return inbox.Owner{}, statusError(ctx, err)
	}
	err = s.dispatchers.RequestHandover(ctx, name, by, reason)
	switch {
	case errors.Is(err, dispatch.ErrNotOwned):
		return inbox.Owner{}, apperror.New(apperror.Refused, apperror.DispatcherNotOwned,
			"the dispatcher of project %q has no owner that could hand it over; `signalbox dispatcher show %s` shows its state", project, project)
	case err != nil:
		return inbox.Owner{}, apperror.New(apperror.Unavailable, apperror.LeasesUnavailable,
			"the leases cannot be read; see redis in the configuration").WithRetry(retryDelay).WithCause(err)
	case before.Lease == nil:
		return inbox.Owner{}, nil
	}
	return before.Lease.Owner, nil
}

// Reconcile implements [dispatcher.Source].
func (s dispatcherSource) Reconcile(ctx context.Context, dryRun bool) (dispatcher.Report, error) {
	report, err := s.dispatchers.Reconcile(ctx, dryRun)
	if err != nil && len(report.Items) == 0 {
		return dispatcher.Report{}, statusError(ctx, err)
	}
	out := dispatcher.Report{
		Dispatchers: report.Dispatchers, Healthy: report.Healthy, Stale: report.Stale, Unknown: report.Unknown, Took: report.Duration, DryRun: report.DryRun,
	}
	for _, i := range report.Items {
		out.Items = append(out.Items, dispatcher.Item{
			Action: dispatcher.Action(i.Action), Kind: i.Kind, Name: i.Name, WorkflowID: i.WorkflowID, RunID: i.RunID, Owner: i.Owner,
			Reason: i.Reason, Applied: i.Applied, Error: i.Error,
		})
	}
	return out, nil
}

// convertDispatcher converts one dispatcher.
func convertDispatcher(ctx context.Context, d *dispatch.Dispatcher) dispatcher.Dispatcher {
	out := dispatcher.Dispatcher{
		Name: d.Name, WorkflowID: d.WorkflowID, State: dispatcher.State(d.Status), Progress: d.Progress, Errors: partErrors(ctx, d.Errors),
	}
	if d.Status != dispatch.Routing && d.Status != dispatch.Parked {
		out.Detail = d.Reason
	}
	if len(d.Others) > 0 {
		out.Detail = strings.TrimPrefix(out.Detail+"; "+duplicates(d.Others), "; ")
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

// duplicates names the dispatchers that are still open under IDs of older schemes.
func duplicates(others []dispatch.Execution) string {
	const most = 5
	ids := make([]string, min(len(others), most))
	for i := range ids {
		ids[i] = strconv.Quote(others[i].WorkflowID)
	}
	text := "also open under an older ID: " + strings.Join(ids, ", ")
	if more := len(others) - len(ids); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// partErrors describes for callers which backends did not answer. The underlying errors may contain host names, so they only go to the log.
func partErrors(ctx context.Context, failed []dispatch.PartError) []string {
	var lines []string
	for _, e := range failed {
		logger.FromContext(ctx).WarnContext(ctx, "Dispatcher status is incomplete", "part", string(e.Part), "error", e.Err)
		lines = append(lines, fmt.Sprintf("%s: %s; see the server's log for the cause", e.Part, unavailableReason(e.Part)))
	}
	return lines
}

// unavailableReason names the backend that did not answer, and what to check.
func unavailableReason(p dispatch.Part) string {
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

// statusError returns the error for a status that no backend answered. As with [partErrors], the underlying error only goes to the log.
func statusError(ctx context.Context, err error) error {
	if _, ok := apperror.From(err); ok {
		return err
	}
	logger.FromContext(ctx).WarnContext(ctx, "Dispatcher status cannot be read", "error", err)
	return apperror.New(apperror.Unavailable, apperror.LeasesUnavailable,
		"the status of dispatchers cannot be read; see the server's log for the cause").WithRetry(retryDelay).WithCause(err)
}
