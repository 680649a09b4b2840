package platform

import (
	"context"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
)

// probe tells what keeps a Temporal from being usable: nothing when its default namespace answers.
func (p *Temporal) probe(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	c, err := client.NewLazyClient(client.Options{HostPort: p.Address, Logger: silent{}})
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	_, err = c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: client.DefaultNamespace})
	if err != nil {
		return err.Error()
	}
	return ""
}

// DialTemporal connects to a Temporal with the SDK, for looking behind Signalbox.
func DialTemporal(t T, address string) client.Client {
	t.Helper()
	c, err := client.DialContext(t.Context(), client.Options{HostPort: address, Logger: silent{}})
	if err != nil {
		t.Fatalf("connect to Temporal at %s: %v", address, err)
	}
	t.Cleanup(c.Close)
	return c
}

// History reads the whole history of a run's newest execution.
func History(t T, c client.Client, runID string) *historypb.History {
	t.Helper()
	return execution(t, c, runID, "")
}

// Histories reads the histories of all executions of a run, in order: each continues the one before as new.
func Histories(t T, c client.Client, runID string) []*historypb.History {
	t.Helper()
	newest, err := c.DescribeWorkflowExecution(t.Context(), runID, "")
	if err != nil {
		t.Fatalf("find the executions of %s: %v", runID, err)
	}
	// Every execution knows the first of its chain, and each the one that it was continued by.
	next := newest.GetWorkflowExecutionInfo().GetFirstRunId()
	var out []*historypb.History
	for next != "" {
		h := execution(t, c, runID, next)
		out = append(out, h)
		next = h.GetEvents()[len(h.GetEvents())-1].GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
	}
	return out
}

func execution(t T, c client.Client, workflowID, runID string) *historypb.History {
	t.Helper()
	out := &historypb.History{}
	events := c.GetWorkflowHistory(t.Context(), workflowID, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			t.Fatalf("read the history of %s: %v", workflowID, err)
		}
		out.Events = append(out.Events, event)
	}
	return out
}

// silent keeps the SDK's log out of the tests' output.
type silent struct{}

var _ log.Logger = silent{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}
