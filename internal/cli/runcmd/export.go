package runcmd

import (
	"errors"
	"fmt"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
)

type exportFlags struct {
	Selection

	format, file string
	all          bool
}

func exportCommand(s *invocation.Invocation) *cobra.Command {
	var flags exportFlags
	cmd := &cobra.Command{
		Use:   "export [ID]",
		Short: "Export all data of a run, or a list of runs",
		Long: `With an ID, write one JSON document with all data of a run: the run, the version with its source, steps with their
attempts, what it waits for, events and their deliveries, audit entries, and its reference in Temporal.

Without an ID, write the runs that match, newest first: CSV with a header line, or JSON with one run per line. --all selects
every run of the project. Lists of any length are written as they arrive; an interrupted list is an error, and leaves no file.`,
		Example: `  signalbox run export 0199a4f2 > run.json
  signalbox run export --status failed --since 7d --file failed.csv
  signalbox run export --all --format json > runs.jsonl`,
		Args:              invocation.Args(0, 1, "[ID]"),
		ValidArgsFunction: s.CompleteRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return export(cmd, s, args, flags)
		},
	}
	flags.Bind(s, cmd)
	cmd.Flags().StringVar(&flags.format, "format", "", "`form` of a list: csv (default) or json, one run per line")
	cmd.Flags().BoolVar(&flags.all, "all", false, "every run of the project")
	cmd.Flags().StringVar(&flags.file, "file", "", "`file` to write; standard output when empty")
	// the flag is there
	_ = cmd.RegisterFlagCompletionFunc("format",
		cobra.FixedCompletions([]string{"csv", "json"}, cobra.ShellCompDirectiveNoFileComp))
	s.BindRuns(cmd, 1)
	_ = cmd.Flags().MarkHidden("output") // what is written is a file of its own form
	return cmd
}

func export(cmd *cobra.Command, s *invocation.Invocation, args []string, flags exportFlags) error {
	patience, stop := s.Patience(cmd.Context())
	defer stop()
	choice := GivenFlag(cmd, "format", "all")
	if len(args) == 1 {
		if choice != "" {
			return exit.Usagef("--%s chooses among runs, and %q is one: leave one of them out", choice, args[0])
		}
		stream, err := s.Runs().ExportRun(patience,
			connect.NewRequest(&signalboxv1.ExportRunRequest{Project: s.Project(), Id: args[0]}))
		return save(s, stream, err, flags.file, fmt.Sprintf("export run %q", args[0]))
	}
	switch {
	case choice == "":
		return exit.Usagef("nothing to export: name a run, choose runs (--status, --workflow, --since, …), or write --all " +
			"for every run")
	case flags.all && choice != "all" && choice != "format":
		return exit.Usagef("--all: all runs are selected, and --%s selects some of them; leave out one of the two", choice)
	}
	request, err := exportRequest(s, flags)
	if err != nil {
		return err
	}
	stream, err := s.Runs().ExportRuns(patience, connect.NewRequest(request))
	return save(s, stream, err, flags.file, "export runs")
}

func exportRequest(s *invocation.Invocation, flags exportFlags) (*signalboxv1.ExportRunsRequest, error) {
	filter, err := flags.Filter(s)
	if err != nil {
		return nil, err
	}
	if flags.format != "" && flags.format != "csv" && flags.format != "json" {
		return nil, exit.Usagef("--format: %q is neither csv nor json", flags.format)
	}
	return &signalboxv1.ExportRunsRequest{Project: s.Project(), Filter: filter, Format: flags.format}, nil
}

// publicMode is the mode of a new file, of which the umask of the caller takes away what it forbids.
const publicMode = 0o666

// save writes what arrives. A regular file has its old content until it is whole.
func save(s *invocation.Invocation, stream invocation.Download, err error, path, what string) error {
	if err != nil {
		return s.Failed(err, "%s", what)
	}
	if path == "" || path == "-" {
		return s.Copy(stream, s.Out, what)
	}
	part, err := invocation.CreateFile(path, publicMode)
	if err != nil {
		return exit.Usagef("--file: %q cannot be written: %w", path, errors.Unwrap(err))
	}
	defer part.Discard()
	if err := s.Copy(stream, part, what); err != nil {
		return err
	}
	if err := part.Commit(); err != nil {
		return fmt.Errorf("%s: write %q: %w", what, path, err)
	}
	s.Note("written to %s", path)
	return nil
}
