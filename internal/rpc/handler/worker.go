package handler

import (
	"context"
	"slices"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/dispatcher"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
)

// Workers implements signalbox.v1.WorkerService.
type Workers struct {
	service  DispatcherService
	projects message.ProjectFinder
	listed   snapshot[dispatcher.Workers]
}

// ListWorkers lists the workers by server ID: those that serve a project in which the caller has a role, without their
// other projects.
func (h *Workers) ListWorkers(
	ctx context.Context, req *connect.Request[signalboxv1.ListWorkersRequest],
) (*connect.Response[signalboxv1.ListWorkersResponse], error) {
	m := req.Msg
	if err := statesKnown(m.GetStates(), dispatchtype.WorkerStatuses()); err != nil {
		return nil, err
	}
	if m.GetProject() != "" {
		if _, err := h.projects.Get(ctx, m.GetProject()); err != nil {
			return nil, err
		}
	}
	res := &signalboxv1.ListWorkersResponse{}
	workers, next, err := listPage(m, pageDefault, pageMost,
		func(after *string, limit int) ([]dispatchtype.Worker, error) {
			all, err := h.listed.read(after == nil, func() (dispatcher.Workers, error) { return h.service.Workers(ctx) })
			res.Errors = all.Unread
			return filterPage(all.Workers, limit, func(w dispatchtype.Worker) bool {
				return w.ServerID > startOf(after) && anyOf(m.GetStates(), string(w.Status)) && worksFor(w, m.GetProject()) &&
					visible(ctx, w)
			}), err
		},
		func(w dispatchtype.Worker) string { return w.ServerID })
	res.NextPageToken = next
	for _, w := range workers {
		res.Workers = append(res.Workers, workerMessage(visiblePart(ctx, w)))
	}
	return message.Reply(res, err)
}

// worksFor reports whether a worker serves a project; every worker serves the empty project.
func worksFor(w dispatchtype.Worker, project string) bool {
	return project == "" || slices.Contains(w.Heartbeat.Projects, project) ||
		len(w.Heartbeat.Projects) == 0 && w.Status != dispatchtype.WorkerSilent && w.Status != dispatchtype.WorkerUnknown ||
		slices.ContainsFunc(w.Registrations, func(r dispatchtype.Registration) bool { return r.Name.Project == project })
}

// visible reports whether a worker serves a project in which the caller has a role.
func visible(ctx context.Context, w dispatchtype.Worker) bool {
	actor, _ := auth.ActorFrom(ctx)
	projects, all := actor.Visible()
	return all || slices.ContainsFunc(projects, func(name string) bool { return worksFor(w, name) })
}

// visiblePart returns the part of a worker that the caller may read.
func visiblePart(ctx context.Context, w dispatchtype.Worker) dispatchtype.Worker {
	w.Heartbeat.Projects = slices.DeleteFunc(slices.Clone(w.Heartbeat.Projects), func(name string) bool {
		return !auth.Sees(ctx, name)
	})
	w.Registrations = slices.DeleteFunc(slices.Clone(w.Registrations),
		func(r dispatchtype.Registration) bool { return !auth.Sees(ctx, r.Name.Project) })
	return w
}

func workerMessage(w dispatchtype.Worker) *signalboxv1.WorkerProcess {
	beat, facts := w.Heartbeat, dispatcher.FactsOf(w)
	m := &signalboxv1.WorkerProcess{
		ServerId: w.ServerID, State: string(w.Status), Build: beat.Build,
		Interpreter: int32(facts.Interpreter), //nolint:gosec // counts up from 1
		Contract:    facts.Contract, Projects: beat.Projects, StartTime: message.Timestamp(beat.StartedAt),
		LastBeatTime: message.Timestamp(w.HeartbeatAt), LastPollTime: message.Timestamp(facts.LastPoll),
		BusyTime: message.Timestamp(facts.BusySince),
	}
	if !w.HeartbeatAt.IsZero() {
		m.StaleIn = message.Duration(w.StaleIn)
	}
	for _, r := range w.Registrations {
		m.Registrations = append(m.Registrations, &signalboxv1.WorkerRegistration{
			Project: r.Name.Project, TaskQueue: r.Name.TaskQueue, RegisterTime: message.Timestamp(r.RegisteredAt),
		})
	}
	return m
}
