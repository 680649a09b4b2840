package handler

import (
	"context"
	"time"

	"connectrpc.com/connect"
	"github.com/aymanbagabas/go-udiff"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
	"github.com/signalbox-dev/signalbox/internal/run/statistics"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

// draftVersion is the name of the draft in comparisons of versions.
const draftVersion = "draft"

// WorkflowService is the domain's service of workflows.
type WorkflowService interface {
	Validate(ctx context.Context, project string, sub workflow.Submission) (workflow.Checked, error)
	InputSchema(ctx context.Context, v workflow.Version) ([]byte, error)
	SaveDraft(ctx context.Context, project string, sub workflow.Submission) (workflow.Workflow, dsl.Violations, error)
	Publish(ctx context.Context, project string, sub workflow.Submission, publisher string) (workflow.Published, error)
	PublishDraft(ctx context.Context, project, name, publisher string) (workflow.Published, error)
	Get(ctx context.Context, project, name string) (workflow.Workflow, error)
	GetDraft(ctx context.Context, project, name string) (workflow.Draft, error)
	GetVersion(ctx context.Context, project, name, version string) (workflow.Version, error)
	List(ctx context.Context, f workflow.Filter) ([]workflow.Workflow, error)
	Find(ctx context.Context, f workflow.Filter) ([]workflow.Workflow, error)
	ListVersions(ctx context.Context, project, name string, after *workflow.VersionCursor,
		limit int) ([]workflow.Version, error)
	Graph(ctx context.Context, project, name, version string, draft bool) (workflow.VersionGraph, error)
	SetPaused(ctx context.Context, project, name string, paused bool, reason string) (workflow.Workflow, error)
	SetSchedule(ctx context.Context, t event.Timer, o event.Override) (event.Timer, error)
	Delete(ctx context.Context, project, name string) error
}

// Clock provides the timers that start workflows.
type Clock interface {
	// Timer returns a workflow's timer, and whether it has one; Fires returns its times.
	Timer(ctx context.Context, project, workflow string) (event.Timer, bool, error)
	Fires(ctx context.Context, t event.Timer) (event.Fires, error)
	// Times returns the newest due times of a period, Backfill fires those that did not fire.
	Times(ctx context.Context, t event.Timer, since, until time.Time, limit int) ([]event.DueTime, error)
	Backfill(ctx context.Context, t event.Timer, since, until time.Time, dryRun bool) ([]event.DueTime, error)
}

// Workflows implements signalbox.v1.WorkflowService.
type Workflows struct {
	service   WorkflowService
	functions FunctionService
	projects  message.ProjectFinder
	opts      Services
	reads     *readSlots
}

// ValidateWorkflow checks a document. Violations are the response, not an error.
func (h *Workflows) ValidateWorkflow(
	ctx context.Context, req *connect.Request[signalboxv1.ValidateWorkflowRequest],
) (*connect.Response[signalboxv1.ValidateWorkflowResponse], error) {
	if _, err := h.projects.Get(ctx, message.ProjectOf(req.Msg.GetProject())); err != nil {
		return nil, err
	}
	if err := sourceGiven(req.Msg.GetSource()); err != nil {
		return nil, err
	}
	c, err := h.service.Validate(ctx, message.ProjectOf(req.Msg.GetProject()), submission(req.Msg))
	if err != nil {
		return nil, err
	}
	res := &signalboxv1.ValidateWorkflowResponse{
		Valid: c.Document != nil, Violations: violationMessages(c.Violations), Workflow: c.Name, Version: c.Version,
	}
	if c.Document != nil && !c.Document.Partial {
		res.Hash = c.Document.Hash()
	}
	return connect.NewResponse(res), nil
}

// SaveDraft stores a document as its workflow's draft.
func (h *Workflows) SaveDraft(
	ctx context.Context, req *connect.Request[signalboxv1.SaveDraftRequest],
) (*connect.Response[signalboxv1.SaveDraftResponse], error) {
	if err := sourceGiven(req.Msg.GetSource()); err != nil {
		return nil, err
	}
	w, violations, err := h.service.SaveDraft(ctx, message.ProjectOf(req.Msg.GetProject()), submission(req.Msg))
	return message.Reply(&signalboxv1.SaveDraftResponse{
		Workflow: workflowMessage(w), Violations: violationMessages(violations)}, err)
}

// PublishWorkflow makes a document, or the stored draft, an immutable version.
func (h *Workflows) PublishWorkflow(
	ctx context.Context, req *connect.Request[signalboxv1.PublishWorkflowRequest],
) (*connect.Response[signalboxv1.PublishWorkflowResponse], error) {
	m, actor := req.Msg, actorName(ctx)
	var (
		p   workflow.Published
		err error
	)
	switch {
	case m.GetSource() != "" && m.GetWorkflow() != "":
		return nil, apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"source and workflow are both given: send the document, or name the workflow whose draft to publish").
			WithField("workflow", "only without source")
	case m.GetSource() != "":
		p, err = h.service.Publish(ctx, message.ProjectOf(m.GetProject()), submission(m), actor)
	case m.GetWorkflow() != "":
		p, err = h.service.PublishDraft(ctx, message.ProjectOf(m.GetProject()), m.GetWorkflow(), actor)
	default:
		return nil, apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"nothing to publish: send the document as source, or name the workflow whose draft to publish").
			WithField("source", "is required")
	}
	return message.Reply(&signalboxv1.PublishWorkflowResponse{
		Workflow: workflowMessage(p.Workflow), Version: versionMessage(p.Version), Created: p.Created,
		Violations: violationMessages(p.Violations),
	}, err)
}

// ListWorkflows lists the project's workflows by name.
func (h *Workflows) ListWorkflows(
	ctx context.Context, req *connect.Request[signalboxv1.ListWorkflowsRequest],
) (*connect.Response[signalboxv1.ListWorkflowsResponse], error) {
	m, most := req.Msg, pageMost
	switch {
	case m.GetStats():
		most = statistics.MaxWorkflows
	case m.GetStatsWindow() != nil:
		return nil, apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"stats_window is given without stats: set stats, or leave it out").
			WithField("statsWindow", "only with stats")
	}
	workflows, next, err := listPage(m, pageDefault, most,
		func(after *workflow.Cursor, limit int) ([]workflow.Workflow, error) {
			return h.service.List(ctx, workflow.Filter{
				Project: message.ProjectOf(m.GetProject()), Text: m.GetText(), States: m.GetStates(), After: after, Limit: limit,
			})
		},
		workflow.Workflow.Position)
	res := &signalboxv1.ListWorkflowsResponse{NextPageToken: next}
	for _, w := range workflows {
		res.Workflows = append(res.Workflows, workflowMessage(w))
	}
	if err == nil && m.GetStats() {
		err = h.addStats(ctx, message.ProjectOf(m.GetProject()), m.GetStatsWindow(), res.GetWorkflows()...)
	}
	return message.Reply(res, err)
}

// FindWorkflows lists the workflows of all projects in which the caller has a role, by project and name.
func (h *Workflows) FindWorkflows(
	ctx context.Context, req *connect.Request[signalboxv1.FindWorkflowsRequest],
) (*connect.Response[signalboxv1.FindWorkflowsResponse], error) {
	m := req.Msg
	workflows, next, err := listPage(m, pageDefault, pageMost,
		func(after *workflow.Cursor, limit int) ([]workflow.Workflow, error) {
			return h.service.Find(ctx, workflow.Filter{Text: m.GetText(), States: m.GetStates(), After: after, Limit: limit})
		},
		workflow.Workflow.Position)
	res := &signalboxv1.FindWorkflowsResponse{NextPageToken: next}
	for _, w := range workflows {
		res.Workflows = append(res.Workflows, workflowMessage(w))
	}
	return message.Reply(res, err)
}

// GetWorkflow returns one workflow with the source of one version, or of its draft.
func (h *Workflows) GetWorkflow(
	ctx context.Context, req *connect.Request[signalboxv1.GetWorkflowRequest],
) (*connect.Response[signalboxv1.GetWorkflowResponse], error) {
	m, project := req.Msg, message.ProjectOf(req.Msg.GetProject())
	if err := draftOrVersion(m.GetDraft(), m.GetVersion()); err != nil {
		return nil, err
	}
	w, err := h.service.Get(ctx, project, m.GetWorkflow())
	if err != nil {
		return nil, err
	}
	res := &signalboxv1.GetWorkflowResponse{Workflow: workflowMessage(w)}
	if err := h.addStats(ctx, project, m.GetStatsWindow(), res.GetWorkflow()); err != nil {
		return nil, err
	}
	if m.GetDraft() || (m.GetVersion() == "" && w.LatestVersion == "") {
		d, err := h.service.GetDraft(ctx, project, w.Name)
		res.DraftSource = d.Source
		return message.Reply(res, err)
	}
	v, err := h.service.GetVersion(ctx, project, w.Name, m.GetVersion())
	if err != nil {
		return nil, err
	}
	res.Version = versionMessage(v)
	res.Version.Source = v.Source
	schema, err := h.service.InputSchema(ctx, v)
	if err != nil {
		return nil, err
	}
	if schema != nil {
		res.Version.InputSchema = message.JSON(schema)
	}
	res.Timer, err = h.timer(ctx, project, w.Name)
	return message.Reply(res, err)
}

// ListVersions lists a workflow's published versions, newest first.
func (h *Workflows) ListVersions(
	ctx context.Context, req *connect.Request[signalboxv1.ListVersionsRequest],
) (*connect.Response[signalboxv1.ListVersionsResponse], error) {
	m := req.Msg
	versions, next, err := listPage(m, pageDefault, pageMost,
		func(after *workflow.VersionCursor, limit int) ([]workflow.Version, error) {
			return h.service.ListVersions(ctx, message.ProjectOf(m.GetProject()), m.GetWorkflow(), after, limit)
		},
		func(v workflow.Version) workflow.VersionCursor {
			return workflow.VersionCursor{PublishedAt: v.PublishedAt, Version: v.Version}
		})
	res := &signalboxv1.ListVersionsResponse{NextPageToken: next}
	for _, v := range versions {
		res.Versions = append(res.Versions, versionMessage(v))
	}
	return message.Reply(res, err)
}

// DiffVersions compares the sources of two versions line by line.
func (h *Workflows) DiffVersions(
	ctx context.Context, req *connect.Request[signalboxv1.DiffVersionsRequest],
) (*connect.Response[signalboxv1.DiffVersionsResponse], error) {
	m := req.Msg
	from, err := h.source(ctx, m, "from", m.GetFrom())
	if err != nil {
		return nil, err
	}
	to, err := h.source(ctx, m, "to", m.GetTo())
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&signalboxv1.DiffVersionsResponse{
		Unified: udiff.Unified(m.GetFrom(), m.GetTo(), from, to),
	}), nil
}

func (h *Workflows) source(ctx context.Context, m *signalboxv1.DiffVersionsRequest,
	field, version string) (string, error) {
	project := message.ProjectOf(m.GetProject())
	switch version {
	case "":
		return "", apperror.New(apperror.Invalid, apperror.InvalidArgument, "%q is empty: name a version, or %q", field,
			draftVersion).
			WithField(field, "is required")
	case draftVersion:
		d, err := h.service.GetDraft(ctx, project, m.GetWorkflow())
		return d.Source, err
	default:
		v, err := h.service.GetVersion(ctx, project, m.GetWorkflow(), version)
		return v.Source, err
	}
}

// GetVersionGraph returns the control flow of a version, or of the draft.
func (h *Workflows) GetVersionGraph(
	ctx context.Context, req *connect.Request[signalboxv1.GetVersionGraphRequest],
) (*connect.Response[signalboxv1.GetVersionGraphResponse], error) {
	m := req.Msg
	if err := draftOrVersion(m.GetDraft(), m.GetVersion()); err != nil {
		return nil, err
	}
	found, err := h.service.Graph(ctx, message.ProjectOf(m.GetProject()), m.GetWorkflow(), m.GetVersion(), m.GetDraft())
	res := &signalboxv1.GetVersionGraphResponse{Workflow: found.Workflow, Version: found.Version}
	for _, n := range found.Graph.Nodes {
		res.Nodes = append(res.Nodes, &signalboxv1.GraphNode{
			Id: n.ID, Name: n.Name, Kind: n.Kind, Parent: n.Parent, Label: n.Label,
			Line: int32(n.Pos.Line), Column: int32(n.Pos.Column), //nolint:gosec // documents are at most 1 MiB
		})
	}
	for _, e := range found.Graph.Edges {
		res.Edges = append(res.Edges, &signalboxv1.GraphEdge{From: e.From, To: e.To, Kind: string(e.Kind), Label: e.Label})
	}
	return message.Reply(res, err)
}

// PauseWorkflow rejects new runs of the workflow until it is unpaused.
func (h *Workflows) PauseWorkflow(
	ctx context.Context, req *connect.Request[signalboxv1.PauseWorkflowRequest],
) (*connect.Response[signalboxv1.PauseWorkflowResponse], error) {
	w, err := h.service.SetPaused(ctx, message.ProjectOf(req.Msg.GetProject()), req.Msg.GetWorkflow(), true,
		req.Msg.GetReason())
	return message.Reply(&signalboxv1.PauseWorkflowResponse{Workflow: workflowMessage(w)}, err)
}

// UnpauseWorkflow accepts new runs again.
func (h *Workflows) UnpauseWorkflow(
	ctx context.Context, req *connect.Request[signalboxv1.UnpauseWorkflowRequest],
) (*connect.Response[signalboxv1.UnpauseWorkflowResponse], error) {
	w, err := h.service.SetPaused(ctx, message.ProjectOf(req.Msg.GetProject()), req.Msg.GetWorkflow(), false, "")
	return message.Reply(&signalboxv1.UnpauseWorkflowResponse{Workflow: workflowMessage(w)}, err)
}

// DeleteWorkflow deletes a workflow.
func (h *Workflows) DeleteWorkflow(
	ctx context.Context, req *connect.Request[signalboxv1.DeleteWorkflowRequest],
) (*connect.Response[signalboxv1.DeleteWorkflowResponse], error) {
	err := h.service.Delete(ctx, message.ProjectOf(req.Msg.GetProject()), req.Msg.GetWorkflow())
	return message.Reply(&signalboxv1.DeleteWorkflowResponse{}, err)
}

func draftOrVersion(draft bool, version string) error {
	if !draft || version == "" {
		return nil
	}
	return apperror.New(apperror.Invalid, apperror.InvalidArgument, "draft and version are both asked for: leave one out").
		WithField("draft", "only without version")
}

// submission returns the document of a request, with the files that were sent with it.
func submission(request interface {
	GetSource() string
	GetFiles() map[string]string
}) workflow.Submission {
	return workflow.Submission{Source: request.GetSource(), Files: request.GetFiles()}
}

func sourceGiven(source string) error {
	if source != "" {
		return nil
	}
	return apperror.New(apperror.Invalid, apperror.InvalidArgument, "no document: send it as source").
		WithField("source", "is required")
}

func workflowMessage(w workflow.Workflow) *signalboxv1.Workflow {
	return &signalboxv1.Workflow{
		Project: w.Project, Name: w.Name, Title: w.Title, Summary: w.Summary, State: w.State, LatestVersion: w.LatestVersion,
		HasDraft:   w.HasDraft,
		CreateTime: message.Timestamp(w.CreatedAt), UpdateTime: message.Timestamp(w.UpdatedAt), PauseReason: w.PauseReason,
	}
}

func versionMessage(v workflow.Version) *signalboxv1.WorkflowVersion {
	out := &signalboxv1.WorkflowVersion{
		Version: v.Version, Hash: v.Hash, Publisher: v.Publisher, PublishTime: message.Timestamp(v.PublishedAt),
	}
	for _, r := range v.Resources {
		out.Resources = append(out.Resources, &signalboxv1.Resource{
			Uri: r.URI, Hash: r.Hash, Size: r.Size, LoadTime: message.Timestamp(r.LoadedAt),
		})
	}
	return out
}

func violationMessages(violations dsl.Violations) []*signalboxv1.Violation {
	found := make([]*signalboxv1.Violation, len(violations))
	for i, p := range violations {
		found[i] = &signalboxv1.Violation{
			Severity: string(p.Severity), Code: string(p.Code), Message: p.Message, Path: p.Path,
			Line: int32(p.Pos.Line), Column: int32(p.Pos.Column), //nolint:gosec // documents are at most 1 MiB
			Suggestion: p.Suggestion,
		}
	}
	return found
}
