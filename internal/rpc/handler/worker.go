package handler

import (
	"context"
	"slices"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/dispatcher"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
	"github.com/signalbox-dev/signalbox/internal/rpc/page"
)

// Workers implements signalbox.v1.WorkerService.
type Workers struct {
	service  DispatcherService
	projects message.ProjectFinder
	listed   page.Snapshot[dispatcher.Workers]
}

// NewWorkers returns the handler.
func NewWorkers(service DispatcherService, projects message.ProjectFinder) *Workers {
	return &Workers{service: service, projects: projects}
}

// ListWorkers lists the workers by server ID: those that serve a project in which the caller has a role, without their other projects.
func (h *Workers) ListWorkers(
	ctx context.Context, req *connect.Request[signalboxv1.ListWorkersRequest],
) (*connect.Response[signalboxv1.ListWorkersResponse], error) {
	m := req.Msg
	known := []dispatcher.WorkerState{dispatcher.Alive, dispatcher.Late, dispatcher.Stopped, dispatcher.Silent, dispatcher.Unsure}
	if err := statesKnown(m.GetStates(), known); err != nil {
		return nil, err
	}
	if m.GetProject() != "" {
		if _, err := h.projects.Get(ctx, m.GetProject()); err != nil {
			return nil, err
		}
	}
	res := &signalboxv1.ListWorkersResponse{}
	workers, next, err := page.List(m, page.Default, page.Most,
		func(after *string, limit int) ([]dispatcher.Worker, error) {
			all, err := h.listed.Read(after == nil, func() (dispatcher.Workers, error) { return h.service.Workers(ctx) })
			res.Errors = all.Errors
			return filterPage(all.Workers, limit, func(w dispatcher.Worker) bool {
				return w.ServerID > page.From(after) && anyOf(m.GetStates(), string(w.State)) && worksFor(w, m.GetProject()) && visible(ctx, w)
			}), err
		},
		func(w dispatcher.Worker) string { return w.ServerID })
	res.NextPageToken = next
	for _, w := range workers {
		res.Workers = append(res.Workers, workerMessage(visiblePart(ctx, w)))
	}
	return message.Reply(res, err)
}

// worksFor reports whether a worker serves a project; every worker serves the empty project.
func worksFor(w dispatcher.Worker, project string) bool {
	return project == "" || slices.Contains(w.Projects, project) || len(w.Projects) == 0 && w.State != dispatcher.Silent && w.State != dispatcher.Unsure ||
		slices.ContainsFunc(w.Registrations, func(r dispatcher.Registration) bool { return r.Name.Project == project })
}

// visible reports whether a worker serves a project in which the caller has a role.
func visible(ctx context.Context, w dispatcher.Worker) bool {
	actor, _ := auth.ActorFrom(ctx)
	projects, all := actor.Visible()
	return all || slices.ContainsFunc(projects, func(name string) bool { return worksFor(w, name) })
}

// visiblePart returns the part of a worker that the caller may read.
func visiblePart(ctx context.Context, w dispatcher.Worker) dispatcher.Worker {
	w.Projects = slices.DeleteFunc(slices.Clone(w.Projects), func(name string) bool { return !auth.Sees(ctx, name) })
	w.Registrations = slices.DeleteFunc(slices.Clone(w.Registrations),
		func(r dispatcher.Registration) bool { return !auth.Sees(ctx, r.Name.Project) })
	return w
}

func workerMessage(w dispatcher.Worker) *signalboxv1.WorkerProcess {
	m := &signalboxv1.WorkerProcess{
		ServerId: w.ServerID, State: string(w.State), Build: w.Build, Interpreter: int32(w.Interpreter), //nolint:gosec // counts up from 1
		Contract: w.Contract, Projects: w.Projects, StartTime: message.Timestamp(w.StartedAt), LastBeatTime: message.Timestamp(w.BeatAt),
		LastPollTime: message.Timestamp(w.LastPoll),
	}
	if !w.BeatAt.IsZero() {
		m.StaleIn = message.Duration(w.StaleIn)
	}
	for _, r := range w.Registrations {
		m.Registrations = append(m.Registrations, &signalboxv1.WorkerRegistration{
			Project: r.Name.Project, TaskQueue: r.Name.TaskQueue, RegisterTime: message.Timestamp(r.At),
		})
	}
	return m
}
