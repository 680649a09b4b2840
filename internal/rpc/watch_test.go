package rpc_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/api/signalbox/v1/signalboxv1connect"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/rpc/jsoncodec"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/stopwatch"
)

func (p *platform) watch(ctx context.Context, t *testing.T, id string, after int64, opts ...connect.ClientOption,
) *connect.ServerStreamForClient[signalboxv1.WatchRunResponse] {
	t.Helper()
	stream, err := signalboxv1connect.NewRunServiceClient(p.client, p.base, opts...).
		WatchRun(ctx, connect.NewRequest(&signalboxv1.WatchRunRequest{Id: id, AfterSequence: after}))
	require.NoError(t, err)
	t.Cleanup(func() { stream.Close() })
	return stream
}

// apply writes an update as if Temporal had accepted it.
func (p *platform) apply(t *testing.T, id string, position int64, status run.Status, output string) {
	t.Helper()
	now := time.Now()
	u := run.Update{
		RunID: id, ExecutionID: "execution-" + id, Position: position,
		State: &run.State{Status: status, Since: now, StartedAt: now, StepsTotal: 1, StepsDone: 1},
		Steps: []run.Step{{
			Number: 1, Path: "/do/0/greet", Pointer: "/do/0/greet", Task: "greet", Kind: "set",
			Status: "completed", StartedAt: now, EndedAt: now, Position: position,
		}},
	}
	if status.Terminal() {
		u.State.EndedAt, u.State.Output = now, json.RawMessage(output)
	}
	_, err := p.store.ApplyUpdates(t.Context(), []run.Update{u})
	require.NoError(t, err)
	p.changes.Notify(id)
}

func TestWatchFollowsARunToItsEnd(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.publish()
	for name, opts := range map[string][]connect.ClientOption{
		"binary": nil,
		"JSON":   {connect.WithCodec(jsoncodec.NewConnect(jsoncodec.Name))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := p.startRun(`{"name":"Ada"}`)
			stream := p.watch(t.Context(), t, id, 0, opts...)
			require.True(t, stream.Receive(), "the first message comes at once")
			require.Equal(t, "queued", stream.Msg().GetRun().GetStatus())
			require.JSONEq(t, `{"name":"Ada"}`, stream.Msg().GetRun().GetInput().GetJson())
			seen := stream.Msg().GetRun().GetSequence()

			p.apply(t, id, 5, run.Running, "")
			require.True(t, stream.Receive())
			require.Equal(t, "running", stream.Msg().GetRun().GetStatus())
			require.Len(t, stream.Msg().GetSteps(), 1)
			require.Nil(t, stream.Msg().GetRun().GetInput(), "only the first message has the input")

			p.apply(t, id, 9, run.Completed, `{"message":"Hello Ada"}`)
			require.True(t, stream.Receive())
			require.Equal(t, `{"message":"Hello Ada"}`, stream.Msg().GetRun().GetOutput().GetJson())
			require.False(t, stream.Receive(), "the stream ends with the run")
			require.NoError(t, stream.Err())

			resumed := p.watch(t.Context(), t, id, seen, opts...)
			require.True(t, resumed.Receive())
			require.Equal(t, "completed", resumed.Msg().GetRun().GetStatus())
			require.False(t, resumed.Receive())
		})
	}
}

func TestWatchErrors(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	stream := p.watch(t.Context(), t, "none", 0)
	require.False(t, stream.Receive())
	requireReason(t, stream.Err(), connect.CodeNotFound, apperror.RunNotFound)
	stream = p.watch(t.Context(), t, "none", -1)
	require.False(t, stream.Receive())
	requireReason(t, stream.Err(), connect.CodeInvalidArgument, apperror.InvalidArgument)
	stream = p.watch(t.Context(), t, "", 0)
	require.False(t, stream.Receive())
	requireReason(t, stream.Err(), connect.CodeInvalidArgument, apperror.InvalidArgument)
	stream, err := signalboxv1connect.NewRunServiceClient(p.client, p.base).WatchRun(t.Context(),
		connect.NewRequest(&signalboxv1.WatchRunRequest{Id: "none", View: "basic"}))
	require.NoError(t, err)
	require.False(t, stream.Receive())
	requireReason(t, stream.Err(), connect.CodeInvalidArgument, apperror.InvalidArgument)
}

func TestStopEndsWatchesAtOnce(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.publish()
	id := p.startRun(`{}`)
	connected := p.watch(t.Context(), t, id, 0)
	require.True(t, connected.Receive())
	grpcStream := p.watch(t.Context(), t, id, 0, connect.WithGRPCWeb())
	require.True(t, grpcStream.Receive())

	watch := stopwatch.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- p.server.Stop(ctx) }()
	for _, stream := range []*connect.ServerStreamForClient[signalboxv1.WatchRunResponse]{connected, grpcStream} {
		require.False(t, stream.Receive())
		requireReason(t, stream.Err(), connect.CodeUnavailable, "SERVER_STOPPING")
		stream.Close()
	}
	p.client.CloseIdleConnections()
	require.NoError(t, <-stopped)
	require.Less(t, watch.Elapsed(), 10*time.Second, "a watch must not hold up the stop")
	require.NoError(t, p.server.Stop(ctx), "stopping again does nothing")

	_, err := p.client.Get(p.base + "/v1/version")
	require.Error(t, err)
}

func TestStopEndsWatchesOverGRPC(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.publish()
	id := p.startRun(`{}`)
	conn := p.grpc(t)
	stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, "/signalbox.v1.RunService/WatchRun")
	require.NoError(t, err)
	require.NoError(t, stream.SendMsg(&signalboxv1.WatchRunRequest{Id: id}))
	require.NoError(t, stream.CloseSend())
	var first signalboxv1.WatchRunResponse
	require.NoError(t, stream.RecvMsg(&first))
	require.Equal(t, id, first.GetRun().GetId())

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- p.server.Stop(ctx) }()
	requireGRPC(t, stream.RecvMsg(&first), codes.Unavailable, "SERVER_STOPPING")
	require.NoError(t, <-stopped)
}

func TestWatchEndsWithItsClient(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.publish()
	id := p.startRun(`{}`)
	ctx, cancel := context.WithCancel(t.Context())
	stream := p.watch(ctx, t, id, 0)
	require.True(t, stream.Receive())
	cancel()
	require.False(t, stream.Receive())
	require.Equal(t, connect.CodeCanceled, connect.CodeOf(stream.Err()))
	// goleak and Stop verify that the server's side has ended as well.
}
