package engine_test

import (
	"context"
	"errors"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	commandpb "go.temporal.io/api/command/v1"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"

	"github.com/signalbox-dev/signalbox/internal/engine"
)

func TestActionsOfRequests(t *testing.T) {
	t.Parallel()
	command := func(kind enumspb.CommandType) *commandpb.Command { return &commandpb.Command{CommandType: kind} }
	marker := func(name string) *commandpb.Command {
		return &commandpb.Command{
			CommandType: enumspb.COMMAND_TYPE_RECORD_MARKER,
			Attributes: &commandpb.Command_RecordMarkerCommandAttributes{
				RecordMarkerCommandAttributes: &commandpb.RecordMarkerCommandAttributes{MarkerName: name}}}
	}
	completed := func(commands ...*commandpb.Command) *workflowservice.RespondWorkflowTaskCompletedRequest {
		return &workflowservice.RespondWorkflowTaskCompletedRequest{Commands: commands}
	}
	first := func(fields ...string) *workflowservice.PollWorkflowTaskQueueResponse {
		indexed := map[string]*commonpb.Payload{}
		for _, field := range fields {
			indexed[field] = &commonpb.Payload{}
		}
		attributes := &historypb.WorkflowExecutionStartedEventAttributes{
			SearchAttributes: &commonpb.SearchAttributes{IndexedFields: indexed}}
		started := &historypb.HistoryEvent{
			Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
				WorkflowExecutionStartedEventAttributes: attributes}}
		return &workflowservice.PollWorkflowTaskQueueResponse{
			StartedEventId: 3, Attempt: 1, History: &historypb.History{Events: []*historypb.HistoryEvent{started}}}
	}
	fired, later, again := first("TemporalScheduledById"), first("TemporalScheduledById"), first("TemporalScheduledById")
	later.StartedEventId, again.Attempt = 8, 2

	for name, tt := range map[string]struct {
		request, reply any
		want           map[string]int64
	}{
		"start": {&workflowservice.StartWorkflowExecutionRequest{},
			&workflowservice.StartWorkflowExecutionResponse{Started: true}, map[string]int64{"start": 1}},
		"start that finds its execution": {&workflowservice.StartWorkflowExecutionRequest{},
			&workflowservice.StartWorkflowExecutionResponse{}, nil},
		"signal and start": {&workflowservice.SignalWithStartWorkflowExecutionRequest{},
			&workflowservice.SignalWithStartWorkflowExecutionResponse{Started: true}, map[string]int64{"start": 1, "signal": 1}},
		"signal": {&workflowservice.SignalWorkflowExecutionRequest{}, nil, map[string]int64{"signal": 1}},
		"query":  {&workflowservice.QueryWorkflowRequest{}, nil, map[string]int64{"query": 1}},
		"update": {&workflowservice.UpdateWorkflowExecutionRequest{}, nil, map[string]int64{"update": 1}},
		"reset":  {&workflowservice.ResetWorkflowExecutionRequest{}, nil, map[string]int64{"reset": 1}},
		"heartbeat": {&workflowservice.RecordActivityTaskHeartbeatRequest{},
			&workflowservice.RecordActivityTaskHeartbeatResponse{}, map[string]int64{"heartbeat": 1}},
		"activity": {nil, &workflowservice.PollActivityTaskQueueResponse{TaskToken: []byte("t"), Attempt: 4},
			map[string]int64{"activity": 1}},
		"poll without a task":            {nil, &workflowservice.PollActivityTaskQueueResponse{}, nil},
		"fire":                           {nil, fired, map[string]int64{"start": 1, "schedule": 2}},
		"later task of a fire":           {nil, later, nil},
		"first task":                     {nil, first(), nil},
		"first task of a fire once more": {nil, again, nil},
		"commands": {
			completed(command(enumspb.COMMAND_TYPE_START_TIMER), command(enumspb.COMMAND_TYPE_START_TIMER),
				command(enumspb.COMMAND_TYPE_CANCEL_TIMER), command(enumspb.COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK),
				command(enumspb.COMMAND_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION),
				command(enumspb.COMMAND_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES),
				marker("LocalActivity"), marker("LocalActivity"), marker("SideEffect"), marker("Version"),
				command(enumspb.COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION),
				command(enumspb.COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION)),
			&workflowservice.RespondWorkflowTaskCompletedResponse{
				ActivityTasks: []*workflowservice.PollActivityTaskQueueResponse{{TaskToken: []byte("t")}}},
			map[string]int64{"timer": 2, "signal": 1, "search_attributes": 1, "local_activities": 1, "side_effect": 1,
				"child": 1, "start": 2, "activity": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := engine.NewActions()
			invoke := func(err error) grpc.UnaryInvoker {
				return func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return err }
			}
			refused := errors.New("refused")
			require.Equal(t, refused, a.Intercept(t.Context(), "m", tt.request, tt.reply, nil, invoke(refused)))
			want := engine.NewActions().Counts()
			require.Len(t, want, len(engine.ActionKinds()))
			require.Equal(t, want, a.Counts(), "a refused request costs nothing")
			require.NoError(t, a.Intercept(t.Context(), "m", tt.request, tt.reply, nil, invoke(nil)))
			maps.Copy(want, tt.want)
			require.Equal(t, want, a.Counts())
		})
	}
}
