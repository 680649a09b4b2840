// Package dev is `signalbox dev`: the whole platform with an embedded Temporal in one process, and `signalbox dev
// temporal`: that Temporal alone.
//
// It composes the same parts as `signalbox server`; only the surroundings differ: Temporal on SQLite in this process,
// the store in a SQLite file beside it, loopback only.
package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-dev/signalbox/devserver/embedded"
	"github.com/signalbox-dev/signalbox/internal/app"
	"github.com/signalbox-dev/signalbox/internal/app/command"
	"github.com/signalbox-dev/signalbox/internal/cli"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/session"
	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/logger"
)

const (
	namespace = "default"
	// stopBudget bounds the stop of everything together; calls that are still under way then go on when the process is
	// started again on the same data.
	stopBudget = 4500 * time.Millisecond
	// callBudget is how long calls under way may go on of that.
	callBudget = 2 * time.Second
)

// flags of `signalbox dev`.
type flags struct {
	listen       string
	dataDir      string
	temporalPort int
	publish      []string
	run          string
	logLevel     string
	logFormat    string
}

//go:generate go run ./internal/reference ../../docs/reference/cli.md

// Main makes the full program's options from the process: those of the lean one, and `signalbox dev`.
func Main() cli.Options {
	options := command.Main()
	options.Commands = append(options.Commands, Command(options.Version, options.Env))
	return options
}

// Command returns `signalbox dev`.
func Command(version string, env config.Environment) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run everything in one process: embedded Temporal, store, API and worker",
		Long: `Run the whole platform in one process, with Temporal embedded and all data in SQLite. It listens on loopback only, and
workflows may call this machine. Without --data-dir everything is gone when it stops; with it, runs go on where they
were. Settings of "signalbox server" that are not flags here are taken from their SIGNALBOX_ variables. The lean
program, signalbox-server, does not have this command.`,
		Example: `  signalbox dev
  signalbox dev --data-dir ./data --publish examples/workflows --run hello`,
		Args: session.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := logger.New(cmd.ErrOrStderr(), f.logLevel, f.logFormat)
			if err != nil {
				return exit.Usagef("%w", err)
			}
			d := &dev{flags: f, version: version, env: env, log: log, out: cmd.OutOrStdout()}
			return d.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&f.listen, "listen", "127.0.0.1:8080", "loopback `address` to listen on; port 0 takes a free one")
	cmd.Flags().StringVar(&f.dataDir, "data-dir", "", "`folder` to keep all data in; made where it is missing")
	cmd.Flags().IntVar(&f.temporalPort, "temporal-port", 0, "`port` of the embedded Temporal; 0 takes a free one")
	cmd.Flags().StringSliceVar(&f.publish, "publish", nil, "workflow `file or folder` to publish when ready; may be given more than once")
	cmd.Flags().StringVar(&f.run, "run", "", "`name` of a published workflow to run once when ready")
	cmd.Flags().StringVar(&f.logLevel, "log-level", "warn", "least `level` to log: debug, info, warn or error")
	cmd.Flags().StringVar(&f.logFormat, "log-format", "text", "`format` of the log: text or json")
	cmd.AddCommand(temporalCommand())
	return cmd
}

// dev is one run of the command.
type dev struct {
	flags   flags
	version string
	env     config.Environment
	log     *slog.Logger
	out     io.Writer
}

func (d *dev) run(ctx context.Context) (err error) {
	began := time.Now()
	folder, release, err := d.folder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	temporal := embedded.New(embedded.Options{
		Port: d.flags.temporalPort, DataFile: d.dataFile(folder, "temporal.db"), Namespace: namespace, Log: d.log,
	})
	if err := temporal.Start(ctx); err != nil {
		return err
	}
	stop := &stopping{budget: stopBudget}
	defer func() {
		stopCtx, cancel := stop.context(ctx)
		defer cancel()
		err = errors.Join(err, temporal.Stop(stopCtx))
		if err == nil {
			d.printf("Stopped.\n")
		}
	}()
	cfg, err := d.config(temporal.Address(), filepath.Join(folder, "signalbox.db"))
	if err != nil {
		return err
	}
	a, err := app.New(ctx, app.Options{Config: cfg, Version: d.version, Log: d.log})
	if err != nil {
		return quiet(ctx, err)
	}
	if err := a.Start(ctx); err != nil {
		return quiet(ctx, err)
	}
	err = d.serve(ctx, a, temporal.Address(), began)
	if ctx.Err() != nil {
		d.printf("\nStopping …\n")
	}
	stopCtx, cancel := stop.context(ctx)
	defer cancel()
	return errors.Join(quiet(ctx, err), a.Stop(stopCtx))
}

// serve tells where everything is, publishes and runs what was asked for, and waits for the end of ctx.
func (d *dev) serve(ctx context.Context, a *app.App, temporal string, began time.Time) error {
	if err := awaitReady(ctx, a); err != nil {
		return err
	}
	api := "http://" + a.Addr().String()
	d.printf("Signalbox is ready after %d ms.\n\n", time.Since(began).Milliseconds())
	d.printf("  API       %s   (health: %s/readyz, metrics: %s/metrics)\n", api, api, api)
	d.printf("  Temporal  %s   (namespace %s, embedded)\n", temporal, namespace)
	d.printf("  Data      %s\n", d.place())
	d.printf("  Actor     local: whoever reaches this address may do everything\n\n")
	// Without a limit of its own: the server bounds calls, and the watch of a run is bounded where it is made.
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	first := firstRun{api: api, http: client, out: d.out, flag: addressFlag(a.Addr().String())}
	if err := first.publish(ctx, d.flags.publish); err != nil {
		return err
	}
	if err := first.run(ctx, d.flags.run); err != nil {
		return err
	}
	d.printf("Ctrl-C stops it.\n")
	<-ctx.Done()
	return nil
}

func (d *dev) config(temporal, store string) (*config.Config, error) {
	env := config.Environment{}
	maps.Copy(env, d.env)
	if env["SIGNALBOX_CALLS_ALLOW_PRIVATE"] == "" {
		env["SIGNALBOX_CALLS_ALLOW_PRIVATE"] = "127.0.0.0/8,::1/128"
	}
	// What this command decides cannot be set from outside.
	for _, name := range []string{"ROLES", "PROJECTS", "STORE_DRIVER", "STORE_AUTO_MIGRATE", "TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "CONFIG"} {
		delete(env, "SIGNALBOX_"+name)
	}
	env["SIGNALBOX_LISTEN"], env["SIGNALBOX_STORE_DSN"] = d.flags.listen, store
	cfg, err := config.Load(config.Options{Env: env})
	if err != nil {
		return nil, err
	}
	cfg.Temporal = config.Temporal{Address: temporal, Namespace: namespace}
	cfg.Worker.StopTimeout = min(cfg.Worker.StopTimeout, callBudget)
	return cfg, nil
}

func (d *dev) place() string {
	if d.flags.dataDir == "" {
		return "in memory and a temporary folder; gone when it stops (--data-dir keeps it)"
	}
	return d.flags.dataDir
}

func (d *dev) dataFile(folder, name string) string {
	if d.flags.dataDir == "" {
		return ""
	}
	return filepath.Join(folder, name)
}

// folder makes the data folder and takes it for this process, or makes a temporary one. The function gives it back.
func (d *dev) folder() (string, func() error, error) {
	if d.flags.dataDir == "" {
		folder, err := os.MkdirTemp("", "signalbox-dev-")
		if err != nil {
			return "", nil, fmt.Errorf("making a temporary folder for the data: %w; set TMPDIR to a folder that can be written", err)
		}
		return folder, func() error { return os.RemoveAll(folder) }, nil
	}
	release, err := claim(d.flags.dataDir, d.flags.listen)
	return d.flags.dataDir, release, err
}

func (d *dev) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(d.out, format, args...) // a closed terminal must not stop the platform
}

// stopping is the time that is left to stop in, counted from the first question.
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

// quiet makes an interrupt an orderly end, not a failure.
func quiet(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
