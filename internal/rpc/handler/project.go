package handler

import (
	"context"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/project"
)

// ProjectService is the domain's side of projects.
type ProjectService interface {
	ProjectFinder
	Create(ctx context.Context, name, description string) (project.Project, error)
	List(ctx context.Context, after string, limit int) ([]project.Project, error)
}

// Projects answers signalbox.v1.ProjectService.
type Projects struct {
	service   ProjectService
	taskQueue func(project string) string
}

// NewProjects returns the handler; taskQueue names a project's task queue.
func NewProjects(service ProjectService, taskQueue func(project string) string) *Projects {
	return &Projects{service: service, taskQueue: taskQueue}
}

// CreateProject makes a project.
func (h *Projects) CreateProject(
	ctx context.Context, req *connect.Request[signalboxv1.CreateProjectRequest],
) (*connect.Response[signalboxv1.CreateProjectResponse], error) {
	p, err := h.service.Create(ctx, req.Msg.GetName(), req.Msg.GetDescription())
	return reply(&signalboxv1.CreateProjectResponse{Project: h.message(p)}, err)
}

// GetProject returns one project.
func (h *Projects) GetProject(
	ctx context.Context, req *connect.Request[signalboxv1.GetProjectRequest],
) (*connect.Response[signalboxv1.GetProjectResponse], error) {
	p, err := h.service.Get(ctx, projectOf(req.Msg.GetName()))
	return reply(&signalboxv1.GetProjectResponse{Project: h.message(p)}, err)
}

// ListProjects lists all projects by name.
func (h *Projects) ListProjects(
	ctx context.Context, req *connect.Request[signalboxv1.ListProjectsRequest],
) (*connect.Response[signalboxv1.ListProjectsResponse], error) {
	projects, next, err := listPage(req.Msg, pageDefault, pageMax,
		func(after *string, limit int) ([]project.Project, error) {
			return h.service.List(ctx, value(after), limit)
		},
		func(p project.Project) string { return p.Name })
	res := &signalboxv1.ListProjectsResponse{NextPageToken: next}
	for _, p := range projects {
		res.Projects = append(res.Projects, h.message(p))
	}
	return reply(res, err)
}

func (h *Projects) message(p project.Project) *signalboxv1.Project {
	return &signalboxv1.Project{
		Name: p.Name, Description: p.Description, TaskQueue: h.taskQueue(p.Name), CreateTime: timestamp(p.CreatedAt),
	}
}

// value returns the zero value for the first page.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
