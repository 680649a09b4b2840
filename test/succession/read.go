package succession

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// WorkflowType is the workflow type of every dispatcher.
const WorkflowType = "signalbox.dispatcher"

// Owner is one ownership as an execution records it.
type Owner struct {
	Server string
	Epoch  int64
	At     time.Time
}

// Execution is one execution of a dispatcher.
type Execution struct {
	ID, RunID string
	Start     time.Time
	Close     time.Time // zero while it is open
	Status    enums.WorkflowExecutionStatus
	// Reason is the reason of the termination.
	Reason string
	// Owners are in order: the first one started the execution, the others adopted it.
	Owners []Owner
	// Events is the length of the history.
	Events int
}

// Open reports whether the execution is open.
func (e Execution) Open() bool { return e.Status == enums.WORKFLOW_EXECUTION_STATUS_RUNNING }

// Owner returns the last owner.
func (e Execution) Owner() Owner {
	if len(e.Owners) == 0 {
		return Owner{}
	}
	return e.Owners[len(e.Owners)-1]
}

func (e Execution) String() string {
	return fmt.Sprintf("%s %s of %v (%s)", e.ID, e.RunID, e.Owners, e.Status)
}

// Read reads all executions of a dispatcher, in order of their starts.
func Read(t platform.T, c client.Client, id string) []Execution {
	t.Helper()
	return read(t, c, fmt.Sprintf("WorkflowType = %q AND WorkflowId = %q", WorkflowType, id))
}

// ReadAll reads the executions of all dispatchers, in order of their starts.
func ReadAll(t platform.T, c client.Client) []Execution {
	t.Helper()
	return read(t, c, fmt.Sprintf("WorkflowType = %q", WorkflowType))
}

// listLimit is the maximum delay of Temporal's list.
const listLimit = 30 * time.Second

// read waits until the list shows the newest execution of each of its IDs: it lags behind recent starts.
func read(t platform.T, c client.Client, query string) []Execution {
	t.Helper()
	var listed map[string][]string
	platform.Eventually(t, listLimit, func() string {
		listed = list(t, c, query)
		for id, runs := range listed {
			newest, err := c.DescribeWorkflowExecution(t.Context(), id, "")
			if err != nil {
				return err.Error()
			}
			if run := newest.GetWorkflowExecutionInfo().GetExecution().GetRunId(); !slices.Contains(runs, run) {
				return fmt.Sprintf("execution %s of %s is not listed yet", run, id)
			}
		}
		return ""
	})
	var all []Execution
	for id, runs := range listed {
		for _, run := range runs {
			all = append(all, follow(t, c, id, run))
		}
	}
	slices.SortFunc(all, func(a, b Execution) int { return a.Start.Compare(b.Start) })
	return all
}

// list returns run IDs by workflow ID.
func list(t platform.T, c client.Client, query string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	var token []byte
	for {
		page, err := c.ListWorkflow(t.Context(),
			&workflowservice.ListWorkflowExecutionsRequest{Query: query, NextPageToken: token})
		if err != nil {
			t.Fatalf("list dispatchers: %v", err)
		}
		for _, x := range page.GetExecutions() {
			id := x.GetExecution().GetWorkflowId()
			found[id] = append(found[id], x.GetExecution().GetRunId())
		}
		if token = page.GetNextPageToken(); len(token) == 0 {
			return found
		}
	}
}

// follow reads the history of an execution. The list may lag; the history does not.
func follow(t platform.T, c client.Client, id, runID string) Execution {
	t.Helper()
	e := Execution{ID: id, RunID: runID, Status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING}
	adoptions := map[int64]Owner{}
	for _, event := range platform.Execution(t, c, e.ID, e.RunID).GetEvents() {
		e.Events++
		if err := apply(&e, event, adoptions); err != nil {
			t.Fatalf("event %d of %s %s: %v", event.GetEventId(), e.ID, e.RunID, err)
		}
	}
	return e
}

// apply updates an execution by an event of its history. adoptions are the accepted adoptions, by event ID.
func apply(e *Execution, event *historypb.HistoryEvent, adoptions map[int64]Owner) error {
	at := event.GetEventTime().AsTime()
	end := func(status enums.WorkflowExecutionStatus) { e.Status, e.Close = status, at }
	switch event.GetEventType() {
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		e.Start = at
		owner, err := first(event.GetWorkflowExecutionStartedEventAttributes().GetMemo().GetFields(), at)
		e.Owners = owner
		return err
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:
		request := event.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest()
		if request.GetInput().GetName() != "adopt" {
			return nil
		}
		var adoption struct {
			ServerID string `json:"serverId"`
			Epoch    int64  `json:"epoch"`
		}
		if err := decode(request.GetInput().GetArgs().GetPayloads()[0], &adoption); err != nil {
			return err
		}
		adoptions[event.GetEventId()] = Owner{Server: adoption.ServerID, Epoch: adoption.Epoch, At: at}
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED:
		done := event.GetWorkflowExecutionUpdateCompletedEventAttributes()
		if owner, ok := adoptions[done.GetAcceptedEventId()]; ok && done.GetOutcome().GetFailure() == nil {
			e.Owners = append(e.Owners, owner)
		}
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
		e.Reason = event.GetWorkflowExecutionTerminatedEventAttributes().GetReason()
		end(enums.WORKFLOW_EXECUTION_STATUS_TERMINATED)
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		end(enums.WORKFLOW_EXECUTION_STATUS_COMPLETED)
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		end(enums.WORKFLOW_EXECUTION_STATUS_FAILED)
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		end(enums.WORKFLOW_EXECUTION_STATUS_CANCELED)
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
		end(enums.WORKFLOW_EXECUTION_STATUS_TIMED_OUT)
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		end(enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW)
	}
	return nil
}

// first returns the owner that an execution begins with; an execution without a memo has none.
func first(memo map[string]*commonpb.Payload, at time.Time) ([]Owner, error) {
	if memo["owner"] == nil {
		return nil, nil
	}
	owner := Owner{At: at}
	if err := decode(memo["owner"], &owner.Server); err != nil {
		return nil, err
	}
	if err := decode(memo["epoch"], &owner.Epoch); err != nil {
		return nil, err
	}
	return []Owner{owner}, nil
}

func decode(p *commonpb.Payload, into any) error {
	if err := json.Unmarshal(p.GetData(), into); err != nil {
		return fmt.Errorf("the payload %q: %w", p.GetData(), err)
	}
	return nil
}
