package app

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/engine"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/program"
	"github.com/signalbox-dev/signalbox/internal/health"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/netguard"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/rpc"
	"github.com/signalbox-dev/signalbox/internal/rpc/handler"
	"github.com/signalbox-dev/signalbox/internal/sandbox/container"
	"github.com/signalbox-dev/signalbox/internal/sandbox/limit"
	sandbox "github.com/signalbox-dev/signalbox/internal/sandbox/process"
	"github.com/signalbox-dev/signalbox/internal/sandbox/proxy"
	"github.com/signalbox-dev/signalbox/internal/telemetry"
)

// runner executes the programs of workflows.
type runner struct {
	*engine.Runners

	programs stopOnly
}

// newRunner returns the runner of a process. list lists the projects to serve; nil where the configuration names them.
func newRunner(ctx context.Context, p *process, manager *conn.Manager, list engine.Projects) (*runner, error) {
	cfg := p.cfg.Runner
	guarded := proxy.New(proxy.Options{Guard: netguard.New(p.cfg.Calls.Networks()), Refused: ownServices(p.cfg)})
	commands, unisolated := newCommands(ctx, p, guarded)
	executor, err := program.New(logger.WithContext(ctx, p.log), program.Options{
		Programs: cfg.Programs, ScriptTime: cfg.ScriptTime, Memory: int64(cfg.Memory), Output: int(cfg.Output),
		Commands: commands, Unisolated: unisolated, Containers: newContainers(cfg, guarded), Metrics: p.telemetry.Programs,
	})
	if err != nil {
		return nil, err
	}
	p.telemetry.Programs.Begin(ctx, project.RunnerKinds(), program.Outcomes())
	return &runner{
		Runners: engine.NewRunners(engine.RunnerOptions{
			Manager: manager, Programs: executor, Projects: p.cfg.Projects, List: list, MaxPrograms: cfg.Programs,
			Identity:    contract.RunnerIdentity(p.serverID, executor.Isolations()),
			StopTimeout: cfg.StopTimeout, Log: p.log,
		}),
		programs: executor.Stop,
	}, nil
}

// newContainers returns the isolation by containers; nil where no engine is configured.
func newContainers(cfg config.Runner, guarded *proxy.Proxy) *program.Containers {
	c := cfg.Containers
	if c.Socket == "" {
		return nil
	}
	made := &program.Containers{Engine: container.New(container.Options{
		Socket: c.Socket, Images: c.Images, MaxImage: int64(c.MaxImage), Network: c.Network, Volumes: c.Volumes,
		Ports: c.Ports, User: c.User, Limits: programLimits(cfg), Proxy: guarded, SocketFolder: c.Sockets,
	})}
	if cfg.Isolation == config.IsolationAuto || cfg.Isolation == config.IsolationContainer {
		made.Shell, made.Python = c.ShellImage, c.PythonImage
	}
	return made
}

// programLimits returns the limits of shell commands, scripts in Python and containers.
func programLimits(cfg config.Runner) limit.Limits {
	return limit.Limits{
		Memory: int64(cfg.ProgramMemory), Processes: cfg.Processes, Processors: float64(cfg.Processors),
		Disk: int64(cfg.Disk), Network: limit.Network(cfg.Network),
	}
}

// ownServices returns the services of the platform that this process connects to, as host:port.
func ownServices(cfg *config.Config) []string {
	list := append([]string{cfg.Temporal.Address}, cfg.Redis.Addresses...)
	if u, err := url.Parse(cfg.Redis.URL.Reveal()); err == nil && u.Hostname() != "" {
		list = append(list, net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "6379")))
	}
	if cfg.Store.Driver == config.DriverPostgres {
		if database, err := pgconn.ParseConfig(cfg.Store.DSN.Reveal()); err == nil && !strings.HasPrefix(database.Host, "/") {
			list = append(list, net.JoinHostPort(database.Host, strconv.Itoa(int(database.Port))))
		}
	}
	return list
}

// newCommands returns the isolation of shell commands and of scripts in Python, or the reason why there is none.
func newCommands(ctx context.Context, p *process, guarded *proxy.Proxy) (*sandbox.Sandbox, string) {
	cfg := p.cfg.Runner
	o := sandbox.Options{Isolation: sandbox.Bubblewrap, Limits: programLimits(cfg), Proxy: guarded}
	switch cfg.Isolation {
	case config.IsolationContainer:
		return nil, "runner.isolation is container, and runner.containers names no image for it"
	case config.IsolationNone:
		o.Isolation = sandbox.None
		p.log.WarnContext(ctx, "Shell commands and scripts in Python are executed WITHOUT isolation, as the user of this "+
			"process, with access to its files and its network, since runner.isolation is none")
	}
	commands, err := sandbox.New(ctx, o)
	if err != nil {
		p.log.InfoContext(ctx, "Shell commands and scripts in Python are refused", "reason", err)
		return nil, err.Error()
	}
	if bounded, reason := commands.Groups(); !bounded {
		p.log.WarnContext(ctx, "Memory and processor time are bounded for each process of a program alone", "reason", reason)
	}
	return commands, ""
}

// permittedPrograms returns the programs that a project may execute: of the kinds of the configuration, and of its own.
func permittedPrograms(projects projectReader, configured []string) func(ctx context.Context,
	name string) (engine.PermittedPrograms, error) {
	return func(ctx context.Context, name string) (engine.PermittedPrograms, error) {
		p, err := projects.GetProject(ctx, name)
		if err != nil {
			return engine.PermittedPrograms{}, err
		}
		return engine.PermittedPrograms{Kinds: permittedKinds(p, configured), Images: p.Settings.Images,
			Limits: p.Settings.ProgramLimits}, nil
	}
}

func permittedKinds(p project.Project, configured []string) []string {
	return slices.DeleteFunc(project.RunnerKinds(), func(kind string) bool {
		return !slices.Contains(configured, kind) && !slices.Contains(p.Settings.Runners, kind)
	})
}

// wireRunner creates the components of a process with the role of runners alone. It opens no database: foreign code
// that broke out of its isolation would find the address of Temporal and the keys of payloads, and no other credentials.
func (a *App) wireRunner(ctx context.Context) error {
	a.open("telemetry", a.telemetry)
	a.add("memory monitor", a.memory)
	a.add("processor monitor", a.processor)
	c := &connection{temporal: a.cfg.Temporal}
	options, err := c.options(a.process)
	if err != nil {
		return err
	}
	if c.manager, err = engine.NewRunnerConnection(options, a.keys, a.serverID, a.log); err != nil {
		return err
	}
	c.certificate = &clientCertificate{temporal: c.temporal, now: time.Now, log: a.log}
	a.connection = c
	if a.runner, err = newRunner(ctx, a.process, c.manager, nil); err != nil {
		return err
	}
	a.open("programs", a.runner.programs)
	a.health = newRunnerHealth(&a.components)
	if err := a.observeRunner(); err != nil {
		return err
	}
	a.api, err = rpc.NewServer(rpc.Options{
		Address: a.cfg.Listen, MaxConnections: a.cfg.API.MaxConnections,
		MaxRequestBytes: int64(a.cfg.API.MaxRequestBytes), Metrics: a.telemetry.Handler(),
		Livez: http.HandlerFunc(a.health.Livez), Readyz: http.HandlerFunc(a.health.Readyz),
		Serving:      func(ctx context.Context) bool { return a.health.Report(ctx).Status != health.Unavailable },
		Interceptors: a.telemetry.Interceptors(),
		Access: rpc.Access{
			Rate: float64(a.cfg.API.RateLimit), Burst: a.cfg.API.Burst, Refused: a.telemetry.API.Refused},
		Services: handler.Services{ProbesOnly: true},
	})
	if err != nil {
		return err
	}
	a.add("API server", a.api)
	a.add("connection", c.manager)
	a.add("runners", a.runner.Runners)
	return nil
}

// newRunnerHealth creates the health of a process with the role of runners alone.
func newRunnerHealth(c *components) *health.Health {
	role := []string{config.RoleRunner}
	dependencies := []health.Dependency{
		{Name: "temporal", Condition: c.connection.condition, Required: role},
		{Name: "memory", Checker: c.memory, Used: role},
		{Name: "runner pollers", Checker: c.runner, Required: role},
	}
	if certificate := c.connection.certificate; certificate.used() {
		dependencies = append(dependencies,
			health.Dependency{Name: "certificate", Condition: certificate.condition, Used: role})
	}
	return health.New(time.Now, dependencies, role...)
}

// observeRunner registers the gauges of a process with the role of runners alone.
func (c *components) observeRunner() error {
	states := telemetry.HealthStates{
		Dependencies: []string{health.Up, health.Impaired, health.Down},
		Roles:        []string{health.Ready, health.Degraded, health.Unavailable},
	}
	return errors.Join(c.telemetry.ObserveHealth(states, c.healthStates),
		c.telemetry.ObserveProcessor(c.processor.Totals))
}
