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
	"github.com/signalbox-dev/signalbox/internal/engine/codec"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// TestRebuildMemoryDoesNotGrowWithTheRun compares the heap during the rebuild of a run of tens of thousands of steps,
// over several executions, with that of a small one.
func TestRebuildMemoryDoesNotGrowWithTheRun(t *testing.T) { //nolint:paralleltest // it measures the heap of the process
	if underRace {
		t.Skip("this run computes too much for the race detector")
	}
	small, few := rebuildHeap(t, 1)
	large, many := rebuildHeap(t, 10)
	t.Logf("%d steps take %d kB, %d steps %d kB", few, small>>10, many, large>>10)
	require.Equal(t, 10*few, many)
	const slack = 2 << 20 // the memory of the runtime and the SDK varies by less
	require.Less(t, large, 2*small+slack, "a rebuild holds a part at a time")
}

// rebuildHeap rebuilds a run of several executions that enter 2,000 steps each. It returns the maximum growth of the
// heap meanwhile, and the number of written steps.
func rebuildHeap(t *testing.T, executions int) (grown int64, steps int) {
	t.Helper()
	f, docs := serve(t), &fakeSource{}
	hash := docs.put(t, `
document: {dsl: '1.0.0', namespace: test, name: long, version: '1.0.0'}
do:
  - f: {for: {in: '${ [range(2000)] }'}, do: [{s: {set: {text: '${ "x" * 500 }'}}}]}
  - w: {wait: {hours: 1}}`)
	f.chain(t, "r1", hash, executions)
	e, _ := connect(t, f.address, docs)
	w := &heapMeter{before: heap()}
	require.NoError(t, e.Rebuild(t.Context(), run.Run{ID: "r1", Project: project.Default}, "", w))
	require.Equal(t, executions-1, w.done)
	return w.most - w.before, w.steps
}

// chain adds a run with executions that continue each other to the frontend. Each enters its steps in one workflow task
// and then waits.
func (f *frontend) chain(t *testing.T, id, hash string, executions int) {
	t.Helper()
	before := ""
	for n := range executions {
		input, err := codec.For(testKeys(t),
			id).ToPayloads(flow.Input{
			RunID: id, Project: project.Default, DocumentHash: hash, Interpreter: interp.Version, Chain: n})
		require.NoError(t, err)
		execution := fmt.Sprintf("x%d", n)
		history := &historypb.History{Events: []*historypb.HistoryEvent{
			{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
				Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
					WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{
						WorkflowType: &commonpb.WorkflowType{Name: contract.RunWorkflow}, TaskQueue: &taskqueuepb.TaskQueue{Name: "q"},
						Input:               input,
						WorkflowTaskTimeout: durationpb.New(10 * time.Second),
						WorkflowId:          id, OriginalExecutionRunId: execution, ContinuedExecutionRunId: before,
					},
				}},
			{EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED,
				Attributes: &historypb.HistoryEvent_WorkflowTaskScheduledEventAttributes{
					WorkflowTaskScheduledEventAttributes: &historypb.WorkflowTaskScheduledEventAttributes{},
				}},
			{EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED,
				Attributes: &historypb.HistoryEvent_WorkflowTaskStartedEventAttributes{
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

// heapMeter receives the parts of a rebuild and stores only the heap sizes at their arrival.
type heapMeter struct {
	before, most int64
	steps, done  int
}

func (w *heapMeter) Write(_ context.Context, part run.Update) error {
	w.steps += len(part.Steps)
	w.most = max(w.most, heap())
	return nil
}

func (w *heapMeter) Done(context.Context, string) error {
	w.done++
	return nil
}

// heap returns the size of the reachable heap.
func heap() int64 {
	runtime.GC()
	runtime.GC() // pools keep their content for one more cycle
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	return int64(now.HeapAlloc)
}
