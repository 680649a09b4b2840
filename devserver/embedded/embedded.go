// Package embedded runs a whole Temporal server in this process, on SQLite: the code of a cluster, in one process and
// for one machine.
//
//	server := embedded.New(embedded.Options{Port: 7233, DataFile: "temporal.db", Namespace: "default", Log: log})
//	err := server.Start(ctx)
//	defer server.Stop(ctx)
//
// It listens on loopback only. Without a data file all data is in memory and lost with the process. Temporal keeps the
// caches of its SQLite plugin in package variables, so each in-memory database has its own name.
package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/schema/sqlite"
	"go.temporal.io/server/temporal"

	"github.com/signalbox-dev/signalbox/internal/freeport"
)

const host = "127.0.0.1"

// Options configure the server.
type Options struct {
	// Port of the frontend on 127.0.0.1; 0 takes a free one.
	Port int
	// MetricsPort is the port of Temporal's own metrics on 127.0.0.1, at /metrics; 0 takes a free one.
	MetricsPort int
	// Retention is how long Temporal keeps closed workflows, from an hour; 0: [DefaultRetention]. It also changes that of
	// a namespace that exists, for the workflows that end from then on.
	Retention time.Duration
	// DataFile is the SQLite file; empty keeps everything in memory.
	DataFile  string
	Namespace string
	// Permissions, where set, restrict the calls of clients; nil allows all.
	Permissions *Permissions
	Log         *slog.Logger
}

// Server is one Temporal server. It is started once and stopped once.
type Server struct {
	opts     Options
	settings dynamicconfig.StaticClient
	address  string
	metrics  *metricsPage

	begun    chan struct{}   // closed when the start has ended; nil before the start
	server   temporal.Server // nil unless the start succeeded
	failed   error           // the error of the start
	stopping atomic.Bool
}

// New returns a server that is not started.
func New(opts Options) *Server {
	opts.Retention = cmp.Or(opts.Retention, DefaultRetention)
	return &Server{opts: opts, settings: dynamicConfig()}
}

// Address returns host and port of the frontend after the start.
func (s *Server) Address() string { return s.address }

// MetricsURL returns the address of Temporal's own metrics after the start.
func (s *Server) MetricsURL() string { return s.metrics.url() }

// Start prepares the database, starts all services and returns when the frontend accepts calls. Most of that cannot be
// interrupted: if ctx ends earlier, Start returns at once and leaves the rest to Stop, which must then be called.
func (s *Server) Start(ctx context.Context) error {
	if err := checkRetention(s.opts.Retention); err != nil {
		return err
	}
	ports, release, err := freePorts(ctx, s.opts.Port, s.opts.Permissions != nil)
	if err != nil {
		return err
	}
	if s.metrics, err = serveMetrics(ctx, s.opts.MetricsPort, s.logger()); err != nil {
		release()
		return err
	}
	s.address = net.JoinHostPort(host, strconv.Itoa(ports.frontend))
	s.begun = make(chan struct{})
	go func() {
		defer close(s.begun)
		defer release()
		if s.server, s.failed = s.begin(ctx, ports); s.failed != nil {
			s.failed = errors.Join(s.failed, s.metrics.close())
		}
	}()
	select {
	case <-s.begun:
		return s.failed
	case <-ctx.Done():
		return fmt.Errorf("starting the embedded Temporal: %w", ctx.Err())
	}
}

// begin starts the services, unless ctx has ended by then.
func (s *Server) begin(ctx context.Context, ports portSet) (temporal.Server, error) {
	cfg := s.config(ports)
	if err := s.prepare(ctx, cfg.Persistence.DataStores[store].SQL); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("starting the embedded Temporal: %w", err)
	}
	allowed, roles := s.authorization()
	server, err := temporal.NewServer(
		temporal.WithConfig(cfg),
		temporal.ForServices(slices.Collect(maps.Keys(cfg.Services))),
		temporal.WithStaticHosts(ports.hosts()),
		temporal.WithLogger(s.logger()),
		temporal.WithAuthorizer(allowed),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return roles }),
		temporal.WithCustomMetricsHandler(s.metrics.handler),
		temporal.WithDynamicConfigClient(s.settings),
	)
	if err != nil {
		return nil, fmt.Errorf("making the embedded Temporal: %w", err)
	}
	if err := server.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the embedded Temporal: %w", err), server.Stop())
	}
	return server, nil
}

func (s *Server) logger() logAdapter {
	return logAdapter{log: s.opts.Log.With("component", "temporal-server"), stopping: &s.stopping}
}

// authorization returns what decides on the calls of clients, and what maps their API keys to roles.
func (s *Server) authorization() (authorization.Authorizer, authorization.ClaimMapper) {
	if s.opts.Permissions == nil {
		return authorization.NewNoopAuthorizer(), authorization.NewNoopClaimMapper()
	}
	return &authorizer{
		permissions: s.opts.Permissions, namespace: s.opts.Namespace, log: s.opts.Log, logged: map[loggedCall]bool{},
	}, keyMapper{}
}

// Stop stops all services, including those that an interrupted start is still starting, or abandons them if ctx ends
// first. After a failed start it does nothing.
func (s *Server) Stop(ctx context.Context) error {
	if s.begun == nil {
		return nil
	}
	s.stopping.Store(true)
	stopped := make(chan error, 1)
	go func() {
		<-s.begun
		if s.server == nil {
			stopped <- nil
			return
		}
		stopped <- errors.Join(s.server.Stop(), s.metrics.close())
	}()
	select {
	case err := <-stopped:
		return err
	case <-ctx.Done():
		return fmt.Errorf("stopping the embedded Temporal: %w", ctx.Err())
	}
}

// prepare creates the schema and the namespace. An in-memory database creates its schema itself.
func (s *Server) prepare(ctx context.Context, db *config.SQL) error {
	if s.opts.DataFile != "" {
		_, err := os.Stat(s.opts.DataFile)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if err := s.create(db); err != nil {
				return err
			}
		case err != nil:
			return fmt.Errorf("opening the embedded Temporal's data: %w", err)
		}
	}
	namespace, err := sqlite.NewNamespaceConfig(clusterName, s.opts.Namespace, false, nil)
	if err != nil {
		return fmt.Errorf("describing the namespace %q: %w", s.opts.Namespace, err)
	}
	if err := sqlite.CreateNamespaces(db, namespace); err != nil {
		return fmt.Errorf("creating the namespace %q in %q: %w", s.opts.Namespace, s.location(), err)
	}
	if err := s.setRetention(ctx, db); err != nil {
		return fmt.Errorf("setting the retention of the namespace %q in %q: %w", s.opts.Namespace, s.location(), err)
	}
	return nil
}

// create builds a new database in a temporary file and renames it when it is complete: a crash or a full disk leaves no
// incomplete database behind.
func (s *Server) create(db *config.SQL) error {
	fresh := *db
	fresh.DatabaseName = s.opts.DataFile + ".new"
	// Without a write-ahead log, which would keep the old name when the file is renamed.
	fresh.ConnectAttributes = map[string]string{"mode": "rwc"}
	if err := removeAll(fresh.DatabaseName); err != nil {
		return fmt.Errorf("clearing the way for the embedded Temporal's data: %w", err)
	}
	if err := sqlite.SetupSchema(&fresh); err != nil {
		return errors.Join(
			fmt.Errorf("creating the embedded Temporal's data in %q: %w; is the folder writable and is there space left?",
				s.opts.DataFile, err),
			removeAll(fresh.DatabaseName))
	}
	if err := os.Chmod(fresh.DatabaseName, 0o600); err != nil {
		return fmt.Errorf("protecting the embedded Temporal's data: %w", err)
	}
	if err := os.Rename(fresh.DatabaseName, s.opts.DataFile); err != nil {
		return fmt.Errorf("putting the embedded Temporal's data in place: %w", err)
	}
	return nil
}

func (s *Server) location() string {
	if s.opts.DataFile == "" {
		return "memory"
	}
	return s.opts.DataFile
}

func removeAll(file string) error {
	for _, name := range []string{file, file + "-wal", file + "-shm", file + "-journal"} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// portSet has the ports of the services. internalFrontend is 0 where the server itself uses the same frontend as
// clients.
type portSet struct{ frontend, internalFrontend, history, matching, worker int }

// freePorts finds free ports, which stay reserved until release is called. It fails if the requested port is taken: if
// Temporal found that out later, it would end the process.
func freePorts(ctx context.Context, frontend int, internalFrontend bool) (ports portSet, release func(), err error) {
	var claims []func()
	release = func() {
		for _, claim := range claims {
			claim()
		}
	}
	ports.frontend = frontend
	if frontend != 0 {
		listener, err := listen(ctx, frontend, "--temporal-port (--port for `dev temporal`)")
		if err != nil {
			return portSet{}, nil, err
		}
		defer listener.Close() // after the loop, so that no port is found twice
	}
	needed := []*int{&ports.frontend, &ports.history, &ports.matching, &ports.worker}
	if internalFrontend {
		needed = append(needed, &ports.internalFrontend)
	}
	for _, port := range needed {
		if *port != 0 {
			continue
		}
		found, claim, err := freeport.Claim(ctx)
		if err != nil {
			release()
			return portSet{}, nil, fmt.Errorf("finding a port for the embedded Temporal: %w", err)
		}
		*port = found
		claims = append(claims, claim)
	}
	return ports, release, nil
}

// listen reserves a port that flags choose, and returns an error with a remedy if another process has it.
func listen(ctx context.Context, port int, flags string) (net.Listener, error) {
	address := net.JoinHostPort(host, strconv.Itoa(port))
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("the embedded Temporal cannot listen on %s: another process does; "+
			"stop it, or choose another port with %s", address, flags)
	case err != nil:
		return nil, fmt.Errorf("trying port %d for the embedded Temporal: %w", port, err)
	}
	return listener, nil
}
