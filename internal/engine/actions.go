package engine

import (
	"context"
	"maps"
	"sync"

	commandpb "go.temporal.io/api/command/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

// The kinds of billable actions that [Actions] counts. They are Temporal Cloud's units of price; a cluster of one's own
// has the same work to do for them.
const (
	ActionStart           = "start"            // an execution: by a request, a child, or Continue-As-New
	ActionChild           = "child"            // the command for a child, beside its start
	ActionSchedule        = "schedule"         // a fire of a schedule, beside the start of its execution
	ActionActivity        = "activity"         // a try of an activity
	ActionHeartbeat       = "heartbeat"        // a heartbeat that the SDK sent
	ActionLocalActivities = "local_activities" // all local activities of one workflow task
	ActionTimer           = "timer"
	ActionSignal          = "signal"
	ActionQuery           = "query"
	ActionUpdate          = "update"
	ActionSideEffect      = "side_effect"
	ActionAttributes      = "search_attributes"
	ActionReset           = "reset"
)

// ActionKinds returns all kinds.
func ActionKinds() []string {
	return []string{ActionStart, ActionChild, ActionSchedule, ActionActivity, ActionHeartbeat, ActionLocalActivities,
		ActionTimer, ActionSignal, ActionQuery, ActionUpdate, ActionSideEffect, ActionAttributes, ActionReset}
}

const (
	// actionsPerFire is what the fire of a schedule costs beside the start of its execution.
	actionsPerFire = 2
	// firstTask is the event ID at which the first workflow task of an execution starts.
	firstTask = 3
)

// Actions counts the billable actions that the requests of a process cause in Temporal. The sum over all processes is
// what Temporal counts, but for actions of other programs in the namespace, such as queries of Temporal's own UI. It is
// safe for concurrent use.
type Actions struct {
	mu    sync.Mutex
	kinds map[string]int64
}

// NewActions returns counters at 0.
func NewActions() *Actions {
	a := &Actions{kinds: map[string]int64{}}
	for _, kind := range ActionKinds() {
		a.kinds[kind] = 0
	}
	return a
}

// Counts returns the actions since the process started, by kind.
func (a *Actions) Counts() map[string]int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.kinds)
}

// Intercept counts the actions of the requests over a connection that Temporal accepted.
func (a *Actions) Intercept(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	if err := invoke(ctx, method, req, reply, cc, opts...); err != nil {
		return err
	}
	if caused := actionsOf(req, reply); len(caused) > 0 {
		a.mu.Lock()
		for kind, n := range caused {
			a.kinds[kind] += n
		}
		a.mu.Unlock()
	}
	return nil
}

// actionsOf returns the actions of an accepted request, by kind.
func actionsOf(req, reply any) map[string]int64 {
	caused := map[string]int64{}
	switch req := req.(type) {
	case *workflowservice.StartWorkflowExecutionRequest:
		// A start that finds its execution costs nothing.
		if r, ok := reply.(*workflowservice.StartWorkflowExecutionResponse); ok && r.GetStarted() {
			caused[ActionStart]++
		}
	case *workflowservice.SignalWithStartWorkflowExecutionRequest:
		caused[ActionSignal]++
		if r, ok := reply.(*workflowservice.SignalWithStartWorkflowExecutionResponse); ok && r.GetStarted() {
			caused[ActionStart]++
		}
	case *workflowservice.SignalWorkflowExecutionRequest:
		caused[ActionSignal]++
	case *workflowservice.QueryWorkflowRequest:
		caused[ActionQuery]++
	case *workflowservice.UpdateWorkflowExecutionRequest:
		caused[ActionUpdate]++
	case *workflowservice.ResetWorkflowExecutionRequest:
		caused[ActionReset]++
	case *workflowservice.RecordActivityTaskHeartbeatRequest, *workflowservice.RecordActivityTaskHeartbeatByIdRequest:
		caused[ActionHeartbeat]++
	case *workflowservice.RespondWorkflowTaskCompletedRequest:
		ofCommands(req.GetCommands(), caused)
	}
	switch reply := reply.(type) {
	case *workflowservice.PollActivityTaskQueueResponse:
		if len(reply.GetTaskToken()) > 0 {
			caused[ActionActivity]++
		}
	case *workflowservice.PollWorkflowTaskQueueResponse:
		// The server starts the executions of schedules; their first task shows them.
		if reply.GetStartedEventId() == firstTask && reply.GetAttempt() <= 1 && scheduled(reply.GetHistory()) {
			caused[ActionStart]++
			caused[ActionSchedule] += actionsPerFire
		}
	case *workflowservice.RespondWorkflowTaskCompletedResponse:
		if n := len(reply.GetActivityTasks()); n > 0 {
			caused[ActionActivity] += int64(n)
		}
	}
	return caused
}

// scheduled reports whether a history is that of an execution that a schedule started.
func scheduled(h *historypb.History) bool {
	if len(h.GetEvents()) == 0 {
		return false
	}
	fields := h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetSearchAttributes().GetIndexedFields()
	_, found := fields["TemporalScheduledById"]
	return found
}

// ofCommands adds the actions of the commands of one workflow task.
func ofCommands(commands []*commandpb.Command, caused map[string]int64) {
	for _, c := range commands {
		switch c.GetCommandType() { //nolint:exhaustive // the other commands cost nothing, or when they are executed
		case enumspb.COMMAND_TYPE_START_TIMER:
			caused[ActionTimer]++
		case enumspb.COMMAND_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION:
			caused[ActionSignal]++
		case enumspb.COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION:
			caused[ActionChild]++
			caused[ActionStart]++
		case enumspb.COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION:
			caused[ActionStart]++
		case enumspb.COMMAND_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:
			caused[ActionAttributes]++
		case enumspb.COMMAND_TYPE_RECORD_MARKER:
			switch c.GetRecordMarkerCommandAttributes().GetMarkerName() {
			case "SideEffect", "MutableSideEffect":
				caused[ActionSideEffect]++
			case "LocalActivity":
				caused[ActionLocalActivities] = 1
			}
		}
	}
}
