package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"

	"github.com/google/uuid"
	"go.temporal.io/sdk/worker"

	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/engine"
	"github.com/signalbox-dev/signalbox/internal/keyring"
	"github.com/signalbox-dev/signalbox/internal/memory"
	"github.com/signalbox-dev/signalbox/internal/processor"
	"github.com/signalbox-dev/signalbox/internal/secret"
	"github.com/signalbox-dev/signalbox/internal/telemetry"
)

// process has what all components of one process share.
type process struct {
	cfg     *config.Config
	log     *slog.Logger
	version string
	// serverID identifies this start of the process. It is never part of a workflow ID.
	serverID  string
	keys      *keyring.Ring
	telemetry *telemetry.Telemetry
	memory    *memory.Monitor
	processor *processor.Monitor
	turns     *engine.Turns
}

func newProcess(ctx context.Context, opts Options) (_ *process, err error) {
	p := &process{cfg: opts.Config, log: opts.Log, version: opts.Version, serverID: newServerID(), keys: opts.Keys,
		turns: engine.NewTurns(runtime.GOMAXPROCS(0)),
	}
	if p.keys == nil {
		if p.keys, err = p.cfg.Encryption.Ring(); err != nil {
			return nil, err
		}
	}
	p.telemetry, err = telemetry.New(ctx, telemetry.Options{
		ServiceName: p.cfg.Telemetry.ServiceName, Version: p.version, Instance: instance(p.cfg.Listen), Lookup: os.LookupEnv,
		Log: p.log,
	})
	if err != nil {
		return nil, err
	}
	// The SDK's cache bounds the number of runs, in all workers of a process.
	worker.SetStickyWorkflowCacheSize(engine.CachedRuns(int64(p.cfg.Worker.Cache)))
	p.processor = processor.NewMonitor(processor.Options{Root: os.DirFS("/"), Log: p.log})
	p.memory = memory.NewMonitor(memory.Options{Limit: opts.Memory, Relieve: worker.PurgeStickyWorkflowCache, Log: p.log})
	return p, nil
}

// instance returns the name of the process among those of a service. Other than the server ID, it stays the same across
// restarts, so the number of exported series does not grow with them.
func instance(listen string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	_, port, err := net.SplitHostPort(listen)
	if err != nil {
		return host
	}
	return net.JoinHostPort(host, port)
}

// newServerID returns the identity of this start of the process.
func newServerID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	const random = 8
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), uuid.NewString()[:random])
}

// roles lists the roles of the process. The first one decides whether the process is ready.
func (p *process) roles() []string {
	var out []string
	for _, role := range []string{config.RoleAPI, config.RoleWorker, config.RoleRunner} {
		if p.cfg.HasRole(role) {
			out = append(out, role)
		}
	}
	return out
}

// shedsLoad reports whether diagnosis and repair are suspended because memory is short.
func (p *process) shedsLoad() bool { return p.memory.Level() >= memory.High }

// secrets returns the provider of this process's secrets.
func (p *process) secrets() secret.Provider {
	cfg := p.cfg.Secrets
	return secret.NewProvider(secret.ProviderOptions{
		Dir: cfg.Dir, Prefix: cfg.EnvPrefix, Lookup: os.LookupEnv, Command: cfg.Command, Timeout: cfg.Timeout,
		Keep: cfg.Cache,
	})
}
