package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/logger"
)

// profilesHeaderTimeout bounds the time in which a client sends its request. The response has no limit: a profile takes
// as long as its client requests.
const profilesHeaderTimeout = 5 * time.Second

// Profiles serves the profiles of the process, without authentication: its address must be one that only this machine
// can connect to.
type Profiles struct {
	address string
	server  *http.Server
	done    chan error
}

// NewProfiles returns a server for the address, as host:port.
func NewProfiles(listen string) *Profiles { return &Profiles{address: listen} }

// Start listens.
func (p *Profiles) Start(ctx context.Context) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", p.address)
	if err != nil {
		return fmt.Errorf("listen for profiles (telemetry.profile_listen): %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	p.server = &http.Server{Handler: forThisMachine(mux), ReadHeaderTimeout: profilesHeaderTimeout}
	p.done = make(chan error, 1)
	go func() { p.done <- p.server.Serve(listener) }()
	logger.FromContext(ctx).InfoContext(ctx, "Profiles are served", "address", listener.Addr().String())
	return nil
}

// forThisMachine refuses requests that name another host: those of a web page whose name its owner resolves to this
// machine.
func forThisMachine(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !config.IsLocalHost(r.Host) {
			http.Error(w, fmt.Sprintf("host %q is not this machine: use 127.0.0.1 or localhost", r.Host), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Stop interrupts profiles in progress, so that they do not delay the end of the process.
func (p *Profiles) Stop(context.Context) error {
	err := p.server.Close()
	if ended := <-p.done; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}
