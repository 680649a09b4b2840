package connection

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	// patience bounds events without a promised time.
	patience = time.Minute
	// again is the interval of retries.
	again = 2 * time.Millisecond
)

// starter starts workflows over a new connection. It is plain gRPC: the SDK's client would retry
// with growing intervals and return late.
type starter struct {
	conn    *grpc.ClientConn
	service workflowservice.WorkflowServiceClient
}

func newStarter(address string) (*starter, error) {
	c, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("connect to Temporal at %s: %w", address, err)
	}
	return &starter{c, workflowservice.NewWorkflowServiceClient(c)}, nil
}

func (s *starter) close() { _ = s.conn.Close() }

// start starts an order as soon as Temporal accepts it, and returns its ID.
func (s *starter) start(ctx context.Context, queue string, hold time.Duration) (string, error) {
	input, err := converter.GetDefaultDataConverter().ToPayloads(hold)
	if err != nil {
		return "", err
	}
	id := fmt.Sprintf("%s-%016x", queue, rand.Uint64())
	request := &workflowservice.StartWorkflowExecutionRequest{
		Namespace: client.DefaultNamespace, WorkflowId: id, RequestId: id, Identity: "bench", Input: input,
		WorkflowType: &commonpb.WorkflowType{Name: orderName}, TaskQueue: &taskqueuepb.TaskQueue{Name: queue},
	}
	return id, retry(ctx, func(ctx context.Context) (bool, error) {
		_, err := s.service.StartWorkflowExecution(ctx, request)
		return err == nil, err
	})
}

// ended waits for the end of an execution.
func (s *starter) ended(ctx context.Context, id string) error {
	request := &workflowservice.GetWorkflowExecutionHistoryRequest{
		Namespace: client.DefaultNamespace, Execution: &commonpb.WorkflowExecution{WorkflowId: id}, WaitNewEvent: true,
		HistoryEventFilterType: enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT,
	}
	return retry(ctx, func(ctx context.Context) (bool, error) {
		answer, err := s.service.GetWorkflowExecutionHistory(ctx, request)
		return len(answer.GetHistory().GetEvents()) > 0, err
	})
}

// retry calls ask until it returns true.
func retry(ctx context.Context, ask func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		yes, err := ask(ctx)
		if yes {
			return nil
		}
		if ended := sleep(ctx, again); ended != nil {
			return fmt.Errorf("not within %s: %w; last: %w", patience, ended, err)
		}
	}
}
