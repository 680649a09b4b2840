package conntest

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/signalbox-dev/signalbox/conn/conntest/internal/wire"
	"github.com/signalbox-dev/signalbox/internal/loop"
)

// Options configure a frontend. All but Upstream can be changed later.
type Options struct {
	// Upstream is the address (host:port, no TLS) of a real Temporal that answers the calls. Empty: the frontend answers
	// itself.
	Upstream string
	// Namespaces that exist. None: "default", or all that the upstream has.
	Namespaces []string
	// TLS is the server's TLS configuration; nil: clear text.
	TLS *tls.Config
	// APIKeys are the accepted keys. None: no key is required.
	APIKeys []string
	// Stopped starts the frontend with a port that refuses connections until Restart.
	Stopped bool
}

// Frontend is a Temporal frontend under a test's control. All methods may be called at any time from any goroutine.
type Frontend struct {
	port         *wire.Port
	tls          atomic.Pointer[tls.Config]
	namespaces   *directory
	faults       faults
	observations observations
	backend      backend
	tasks        sync.WaitGroup
	ended        chan struct{}

	mu     sync.Mutex
	server *grpc.Server // the one that takes new connections; nil once closed
}

// New starts a frontend on a free port. The caller must Close it.
func New(options Options) (*Frontend, error) {
	f := &Frontend{namespaces: newDirectory(options), ended: make(chan struct{})}
	f.SetTLS(options.TLS)
	f.SetAPIKeys(options.APIKeys...)
	f.backend = newService(f.namespaces)
	if options.Upstream != "" {
		upstream, err := newProxy(options.Upstream, &f.tasks)
		if err != nil {
			return nil, err
		}
		f.backend = upstream
	}
	port, err := wire.Open(f.observations.changes.fire)
	if err != nil {
		return nil, err
	}
	f.port = port
	f.serve()
	if !options.Stopped {
		if err := f.Restart(); err != nil {
			_ = f.Close()
			return nil, err
		}
	}
	return f, nil
}

// TB is the part of testing.TB that [Run] uses.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(f func())
}

// Run starts a frontend that is closed at the end of the test.
func Run(t TB, options Options) *Frontend {
	t.Helper()
	f, err := New(options)
	if err != nil {
		t.Fatalf("start a Temporal frontend: %v", err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Fatalf("close a Temporal frontend: %v", err)
		}
	})
	return f
}

// Addr returns the address to connect to, as host:port. It does not change between New and Close.
func (f *Frontend) Addr() string { return f.port.Addr().String() }

// Close resets all connections, including those of LoseConnections and Mute, and waits until every goroutine of the
// frontend has ended.
func (f *Frontend) Close() error {
	f.mu.Lock()
	server := f.server
	f.server = nil
	f.mu.Unlock()
	if server == nil {
		return nil
	}
	close(f.ended)
	// Connections first: a server waits for handshakes, which a fault may block.
	err := f.port.Close()
	server.Stop()
	f.tasks.Wait()
	f.backend.close()
	return err
}

// serve starts a server for future connections and returns the previous one.
func (f *Frontend) serve() (before *grpc.Server) {
	server := grpc.NewServer(
		grpc.Creds(handshake{insecure.NewCredentials(), f.tls.Load}),
		grpc.ForceServerCodecV2(rawCodec{}),
		grpc.UnknownServiceHandler(f.handle),
		grpc.WaitForHandlers(true),
		grpc.MaxRecvMsgSize(math.MaxInt32),
		// As Temporal's: the SDK's clients ping every 30 s, which gRPC by default rejects as too frequent.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
	)
	listener := f.port.Listener()
	f.tasks.Go(func() { _ = server.Serve(listener) }) // returns when the listener is closed, which is no error here
	before, f.server = f.server, server
	return before
}

// handshake uses the frontend's current TLS configuration, or clear text if there is none.
type handshake struct {
	credentials.TransportCredentials // clear text

	current func() *tls.Config
}

// ServerHandshake implements [credentials.TransportCredentials].
func (h handshake) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if config := h.current(); config != nil {
		return credentials.NewTLS(config).ServerHandshake(raw)
	}
	return h.TransportCredentials.ServerHandshake(raw)
}

// Clone implements [credentials.TransportCredentials].
func (h handshake) Clone() credentials.TransportCredentials { return h }

// sleep waits for d. If the context ends first, it returns the cause.
func sleep(ctx context.Context, d time.Duration) error {
	if !loop.Sleep(ctx, d) {
		return context.Cause(ctx)
	}
	return nil
}

// newID makes a random identifier in the form of Temporal's.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
