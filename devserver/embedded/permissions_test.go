package embedded_test

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/signalbox-dev/signalbox/devserver/embedded"
)

// A client makes the calls of its role, in the server's namespace, and no others.
func TestPermissions(t *testing.T) {
	t.Parallel()
	server := embedded.New(embedded.Options{
		Namespace: "default", Log: slog.New(slog.DiscardHandler),
		Permissions: &embedded.Permissions{Roles: map[string][]string{"reader": {"WorkflowService/DescribeNamespace"}}},
	})
	require.NoError(t, server.Start(t.Context()))
	defer func() { require.NoError(t, server.Stop(t.Context())) }()
	conn, err := grpc.NewClient(server.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	service := workflowservice.NewWorkflowServiceClient(conn)
	describe := func(key, namespace string) codes.Code {
		ctx := t.Context()
		if key != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+key)
		}
		_, err := service.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
		return status.Code(err)
	}
	require.Equal(t, codes.OK, describe("reader", "default"))
	require.Equal(t, codes.PermissionDenied, describe("reader", "temporal-system"))
	require.Equal(t, codes.PermissionDenied, describe("writer", "default"))
	require.Equal(t, codes.PermissionDenied, describe("", "default"))
	_, err = service.GetSystemInfo(t.Context(), &workflowservice.GetSystemInfoRequest{})
	require.NoError(t, err, "everyone may check the server")
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer reader")
	_, err = service.ListWorkflowExecutions(ctx, &workflowservice.ListWorkflowExecutionsRequest{Namespace: "default"})
	require.Equal(t, codes.PermissionDenied, status.Code(err))
}

func TestInvalidPermissions(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, (&embedded.Permissions{}).Validate(), "there are no roles")
	unknown := &embedded.Permissions{Roles: map[string][]string{"api": {"WorkflowService/Start"}}}
	require.ErrorContains(t, unknown.Validate(),
		`role "api" has the call "WorkflowService/Start", which Temporal does not have`)
	known := &embedded.Permissions{
		Roles: map[string][]string{"api": {"WorkflowService/StartWorkflowExecution", "OperatorService/ListSearchAttributes"}}}
	require.NoError(t, known.Validate())
}
