package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/engine/codec"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// ListWorkflowExecutions returns the described executions, one on each page.
func (f *frontend) ListWorkflowExecutions(_ context.Context,
	r *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	f.note("list %s", r.GetQuery())
	f.mu.Lock()
	defer f.mu.Unlock()
	var ids []string
	for id, info := range f.info {
		if (info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING) == strings.HasSuffix(r.GetQuery(),
			"ExecutionStatus = 'Running'") {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	at := len(r.GetNextPageToken())
	if at >= len(ids) {
		return &workflowservice.ListWorkflowExecutionsResponse{}, nil
	}
	return &workflowservice.ListWorkflowExecutionsResponse{
		Executions: []*workflowpb.WorkflowExecutionInfo{f.info[ids[at]]}, NextPageToken: make([]byte, at+1),
	}, nil
}

// GetWorkflowExecutionHistoryReverse returns a history from its end, in pages of ten events.
func (f *frontend) GetWorkflowExecutionHistoryReverse(_ context.Context,
	r *workflowservice.GetWorkflowExecutionHistoryReverseRequest) (
	*workflowservice.GetWorkflowExecutionHistoryReverseResponse, error) {
	f.note("tail %s", r.GetExecution().GetRunId())
	f.mu.Lock()
	defer f.mu.Unlock()
	const page = 10
	events := slices.Clone(f.histories[r.GetExecution().GetRunId()].GetEvents())
	slices.Reverse(events)
	from := len(r.GetNextPageToken()) * page
	to := min(from+page, len(events))
	response := &workflowservice.GetWorkflowExecutionHistoryReverseResponse{
		History: &historypb.History{Events: events[from:to]}}
	if to < len(events) {
		response.NextPageToken = make([]byte, len(r.GetNextPageToken())+1)
	}
	return response, nil
}

// grow adds an execution with the given number of events to a run's history, and describes it as the newest. It
// continues the given execution, if any.
func (f *frontend) grow(id, execution, continues string, events ...*historypb.HistoryEvent) {
	first := &historypb.HistoryEvent{
		EventId: 1, EventTime: timestamppb.New(noon()),
		Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
			WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{
				WorkflowId: id, OriginalExecutionRunId: execution, ContinuedExecutionRunId: continues,
			},
		}}
	history := &historypb.History{Events: append([]*historypb.HistoryEvent{first}, events...)}
	f.set(func() { f.histories[execution] = history })
	f.describe(id, history, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING)
}

func task(event, started int64, at time.Time) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{
		EventId: event, EventTime: timestamppb.New(at),
		Attributes: &historypb.HistoryEvent_WorkflowTaskCompletedEventAttributes{
			WorkflowTaskCompletedEventAttributes: &historypb.WorkflowTaskCompletedEventAttributes{StartedEventId: started},
		},
	}
}

func plain(from, to int64) []*historypb.HistoryEvent {
	var out []*historypb.HistoryEvent
	for id := from; id <= to; id++ {
		out = append(out, &historypb.HistoryEvent{EventId: id, EventTime: timestamppb.New(noon())})
	}
	return out
}

func TestClusterIDNamesTheNamespace(t *testing.T) {
	t.Parallel()
	f := serve(t)
	e, _ := connect(t, f.address, nil)
	cluster, err := e.ClusterID(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{f.address, "ns"}, []string{cluster.Address, cluster.Namespace})
	f.set(func() { f.namespace = func(context.Context) error { return serviceerror.NewNamespaceNotFound("ns") } })
	_, err = e.ClusterID(t.Context())
	requireError(t, err, apperror.Unavailable, apperror.EngineUnavailable, `no namespace "ns"`)
	f.set(func() {
		f.namespace = func(context.Context) error { return serviceerror.NewPermissionDenied("no", "") }
	})
	_, err = e.ClusterID(t.Context())
	requireError(t, err, apperror.Unavailable, apperror.EngineUnavailable, "does not answer")
}

func TestExecutionsAreThoseOfRuns(t *testing.T) {
	t.Parallel()
	f := serve(t)
	for id, queue := range map[string]string{
		"open": "signalbox-a", "other": "elsewhere", "second": "signalbox-b", "ended": "signalbox-a"} {
		f.grow(id, "x-"+id, "")
		f.info[id].TaskQueue = queue
	}
	f.info["ended"].Status = enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	f.info["ended"].CloseTime = timestamppb.New(noon().Add(time.Hour))
	e, _ := connect(t, f.address, nil)
	f.called()
	var got []run.Execution
	for x, err := range e.Executions(t.Context(), noon()) {
		require.NoError(t, err)
		got = append(got, x)
	}
	require.Equal(t, []run.Execution{
		{RunID: "open", ExecutionID: "x-open", Open: true, StartedAt: noon()},
		{RunID: "second", ExecutionID: "x-second", Open: true, StartedAt: noon()},
		{RunID: "ended", ExecutionID: "x-ended", StartedAt: noon(), ClosedAt: noon().Add(time.Hour)},
	}, got)
	calls := slices.Compact(slices.DeleteFunc(f.called(), func(call string) bool {
		return !strings.HasPrefix(call, "list")
	}))
	require.Equal(t, []string{
		"list WorkflowType = 'signalbox.run' AND ExecutionStatus = 'Running'",
		"list WorkflowType = 'signalbox.run' AND ExecutionStatus != 'ContinuedAsNew' AND CloseTime >= '2026-03-01T12:00:00Z'",
	}, calls)
	for x, err := range e.Executions(t.Context(), noon()) {
		require.NoError(t, err)
		require.Equal(t, "open", x.RunID)
		break // a consumer that stops ends the requests
	}
}

func TestInspectReturnsThePositionOfAnExecution(t *testing.T) {
	t.Parallel()
	f := serve(t)
	late := noon().Add(time.Minute)
	f.grow("fresh", "x1", "")
	f.grow("near", "x2", "", slices.Concat(plain(2, 3), []*historypb.HistoryEvent{task(4, 3, late)}, plain(5, 7))...)
	f.grow("far", "x3", "", slices.Concat(plain(2, 3), []*historypb.HistoryEvent{task(4, 3, late)}, plain(5, 70))...)
	f.grow("before a long tail", "x4", "",
		slices.Concat(plain(2, 3), []*historypb.HistoryEvent{task(4, 3, late)}, plain(5, 300))...)
	e, _ := connect(t, f.address, nil)
	for id, want := range map[string][]any{
		"fresh": {"x1", int64(0), time.Time{}}, "near": {"x2", int64(3), late}, "far": {"x3", int64(3), late},
		"before a long tail": {"x4", int64(3), late},
	} {
		for _, shown := range []string{"", want[0].(string)} {
			x, err := e.Inspect(t.Context(), run.Run{ID: id, ExecutionID: shown})
			require.NoError(t, err)
			require.Equal(t, []any{want[0], want[1], want[2], run.RelationSame, true},
				[]any{x.ExecutionID, x.Accepted, x.AcceptedAt, x.Relation, x.Open}, id)
		}
	}
	_, err := e.Inspect(t.Context(), run.Run{ID: "none"})
	require.ErrorIs(t, err, run.ErrNotKnown)
}

// TestInspectDistinguishesResetsFromContinuations has a run of three executions, each of which may be reset.
func TestInspectDistinguishesResetsFromContinuations(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, shown string
		reset       [2]string // the execution of a reset, and the one that it continues
		relation    run.Relation
		left        []string
	}{
		{"the newest", "c", [2]string{}, run.RelationSame, nil},
		{"the one before", "b", [2]string{}, run.RelationSuccessor, nil},
		{"the first", "a", [2]string{}, run.RelationSuccessor, nil},
		{"the newest was reset", "c", [2]string{"c2", "b"}, run.RelationReset, []string{"c"}},
		{"the second was reset", "c", [2]string{"b2", "a"}, run.RelationReset, []string{"c", "b"}},
		{"the first was reset", "c", [2]string{"a2", ""}, run.RelationReset, []string{"c", "b", "a"}},
		{"the newest was reset, and the row is behind", "b", [2]string{"c2", "b"}, run.RelationSuccessor, nil},
		{"the row shows what is forgotten", "z", [2]string{}, run.RelationReset, []string{"z"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := serve(t)
			f.grow("r1", "a", "")
			f.grow("r1", "b", "a")
			f.grow("r1", "c", "b")
			if tt.reset[0] != "" {
				f.grow("r1", tt.reset[0], tt.reset[1])
			}
			e, _ := connect(t, f.address, nil)
			x, err := e.Inspect(t.Context(), run.Run{ID: "r1", ExecutionID: tt.shown})
			require.NoError(t, err)
			require.Equal(t, []any{tt.relation, tt.left}, []any{x.Relation, x.Left})
		})
	}
}

func TestOriginIsTheFirstInput(t *testing.T) {
	t.Parallel()
	for _, scenario := range []string{"pure", "continued"} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			f := serve(t)
			id := f.load(t, scenario)
			f.identify(t, id)
			e, _ := connect(t, f.address, nil)
			o, err := e.Origin(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, aRun().Identity(), o.Identity)
			require.False(t, o.StartedAt.IsZero())
			require.True(t, len(o.Input) > 0 || scenario == "pure")
		})
	}
}

// identify gives the executions of a run a memo.
func (f *frontend) identify(t *testing.T, id string) {
	t.Helper()
	memo, err := codec.For(testKeys(t), id).ToPayload(aRun().Identity())
	require.NoError(t, err)
	f.set(func() {
		for _, h := range f.histories {
			started(h).TaskQueue.Name = "signalbox-team-7"
			started(h).Memo = &commonpb.Memo{Fields: map[string]*commonpb.Payload{"signalbox.identity": memo}}
		}
	})
}

func TestOriginOfOtherWorkflows(t *testing.T) {
	t.Parallel()
	f := serve(t)
	id := f.load(t, "pure")
	f.identify(t, id)
	e, _ := connect(t, f.address, nil)
	attributes := started(f.histories[f.info[id].GetExecution().GetRunId()])
	spoils := map[string]func(){
		"another type":  func() { attributes.WorkflowType = &commonpb.WorkflowType{Name: "other"} },
		"another queue": func() { attributes.TaskQueue.Name = "signalbox-other" },
		"no input":      func() { attributes.Input = nil },
	}
	for name, spoil := range spoils {
		kind, queue, input := attributes.GetWorkflowType(), attributes.GetTaskQueue().GetName(), attributes.GetInput()
		f.set(spoil)
		_, err := e.Origin(t.Context(), id)
		require.ErrorIs(t, err, run.ErrNotKnown, name)
		f.set(func() { attributes.WorkflowType, attributes.TaskQueue.Name, attributes.Input = kind, queue, input })
	}
	_, err := e.Origin(t.Context(), "none")
	require.ErrorIs(t, err, run.ErrNotKnown)
	_, err = e.Origin(t.Context(), id)
	require.NoError(t, err)
}

func TestEndedExecutionsAreListedByTheirEnd(t *testing.T) {
	t.Parallel()
	f := serve(t)
	id := f.load(t, "pure")
	f.info[id].TaskQueue = "signalbox-a"
	e, _ := connect(t, f.address, nil)
	f.called()
	var ids []string
	for x, err := range e.EndedExecutions(t.Context(), noon(), noon().Add(time.Hour)) {
		require.NoError(t, err)
		require.False(t, x.ClosedAt.IsZero())
		ids = append(ids, x.RunID)
	}
	require.Equal(t, []string{id}, ids)
	require.Contains(t, f.called(), "list WorkflowType = 'signalbox.run' AND ExecutionStatus != 'ContinuedAsNew'"+
		" AND CloseTime >= '"+noon().Format(time.RFC3339)+"' AND CloseTime < '"+noon().Add(time.Hour).Format(time.RFC3339)+
		"'")
}

func TestInspectorReportsThatTemporalIsUnavailable(t *testing.T) {
	t.Parallel()
	e, _, _ := reach(t, "127.0.0.1:1", nil)
	ctx := t.Context()
	_, cluster := e.ClusterID(ctx)
	_, inspect := e.Inspect(ctx, run.Run{ID: "r1"})
	rebuild := e.Rebuild(ctx, run.Run{ID: "r1"}, "", nil)
	_, origin := e.Origin(ctx, "r1")
	for _, err := range []error{cluster, inspect, rebuild, origin} {
		requireError(t, err, apperror.Unavailable, apperror.EngineUnavailable, "127.0.0.1:1")
	}
	for _, err := range e.Executions(ctx, noon()) {
		requireError(t, err, apperror.Unavailable, apperror.EngineUnavailable, "127.0.0.1:1")
	}
	_, err := e.Retention(ctx)
	requireError(t, err, apperror.Unavailable, apperror.EngineUnavailable, "127.0.0.1:1")
}
