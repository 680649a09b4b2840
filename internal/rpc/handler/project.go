package handler

import (
	"context"
	"errors"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/annotation"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
	"github.com/signalbox-dev/signalbox/internal/sandbox/limit"
)

// ProjectService is the domain's service of projects.
type ProjectService interface {
	message.ProjectFinder
	Create(ctx context.Context, name, description string) (project.Project, error)
	Update(ctx context.Context, name string, change project.Change) (project.Project, error)
	List(ctx context.Context, after string, limit int) ([]project.Project, error)
}

// Annotations lists what happened around the runs of a project.
type Annotations interface {
	List(ctx context.Context, req annotation.Request) (annotation.List, error)
}

// Projects implements signalbox.v1.ProjectService.
type Projects struct {
	service     ProjectService
	annotations Annotations
	taskQueue   func(project string) string
}

// ListAnnotations lists what happened around the runs of a project.
func (h *Projects) ListAnnotations(
	ctx context.Context, req *connect.Request[signalboxv1.ListAnnotationsRequest],
) (*connect.Response[signalboxv1.ListAnnotationsResponse], error) {
	if h.annotations == nil {
		return nil, connect.NewError(connect.CodeUnimplemented, errors.New("this server has no annotations"))
	}
	m := req.Msg
	wanted := annotation.Request{Project: message.ProjectOf(m.GetProject())}
	var err error
	if wanted.From, err = message.Time("from", m.GetFrom()); err != nil {
		return nil, err
	}
	if wanted.To, err = message.Time("to", m.GetTo()); err != nil {
		return nil, err
	}
	for _, kind := range m.GetKinds() {
		wanted.Kinds = append(wanted.Kinds, annotation.Kind(kind))
	}
	list, err := h.annotations.List(ctx, wanted)
	res := &signalboxv1.ListAnnotationsResponse{}
	for _, a := range list.Annotations {
		res.Annotations = append(res.Annotations, &signalboxv1.Annotation{
			Kind: string(a.Kind), Start: message.Timestamp(a.Start), End: message.Timestamp(a.End), Title: a.Title,
			Subject: a.Subject, Detail: a.Detail,
		})
	}
	for _, kind := range list.More {
		res.More = append(res.More, string(kind))
	}
	return message.Reply(res, err)
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
	change := project.Change{
		Description: req.Msg.Description, MaxSteps: req.Msg.MaxSteps, EndPoison: req.Msg.EndPoison,
		MaxGeneration: req.Msg.MaxGeneration,
	}
	if runners := req.Msg.GetRunners(); runners != nil {
		kinds := append([]string{}, runners.GetKinds()...)
		change.Runners = &kinds
	}
	if images := req.Msg.GetImages(); images != nil {
		patterns := append([]string{}, images.GetPatterns()...)
		change.Images = &patterns
	}
	if limits := req.Msg.GetProgramLimits(); limits != nil {
		read, err := programLimits(limits)
		if err != nil {
			return nil, err
		}
		change.ProgramLimits = &read
	}
	p, err := h.service.Update(ctx, message.ProjectOf(req.Msg.GetName()), change)
	return message.Reply(&signalboxv1.UpdateProjectResponse{Project: h.message(ctx, p)}, err)
}

// ListProjects lists all projects by name.
func (h *Projects) ListProjects(
	ctx context.Context, req *connect.Request[signalboxv1.ListProjectsRequest],
) (*connect.Response[signalboxv1.ListProjectsResponse], error) {
	projects, next, err := listPage(req.Msg, pageDefault, pageMost,
		func(after *string, limit int) ([]project.Project, error) {
			return h.service.List(ctx, startOf(after), limit)
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
		Settings: &signalboxv1.ProjectSettings{
			MaxSteps: p.Settings.MaxSteps, EndPoison: p.Settings.EndPoison, MaxGeneration: p.Settings.MaxGeneration,
			Runners: p.Settings.Runners, Images: p.Settings.Images,
			ProgramLimits: programLimitsMessage(p.Settings.ProgramLimits),
		},
		Roles: roles, ParkTime: message.Timestamp(p.ParkedAt),
	}
}

// programLimits returns the limits of a message.
func programLimits(m *signalboxv1.ProgramLimits) (limit.Limits, error) {
	l := limit.Limits{
		Memory: m.GetMemoryBytes(), Processes: int(m.GetProcesses()), Processors: m.GetProcessors(), Disk: m.GetDiskBytes(),
		Output: m.GetOutputBytes(), Network: limit.Network(m.GetNetwork()),
	}
	var err error
	l.Time, err = periodOf("program_limits.time", m.GetTime())
	return l, err
}

// programLimitsMessage returns the message of limits; nil for none.
func programLimitsMessage(l limit.Limits) *signalboxv1.ProgramLimits {
	if l == (limit.Limits{}) {
		return nil
	}
	m := &signalboxv1.ProgramLimits{
		MemoryBytes: l.Memory, Processes: int32(l.Processes), Processors: l.Processors, //nolint:gosec // it came as an int32
		DiskBytes: l.Disk, OutputBytes: l.Output, Network: string(l.Network),
	}
	if l.Time > 0 {
		m.Time = durationpb.New(l.Time)
	}
	return m
}
