package conntest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

// proxy forwards calls to a real Temporal unchanged: bytes, metadata, deadlines, status details.
type proxy struct {
	conn  *grpc.ClientConn
	tasks *sync.WaitGroup
}

func newProxy(upstream string, tasks *sync.WaitGroup) (*proxy, error) {
	conn, err := grpc.NewClient("passthrough:///"+upstream,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{}), grpc.MaxCallRecvMsgSize(math.MaxInt32)),
		grpc.WithIdleTimeout(0),
		// The proxy must not delay a recovery.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, Jitter: 0.2, MaxDelay: 200 * time.Millisecond},
			MinConnectTimeout: time.Second,
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("connect to the upstream %q: %w", upstream, err)
	}
	return &proxy{conn, tasks}, nil
}

func (p *proxy) close() { _ = p.conn.Close() }

func (p *proxy) serve(c call) error {
	// The context carries the caller's deadline to the upstream.
	ctx, cancel := context.WithCancel(outgoing(c.stream.Context()))
	defer cancel()
	up, err := p.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, c.method)
	if err != nil {
		return err
	}
	if c.body != nil {
		// The error of a failed send is received by download.
		_ = up.SendMsg(c.body)
		_ = up.CloseSend()
	} else {
		// It ends when the client has sent everything, or when the call ends, which is after this handler has returned.
		p.tasks.Go(func() { upload(c.stream, up, cancel) })
	}
	return download(up, c)
}

// upload forwards the client's messages until it closes its side.
func upload(from grpc.ServerStream, up grpc.ClientStream, cancel context.CancelFunc) {
	for {
		message := &frame{}
		err := from.RecvMsg(message)
		if errors.Is(err, io.EOF) {
			_ = up.CloseSend()
			return
		}
		if err != nil {
			cancel()
			return
		}
		if up.SendMsg(message) != nil {
			return // download receives the error
		}
	}
}

// download forwards the upstream's header, messages and trailer.
func download(up grpc.ClientStream, c call) error {
	header, err := up.Header()
	if err == nil {
		send := c.stream.SetHeader
		if c.body == nil {
			send = c.stream.SendHeader // a client may wait for it before its first message
		}
		if err := send(header); err != nil {
			return err
		}
	}
	for {
		message := &frame{}
		err := up.RecvMsg(message)
		if err != nil {
			c.stream.SetTrailer(up.Trailer())
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := c.stream.SendMsg(message); err != nil {
			return err
		}
	}
}

// outgoing returns a context with the metadata of a call, without that of its connection.
func outgoing(ctx context.Context) context.Context {
	incoming, _ := metadata.FromIncomingContext(ctx)
	header := metadata.MD{}
	for key, values := range incoming {
		if !strings.HasPrefix(key, ":") && key != "grpc-accept-encoding" {
			header[key] = values
		}
	}
	return metadata.NewOutgoingContext(ctx, header)
}
