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
	a.count(req, reply)
	return nil
}

// count adds the actions of an accepted request.
func (a *Actions) count(req, reply any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch req := req.(type) {
	case *workflowservice.StartWorkflowExecutionRequest:
		// A start that finds its execution costs nothing.
		if r, ok := reply.(*workflowservice.StartWorkflowExecutionResponse); ok && r.GetStarted() {
			a.kinds[ActionStart]++
		}
	case *workflowservice.SignalWithStartWorkflowExecutionRequest:
		a.kinds[ActionSignal]++
		if r, ok := reply.(*workflowservice.SignalWithStartWorkflowExecutionResponse); ok && r.GetStarted() {
			a.kinds[ActionStart]++
		}
	case *workflowservice.SignalWorkflowExecutionRequest:
		a.kinds[ActionSignal]++
	case *workflowservice.QueryWorkflowRequest:
		a.kinds[ActionQuery]++
	case *workflowservice.UpdateWorkflowExecutionRequest:
		a.kinds[ActionUpdate]++
	case *workflowservice.ResetWorkflowExecutionRequest:
		a.kinds[ActionReset]++
	case *workflowservice.RecordActivityTaskHeartbeatRequest, *workflowservice.RecordActivityTaskHeartbeatByIdRequest:
		a.kinds[ActionHeartbeat]++
	case *workflowservice.RespondWorkflowTaskCompletedRequest:
		a.countCommands(req.GetCommands())
	}
	switch reply := reply.(type) {
	case *workflowservice.PollActivityTaskQueueResponse:
		if len(reply.GetTaskToken()) > 0 {
			a.kinds[ActionActivity]++
		}
	case *workflowservice.PollWorkflowTaskQueueResponse:
		// The server starts the executions of schedules; their first task shows them.
		if reply.GetStartedEventId() == firstTask && reply.GetAttempt() <= 1 && scheduled(reply.GetHistory()) {
			a.kinds[ActionStart]++
			a.kinds[ActionSchedule] += actionsPerFire
		}
	case *workflowservice.RespondWorkflowTaskCompletedResponse:
		if n := len(reply.GetActivityTasks()); n > 0 {
			a.kinds[ActionActivity] += int64(n)
		}
	}
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

// countCommands adds the actions of the commands of one workflow task.
func (a *Actions) countCommands(commands []*commandpb.Command) {
	local := int64(0)
	for _, c := range commands {
		switch c.GetCommandType() { //nolint:exhaustive // the other commands cost nothing, or when they are executed
		case enumspb.COMMAND_TYPE_START_TIMER:
			a.kinds[ActionTimer]++
		case enumspb.COMMAND_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION:
			a.kinds[ActionSignal]++
		case enumspb.COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION:
			a.kinds[ActionChild]++
			a.kinds[ActionStart]++
		case enumspb.COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION:
			a.kinds[ActionStart]++
		case enumspb.COMMAND_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:
			a.kinds[ActionAttributes]++
		case enumspb.COMMAND_TYPE_RECORD_MARKER:
			switch c.GetRecordMarkerCommandAttributes().GetMarkerName() {
			case "SideEffect", "MutableSideEffect":
				a.kinds[ActionSideEffect]++
			case "LocalActivity":
				local = 1
			}
		}
	}
	a.kinds[ActionLocalActivities] += local
}
