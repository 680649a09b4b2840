package engine_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/payload"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// TestRebuildNeedsNoMoreMemoryForALongRun compares the heap during the rebuild of a run of tens of thousands of steps, over several
// executions, with that of a small one.
func TestRebuildNeedsNoMoreMemoryForALongRun(t *testing.T) { //nolint:paralleltest // it measures the heap of the process
	if underRace {
		t.Skip("this run computes too much for the race detector")
	}
	small, few := rebuildHeap(t, 1)
	large, many := rebuildHeap(t, 10)
	t.Logf("%d steps take %d kB, %d steps %d kB", few, small>>10, many, large>>10)
	require.Equal(t, 10*few, many)
	const slack = 2 << 20 // what the runtime and the SDK keep differs by less
	require.Less(t, large, 2*small+slack, "a rebuild holds a part at a time")
}

// rebuildHeap rebuilds a run of several executions that enter 2,000 steps each, and returns by how much the heap was larger in between
// than before, at most, and how many steps were written.
func rebuildHeap(t *testing.T, executions int) (grown int64, steps int) {
	t.Helper()
	f, docs := serve(t), &shelf{}
	hash := docs.put(t, `
document: {dsl: '1.0.0', namespace: test, name: long, version: '1.0.0'}
do:
  - f: {for: {in: '${ [range(2000)] }'}, do: [{s: {set: {text: '${ "x" * 500 }'}}}]}
  - w: {wait: {hours: 1}}`)
	f.chain(t, "r1", hash, executions)
	e, _ := connect(t, f.address, docs)
	w := &weigher{before: heap()}
	require.NoError(t, e.Rebuild(t.Context(), run.Run{ID: "r1", Project: project.Default}, "", w))
	require.Equal(t, executions-1, w.done)
	return w.most - w.before, w.steps
}

// chain gives the frontend a run of executions that continue each other, and each enter their steps in one workflow task and then wait.
func (f *frontend) chain(t *testing.T, id, hash string, executions int) {
	t.Helper()
	before := ""
	for n := range executions {
		input, err := payload.Converter(testKeys(t)).ToPayloads(flow.Input{RunID: id, Project: project.Default, DocumentHash: hash, Interpreter: interp.Version, Chain: n})
		require.NoError(t, err)
		execution := fmt.Sprintf("x%d", n)
		history := &historypb.History{Events: []*historypb.HistoryEvent{
			{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
				WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{
					WorkflowType: &commonpb.WorkflowType{Name: contract.RunWorkflow}, TaskQueue: &taskqueuepb.TaskQueue{Name: "q"}, Input: input,
					WorkflowTaskTimeout: durationpb.New(10 * time.Second),
					WorkflowId:          id, OriginalExecutionRunId: execution, ContinuedExecutionRunId: before,
				},
			}},
			{EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED, Attributes: &historypb.HistoryEvent_WorkflowTaskScheduledEventAttributes{
				WorkflowTaskScheduledEventAttributes: &historypb.WorkflowTaskScheduledEventAttributes{},
			}},
			{EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED, Attributes: &historypb.HistoryEvent_WorkflowTaskStartedEventAttributes{
				WorkflowTaskStartedEventAttributes: &historypb.WorkflowTaskStartedEventAttributes{ScheduledEventId: 2},
			}},
			task(4, 3, noon()),
			{EventType: enumspb.EVENT_TYPE_TIMER_STARTED, Attributes: &historypb.HistoryEvent_TimerStartedEventAttributes{
				TimerStartedEventAttributes: &historypb.TimerStartedEventAttributes{
					TimerId: "5", StartToFireTimeout: durationpb.New(time.Hour), WorkflowTaskCompletedEventId: 4,
				},
			}},
		}}
		history.GetEvents()[3].EventType = enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
		for i, event := range history.GetEvents() {
			event.EventId, event.EventTime = int64(i+1), timestamppb.New(noon())
		}
		f.set(func() { f.histories[execution] = history })
		f.describe(id, history, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING)
		before = execution
	}
}

// weigher takes the parts of a rebuild and keeps only what the heap was when it had one.
type weigher struct {
	before, most int64
	steps, done  int
}

func (w *weigher) Write(_ context.Context, part run.Update) error {
	w.steps += len(part.Steps)
	w.most = max(w.most, heap())
	return nil
}

func (w *weigher) Done(context.Context, string) error {
	w.done++
	return nil
}

// heap is what is reachable.
func heap() int64 {
	runtime.GC()
	runtime.GC() // pools keep what they had for one more
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	return int64(now.HeapAlloc)
}
