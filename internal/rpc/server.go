// Package rpc is the API's server: gRPC, gRPC-Web, Connect and REST on one port, beside health and metrics.
//
//	server, err := rpc.NewServer(rpc.Options{Address: "127.0.0.1:8080", Workflows: …, Runs: …})
//	err = server.Start(ctx)  // listens, or says why it cannot
//	server.Addr()            // where, also for port 0
//	err = server.Stop(ctx)   // drains within ctx, ends watches at once
//
// Who talks to it: Connect's handlers answer gRPC (also without TLS, as h2c), gRPC-Web and Connect; Vanguard answers
// the REST paths of the protos by calling the same handlers. JSON is package jsoncodec's throughout.
//
// Every call passes, from the outside in: the connection limit, TLS, deadlines for reading and writing, package gate, which tells who
// calls (or, where there are no tokens, the check of host and origin: a listener that is open to this machine alone must not be open
// to web pages as well), the size limit, the completion of errors, the interceptors that are passed in, the one that sets a default
// deadline, maps errors, and recovers from panics, and at last package permit, which tells whether the caller may.
//
// The package decides nothing about workflows or runs; package handler translates, the domain decides.
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
	"github.com/signalbox-dev/signalbox/internal/rpc/batchhandler"
	"github.com/signalbox-dev/signalbox/internal/rpc/connlimit"
	"github.com/signalbox-dev/signalbox/internal/rpc/dispatchhandler"
	"github.com/signalbox-dev/signalbox/internal/rpc/eventhandler"
	"github.com/signalbox-dev/signalbox/internal/rpc/gate"
	"github.com/signalbox-dev/signalbox/internal/rpc/handler"
	"github.com/signalbox-dev/signalbox/internal/rpc/permit"
	"github.com/signalbox-dev/signalbox/internal/rpc/quotahandler"
	"github.com/signalbox-dev/signalbox/internal/rpc/runexport"
	"github.com/signalbox-dev/signalbox/internal/rpc/tokenhandler"
)

// Options say what the server serves, and its bounds. Zero bounds have the defaults named.
type Options struct {
	// Address to listen on, as host:port; port 0 takes any free one.
	Address string

	// The services; all nil in a process that serves health, metrics and what it says of itself alone.
	Workflows handler.WorkflowService
	Runs      handler.RunService
	// Codec opens payloads for Temporal's UI.
	Codec Codec
	// Unredacted shows runs without marks, where it is not nil.
	Unredacted handler.Unredacted
	// Explainer says what runs wait for, where it is not nil.
	Explainer handler.Explainer
	Projects  handler.ProjectService
	Audit     handler.AuditLog
	// Events and Dispatchers are served beside them where they are not nil; EventLimits bound what is posted as CloudEvents.
	Events      eventhandler.Service
	EventLimits event.Limits
	Dispatchers dispatchhandler.Service
	// Batches are served where they are not nil.
	Batches batchhandler.Service
	// Quotas are served where they are not nil.
	Quotas quotahandler.Service
	// Touched tells exports of runs what events did to them, where it is not nil.
	Touched runexport.Touched
	// Clock tells of timers of workflows, where it is not nil.
	Clock handler.Clock
	// System is what every process says of itself, Platform what it knows of the whole.
	System   handler.SystemInfo
	Platform handler.SystemService
	// TemporalNamespace and TaskQueue are shown in runs and projects.
	TemporalNamespace string
	TaskQueue         func(project string) string

	// Metrics, Livez and Readyz answer at /metrics, /livez and /readyz; what is nil is not there.
	Metrics http.Handler
	Livez   http.Handler
	Readyz  http.Handler
	// Tokens is served where it is not nil.
	Tokens tokenhandler.Service
	// Access says who may call.
	Access Access
	// TLS is how the listener speaks; nil: in plain text.
	TLS *tls.Config
	// Serving is what grpc.health.v1.Health answers while the server is not stopping; nil: always.
	Serving func(ctx context.Context) bool
	// Interceptors see every call that reaches a method, outermost first.
	Interceptors []connect.Interceptor

	// MaxRequestBytes bounds a request before and after decompression (4 MiB).
	MaxRequestBytes int64
	// CallTimeout is the deadline of unary calls that bring none (30 s).
	CallTimeout time.Duration
	// StallTimeout is how long one read of a request's body or one write of an answer may take (30 s).
	StallTimeout time.Duration
	// MaxConnections bounds open connections (4096). Over it, a new one closes the one that has been idle longest, and waits only while
	// every connection has a request in flight.
	MaxConnections int
}

// Access says who may call, how often, and who hears of what was refused.
type Access struct {
	// Authenticator is nil where every caller is the local administrator.
	Authenticator Authenticator
	// Rate and Burst bound the requests per second of one token; a rate of 0 does not.
	Rate  float64
	Burst int
	// Refused hears why a caller was not let in, Denied what a caller may not; nil: nobody.
	Refused func(ctx context.Context, reason string)
	Denied  func(ctx context.Context, d permit.Denial)
}

// Authenticator tells who has which token.
type Authenticator interface {
	gate.Tokens
	// Standing returns an error when the token of this ID is valid no more.
	Standing(ctx context.Context, id string) error
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
	// A quiet HTTP/2 connection is asked for a sign of life, so that clients that vanished do not hold streams.
	pingAfter   = 30 * time.Second
	pingTimeout = 15 * time.Second
	// forcedGrace is what calls get to end after their connections were cut.
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

// Server is the API's server. It is started once and stopped once.
type Server struct {
	opts     Options
	routes   http.Handler
	stopping *stopping

	mu       sync.Mutex
	http     *http.Server
	listener net.Listener
	cut      context.CancelFunc
	served   chan error
	calls    sync.WaitGroup
}

// NewServer wires the server. It fails only where the protos' REST paths contradict each other.
func NewServer(opts Options) (*Server, error) {
	s := &Server{opts: opts.withDefaults(), stopping: newStopping()}
	routes, err := s.opts.routes(s.stopping)
	if err != nil {
		return nil, err
	}
	s.routes = routes
	return s, nil
}

// Start listens and serves. The context's values reach every call; its end stops nothing.
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
		Handler:           s.entry(isLoopback(listener.Addr())),
		Protocols:         protocols,
		BaseContext:       func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		HTTP2:             &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		ErrorLog:          slog.NewLogLogger(logger.FromContext(ctx).Handler(), slog.LevelWarn),
	}
	s.listener, s.cut, s.served = listener, cut, make(chan error, 1)
	limited := connlimit.New(listener, connlimit.Options{Max: s.opts.MaxConnections, Log: logger.FromContext(ctx), Now: time.Now})
	s.http.ConnState = limited.ConnState
	if s.opts.TLS != nil {
		s.http.TLSConfig = s.opts.TLS
		go func() { s.served <- s.http.ServeTLS(limited, "", "") }()
		return nil
	}
	go func() { s.served <- s.http.Serve(limited) }()
	return nil
}

// Addr returns where the server listens; nil before it was started.
func (s *Server) Addr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}

// Stop takes no new calls, ends open watches at once (their clients resume elsewhere), waits for the other calls until
// ctx ends, and then cuts what is left. A server that was not started stops at once.
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
		return errors.New("stop the API: a call does not end although it was canceled")
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
