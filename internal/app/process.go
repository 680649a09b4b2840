package app

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/google/uuid"
	"go.temporal.io/sdk/worker"

	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/config/sealconfig"
	"github.com/signalbox-dev/signalbox/internal/keyring"
	"github.com/signalbox-dev/signalbox/internal/memory"
	"github.com/signalbox-dev/signalbox/internal/secret"
	"github.com/signalbox-dev/signalbox/internal/secret/provider"
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
}

func newProcess(opts Options) (_ *process, err error) {
	p := &process{cfg: opts.Config, log: opts.Log, version: opts.Version, serverID: newServerID(), keys: opts.Keys}
	if p.keys == nil {
		if p.keys, err = sealconfig.Ring(p.cfg.Encryption); err != nil {
			return nil, err
		}
	}
	p.telemetry, err = telemetry.New(telemetry.Options{ServiceName: p.cfg.Telemetry.ServiceName, Version: p.version, Log: p.log})
	if err != nil {
		return nil, err
	}
	p.memory = memory.NewMonitor(memory.Options{Limit: opts.Memory, Relieve: worker.PurgeStickyWorkflowCache, Log: p.log})
	return p, nil
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
	for _, role := range []string{config.RoleAPI, config.RoleWorker} {
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
	return provider.New(provider.Options{
		Dir: cfg.Dir, Prefix: cfg.EnvPrefix, Lookup: os.LookupEnv, Command: cfg.Command, Timeout: cfg.Timeout, Keep: cfg.Cache,
	})
}
