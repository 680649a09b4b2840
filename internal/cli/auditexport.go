package cli

import (
	"context"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
)

func auditExportCommand(s *invocation.Invocation) *cobra.Command {
	var flags auditFlags
	var format string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write all audit entries that match, oldest first",
		Long: "Write all audit entries that match to standard output, oldest first, as CSV or as JSON with one entry per " +
			"line. They are streamed: there may be any number.",
		Example: `  signalbox audit export --since 30d > audit.csv
  signalbox audit export --project - --format json`,
		Args: invocation.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return exportAudit(cmd.Context(), s, flags, format) },
	}
	cmd.Flags().StringVar(&format, "format", "csv", "`form` of the entries: csv or json")
	flags.bind(cmd)
	// the flag is there
	_ = cmd.RegisterFlagCompletionFunc("format",
		cobra.FixedCompletions([]string{"csv", "json"}, cobra.ShellCompDirectiveNoFileComp))
	s.BindClient(cmd)
	return cmd
}

func exportAudit(ctx context.Context, s *invocation.Invocation, flags auditFlags, format string) error {
	if format != "csv" && format != "json" {
		return exit.Usagef("--format: %q is neither csv nor json", format)
	}
	since, until, err := flags.period.Bounds(s)
	if err != nil {
		return err
	}
	ctx, cancel := s.Patience(ctx)
	defer cancel()
	stream, err := s.Audit().ExportAudit(ctx, connect.NewRequest(&signalboxv1.ExportAuditRequest{
		Project: s.Project(), Format: format, Action: flags.action, Subject: flags.subject, Actor: flags.actor,
		Since: since, Until: until,
	}))
	if err != nil {
		return s.Failed(err, "export the audit log")
	}
	return s.Copy(stream, s.Out, "export the audit log")
}
