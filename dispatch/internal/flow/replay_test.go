package flow_test

import (
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/flow"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
)

// history is a workflow history as the server stores it.
type history struct {
	t *testing.T
	historypb.History
}

func (c *history) payloads(value any) *commonpb.Payloads {
	p, err := converter.GetDefaultDataConverter().ToPayloads(value)
	require.NoError(c.t, err)
	return p
}

// add adds an event and returns its ID.
func (c *history) add(kind enumspb.EventType, e *historypb.HistoryEvent) int64 {
	e.EventId, e.EventType = int64(len(c.Events)+1), kind
	e.EventTime = timestamppb.New(time.Unix(1_800_000_000+e.EventId, 0))
	c.Events = append(c.Events, e)
	return e.EventId
}

// task adds a completed workflow task; the events of its commands follow.
func (c *history) task() int64 {
	scheduled := c.add(enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED, &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowTaskScheduledEventAttributes{
		WorkflowTaskScheduledEventAttributes: &historypb.WorkflowTaskScheduledEventAttributes{TaskQueue: &taskqueuepb.TaskQueue{Name: name.TaskQueue}},
	}})
	started := c.add(enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED, &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowTaskStartedEventAttributes{
		WorkflowTaskStartedEventAttributes: &historypb.WorkflowTaskStartedEventAttributes{ScheduledEventId: scheduled},
	}})
	return c.add(enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowTaskCompletedEventAttributes{
		WorkflowTaskCompletedEventAttributes: &historypb.WorkflowTaskCompletedEventAttributes{ScheduledEventId: scheduled, StartedEventId: started},
	}})
}

func (c *history) late(ids ...string) {
	c.add(enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED, &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{
		WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{
			SignalName: wire.LateSignal, Input: c.payloads(wire.Late{ServerIDs: ids}),
		},
	}})
}

// activity adds an activity that a task scheduled, and its result.
func (c *history) activity(kind string, in, out any) {
	decided := c.task()
	id := int64(len(c.Events) + 1)
	c.add(enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
		ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
			ActivityId: text(id), ActivityType: &commonpb.ActivityType{Name: kind}, TaskQueue: &taskqueuepb.TaskQueue{Name: name.TaskQueue},
			Input: c.payloads(in), WorkflowTaskCompletedEventId: decided,
		},
	}})
	started := c.add(enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED, &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_ActivityTaskStartedEventAttributes{
		ActivityTaskStartedEventAttributes: &historypb.ActivityTaskStartedEventAttributes{ScheduledEventId: id, Attempt: 1},
	}})
	result := &historypb.ActivityTaskCompletedEventAttributes{ScheduledEventId: id, StartedEventId: started}
	if out != nil {
		result.Result = c.payloads(out)
	}
	c.add(enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED, &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{
		ActivityTaskCompletedEventAttributes: result,
	}})
}

// timer adds a timer that a task started, the events before it fires, and the firing.
func (c *history) timer(meanwhile func()) {
	decided := c.task()
	id := int64(len(c.Events) + 1)
	c.add(enumspb.EVENT_TYPE_TIMER_STARTED, &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_TimerStartedEventAttributes{
		TimerStartedEventAttributes: &historypb.TimerStartedEventAttributes{
			TimerId: text(id), StartToFireTimeout: durationpb.New(10 * time.Second), WorkflowTaskCompletedEventId: decided,
		},
	}})
	meanwhile()
	c.add(enumspb.EVENT_TYPE_TIMER_FIRED, &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_TimerFiredEventAttributes{
		TimerFiredEventAttributes: &historypb.TimerFiredEventAttributes{TimerId: text(id), StartedEventId: id},
	}})
}

func text(id int64) string { return strconv.FormatInt(id, 10) }

// TestRunOfPreviousReleaseReplays replays a parked dispatcher of the previous release, which left a worker that was missed once to the next
// check: after another late signal, it checks again.
func TestRunOfPreviousReleaseReplays(t *testing.T) {
	t.Parallel()
	c := &history{t: t}
	workers := []dispatchtype.RegisteredWorker{{ServerID: "w1"}, {ServerID: "w2"}, {ServerID: "w3"}}
	c.add(enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
		WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{
			WorkflowType: &commonpb.WorkflowType{Name: wire.WorkflowType}, TaskQueue: &taskqueuepb.TaskQueue{Name: name.TaskQueue},
			OriginalExecutionRunId: "run", Input: c.payloads(flow.Input{
				Version: 1, Name: name, Owner: inbox.Owner{Epoch: 1, Holder: "a"}, CheckEvery: 30 * time.Second, Parked: true, Workers: workers,
			}),
		},
	}})
	c.task()
	c.late("w1")
	c.activity(wire.CheckActivity, flow.CheckInput{ServerIDs: []string{"w1", "w2", "w3"}}, flow.CheckOutput{Missed: []string{"w1"}})
	c.timer(func() { c.late("w2"); c.task() })
	c.activity(wire.CheckActivity, flow.CheckInput{ServerIDs: []string{"w1", "w2", "w3"}}, flow.CheckOutput{Missed: []string{"w1", "w2"}})
	c.activity(wire.EvictActivity, flow.EvictInput{Name: name, Evicted: []string{"w1"}}, nil)
	c.task() // no further command until the next late signal
	c.late("w2")
	c.activity(wire.CheckActivity, flow.CheckInput{ServerIDs: []string{"w2", "w3"}}, flow.CheckOutput{Missed: []string{"w2"}})
	c.activity(wire.EvictActivity, flow.EvictInput{Name: name, Evicted: []string{"w2"}}, nil)
	c.task()

	replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{})
	require.NoError(t, err)
	replayer.RegisterWorkflowWithOptions(flow.Run, workflow.RegisterOptions{Name: wire.WorkflowType})
	require.NoError(t, replayer.ReplayWorkflowHistory(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), &c.History))
}
