package flow_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
)

// replay replays the history of a run that needs only one workflow task, as requirement P-L5 states for pure runs.
func replay(t *testing.T, b *testRun, output any) (int, error) {
	t.Helper()
	input, err := converter.GetDefaultDataConverter().ToPayloads(b.input)
	require.NoError(t, err)
	result, err := converter.GetDefaultDataConverter().ToPayloads(output)
	require.NoError(t, err)
	queue := &taskqueuepb.TaskQueue{Name: "q"}
	history := &historypb.History{Events: []*historypb.HistoryEvent{
		{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
			Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
				WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{
					WorkflowType: &commonpb.WorkflowType{Name: workflowName}, TaskQueue: queue, Input: input,
					WorkflowTaskTimeout: durationpb.New(10 * time.Second), OriginalExecutionRunId: "e", FirstExecutionRunId: "e",
				}}},
		{EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED,
			Attributes: &historypb.HistoryEvent_WorkflowTaskScheduledEventAttributes{
				WorkflowTaskScheduledEventAttributes: &historypb.WorkflowTaskScheduledEventAttributes{TaskQueue: queue}}},
		{EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED,
			Attributes: &historypb.HistoryEvent_WorkflowTaskStartedEventAttributes{
				WorkflowTaskStartedEventAttributes: &historypb.WorkflowTaskStartedEventAttributes{ScheduledEventId: 2}}},
		{EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED,
			Attributes: &historypb.HistoryEvent_WorkflowTaskCompletedEventAttributes{
				WorkflowTaskCompletedEventAttributes: &historypb.WorkflowTaskCompletedEventAttributes{
					ScheduledEventId: 2, StartedEventId: 3}}},
		{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED,
			Attributes: &historypb.HistoryEvent_WorkflowExecutionCompletedEventAttributes{
				WorkflowExecutionCompletedEventAttributes: &historypb.WorkflowExecutionCompletedEventAttributes{
					Result: result, WorkflowTaskCompletedEventId: 4}}},
	}}
	for i, e := range history.Events {
		e.EventId = int64(i + 1)
		e.EventTime = timestamppb.New(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	}
	replayer := worker.NewWorkflowReplayer()
	replayer.RegisterWorkflowWithOptions(
		flow.New(t.Context(), b.docs, b.recorder, b.limits).Run, workflow.RegisterOptions{Name: workflowName})
	return len(history.Events), replayer.ReplayWorkflowHistory(quiet{}, history)
}

func TestHundredSetsLeaveFiveEvents(t *testing.T) {
	t.Parallel()
	var rest strings.Builder
	rest.WriteString("do:\n")
	for i := range 100 {
		fmt.Fprintf(&rest, "  - s%d: {set: {n: '${ (.n // 0) + 1 }'}}\n", i)
	}
	b := newTestRun(t, rest.String(), `{}`)
	b.limits.Machine.AdvanceFuel = 500 // many turns in one task
	events, err := replay(t, b, map[string]any{"n": 100})
	require.NoError(t, err)
	require.LessOrEqual(t, events, 8)
	require.Len(t, b.recorder.steps, 100)
	last := b.recorder.runs[len(b.recorder.runs)-1]
	require.Equal(t, interp.StatusCompleted, last.Status)
	require.Equal(t, flow.Position(0, 3), b.recorder.positions[0])
}

func TestReplayDetectsOtherResults(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `do: [{w: {wait: PT1S}}]`, `{}`)
	_, err := replay(t, b, map[string]any{})
	require.ErrorContains(t, err, "TMPRL1100")
}
