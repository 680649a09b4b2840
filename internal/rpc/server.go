// Package rpc is the API server: gRPC, gRPC-Web, Connect and REST on one port, together with health and metrics.
//
//	server, err := rpc.NewServer(rpc.Options{Address: "127.0.0.1:8080", Services: handler.Services{…}})
//	err = server.Start(ctx)  // listens, or returns the reason why it cannot
//	server.Addr()            // the actual address, also for port 0
//	err = server.Stop(ctx)   // drains within ctx, ends watches at once
//
// Connect's handlers serve gRPC (also without TLS, as h2c), gRPC-Web and Connect; package rest serves the REST paths of
// the protos by calling the same handlers. All JSON is encoded by package jsoncodec.
//
// Every call passes, from the outside in: the connection limit, TLS, deadlines for writing, authentication (or, without
// tokens, the check of host and origin: a listener that is open only to this machine must not be open to web pages),
// the bounds of its body, the completion of errors, the interceptors of the options, the one that sets a default
// deadline, maps errors and recovers from panics, and finally the check of permissions.
//
// The package contains no logic of workflows or runs: package handler translates, the domain packages decide.
package rpc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"connectrpc.com/connect"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/rpc/handler"
	"github.com/signalbox-dev/signalbox/internal/rpc/permission"
)

// Options configure the server. Zero bounds have the defaults named.
type Options struct {
	// Address is host:port; port 0 takes any free port.
	Address string

	handler.Services
	// EventLimits bound events posted as CloudEvents.
	EventLimits event.Limits
	// Codec decrypts payloads for Temporal's UI.
	Codec Codec

	// Metrics, Livez and Readyz are served at /metrics, /livez and /readyz; each is optional.
	Metrics http.Handler
	Livez   http.Handler
	Readyz  http.Handler
	// UI is the web UI; optional.
	UI UI
	// Sessions is optional.
	Sessions Sessions
	// Access configures authentication and rate limits.
	Access Access
	// TLS is the listener's configuration; nil: plain text.
	TLS *tls.Config
	// Serving is the result of grpc.health.v1.Health while the server is not stopping; nil: always serving.
	Serving func(ctx context.Context) bool
	// Interceptors see every call that reaches a method, outermost first.
	Interceptors []connect.Interceptor

	// MaxRequestBytes bounds a request before and after decompression (4 MiB).
	MaxRequestBytes int64
	// CallTimeout is the deadline of unary calls that bring none (30 s).
	CallTimeout time.Duration
	// StallTimeout is how long one read of a request's body or one write of an answer may take (30 s). A bodyLimiter
	// bounds the time for a whole body.
	StallTimeout time.Duration
	// MaxConnections bounds open connections (4096). Over the bound, a new connection closes one without an authenticated
	// request so far, or else the one that has been idle longest, and waits only while every connection has an
	// authenticated request in flight.
	MaxConnections int
}

// UI serves the pages and files of the web UI, which contain no data and need no token.
type UI interface {
	// Serves reports whether a path belongs to the UI.
	Serves(path string) bool
	// NotFound answers with the page for a path that does not exist.
	NotFound(w http.ResponseWriter, r *http.Request)
	// Handler answers GET and HEAD for such paths; missing answers those for files that do not exist.
	Handler(missing http.Handler) http.Handler
}

// Access configures authentication, rate limits and the callbacks for refused calls.
type Access struct {
	// Authenticator is nil if every caller is the local administrator.
	Authenticator Authenticator
	// Rate and Burst bound the requests per second of one token; a rate of 0 means no bound.
	Rate  float64
	Burst int
	// Refused is called when a caller is not authenticated or exceeds its rate, Denied when it lacks a permission; both
	// are optional.
	Refused func(ctx context.Context, reason string)
	Denied  func(ctx context.Context, d permission.Denial)
}

// Sessions authenticates sessions of browsers, opens and ends them.
type Sessions interface {
	permission.Sessions
	handler.SessionService
	// CheckValid returns an error if the session with this ID has ended.
	CheckValid(ctx context.Context, id string) error
}

// Authenticator authenticates tokens.
type Authenticator interface {
	permission.Tokens
	// CheckValid returns an error if the token with this ID is no longer valid.
	CheckValid(ctx context.Context, id string) error
}

const (
	defaultMaxRequest     = 4 << 20
	defaultCallTimeout    = 30 * time.Second
	defaultStallTimeout   = 30 * time.Second
	defaultMaxConnections = 4096

	// headerTimeout bounds reading the headers, idleTimeout an unused connection.
	headerTimeout  = 10 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 64 << 10
	// An idle HTTP/2 connection is pinged, so that clients that vanished do not hold streams.
	pingAfter   = 30 * time.Second
	pingTimeout = 15 * time.Second
	// forcedGrace is the time for calls to end after their connections were closed.
	forcedGrace = time.Second
)

func (o Options) withDefaults() Options {
	if o.MaxRequestBytes <= 0 {
		o.MaxRequestBytes = defaultMaxRequest
	}
	if o.CallTimeout <= 0 {
		o.CallTimeout = defaultCallTimeout
	}
	if o.StallTimeout <= 0 {
		o.StallTimeout = defaultStallTimeout
	}
	if o.MaxConnections <= 0 {
		o.MaxConnections = defaultMaxConnections
	}
	return o
}

// Server is the API server. It is started once and stopped once.
type Server struct {
	opts     Options
	access   *permission.AuthMiddleware
	bodies   *bodyLimiter
	routes   *http.ServeMux
	stopping *stopping

	mu       sync.Mutex
	http     *http.Server
	listener net.Listener
	cut      context.CancelFunc
	served   chan error
	calls    sync.WaitGroup
}

// NewServer wires the server. It fails only if the protos' REST paths contradict each other.
func NewServer(opts Options) (*Server, error) {
	s := &Server{opts: opts.withDefaults(), stopping: newStopping()}
	s.access = s.opts.authMiddleware(func(r *http.Request) bool {
		_, pattern := s.routes.Handler(r)
		return pattern == unrouted
	})
	bodies := bodyOptions{
		MaxBytes: s.opts.MaxRequestBytes, StallTimeout: s.opts.StallTimeout, Refused: s.opts.Access.Refused}
	if s.opts.Codec.Handler != nil {
		bodies.LargePaths, bodies.LargeBytes = codecPaths, s.opts.Codec.MaxBytes
	}
	s.bodies = newBodyLimiter(bodies)
	routes, err := s.opts.routes(s.access, s.stopping)
	if err != nil {
		return nil, err
	}
	s.routes = routes
	return s, nil
}

// Start listens and serves. The context's values are available in every call; its cancellation stops nothing.
func (s *Server) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.served != nil {
		return errors.New("start the API: it was started before")
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.opts.Address)
	if err != nil {
		return listenError(s.opts.Address, err)
	}
	base, cut := context.WithCancel(context.WithoutCancel(ctx))
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(s.opts.TLS == nil)
	s.http = &http.Server{
		Handler:           s.rootHandler(isLoopback(listener.Addr())),
		Protocols:         protocols,
		BaseContext:       func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		HTTP2:             &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		ErrorLog:          slog.NewLogLogger(logger.FromContext(ctx).Handler(), slog.LevelWarn),
	}
	s.listener, s.cut, s.served = listener, cut, make(chan error, 1)
	limited := permission.NewListener(listener,
		permission.ListenerOptions{Max: s.opts.MaxConnections, Log: logger.FromContext(ctx), Now: time.Now})
	s.http.ConnState, s.http.ConnContext = limited.ConnState, limited.ConnContext
	if s.opts.TLS != nil {
		s.http.TLSConfig = s.opts.TLS
		go func() { s.served <- s.http.ServeTLS(limited, "", "") }()
		return nil
	}
	go func() { s.served <- s.http.Serve(limited) }()
	return nil
}

// Addr returns the listen address; nil before the start.
func (s *Server) Addr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}

// Stop accepts no new calls, ends open watches at once (their clients resume elsewhere), waits for the other calls
// until ctx ends, and then closes the remaining connections. A server that was never started stops at once.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.served == nil || s.stopping.begun() {
		return nil
	}
	s.stopping.begin()
	defer s.cut()
	err := s.http.Shutdown(ctx)
	if err != nil {
		s.cut()
		err = errors.Join(fmt.Errorf("stop the API: calls were cut off: %w", err), s.http.Close())
	}
	if serveErr := <-s.served; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("serve the API on %s: %w", s.listener.Addr(), serveErr))
	}
	return errors.Join(err, s.join())
}

// join waits for the calls, which end soon: Shutdown has waited for them, or their contexts are canceled.
func (s *Server) join() error {
	done := make(chan struct{})
	go func() {
		s.calls.Wait()
		close(done)
	}()
	grace := time.NewTimer(forcedGrace)
	defer grace.Stop()
	select {
	case <-done:
		return nil
	case <-grace.C:
		return errors.New("stop the API: a call has not ended after its cancellation")
	}
}

func listenError(address string, err error) error {
	hint := "check the address"
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		hint = "another program uses the port: stop it, or choose another one with --listen"
	case errors.Is(err, syscall.EACCES):
		hint = "ports below 1024 need special rights: choose a higher one with --listen"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		hint = "this machine does not have that address: use one it has, for example 127.0.0.1"
	}
	return fmt.Errorf("listen on %q: %w; %s", address, err, hint)
}

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
