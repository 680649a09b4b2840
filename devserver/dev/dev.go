// Package dev implements `signalbox dev`, the whole platform with an embedded Temporal in one process, and `signalbox
// dev temporal`, that Temporal alone.
//
// It assembles the same parts as `signalbox server`, with other surroundings: Temporal on SQLite in this process, the
// store in a SQLite file beside it, loopback only.
package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/signalbox-dev/signalbox/devserver/embedded"
	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/app"
	"github.com/signalbox-dev/signalbox/internal/app/command"
	"github.com/signalbox-dev/signalbox/internal/cli"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/memory"
	"github.com/signalbox-dev/signalbox/internal/terminal"
)

const (
	namespace = "default"
	// stopBudget bounds the whole stop. Calls still in flight then continue when the process is started again on the same
	// data.
	stopBudget = 4500 * time.Millisecond
	// callBudget is the part of it for calls in flight.
	callBudget = 2 * time.Second
)

// retentionHelp explains the flag of the retention of Temporal.
const retentionHelp = "`time` for which Temporal keeps runs that have ended, about 25 kB each; at least 1h"

// flags of `signalbox dev`.
type flags struct {
	listen       string
	dataDir      string
	temporalPort int
	metricsPort  int
	retention    time.Duration
	publish      []string
	watch        []string
	run          string
	logLevel     string
	logFormat    string
}

//go:generate go run ./internal/reference ../../docs/reference/cli.md

// Main builds the options of the full program from the process environment: those of the lean one, and `signalbox dev`.
func Main() cli.Options {
	options := command.Main()
	options.Commands = append(options.Commands, Command(options.Version, options.Program, options.Env))
	return options
}

// Command returns `signalbox dev`. The commands that it prints begin with program, the name by which this program was
// called.
func Command(version, program string, env config.Environment) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run everything in one process: Temporal, store, API, worker and runner",
		Long: `Run the whole platform in one process, with Temporal embedded and all data in SQLite. It listens on loopback only, and
workflows may call this machine and run scripts in JavaScript; "signalbox project set --runners" permits other programs, which
need bubblewrap on this machine, or SIGNALBOX_RUNNER_CONTAINERS_SOCKET. Without --data-dir all data is lost when it stops; with it, runs continue after a
restart. With --watch, workflow files are validated and published as they change, as "workflow run --bump" publishes them: a file whose
version is published with other content gets the next version, written into the file. Settings of "signalbox server" that are not flags here are read from their SIGNALBOX_ variables; those that this
command sets itself (access, configuration file, listener, roles, projects, Redis, store, Temporal) are refused. The lean
program, signalbox-server, does not have this command.`,
		Example: `  signalbox dev
  signalbox dev --data-dir ./data --publish examples/workflows --run hello
  signalbox dev --watch ./workflows`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return invocation.UnknownVerb(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := logger.New(cmd.ErrOrStderr(), f.logLevel, f.logFormat)
			if err != nil {
				return exit.Usagef("%w", err)
			}
			d := &dev{flags: f, set: cmd.Flags(), version: version, program: program, env: env, log: log, out: cmd.OutOrStdout()}
			return d.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&f.listen, "listen", "127.0.0.1:8080",
		"loopback `address` to listen on; port 0 takes a free one")
	cmd.Flags().StringVar(&f.dataDir, "data-dir", "", "`folder` for all data; created if it is missing")
	cmd.Flags().IntVar(&f.temporalPort, "temporal-port", 0, "`port` of the embedded Temporal; 0 takes a free one")
	cmd.Flags().IntVar(&f.metricsPort, "temporal-metrics-port", 0,
		"`port` of the metrics of the embedded Temporal; 0 takes a free one")
	cmd.Flags().DurationVar(&f.retention, "temporal-retention", embedded.DefaultRetention, retentionHelp)
	cmd.Flags().StringSliceVar(&f.publish, "publish", nil,
		"workflow `file or folder` to publish when ready; may be given more than once")
	cmd.Flags().StringSliceVar(&f.watch, "watch", nil,
		"workflow `file or folder` to publish now and whenever it changes; may be given more than once")
	cmd.Flags().StringVar(&f.run, "run", "", "`name` of a published workflow to run once when ready")
	cmd.Flags().StringVar(&f.logLevel, "log-level", "warn", "least `level` to log: debug, info, warn or error")
	cmd.Flags().StringVar(&f.logFormat, "log-format", "text", "`format` of the log: text or json")
	cmd.AddCommand(temporalCommand())
	return cmd
}

// dev is one run of the command.
type dev struct {
	flags   flags
	set     *pflag.FlagSet // the same flags; the configuration reads those that are configuration keys
	version string
	program string
	env     config.Environment
	log     *slog.Logger
	out     io.Writer
}

func (d *dev) run(ctx context.Context) (err error) {
	began := time.Now()
	documents, err := documents(d.flags.publish)
	if err != nil {
		return err
	}
	changes, err := newWatcher(d.flags.watch)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, changes.close()) }()
	cfg, err := d.config()
	if err != nil {
		return err
	}
	folder, release, err := d.folder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	keys, err := d.keys(cfg.Encryption)
	if err != nil {
		return err
	}
	temporal := embedded.New(embedded.Options{
		Port: d.flags.temporalPort, MetricsPort: d.flags.metricsPort, Retention: d.flags.retention,
		DataFile: d.dataFile(folder, "temporal.db"), Namespace: namespace, Log: d.log,
	})
	stop := &stopping{budget: stopBudget}
	defer func() {
		stopCtx, cancel := stop.context(ctx)
		defer cancel()
		err = errors.Join(err, temporal.Stop(stopCtx))
		if err == nil {
			d.printf("Stopped.\n")
		}
	}()
	if err := temporal.Start(ctx); err != nil {
		return command.Interrupted(ctx, err)
	}
	cfg.Temporal = config.Temporal{Address: temporal.Address(), Namespace: namespace}
	cfg.Store = config.Store{
		Driver: config.DriverSQLite, DSN: config.Secret(filepath.Join(folder, "signalbox.db")), AutoMigrate: true}
	a, err := app.New(ctx, app.Options{
		Config: cfg, Version: d.version, Log: d.log, Keys: keys, Memory: memory.Apply(int64(cfg.MemoryLimit), os.DirFS("/")),
	})
	if err != nil {
		return command.Interrupted(ctx, err)
	}
	if err := a.Start(ctx); err != nil {
		return command.Interrupted(ctx, err)
	}
	err = d.serve(ctx, a, surroundings{
		temporal: temporal.Address(), metrics: temporal.MetricsURL(), documents: documents, changes: changes, began: began})
	if ctx.Err() != nil {
		d.printf("\nStopping …\n")
	}
	stopCtx, cancel := stop.context(ctx)
	defer cancel()
	return errors.Join(command.Interrupted(ctx, err), a.Stop(stopCtx))
}

// surroundings are the values that serve prints and uses, beside the platform.
type surroundings struct {
	temporal  string
	metrics   string // of Temporal
	documents []document
	changes   *watcher
	began     time.Time
}

// serve prints the addresses, publishes and runs what was requested, and waits for the end of ctx.
func (d *dev) serve(ctx context.Context, a *app.App, with surroundings) error {
	if err := awaitReady(ctx, a); err != nil {
		return err
	}
	api := "http://" + a.Addr().String()
	d.printf("Signalbox is ready after %d ms.\n\n", time.Since(with.began).Milliseconds())
	d.printf("  Web UI    %s/\n", api)
	d.printf("  API       %s   (health: %s/readyz, metrics: %s/metrics)\n", api, api, api)
	d.printf("  Temporal  %s   (namespace %s, embedded; metrics: %s)\n", with.temporal, namespace, with.metrics)
	d.printf("  Data      %s\n", d.location())
	d.printf("  Actor     local: every caller of this address is an administrator\n\n")
	// Without a timeout of its own: the server bounds calls, and the watch of a run has its own bound.
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	first := firstRun{api: api, http: client, out: d.out, program: cli.Called(d.program),
		flag: addressFlag(a.Addr().String())}
	if err := first.publish(ctx, with.documents); err != nil {
		return err
	}
	republish := republisher(api, client, d.out)
	with.changes.all(ctx, republish)
	if err := first.run(ctx, d.flags.run); err != nil {
		return err
	}
	d.printf("Ctrl-C stops it.\n")
	with.changes.follow(ctx, republish)
	return nil
}

// config returns the configuration from flags and variables. A variable that contradicts a setting of this command is
// an error: a caller that requires tokens must not get a server that is open to all users of this machine.
func (d *dev) config() (*config.Config, error) {
	env := config.Environment{}
	var refused []string
	for name, value := range d.env {
		switch {
		case !slices.ContainsFunc(reservedPrefixes(), func(begin string) bool {
			return strings.HasPrefix(name, "SIGNALBOX_"+begin)
		}):
			env[name] = value
		case value != "" && name+"="+value != "SIGNALBOX_AUTH_MODE=none":
			refused = append(refused, name)
		}
	}
	if len(refused) > 0 {
		slices.Sort(refused)
		return nil, exit.Usagef("%s cannot be set for \"signalbox dev\", which sets it itself: unset it, use the flags of "+
			"this command, or run \"signalbox server\"",
			strings.Join(refused, ", "))
	}
	if env["SIGNALBOX_RUNNER_KINDS"] == "" {
		env["SIGNALBOX_RUNNER_KINDS"] = string(dsl.ProgramScript)
	}
	if env["SIGNALBOX_CALLS_ALLOW_PRIVATE"] == "" {
		env["SIGNALBOX_CALLS_ALLOW_PRIVATE"] = "127.0.0.0/8,::1/128"
	}
	if config.ListenViolation(d.flags.listen) == "" && !config.IsLoopback(d.flags.listen) {
		return nil, exit.Usagef("--listen: %q can be reached from other machines, and every caller of this command is an "+
			"administrator; listen on 127.0.0.1 or [::1], or run \"signalbox server\" with auth.mode tokens", d.flags.listen)
	}
	cfg, err := config.Load(config.Options{Env: env, Flags: d.set})
	if err != nil {
		return nil, err
	}
	cfg.Roles = []string{config.RoleAPI, config.RoleWorker, config.RoleRunner}
	cfg.Worker.StopTimeout = min(cfg.Worker.StopTimeout, callBudget)
	cfg.Runner.StopTimeout = min(cfg.Runner.StopTimeout, callBudget)
	return cfg, nil
}

// reservedPrefixes lists the prefixes of the variables whose settings this command determines.
func reservedPrefixes() []string {
	return []string{"AUTH_", "CONFIG", "LISTEN", "ROLES", "PROJECTS", "REDIS_", "STORE_", "TEMPORAL_"}
}

func (d *dev) location() string {
	if d.flags.dataDir == "" {
		return "in memory and a temporary folder; lost when it stops (--data-dir keeps it)"
	}
	return d.flags.dataDir
}

func (d *dev) dataFile(folder, name string) string {
	if d.flags.dataDir == "" {
		return ""
	}
	return filepath.Join(folder, name)
}

// folder creates and locks the data folder, or creates a temporary one. The returned function releases it.
func (d *dev) folder() (string, func() error, error) {
	if d.flags.dataDir == "" {
		folder, err := os.MkdirTemp("", "signalbox-dev-")
		if err != nil {
			return "", nil, fmt.Errorf("making a temporary folder for the data: %w; set TMPDIR to a folder that can be written",
				err)
		}
		return folder, func() error { return os.RemoveAll(folder) }, nil
	}
	release, err := lockFolder(d.flags.dataDir, d.flags.listen)
	return d.flags.dataDir, release, err
}

func (d *dev) printf(format string, args ...any) {
	_ = terminal.Draw(d.out, fmt.Sprintf(format, args...)) // a closed terminal must not stop the platform
}

// stopping is the time left for the stop, counted from the first call.
type stopping struct {
	budget   time.Duration
	deadline time.Time
}

func (s *stopping) context(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.deadline.IsZero() {
		s.deadline = time.Now().Add(s.budget)
	}
	return context.WithDeadline(context.WithoutCancel(ctx), s.deadline)
}
