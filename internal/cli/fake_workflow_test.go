package cli_test

import (
	"context"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/api/signalbox/v1/signalboxv1connect"
	"github.com/signalbox-dev/signalbox/dsl"
)

// workflows is the WorkflowService with one workflow, demo/hello. The golden files are the tests of functions.
type workflows struct {
	signalboxv1connect.UnimplementedWorkflowServiceHandler

	api *api
}

func hello() *signalboxv1.Workflow {
	return &signalboxv1.Workflow{
		Name: "demo/hello", Title: "Says hello", State: "published", LatestVersion: "1.0.0",
		CreateTime: timestamppb.New(time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)),
		UpdateTime: timestamppb.New(time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)),
	}
}

func known(name string) error {
	if name == "hello" || name == "demo/hello" {
		return nil
	}
	return refusal(connect.CodeNotFound, "WORKFLOW_NOT_FOUND",
		"project \"default\" has no workflow \""+name+"\"; list them with \"signalbox workflow list\"")
}

func violations(source string) []*signalboxv1.Violation {
	_, problems := dsl.Parse([]byte(source))
	var out []*signalboxv1.Violation
	for _, p := range problems {
		out = append(out, &signalboxv1.Violation{
			Severity: string(p.Severity), Code: string(p.Code), Message: p.Message, Path: p.Path,
			Line: int32(p.Pos.Line), Column: int32(p.Pos.Column), Suggestion: p.Suggestion,
		})
	}
	return out
}

func (w *workflows) ValidateWorkflow(_ context.Context,
	request *connect.Request[signalboxv1.ValidateWorkflowRequest]) (
	*connect.Response[signalboxv1.ValidateWorkflowResponse], error) {
	return connect.NewResponse(&signalboxv1.ValidateWorkflowResponse{Violations: violations(request.Msg.GetSource())}), nil
}

func (w *workflows) SaveDraft(_ context.Context,
	request *connect.Request[signalboxv1.SaveDraftRequest]) (*connect.Response[signalboxv1.SaveDraftResponse], error) {
	return connect.NewResponse(
		&signalboxv1.SaveDraftResponse{Workflow: hello(), Violations: violations(request.Msg.GetSource())}), nil
}

func (w *workflows) PublishWorkflow(_ context.Context,
	request *connect.Request[signalboxv1.PublishWorkflowRequest]) (*connect.Response[signalboxv1.PublishWorkflowResponse],
	error) {
	w.api.mu.Lock()
	defer w.api.mu.Unlock()
	w.api.note(request.Msg)
	if request.Msg.GetSource() == "" && known(request.Msg.GetWorkflow()) != nil {
		return nil, known(request.Msg.GetWorkflow())
	}
	found := slices.DeleteFunc(violations(request.Msg.GetSource()), func(f *signalboxv1.Violation) bool {
		return f.GetSeverity() != "error"
	})
	if request.Msg.GetSource() != "" && len(found) > 0 {
		return nil, refusal(connect.CodeInvalidArgument, "INVALID_DOCUMENT", "the document has violations",
			&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{
				{Field: "source", Description: found[0].GetMessage()}}})
	}
	return connect.NewResponse(&signalboxv1.PublishWorkflowResponse{
		Workflow: hello(), Version: &signalboxv1.WorkflowVersion{Version: "1.0.0", Hash: "sha256:abc"},
		Created: request.Msg.GetSource() != "",
	}), nil
}

func (w *workflows) ListWorkflows(_ context.Context,
	request *connect.Request[signalboxv1.ListWorkflowsRequest]) (*connect.Response[signalboxv1.ListWorkflowsResponse],
	error) {
	response := &signalboxv1.ListWorkflowsResponse{}
	if strings.Contains(hello().GetName(), request.Msg.GetText()) {
		response.Workflows = []*signalboxv1.Workflow{hello()}
		if request.Msg.GetStats() {
			idle := hello()
			idle.Name, idle.Stats = "demo/idle", &signalboxv1.WorkflowStats{}
			response.Workflows[0].Stats = helloStats(request.Msg.GetStatsWindow())
			response.Workflows = append(response.Workflows, idle)
		}
	}
	return connect.NewResponse(response), nil
}

func (w *workflows) FindWorkflows(_ context.Context,
	request *connect.Request[signalboxv1.FindWorkflowsRequest]) (*connect.Response[signalboxv1.FindWorkflowsResponse],
	error) {
	response := &signalboxv1.FindWorkflowsResponse{}
	for _, project := range []string{"default", "shop"} {
		found := hello()
		if found.Project = project; strings.Contains(found.GetName(), request.Msg.GetText()) {
			response.Workflows = append(response.Workflows, found)
		}
	}
	return connect.NewResponse(response), nil
}

// helloStats are statistics of a window that ends at noon.
func helloStats(window *durationpb.Duration) *signalboxv1.WorkflowStats {
	until, length := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC), 24*time.Hour
	if window != nil {
		length = window.AsDuration()
	}
	return &signalboxv1.WorkflowStats{
		Since: timestamppb.New(until.Add(-length)), Until: timestamppb.New(until),
		Statuses: map[string]int64{"running": 3, "completed": 10000},
		More:     []string{"completed"}, SuccessRate: new(0.982), P50: durationpb.New(1200 * time.Millisecond),
		P95:    durationpb.New(41 * time.Second),
		Sample: 1000, Open: 3, Stuck: 1,
		LastRuns: []*signalboxv1.RecentRun{{Id: "r2", Status: "running"}, {Id: "r1", Status: "completed"}},
	}
}

const helloSource = "document: {dsl: '1.0.0', namespace: demo, name: hello, version: '1.0.0'}\ndo:\n  - greet:\n     " +
	" set: {message: hello}\n"

func (w *workflows) GetWorkflow(_ context.Context,
	request *connect.Request[signalboxv1.GetWorkflowRequest]) (*connect.Response[signalboxv1.GetWorkflowResponse], error) {
	if err := known(request.Msg.GetWorkflow()); err != nil {
		return nil, err
	}
	if request.Msg.GetDraft() {
		return connect.NewResponse(&signalboxv1.GetWorkflowResponse{Workflow: hello(), DraftSource: "draft\n"}), nil
	}
	shown := hello()
	shown.Stats = helloStats(request.Msg.GetStatsWindow())
	return connect.NewResponse(&signalboxv1.GetWorkflowResponse{
		Workflow: shown, Version: &signalboxv1.WorkflowVersion{
			Version: "1.0.0", Hash: "sha256:abc", Source: helloSource, Publisher: "local"},
	}), nil
}

func (w *workflows) GetWorkflowGrid(_ context.Context,
	request *connect.Request[signalboxv1.GetWorkflowGridRequest]) (*connect.Response[signalboxv1.GetWorkflowGridResponse],
	error) {
	w.api.mu.Lock()
	defer w.api.mu.Unlock()
	w.api.note(request.Msg)
	if err := known(request.Msg.GetWorkflow()); err != nil {
		return nil, err
	}
	created := timestamppb.New(time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC))
	return connect.NewResponse(&signalboxv1.GetWorkflowGridResponse{
		Tasks: []*signalboxv1.GridTask{
			{Pointer: "/do/0/read", Task: "read", Kind: "call"}, {Pointer: "/do/1/ship", Task: "ship", Kind: "call"}},
		Runs: []*signalboxv1.GridRun{
			{Id: "r2", Version: "1.0.0", Status: "failed", CreateTime: created, Duration: durationpb.New(3 * time.Second)},
			{Id: "r1", Version: "1.0.0", Status: "running", CreateTime: created, Partial: true},
		},
		Cells: []*signalboxv1.GridCell{
			{Run: 0, Task: 0, Status: "completed", Count: 60}, {Run: 0, Task: 1, Status: "failed", Count: 1, Attempts: 5},
			{Run: 1, Task: 0, Status: "waiting", Count: 1},
		},
	}), nil
}

func (w *workflows) ListVersions(_ context.Context,
	request *connect.Request[signalboxv1.ListVersionsRequest]) (*connect.Response[signalboxv1.ListVersionsResponse],
	error) {
	if err := known(request.Msg.GetWorkflow()); err != nil {
		return nil, err
	}
	return connect.NewResponse(
		&signalboxv1.ListVersionsResponse{
			Versions: []*signalboxv1.WorkflowVersion{{Version: "1.0.0", Hash: "sha256:abc", Publisher: "local"}}}), nil
}

func (w *workflows) DiffVersions(_ context.Context,
	request *connect.Request[signalboxv1.DiffVersionsRequest]) (*connect.Response[signalboxv1.DiffVersionsResponse],
	error) {
	if request.Msg.GetFrom() == request.Msg.GetTo() {
		return connect.NewResponse(&signalboxv1.DiffVersionsResponse{}), nil
	}
	return connect.NewResponse(
		&signalboxv1.DiffVersionsResponse{Unified: "--- 1.0.0\n+++ 1.1.0\n@@ -1 +1 @@\n-old\n+new\n"}), nil
}

func (w *workflows) GetVersionGraph(_ context.Context,
	request *connect.Request[signalboxv1.GetVersionGraphRequest]) (*connect.Response[signalboxv1.GetVersionGraphResponse],
	error) {
	if err := known(request.Msg.GetWorkflow()); err != nil {
		return nil, err
	}
	w.api.mu.Lock()
	defer w.api.mu.Unlock()
	w.api.note(request.Msg)
	return connect.NewResponse(&signalboxv1.GetVersionGraphResponse{
		Workflow: "demo/hello", Version: request.Msg.GetVersion(),
		Nodes: []*signalboxv1.GraphNode{
			{Id: "start", Kind: "start", Label: "every 5m"},
			{Id: "/do/0/pick", Name: "pick", Kind: "switch", Label: "1 case", Line: 3, Column: 5}, {Id: "end", Kind: "end"},
		},
		Edges: []*signalboxv1.GraphEdge{
			{From: "start", To: "/do/0/pick", Kind: "next"}, {From: "/do/0/pick", To: "end", Kind: "case", Label: ".x > 1"},
			{From: "/do/0/pick", To: "end", Kind: "next", Label: "otherwise"},
		},
	}), nil
}

func (w *workflows) PauseWorkflow(_ context.Context,
	request *connect.Request[signalboxv1.PauseWorkflowRequest]) (*connect.Response[signalboxv1.PauseWorkflowResponse],
	error) {
	if err := known(request.Msg.GetWorkflow()); err != nil {
		return nil, err
	}
	paused := hello()
	paused.State, paused.PauseReason = "paused", request.Msg.GetReason()
	return connect.NewResponse(&signalboxv1.PauseWorkflowResponse{Workflow: paused}), nil
}

func (w *workflows) UnpauseWorkflow(context.Context,
	*connect.Request[signalboxv1.UnpauseWorkflowRequest]) (*connect.Response[signalboxv1.UnpauseWorkflowResponse], error) {
	return connect.NewResponse(&signalboxv1.UnpauseWorkflowResponse{Workflow: hello()}), nil
}

// StopWorkflow finds three open runs, one of which cannot be canceled. The request ID "again" was used before.
func (w *workflows) StopWorkflow(_ context.Context,
	request *connect.Request[signalboxv1.StopWorkflowRequest]) (*connect.Response[signalboxv1.StopWorkflowResponse],
	error) {
	w.api.mu.Lock()
	defer w.api.mu.Unlock()
	m := request.Msg
	w.api.note(proto.CloneOf(m))
	if err := known(m.GetWorkflow()); err != nil {
		return nil, err
	}
	open := map[string]int64{"running": 2, "queued": 1}
	if m.GetDryRun() {
		return connect.NewResponse(&signalboxv1.StopWorkflowResponse{
			Workflow: hello(), Batch: &signalboxv1.Batch{Total: 3, Action: "cancel"}, Open: open, Eligible: 1, Unchanged: 1,
			Preview:   []*signalboxv1.IneligibleRuns{{Reason: "RUN_IMPORTED", Count: 1, SampleRunIds: []string{"run-3"}}},
			StartedBy: "every 5m", Timer: &signalboxv1.WorkflowTimer{
				Every: durationpb.New(5 * time.Minute), NextTimes: []*timestamppb.Timestamp{timestamppb.New(noon)}},
		}), nil
	}
	if m.ExpectedOpen != nil && m.GetExpectedOpen() < 3 {
		return nil, refusal(connect.CodeFailedPrecondition, "BATCH_TOTAL_CHANGED",
			"workflow \"demo/hello\" has 3 open runs now")
	}
	stopped := hello()
	stopped.State, stopped.PauseReason = "paused", m.GetReason()
	return connect.NewResponse(&signalboxv1.StopWorkflowResponse{
		Workflow: stopped, Batch: &signalboxv1.Batch{Id: "batch-1", Total: 3, Pending: 3},
		Created: m.GetRequestId() != "again", Paused: true, Open: open,
	}), nil
}

func (w *workflows) DeleteWorkflow(_ context.Context,
	request *connect.Request[signalboxv1.DeleteWorkflowRequest]) (*connect.Response[signalboxv1.DeleteWorkflowResponse],
	error) {
	if err := known(request.Msg.GetWorkflow()); err != nil {
		return nil, err
	}
	return nil, refusal(connect.CodeFailedPrecondition, "WORKFLOW_HAS_OPEN_RUNS",
		"workflow \"demo/hello\" has 2 open runs; cancel them first")
}

func (a *api) ListAnnotations(_ context.Context,
	request *connect.Request[signalboxv1.ListAnnotationsRequest]) (*connect.Response[signalboxv1.ListAnnotationsResponse],
	error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.note(request.Msg)
	return connect.NewResponse(&signalboxv1.ListAnnotationsResponse{
		Annotations: []*signalboxv1.Annotation{
			{Kind: "publish", Start: timestamppb.New(noon), End: timestamppb.New(noon), Title: "demo/hello 1.0.0 was published",
				Subject: "demo/hello"},
			{Kind: "outage", Start: timestamppb.New(noon), Title: "Temporal is unavailable", Subject: "temporal",
				Detail: "unreachable, seen by 1 server"},
		},
		More: []string{"publish"},
	}), nil
}
