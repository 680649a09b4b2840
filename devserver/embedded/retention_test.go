package embedded_test

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/signalbox-dev/signalbox/devserver/embedded"
)

// The retention is that of the last start, also of a namespace that exists.
func TestRetentionOfNamespaceIsThatOfTheStart(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "temporal.db")
	for given, kept := range map[time.Duration]time.Duration{
		7 * 24 * time.Hour: 7 * 24 * time.Hour, 0: embedded.DefaultRetention} {
		server := embedded.New(embedded.Options{
			DataFile: file, Namespace: "default", Retention: given, Log: slog.New(slog.DiscardHandler)})
		require.NoError(t, server.Start(t.Context()))
		conn, err := grpc.NewClient(server.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		require.NoError(t, err)
		described, err := workflowservice.NewWorkflowServiceClient(conn).
			DescribeNamespace(t.Context(), &workflowservice.DescribeNamespaceRequest{Namespace: "default"})
		require.NoError(t, err)
		require.Equal(t, kept, described.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration())
		require.NoError(t, conn.Close())
		require.NoError(t, server.Stop(t.Context()))
	}
}

func TestTooShortRetentionIsRefused(t *testing.T) {
	t.Parallel()
	server := embedded.New(embedded.Options{
		Namespace: "default", Retention: time.Minute, Log: slog.New(slog.DiscardHandler)})
	require.ErrorContains(t, server.Start(t.Context()), "at least 1h0m0s, not 1m0s")
	require.NoError(t, server.Stop(t.Context()))
}
