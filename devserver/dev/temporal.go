package dev

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/signalbox-dev/signalbox/devserver/embedded"
	"github.com/signalbox-dev/signalbox/internal/app/command"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/logger"
)

// readPermissions reads the file of --permissions; it returns nil if there is none.
func readPermissions(file string) (*embedded.Permissions, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--permissions: %w", err)
	}
	permissions := &embedded.Permissions{}
	if err := yaml.UnmarshalWithOptions(text, permissions, yaml.DisallowUnknownField()); err != nil {
		return nil, fmt.Errorf("--permissions %q: %w", file, err)
	}
	if err := permissions.Validate(); err != nil {
		return nil, fmt.Errorf("--permissions %q: %w", file, err)
	}
	return permissions, nil
}

// temporalCommand returns `signalbox dev temporal`.
func temporalCommand() *cobra.Command {
	var opts embedded.Options
	var level, permissions string
	cmd := &cobra.Command{
		Use:   "temporal",
		Short: "Run the embedded Temporal alone, in its own process",
		Long: `Run the embedded Temporal alone, on loopback. A "signalbox server" beside it can then be stopped, killed and started
independently of it.`,
		Example: `  signalbox dev temporal --port 7233 --data temporal.db`,
		Args:    invocation.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := logger.New(cmd.ErrOrStderr(), level, logger.FormatText)
			if err != nil {
				return exit.Usagef("%w", err)
			}
			opts.Log = log
			if opts.Permissions, err = readPermissions(permissions); err != nil {
				return exit.Usagef("%w", err)
			}
			server := embedded.New(opts)
			ctx := cmd.Context()
			err = command.Interrupted(ctx, server.Start(ctx))
			if err == nil && ctx.Err() == nil {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "Temporal is ready on %s (namespace %s, metrics: %s).\n", server.Address(),
					opts.Namespace, server.MetricsURL())
			}
			if err == nil {
				<-ctx.Done()
			}
			stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopBudget)
			defer cancel()
			return errors.Join(err, server.Stop(stopCtx))
		},
	}
	cmd.Flags().IntVar(&opts.Port, "port", 7233,
		"`port` of the frontend on 127.0.0.1; 0 takes a free one") //nolint:mnd // Temporal's own default
	cmd.Flags().IntVar(&opts.MetricsPort, "metrics-port", 0,
		"`port` of Temporal's own metrics on 127.0.0.1; 0 takes a free one")
	cmd.Flags().StringVar(&opts.DataFile, "data", "", "SQLite `file` for the data; without it, data is in memory")
	cmd.Flags().DurationVar(&opts.Retention, "retention", embedded.DefaultRetention, retentionHelp)
	cmd.Flags().StringVar(&opts.Namespace, "namespace", namespace, "`name` of the namespace; created if it is missing")
	cmd.Flags().StringVar(&permissions, "permissions", "",
		"YAML `file` with the calls of each role, to test permissions: "+
			"a client's API key is the name of its role, and all other calls are refused and logged; without it, every client "+
			"may do everything")
	cmd.Flags().StringVar(&level, "log-level", "warn", "least `level` to log: debug, info, warn or error")
	return cmd
}
