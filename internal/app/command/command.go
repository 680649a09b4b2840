// Package command implements the subcommands that run the platform in their own process: `signalbox server` and
// `signalbox migrate`. All other subcommands are in package cli and call a server.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-dev/signalbox/internal/app"
	"github.com/signalbox-dev/signalbox/internal/cli"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/config/clientconfig"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/memory"
	"github.com/signalbox-dev/signalbox/internal/sandbox/handover"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/telemetry/otlp"
	"github.com/signalbox-dev/signalbox/lease/redislease"
)

// Version is the version of this program.
const Version = "0.1.0-dev"

// stopMargin is the time a stopping process may take beyond the stop timeout of its workers.
const stopMargin = 15 * time.Second

// Main builds the options of the command line from the process environment. Every main program calls it.
func Main() cli.Options {
	handover.Begin()
	env := config.NewEnvironment(os.Environ())
	temporal := clientconfig.TemporalLayer(time.Now)
	layers := []config.Layer{temporal, clientconfig.RedisLayer(time.Now), config.KeyLayer(), telemetryLayer(env)}
	return cli.Options{
		Version: Version, Program: os.Args[0], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Env: env,
		ConfigLayers:  layers,
		CheckServices: app.CheckServices,
		Bootstrap:     Bootstrap(env, []config.Layer{temporal}),
		Commands:      []*cobra.Command{Server(Version, env, layers), Migrate(env, []config.Layer{temporal})},
	}
}

// telemetryLayer reports the variables of OpenTelemetry with invalid values, with all other violations. It sets
// nothing.
func telemetryLayer(env config.Environment) config.Layer {
	return config.Layer{Check: func(*config.Config) (all config.Violations) {
		_, err := otlp.Read(env.LookupEnv)
		invalid, _ := errors.AsType[otlp.Violations](err)
		for _, p := range invalid {
			all = append(all, config.Violation{Source: p.Variable, Message: p.Message})
		}
		return all
	}}
}

// Server returns `signalbox server`.
func Server(version string, env config.Environment, layers []config.Layer) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Run the platform: the API, the workers, or both",
		Long: `Run the platform against a Temporal cluster and a database. It starts whether or not Temporal is available, and serves
until it is interrupted; then it accepts no new work, waits up to worker.stop_timeout for running tasks, and exits.`,
		Example: `  signalbox server --config signalbox.yaml`,
		Args:    invocation.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.Load(config.Options{Flags: cmd.Flags(), Env: env, Layers: layers})
			if err != nil {
				return err
			}
			log, err := logger.New(cmd.ErrOrStderr(), cfg.Log.Level, cfg.Log.Format)
			if err != nil {
				return err
			}
			for _, violation := range cfg.Warnings {
				log.WarnContext(cmd.Context(), "The configuration has a violation that may be temporary",
					"violation", violation.String())
			}
			options := app.Options{Config: cfg, Version: version, Log: log,
				Memory: memory.Apply(int64(cfg.MemoryLimit), os.DirFS("/"))}
			return Serve(cmd.Context(), options, func(a *app.App) error {
				log.InfoContext(cmd.Context(), "Signalbox is ready", "listen", a.Addr().String(), "version", version,
					"roles", cfg.Roles, "temporal", cfg.Temporal.Address, "namespace", cfg.Temporal.Namespace)
				return nil
			})
		},
	}
	config.BindFlags(cmd.Flags())
	return cmd
}

// Serve runs a platform until ctx ends, then stops it within its budget. It calls ready after the start.
func Serve(ctx context.Context, opts app.Options, ready func(*app.App) error) error {
	redislease.LogTo(opts.Log)
	systemd, err := newManager(opts.Log)
	if err != nil {
		return err
	}
	a, err := app.New(ctx, opts)
	if err != nil {
		return Interrupted(ctx, err)
	}
	if err := a.Start(ctx); err != nil {
		return Interrupted(ctx, err)
	}
	err = errors.Join(ready(a), systemd.ready(ctx))
	if err == nil {
		<-ctx.Done()
	}
	opts.Log.InfoContext(ctx, "Signalbox is stopping")
	systemd.stopping(ctx)
	drain := max(opts.Config.Worker.StopTimeout, opts.Config.Runner.StopTimeout)
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain+stopMargin)
	defer cancel()
	// The reports to the watchdog end last: a stop may take longer than its interval.
	err = errors.Join(Interrupted(ctx, err), a.Stop(stopCtx), systemd.stop(stopCtx))
	opts.Log.InfoContext(ctx, "Signalbox has stopped")
	return err
}

// Interrupted makes an interrupt during the start a regular end instead of a failure.
func Interrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// Migrate returns `signalbox migrate`.
func Migrate(env config.Environment, layers []config.Layer) *cobra.Command {
	cmd := invocation.Noun("migrate", "Migrate the database's schema, show its state, or import runs",
		"Migrate the schema of the database in store.dsn, show its state, or import an older engine's runs. Migrations "+
			"take a lock: several may run at once.")
	cmd.AddCommand(
		migrateVerb("up", "Apply the migrations that are missing", env, layers, up),
		migrateVerb("status", "List the migrations and when each was applied", env, layers, status),
		migrateImport(env, layers),
	)
	return cmd
}

func migrateVerb(
	verb, short string, env config.Environment, layers []config.Layer,
	do func(context.Context, *config.Config, *store.Store, io.Writer) error,
) *cobra.Command {
	cmd := &cobra.Command{
		Use: verb, Short: short, Long: short + ".", Example: "  signalbox migrate " + verb + " --config signalbox.yaml",
		Args: invocation.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.Load(config.Options{Flags: cmd.Flags(), Env: env, Layers: layers})
			if err != nil {
				return err
			}
			s, err := store.Open(cmd.Context(), store.Options{
				Driver: sqldb.Driver(cfg.Store.Driver), DSN: cfg.Store.DSN.Reveal(),
			})
			if err != nil {
				return err
			}
			return errors.Join(do(cmd.Context(), cfg, s, cmd.OutOrStdout()), s.Stop(cmd.Context()))
		},
	}
	config.BindUnlisted(cmd.Flags())
	return cmd
}

func up(ctx context.Context, cfg *config.Config, s *store.Store, out io.Writer) error {
	applied, err := s.Migrate(ctx)
	if err != nil {
		return err
	}
	created, err := app.MigratePayloads(ctx, cfg)
	if err != nil {
		return err
	}
	for _, m := range applied {
		_, _ = fmt.Fprintf(out, "applied %d %s\n", m.Version, m.Name)
	}
	if created != "" {
		_, _ = fmt.Fprintf(out, "created the table payloads in %s\n", created)
	}
	if len(applied) == 0 {
		_, _ = fmt.Fprintf(out, "%s is up to date\n", s.Location())
	}
	return nil
}

func status(ctx context.Context, _ *config.Config, s *store.Store, out io.Writer) error {
	known, err := s.Status(ctx)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "VERSION\tNAME\tAPPLIED")
	for _, m := range known {
		applied := "pending"
		if !m.AppliedAt.IsZero() {
			applied = m.AppliedAt.UTC().Format(time.RFC3339)
		}
		_, _ = fmt.Fprintf(table, "%d\t%s\t%s\n", m.Version, m.Name, applied)
	}
	return table.Flush()
}
