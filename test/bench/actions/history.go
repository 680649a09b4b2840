package actions

import (
	"context"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
)

// use is what one execution made in Temporal: billable actions, and bytes of history.
type use struct{ actions, bytes int64 }

func (u use) plus(other use) use { return use{u.actions + other.actions, u.bytes + other.bytes} }

// useOf reads the use of an execution and of its children from their histories.
func useOf(ctx context.Context, c client.Client, workflowID, runID string) (use, error) {
	described, err := c.DescribeWorkflowExecution(ctx, workflowID, runID)
	if err != nil {
		return use{}, fmt.Errorf("describe %s: %w", workflowID, err)
	}
	u := use{bytes: described.GetWorkflowExecutionInfo().GetHistorySizeBytes()}
	var events []*historypb.HistoryEvent
	pages := c.GetWorkflowHistory(ctx, workflowID, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for pages.HasNext() {
		event, err := pages.Next()
		if err != nil {
			return use{}, fmt.Errorf("read the history of %s: %w", workflowID, err)
		}
		events = append(events, event)
		if child := event.GetChildWorkflowExecutionStartedEventAttributes().GetWorkflowExecution(); child != nil {
			below, err := useOf(ctx, c, child.GetWorkflowId(), child.GetRunId())
			if err != nil {
				return use{}, err
			}
			u = u.plus(below)
		}
	}
	u.actions += billed(events)
	return u, nil
}

// billed returns the actions that one history has: the start, each try of an activity, the local activities of each
// workflow task, timers, signals, commands for children, side effects and changes of search attributes; of an execution
// that a schedule started, the fire.
func billed(events []*historypb.HistoryEvent) int64 {
	var n int64
	local := map[int64]bool{} // by workflow task
	for _, e := range events {
		switch e.GetEventType() { //nolint:exhaustive // the other events cost nothing
		case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
			n++
			started := e.GetWorkflowExecutionStartedEventAttributes()
			if _, scheduled := started.GetSearchAttributes().GetIndexedFields()["TemporalScheduledById"]; scheduled {
				n += 2
			}
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED:
			n += int64(e.GetActivityTaskStartedEventAttributes().GetAttempt())
		case enumspb.EVENT_TYPE_TIMER_STARTED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
			enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED,
			enumspb.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:
			n++
		case enumspb.EVENT_TYPE_MARKER_RECORDED:
			marker := e.GetMarkerRecordedEventAttributes()
			switch marker.GetMarkerName() {
			case "SideEffect", "MutableSideEffect":
				n++
			case "LocalActivity":
				if task := marker.GetWorkflowTaskCompletedEventId(); !local[task] {
					local[task] = true
					n++
				}
			}
		}
	}
	return n
}
