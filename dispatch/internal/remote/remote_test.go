package remote_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/remote"
)

// server is a Temporal with one open dispatcher, whose workflow tasks fail a number of times.
type server struct {
	client.Client
	failing int
	away    error // the error of a describe request
}

func (s *server) WorkflowService() workflowservice.WorkflowServiceClient { return service{} }

// service has the requests outside the SDK's client.
type service struct {
	workflowservice.WorkflowServiceClient
}

func (service) ResetStickyTaskQueue(
	context.Context, *workflowservice.ResetStickyTaskQueueRequest, ...grpc.CallOption,
) (*workflowservice.ResetStickyTaskQueueResponse, error) {
	return nil, nil
}

func (s *server) UpdateWorkflow(_ context.Context,
	o client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	if o.UpdateID != "" {
		return nil, errors.New("the server would repeat an answer")
	}
	if s.failing > 0 {
		s.failing--
		return nil, serviceerror.NewWorkflowNotReady("workflow task in failed state")
	}
	return completed{}, nil
}

func (s *server) DescribeWorkflow(context.Context, string, string) (*client.WorkflowExecutionDescription, error) {
	d := &client.WorkflowExecutionDescription{}
	d.Status = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	return d, s.away
}

type completed struct{ client.WorkflowUpdateHandle }

func (completed) Get(context.Context, any) error { return nil }

func TestUpdateOfFailingDispatcher(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	tests := map[string]struct {
		failing int
		away    error
		want    error
	}{
		"never":                    {},
		"for a moment":             {failing: 3},
		"for ever":                 {failing: 1000, want: remote.ErrUnanswered},
		"and then the server goes": {failing: 1000, away: away, want: away},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &server{failing: test.failing, away: test.away}
				r := &remote.Temporal{
					Client: func() (client.Client, error) {
						return s, nil
					}, Namespace: "default", Converter: converter.GetDefaultDataConverter(),
				}
				err := r.Ask(t.Context(), inbox.Name{Project: "shop", TaskQueue: "orders"}, "run-1",
					inbox.Owner{Holder: "a", Epoch: 1})
				if test.want == nil {
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, test.want)
			})
		})
	}
}
