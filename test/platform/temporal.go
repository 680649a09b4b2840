package platform

import (
	"context"
	"errors"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/signalbox-dev/signalbox/internal/engine/codec"
)

// probe returns the reason why a Temporal is not usable, or "" if its default namespace answers.
func (p *Temporal) probe(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	// Plain gRPC: the SDK's client would retry by itself, with growing intervals, and return late.
	c, err := grpc.NewClient(p.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err.Error()
	}
	defer func() { _ = c.Close() }() // nothing is lost with it
	request := &workflowservice.DescribeNamespaceRequest{Namespace: client.DefaultNamespace}
	if _, err := workflowservice.NewWorkflowServiceClient(c).DescribeNamespace(ctx, request); err != nil {
		return err.Error()
	}
	return ""
}

// CreateNamespace creates a namespace, also one that was deleted before, and returns once it answers.
func (p *Temporal) CreateNamespace(t T, name string) {
	t.Helper()
	c := DialTemporal(t, p.Address)
	Eventually(t, startLimit, func() string {
		_, err := c.WorkflowService().RegisterNamespace(t.Context(), &workflowservice.RegisterNamespaceRequest{
			Namespace: name, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
		})
		var there *serviceerror.NamespaceAlreadyExists
		if err != nil && !errors.As(err, &there) {
			return err.Error()
		}
		_, err = c.WorkflowService().DescribeNamespace(t.Context(),
			&workflowservice.DescribeNamespaceRequest{Namespace: name})
		if err != nil {
			return err.Error()
		}
		return ""
	})
}

// DeleteNamespace deletes a namespace. Temporal frees the name at once, by renaming; its caches may contain it for a
// moment.
func (p *Temporal) DeleteNamespace(t T, name string) {
	t.Helper()
	c := DialTemporal(t, p.Address)
	if _, err := c.OperatorService().DeleteNamespace(t.Context(),
		&operatorservice.DeleteNamespaceRequest{Namespace: name}); err != nil {
		t.Fatalf("delete namespace %q: %v", name, err)
	}
}

// DialTemporal connects to a Temporal with the SDK, to inspect it directly.
func DialTemporal(t T, address string) client.Client {
	t.Helper()
	return DialNamespace(t, address, client.DefaultNamespace)
}

// DialNamespace is DialTemporal for another namespace than the default one.
func DialNamespace(t T, address, namespace string) client.Client {
	t.Helper()
	c, err := client.DialContext(t.Context(), client.Options{
		HostPort: address, Namespace: namespace, Logger: discardLogger{},
		DataConverter: codec.Converter(Keys(t)), FailureConverter: codec.FailureConverter(Keys(t)),
	})
	if err != nil {
		t.Fatalf("connect to Temporal at %s: %v", address, err)
	}
	t.Cleanup(c.Close)
	return c
}

// History reads the whole history of a run's newest execution.
func History(t T, c client.Client, runID string) *historypb.History {
	t.Helper()
	return Execution(t, c, runID, "")
}

// Histories reads the histories of all executions of a run, in order: each execution continues the previous one as new.
func Histories(t T, c client.Client, runID string) []*historypb.History {
	t.Helper()
	newest, err := c.DescribeWorkflowExecution(t.Context(), runID, "")
	if err != nil {
		t.Fatalf("find the executions of %s: %v", runID, err)
	}
	// Every execution has the ID of the first of its chain, and its last event the ID of the next.
	next := newest.GetWorkflowExecutionInfo().GetFirstRunId()
	var out []*historypb.History
	for next != "" {
		h := Execution(t, c, runID, next)
		out = append(out, h)
		next = h.GetEvents()[len(h.GetEvents())-1].GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
	}
	return out
}

// Execution reads the history of one execution of a workflow, of the newest one if runID is empty, and decrypts its
// sealed payloads.
func Execution(t T, c client.Client, workflowID, runID string) *historypb.History {
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
	unsealHistory(t, out)
	return out
}

// RawHistory reads the history of a run's newest execution as Temporal stores it: sealed, and with references in place
// of large values.
func RawHistory(t T, c client.Client, workflowID string) *historypb.History {
	t.Helper()
	page, err := c.WorkflowService().GetWorkflowExecutionHistory(t.Context(),
		&workflowservice.GetWorkflowExecutionHistoryRequest{
			Namespace: client.DefaultNamespace, Execution: &commonpb.WorkflowExecution{WorkflowId: workflowID},
		})
	if err != nil {
		t.Fatalf("read the history of %s: %v", workflowID, err)
	}
	return page.GetHistory()
}

// discardLogger drops the SDK's log lines.
type discardLogger struct{}

var _ log.Logger = discardLogger{}

func (discardLogger) Debug(string, ...any) {}
func (discardLogger) Info(string, ...any)  {}
func (discardLogger) Warn(string, ...any)  {}
func (discardLogger) Error(string, ...any) {}

// CountExecutions counts the executions that match a query of Temporal's visibility.
func CountExecutions(ctx context.Context, c client.Client, query string) (int, error) {
	res, err := c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: query})
	return int(res.GetCount()), err
}
