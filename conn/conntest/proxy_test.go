package conntest_test

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/signalbox-dev/signalbox/conn/conntest"
)

// upstream runs a gRPC server with one handler for all methods.
func upstream(t *testing.T, handler grpc.StreamHandler) string {
	t.Helper()
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	server := grpc.NewServer(grpc.UnknownServiceHandler(handler), grpc.WaitForHandlers(true))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		server.Stop()
		<-ended
	})
	return listener.Addr().String()
}

func plain(t *testing.T, f *conntest.Frontend) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(f.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func bidirectional() *grpc.StreamDesc {
	return &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
}

func TestProxyPassesStreamsThrough(t *testing.T) {
	t.Parallel()
	f := conntest.Run(t, conntest.Options{Upstream: upstream(t, func(_ any, stream grpc.ServerStream) error {
		incoming, _ := metadata.FromIncomingContext(stream.Context())
		if err := stream.SendHeader(
			metadata.Pairs("heard", incoming.Get("said")[0], "binary-bin", incoming.Get("binary-bin")[0])); err != nil {
			return err
		}
		for {
			message := &wrapperspb.StringValue{}
			err := stream.RecvMsg(message)
			if errors.Is(err, io.EOF) {
				stream.SetTrailer(metadata.Pairs("said", "goodbye"))
				st, err := status.New(codes.DataLoss, "the end").WithDetails(wrapperspb.Int64(42))
				if err != nil {
					return err
				}
				return st.Err()
			}
			if err != nil {
				return err
			}
			if err := stream.SendMsg(message); err != nil {
				return err
			}
		}
	})})
	ctx := metadata.AppendToOutgoingContext(within(t, limit), "said", "hello", "binary-bin", "\x00\xff")
	stream, err := plain(t, f).NewStream(ctx, bidirectional(), "/test.Echo/Stream")
	require.NoError(t, err)
	header, err := stream.Header() // before the first message
	require.NoError(t, err)
	require.Equal(t, []string{"hello"}, header.Get("heard"))
	require.Equal(t, []string{"\x00\xff"}, header.Get("binary-bin"))
	for _, word := range []string{"one", "", "three"} {
		require.NoError(t, stream.SendMsg(wrapperspb.String(word)))
		answer := &wrapperspb.StringValue{}
		require.NoError(t, stream.RecvMsg(answer))
		require.Equal(t, word, answer.GetValue())
	}
	require.NoError(t, stream.CloseSend())
	err = stream.RecvMsg(&wrapperspb.StringValue{})
	require.Equal(t, codes.DataLoss, status.Code(err))
	require.Equal(t, "the end", status.Convert(err).Message())
	require.Len(t, status.Convert(err).Details(), 1)
	require.Equal(t, []string{"goodbye"}, stream.Trailer().Get("said"))
	require.Equal(t, 1, f.Calls("/test.Echo/Stream"))
}

func TestProxyPassesDeadlinesAndCancellationsThrough(t *testing.T) {
	t.Parallel()
	left := make(chan error, 2)
	f := conntest.Run(t, conntest.Options{Upstream: upstream(t, func(_ any, stream grpc.ServerStream) error {
		deadline, ok := stream.Context().Deadline()
		if !ok {
			deadline = time.Time{}
		}
		if err := stream.SendMsg(wrapperspb.Int64(int64(time.Until(deadline)))); err != nil {
			return err
		}
		<-stream.Context().Done()
		left <- stream.Context().Err()
		return stream.Context().Err()
	})})
	conn := plain(t, f)
	ctx := within(t, 2*time.Second)
	stream, err := conn.NewStream(ctx, bidirectional(), "/test.Echo/Stream")
	require.NoError(t, err)
	remaining := &wrapperspb.Int64Value{}
	require.NoError(t, stream.RecvMsg(remaining))
	require.Positive(t, remaining.GetValue())
	require.LessOrEqual(t, remaining.GetValue(), int64(2*time.Second))
	require.Equal(t, codes.DeadlineExceeded, status.Code(stream.RecvMsg(remaining)))
	require.Error(t, <-left)

	stream, err = conn.NewStream(t.Context(), bidirectional(), "/test.Echo/Stream")
	require.NoError(t, err)
	require.NoError(t, stream.RecvMsg(remaining))
	require.Negative(t, remaining.GetValue(), "none")
	f.CutConnections()
	require.Equal(t, codes.Unavailable, status.Code(stream.RecvMsg(remaining)))
	require.Error(t, <-left, "the upstream's call is cancelled")
}

func TestProxyReturnsUnavailableWithoutUpstream(t *testing.T) {
	t.Parallel()
	behind := conntest.Run(t, conntest.Options{Stopped: true})
	f := conntest.Run(t, conntest.Options{Upstream: behind.Addr()})
	c := connect(t, f)
	err := describe(within(t, unanswered), c, "default")
	require.Error(t, err)
	require.NoError(t, behind.Restart())
	awaitAnswer(t, c)
}
