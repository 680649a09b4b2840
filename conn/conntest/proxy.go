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

// proxy hands calls to a real Temporal, whatever they are: bytes, metadata, deadlines, status details.
type proxy struct {
	conn  *grpc.ClientConn
	tasks *sync.WaitGroup
}

func newProxy(upstream string, tasks *sync.WaitGroup) (*proxy, error) {
	conn, err := grpc.NewClient("passthrough:///"+upstream,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{}), grpc.MaxCallRecvMsgSize(math.MaxInt32)),
		grpc.WithIdleTimeout(0),
		// The proxy must not be what makes a recovery slow.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, Jitter: 0.2, MaxDelay: 200 * time.Millisecond},
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
	// The deadline goes with the context, so that both sides count down the same.
	ctx, cancel := context.WithCancel(outgoing(c.stream.Context()))
	defer cancel()
	up, err := p.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, c.method)
	if err != nil {
		return err
	}
	if c.body != nil {
		// A failure to send is told by what is received.
		_ = up.SendMsg(c.body)
		_ = up.CloseSend()
	} else {
		// It ends when the client is done, or with the call; the latter only after this handler has returned.
		p.tasks.Go(func() { upload(c.stream, up, cancel) })
	}
	return download(up, c)
}

// upload hands on what a client sends until it is done.
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
			return // the reason is received
		}
	}
}

// download hands on what the upstream answers until it is done.
func download(up grpc.ClientStream, c call) error {
	header, err := up.Header()
	if err == nil {
		send := c.stream.SetHeader
		if c.body == nil {
			send = c.stream.SendHeader // a client may wait for it before it sends anything
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

// outgoing hands on the metadata of a call, without what belongs to the connection it came by.
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
