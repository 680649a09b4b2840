package handler

import (
	"context"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
	"github.com/signalbox-dev/signalbox/internal/rpc/page"
)

// ProjectService is the domain's service of projects.
type ProjectService interface {
	message.ProjectFinder
	Create(ctx context.Context, name, description string) (project.Project, error)
	Update(ctx context.Context, name string, change project.Change) (project.Project, error)
	List(ctx context.Context, after string, limit int) ([]project.Project, error)
}

// Projects implements signalbox.v1.ProjectService.
type Projects struct {
	service   ProjectService
	taskQueue func(project string) string
}

// NewProjects returns the handler; taskQueue returns the name of a project's task queue.
func NewProjects(service ProjectService, taskQueue func(project string) string) *Projects {
	return &Projects{service: service, taskQueue: taskQueue}
}

// CreateProject creates a project.
func (h *Projects) CreateProject(
	ctx context.Context, req *connect.Request[signalboxv1.CreateProjectRequest],
) (*connect.Response[signalboxv1.CreateProjectResponse], error) {
	p, err := h.service.Create(ctx, req.Msg.GetName(), req.Msg.GetDescription())
	return message.Reply(&signalboxv1.CreateProjectResponse{Project: h.message(ctx, p)}, err)
}

// GetProject returns one project.
func (h *Projects) GetProject(
	ctx context.Context, req *connect.Request[signalboxv1.GetProjectRequest],
) (*connect.Response[signalboxv1.GetProjectResponse], error) {
	p, err := h.service.Get(ctx, message.ProjectOf(req.Msg.GetName()))
	return message.Reply(&signalboxv1.GetProjectResponse{Project: h.message(ctx, p)}, err)
}

// UpdateProject changes a project's description and settings.
func (h *Projects) UpdateProject(
	ctx context.Context, req *connect.Request[signalboxv1.UpdateProjectRequest],
) (*connect.Response[signalboxv1.UpdateProjectResponse], error) {
	p, err := h.service.Update(ctx, message.ProjectOf(req.Msg.GetName()), project.Change{
		Description: req.Msg.Description, MaxSteps: req.Msg.MaxSteps, EndPoison: req.Msg.EndPoison,
	})
	return message.Reply(&signalboxv1.UpdateProjectResponse{Project: h.message(ctx, p)}, err)
}

// ListProjects lists all projects by name.
func (h *Projects) ListProjects(
	ctx context.Context, req *connect.Request[signalboxv1.ListProjectsRequest],
) (*connect.Response[signalboxv1.ListProjectsResponse], error) {
	projects, next, err := page.List(req.Msg, page.Default, page.Most,
		func(after *string, limit int) ([]project.Project, error) {
			return h.service.List(ctx, page.From(after), limit)
		},
		func(p project.Project) string { return p.Name })
	res := &signalboxv1.ListProjectsResponse{NextPageToken: next}
	for _, p := range projects {
		res.Projects = append(res.Projects, h.message(ctx, p))
	}
	return message.Reply(res, err)
}

func (h *Projects) message(ctx context.Context, p project.Project) *signalboxv1.Project {
	actor, _ := auth.ActorFrom(ctx)
	var roles []string
	for _, r := range actor.RolesIn(p.Name) {
		roles = append(roles, string(r))
	}
	return &signalboxv1.Project{
		Name: p.Name, Description: p.Description, TaskQueue: h.taskQueue(p.Name), CreateTime: message.Timestamp(p.CreatedAt),
		Settings: &signalboxv1.ProjectSettings{MaxSteps: p.Settings.MaxSteps, EndPoison: p.Settings.EndPoison},
		Roles:    roles,
	}
}
