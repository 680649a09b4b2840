package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/migrate"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// importTimeout bounds one transaction of an import: one page of runs with all their steps.
const importTimeout = 2 * time.Minute

// migrateImport returns `signalbox migrate import`.
func migrateImport(env config.Environment, layers []config.Layer) *cobra.Command {
	var (
		from string
		o    migrate.Options
	)
	cmd := &cobra.Command{
		Use:   "import --from DSN",
		Short: "Copy the runs of an older engine's database into this one",
		Long: `Copy the runs of an older engine's database (workflow_runs, workflow_run_steps, workflow_run_waits, workflow_run_snapshots) into the
database in store.dsn, so that they stay readable. Runs that are running or waiting on an engine other than Temporal become canceled, with an
error that states this; ended runs, and Temporal's runs, stay unchanged. The source is only read. The import can be repeated, also after an
interruption: unchanged runs are skipped. docs/migration.md lists the columns that it reads.`,
		Example: `  signalbox migrate import --config signalbox.yaml --from 'postgres://reader:${env:LEGACY_PASSWORD}@db/legacy' --dry-run
  signalbox migrate import --config signalbox.yaml --from legacy.db --project shop`,
		Args: invocation.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			source, violations := config.ResolveDSN(from, env.LookupEnv)
			switch {
			case from == "":
				return errors.New("--from is missing: it takes the URL of a Postgres database or the path of a SQLite file")
			case len(violations) > 0:
				return fmt.Errorf("--from: %s", strings.Join(violations, "; "))
			case config.HasPlainPassword(from):
				return errors.New("--from holds a password in plain text; refer to it as ${env:NAME} or ${file:/path}")
			}
			o.DSN = source
			cfg, err := config.Load(config.Options{Flags: cmd.Flags(), Env: env, Layers: layers})
			if err != nil {
				return err
			}
			return importInto(cmd.Context(), cfg, o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&from, "from", "",
		"database to copy from: a Postgres URL or the path of a SQLite file; passwords as ${env:NAME} or ${file:/path}")
	cmd.Flags().StringVar(&o.Project, "project", "", "project for all runs; without it each run keeps its project")
	cmd.Flags().StringVar(&o.Namespace, "namespace", "legacy", "workflow namespace for workflows whose names have none")
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "only print what would be done")
	config.BindUnlisted(cmd.Flags())
	return cmd
}

// importInto imports into the store that a configuration names.
func importInto(ctx context.Context, cfg *config.Config, o migrate.Options, out, progress io.Writer) error {
	o.Now, o.Progress = time.Now, progress
	s, err := store.Open(ctx, store.Options{
		Driver: sqldb.Driver(cfg.Store.Driver), DSN: cfg.Store.DSN.Reveal(), AutoMigrate: cfg.Store.AutoMigrate,
		CallTimeout: importTimeout,
	})
	if err != nil {
		return err
	}
	if err := s.Start(ctx); err != nil {
		return errors.Join(err, s.Stop(ctx))
	}
	r, err := migrate.Import(ctx, s, o)
	if err == nil {
		err = printImport(out, r, o.DryRun)
	}
	return errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
}

func printImport(out io.Writer, r migrate.Report, dry bool) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	done := "imported"
	if dry {
		done = "would be imported"
	}
	for _, line := range []struct {
		what  string
		count int64
	}{
		{"runs in the source", r.Runs}, {"new, " + done, r.New}, {"changed, " + done + " again", r.Changed},
		{"there already, left alone", r.Unchanged},
		{"of these canceled, as their engine is gone", r.Canceled}, {"their open waits resolved", r.Waits},
		{"steps", r.Steps},
		{"left out, as another run has their ID", r.Taken}, {"left out, as retention deleted them here", r.Removed},
	} {
		_, _ = fmt.Fprintf(table, "%s\t%d\n", line.what, line.count)
	}
	if len(r.TakenIDs) > 0 {
		_, _ = fmt.Fprintf(table, "left out\t%s\n", strings.Join(r.TakenIDs, ", "))
	}
	if len(r.Projects) > 0 {
		_, _ = fmt.Fprintf(table, "projects that were missing\t%s\n", strings.Join(r.Projects, ", "))
	}
	_, _ = fmt.Fprintf(table, "took\t%s\n", r.Took.Round(time.Millisecond))
	_, _ = fmt.Fprintf(table, "memory\t%d MiB\n", peakMiB())
	return table.Flush()
}
