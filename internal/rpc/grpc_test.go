package rpc_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/rpc"
)

func (p *platform) grpc(t *testing.T) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(p.server.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return conn
}

func requireGRPC(t *testing.T, err error, code codes.Code, reason string) *status.Status {
	t.Helper()
	s := status.Convert(err)
	require.Equal(t, code, s.Code(), "%v", err)
	require.NotEmpty(t, s.Details(), "%v", err)
	info, ok := s.Details()[0].(*errdetails.ErrorInfo)
	require.True(t, ok)
	require.Equal(t, reason, info.GetReason())
	require.Equal(t, "signalbox", info.GetDomain())
	return s
}

func TestGRPCWithoutTLS(t *testing.T) {
	t.Parallel()
	p := start(t, func(o *rpc.Options) { o.MaxRequestBytes = 100_000 })
	p.publish()
	conn := p.grpc(t)
	ctx := t.Context()

	const input = `{"name":"Ada","n":12345678901234567890}`
	var started signalboxv1.StartRunResponse
	require.NoError(t, conn.Invoke(ctx, "/signalbox.v1.RunService/StartRun", &signalboxv1.StartRunRequest{
		Workflow: "hello", Input: &signalboxv1.JsonValue{Json: input},
	}, &started, grpc.UseCompressor(gzip.Name)))
	require.Equal(t, input, started.GetRun().GetInput().GetJson())

	var got signalboxv1.GetRunResponse
	err := conn.Invoke(ctx, "/signalbox.v1.RunService/GetRun", &signalboxv1.GetRunRequest{Id: "none"}, &got)
	requireGRPC(t, err, codes.NotFound, apperror.RunNotFound)

	err = conn.Invoke(ctx, "/signalbox.v1.RunService/ListRuns", &signalboxv1.ListRunsRequest{PageSize: -1},
		&signalboxv1.ListRunsResponse{})
	s := requireGRPC(t, err, codes.InvalidArgument, apperror.InvalidArgument)
	require.Equal(t, "pageSize", s.Details()[1].(*errdetails.BadRequest).GetFieldViolations()[0].GetField())

	err = conn.Invoke(ctx, "/signalbox.v1.RunService/StartRun", &signalboxv1.StartRunRequest{
		Workflow: "hello", Input: &signalboxv1.JsonValue{Json: "{"},
	}, &started)
	requireGRPC(t, err, codes.InvalidArgument, apperror.InvalidArgument)

	err = conn.Invoke(ctx, "/signalbox.v1.RunService/ListRuns", &signalboxv1.ListRunsRequest{
		Filter: &signalboxv1.RunFilter{Since: &timestamppb.Timestamp{Seconds: 1 << 60}},
	}, &signalboxv1.ListRunsResponse{})
	requireGRPC(t, err, codes.InvalidArgument, apperror.InvalidArgument)

	p.engine.failWith(apperror.New(apperror.Unavailable, apperror.EngineUnavailable, "temporal cannot be reached"))
	err = conn.Invoke(ctx, "/signalbox.v1.RunService/StartRun", &signalboxv1.StartRunRequest{
		Workflow: "hello", Input: &signalboxv1.JsonValue{Json: "{}"},
	}, &started)
	requireGRPC(t, err, codes.Unavailable, apperror.EngineUnavailable)
}

func TestGRPCErrorsBeforeAnyMethod(t *testing.T) {
	t.Parallel()
	p := start(t, func(o *rpc.Options) { o.MaxRequestBytes = 10_000 })
	conn := p.grpc(t)
	large := &signalboxv1.CreateProjectRequest{Name: strings.Repeat("x", 20_000)}
	for _, options := range [][]grpc.CallOption{nil, {grpc.UseCompressor(gzip.Name)}} {
		err := conn.Invoke(t.Context(), "/signalbox.v1.ProjectService/CreateProject", large,
			&signalboxv1.CreateProjectResponse{}, options...)
		s := requireGRPC(t, err, codes.ResourceExhausted, apperror.RequestTooLarge)
		require.Contains(t, s.Message(), "10000")
	}
	err := conn.Invoke(t.Context(), "/signalbox.v1.RunService/Explode", large, &signalboxv1.CreateProjectResponse{})
	require.Equal(t, codes.Unimplemented, status.Code(err), "%v", err)
}

func TestGRPCHealthFollowsTheServer(t *testing.T) {
	t.Parallel()
	var serving atomic.Bool
	p := start(t, func(o *rpc.Options) { o.Serving = func(context.Context) bool { return serving.Load() } })
	health := healthv1.NewHealthClient(p.grpc(t))
	for value, want := range map[bool]healthv1.HealthCheckResponse_ServingStatus{
		false: healthv1.HealthCheckResponse_NOT_SERVING, true: healthv1.HealthCheckResponse_SERVING,
	} {
		serving.Store(value)
		res, err := health.Check(t.Context(), &healthv1.HealthCheckRequest{})
		require.NoError(t, err)
		require.Equal(t, want, res.GetStatus())
	}
}

func TestGRPCHealthAndReflection(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	conn := p.grpc(t)
	health := healthv1.NewHealthClient(conn)
	for _, service := range []string{"", "signalbox.v1.RunService"} {
		res, err := health.Check(t.Context(), &healthv1.HealthCheckRequest{Service: service})
		require.NoError(t, err)
		require.Equal(t, healthv1.HealthCheckResponse_SERVING, res.GetStatus())
	}
	_, err := health.Check(t.Context(), &healthv1.HealthCheckRequest{Service: "nonsense"})
	require.Equal(t, codes.NotFound, status.Code(err))

	stream, err := reflectionv1.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	require.NoError(t, err)
	require.NoError(t, stream.Send(&reflectionv1.ServerReflectionRequest{
		MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{},
	}))
	res, err := stream.Recv()
	require.NoError(t, err)
	var names []string
	for _, s := range res.GetListServicesResponse().GetService() {
		names = append(names, s.GetName())
	}
	require.Contains(t, names, "signalbox.v1.RunService")
	require.NoError(t, stream.CloseSend())
}
