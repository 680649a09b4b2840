package handler

import (
	"context"
	"slices"
	"strings"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/dispatcher"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
)

// DispatcherService is the domain's service of dispatchers and workers.
type DispatcherService interface {
	// List returns all dispatchers by project and task queue.
	List(ctx context.Context) ([]dispatcher.Dispatcher, error)
	Get(ctx context.Context, project string) (dispatcher.Dispatcher, error)
	// Workers returns all workers by server ID.
	Workers(ctx context.Context) (dispatcher.Workers, error)
	HandOver(ctx context.Context, project, reason string) (inbox.Owner, error)
	Reconcile(ctx context.Context, dryRun bool) (dispatchtype.Report, error)
}

// Dispatchers implements signalbox.v1.DispatcherService.
type Dispatchers struct {
	service  DispatcherService
	projects message.ProjectFinder
	listed   snapshot[[]dispatcher.Dispatcher]
}

// ListDispatchers lists the dispatchers of all projects in which the caller has a role.
func (h *Dispatchers) ListDispatchers(
	ctx context.Context, req *connect.Request[signalboxv1.ListDispatchersRequest],
) (*connect.Response[signalboxv1.ListDispatchersResponse], error) {
	states := req.Msg.GetStates()
	if err := statesKnown(states, dispatchtype.Statuses()); err != nil {
		return nil, err
	}
	found, next, err := listPage(req.Msg, pageDefault, pageMost,
		func(after *inbox.Name, limit int) ([]dispatcher.Dispatcher, error) {
			all, err := h.listed.read(after == nil, func() ([]dispatcher.Dispatcher, error) { return h.service.List(ctx) })
			return filterPage(all, limit, func(d dispatcher.Dispatcher) bool {
				return (after == nil || d.Name.Compare(*after) > 0) && anyOf(states, string(d.Status)) &&
					auth.Sees(ctx, d.Name.Project)
			}), err
		},
		func(d dispatcher.Dispatcher) inbox.Name { return d.Name })
	res := &signalboxv1.ListDispatchersResponse{NextPageToken: next}
	for _, d := range found {
		res.Dispatchers = append(res.Dispatchers, dispatcherMessage(d))
	}
	return message.Reply(res, err)
}

// GetDispatcher returns a project's dispatcher.
func (h *Dispatchers) GetDispatcher(
	ctx context.Context, req *connect.Request[signalboxv1.GetDispatcherRequest],
) (*connect.Response[signalboxv1.GetDispatcherResponse], error) {
	project, err := h.projects.Get(ctx, message.ProjectOf(req.Msg.GetProject()))
	if err != nil {
		return nil, err
	}
	d, err := h.service.Get(ctx, project.Name)
	return message.Reply(&signalboxv1.GetDispatcherResponse{Dispatcher: dispatcherMessage(d)}, err)
}

// HandOverDispatcher requests the owner to resign.
func (h *Dispatchers) HandOverDispatcher(
	ctx context.Context, req *connect.Request[signalboxv1.HandOverDispatcherRequest],
) (*connect.Response[signalboxv1.HandOverDispatcherResponse], error) {
	project, err := h.projects.Get(ctx, message.ProjectOf(req.Msg.GetProject()))
	if err != nil {
		return nil, err
	}
	owner, err := h.service.HandOver(ctx, project.Name, req.Msg.GetReason())
	return message.Reply(&signalboxv1.HandOverDispatcherResponse{Owner: ownerMessage(owner)}, err)
}

// ReconcileDispatchers runs one cycle of the supervisor immediately.
func (h *Dispatchers) ReconcileDispatchers(
	ctx context.Context, req *connect.Request[signalboxv1.ReconcileDispatchersRequest],
) (*connect.Response[signalboxv1.ReconcileDispatchersResponse], error) {
	report, err := h.service.Reconcile(ctx, req.Msg.GetDryRun())
	res := &signalboxv1.ReconcileDispatchersResponse{
		Dispatchers: int64(report.Dispatchers), Healthy: int64(report.Healthy), Stale: int64(report.Stale),
		Unknown: int64(report.Unknown),
		Took:    message.Duration(report.Duration), DryRun: report.DryRun,
	}
	for _, item := range report.Items {
		res.Items = append(res.Items, &signalboxv1.PlanItem{
			Action: string(item.Action), Kind: item.Kind, Project: item.Name.Project, TaskQueue: item.Name.TaskQueue,
			WorkflowId: item.WorkflowID, RunId: item.RunID, Owner: ownerMessage(item.Owner), Reason: item.Reason,
			Applied: item.Applied, Error: item.Error,
		})
	}
	return message.Reply(res, err)
}

func dispatcherMessage(d dispatcher.Dispatcher) *signalboxv1.Dispatcher {
	m := &signalboxv1.Dispatcher{
		Project: d.Name.Project, TaskQueue: d.Name.TaskQueue, WorkflowId: d.WorkflowID, State: string(d.Status),
		Detail: d.Detail,
		Errors: d.Unread,
	}
	if l := d.Lease; l != nil {
		m.Lease = &signalboxv1.DispatcherLease{
			State: string(l.State), Owner: ownerMessage(l.Owner), AcquireTime: message.Timestamp(l.AcquiredAt),
			RenewTime: message.Timestamp(l.RenewedAt),
			Remaining: message.Duration(l.Remaining),
		}
	}
	if x := d.Execution; x != nil {
		m.Execution = &signalboxv1.DispatcherExecution{
			RunId: x.RunID, StartTime: message.Timestamp(x.StartedAt), Owner: ownerMessage(x.Owner),
			Interpreter: int32(x.Interpreter), HistoryLength: x.HistoryLength, //nolint:gosec // counts up from 1
		}
	}
	if p := d.Progress; p != nil {
		m.Progress = &signalboxv1.DispatcherProgress{
			Owner: ownerMessage(p.Owner), Head: p.Head, Routed: p.Routed, Pending: p.Pending, Due: p.Due, Parked: p.Parked,
			Lag: message.Duration(p.Oldest),
		}
		if p.SinceProgress >= 0 {
			m.Progress.SinceProgress = message.Duration(p.SinceProgress)
		}
	}
	if d.State != nil {
		for _, w := range d.State.Workers {
			m.Workers = append(m.Workers, &signalboxv1.RegisteredWorker{
				ServerId: w.ServerID, TaskQueue: w.TaskQueue, Build: w.Build, RegisterTime: message.Timestamp(w.RegisteredAt),
				Missed: int32(w.Missed), //nolint:gosec // it is evicted at two
			})
		}
	}
	for _, o := range d.Owners {
		m.Owners = append(m.Owners, &signalboxv1.OwnerChange{
			Time: message.Timestamp(o.At), How: string(o.Outcome), Owner: ownerMessage(o.To), Previous: ownerMessage(o.From),
			RunId: o.RunID, EndedRunId: o.Ended, Reason: o.Reason,
		})
	}
	return m
}

// ownerMessage returns nil if there is no owner.
func ownerMessage(o inbox.Owner) *signalboxv1.DispatcherOwner {
	if o == (inbox.Owner{}) {
		return nil
	}
	return &signalboxv1.DispatcherOwner{ServerId: o.Holder, Epoch: o.Epoch}
}

// filterPage returns up to limit matching items of a complete list.
func filterPage[T any](all []T, limit int, wanted func(T) bool) []T {
	var found []T
	for _, item := range all {
		if len(found) == limit {
			break
		}
		if wanted(item) {
			found = append(found, item)
		}
	}
	return found
}

func anyOf(wanted []string, state string) bool {
	return len(wanted) == 0 || slices.Contains(wanted, state)
}

func statesKnown[T ~string](asked []string, known []T) error {
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = string(k)
	}
	list := strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
	for _, state := range asked {
		if !slices.Contains(names, state) {
			return apperror.New(apperror.Invalid, apperror.InvalidArgument, "state %q: use %s", state, list).
				WithField("states", "must be %s", list)
		}
	}
	return nil
}
