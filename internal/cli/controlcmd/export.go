package controlcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"google.golang.org/genproto/googleapis/api/httpbody"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/runcmd"
	"github.com/signalbox-dev/signalbox/internal/cli/session"
)

type exportFlags struct {
	statuses, problems                      []string
	workflow, version, since, until, format string
	trigger, file                           string
	all                                     bool
}

// filtered names a flag that chooses among runs, where one was given.
func (f exportFlags) filtered() string {
	for name, given := range map[string]bool{
		"--status": len(f.statuses) > 0, "--problem": len(f.problems) > 0, "--workflow": f.workflow != "", "--version": f.version != "", "--since": f.since != "",
		"--until": f.until != "", "--trigger": f.trigger != "", "--format": f.format != "", "--all": f.all,
	} {
		if given {
			return name
		}
	}
	return ""
}

func exportCommand(s *session.Session) *cobra.Command {
	var flags exportFlags
	cmd := &cobra.Command{
		Use:   "export [ID]",
		Short: "Write all that is known of a run, or a list of runs, to a file or standard output",
		Long: `With an ID, write one JSON document with all that is known of a run: the run, the version with its source, steps with their
attempts, what it waits for, events and their deliveries, audit entries, and where Temporal keeps it.

Without an ID, write the runs that match, newest first: CSV with a header line, or JSON with one run per line. --all takes every
run of the project. Lists of any length are written as they arrive; one that breaks off is an error, and leaves no file.`,
		Example: `  signalbox run export 0199… > run.json
  signalbox run export --status failed --since 7d --file failed.csv
  signalbox run export --all --format json | jq -r .id`,
		Args:              session.Args(0, 1, "[ID]"),
		ValidArgsFunction: s.CompleteRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return export(cmd.Context(), s, args, flags)
		},
	}
	cmd.Flags().StringSliceVar(&flags.statuses, "status", nil, "only these `statuses`, separated by commas")
	cmd.Flags().StringSliceVar(&flags.problems, "problem", nil, "only runs that are stuck with these `codes`; any for all of them")
	cmd.Flags().StringVar(&flags.workflow, "workflow", "", "only runs of this workflow, by `name`")
	cmd.Flags().StringVar(&flags.version, "version", "", "only runs of this `version`")
	cmd.Flags().StringVar(&flags.since, "since", "", "only runs created in the last `time` (\"2h\", \"7d\") or since a moment (2026-01-31T12:00:00Z)")
	cmd.Flags().StringVar(&flags.until, "until", "", "only runs created before this `time`")
	cmd.Flags().StringVar(&flags.trigger, "trigger", "", "only runs that this `trigger` started: api, event, schedule, replay, parent")
	cmd.Flags().StringVar(&flags.format, "format", "", "`form` of a list: csv (default) or json, one run per line")
	cmd.Flags().BoolVar(&flags.all, "all", false, "every run of the project")
	cmd.Flags().StringVar(&flags.file, "file", "", "`file` to write; standard output when empty")
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(runcmd.Statuses(), cobra.ShellCompDirectiveNoFileComp))       // the flag is there
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"csv", "json"}, cobra.ShellCompDirectiveNoFileComp)) // as above
	s.BindClient(cmd)
	_ = cmd.Flags().MarkHidden("output") // what is written is a file of its own form
	return cmd
}

// download is a file that arrives.
type download interface {
	Receive() bool
	Msg() *httpbody.HttpBody
	Err() error
	Close() error
}

func export(ctx context.Context, s *session.Session, args []string, flags exportFlags) error {
	patience, stop := s.Patience(ctx)
	defer stop()
	if len(args) == 1 {
		if name := flags.filtered(); name != "" {
			return exit.Usagef("%s chooses among runs, and %q is one: leave one of them out", name, args[0])
		}
		stream, err := s.Runs().ExportRun(patience, connect.NewRequest(&signalboxv1.ExportRunRequest{Project: s.Project(), Id: args[0]}))
		return save(s, stream, err, flags.file, fmt.Sprintf("export run %q", args[0]))
	}
	if flags.filtered() == "" {
		return exit.Usagef("nothing to export: name a run, choose runs (--status, --workflow, --since, …), or write --all for every run")
	}
	request, err := exportRequest(s, flags)
	if err != nil {
		return err
	}
	stream, err := s.Runs().ExportRuns(patience, connect.NewRequest(request))
	return save(s, stream, err, flags.file, "export runs")
}

func exportRequest(s *session.Session, flags exportFlags) (*signalboxv1.ExportRunsRequest, error) {
	statuses, err := session.Words("status", flags.statuses, runcmd.Statuses())
	if err != nil {
		return nil, err
	}
	if flags.format != "" && flags.format != "csv" && flags.format != "json" {
		return nil, exit.Usagef("--format: %q is neither csv nor json", flags.format)
	}
	since, err := s.Time("since", flags.since)
	if err != nil {
		return nil, err
	}
	until, err := s.Time("until", flags.until)
	if err != nil {
		return nil, err
	}
	return &signalboxv1.ExportRunsRequest{
		Project: s.Project(), Format: flags.format, Statuses: statuses, Workflow: flags.workflow, Version: flags.version,
		Since: session.Timestamp(since), Until: session.Timestamp(until), Problems: flags.problems, Trigger: flags.trigger,
	}, nil
}

// save writes what arrives. A file gets its name when it is whole.
func save[D download](s *session.Session, stream D, err error, path, what string) error {
	if err != nil {
		return s.Failed(err, "%s", what)
	}
	if path == "" || path == "-" {
		return copied(s, stream, s.Out, what)
	}
	part, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return exit.Usagef("--file: %q cannot be written: %w", path, errors.Unwrap(err))
	}
	err = errors.Join(copied(s, stream, part, what), part.Close())
	if err == nil {
		err = os.Rename(part.Name(), path)
	}
	if err != nil {
		_ = os.Remove(part.Name()) // it is of no use
		return err
	}
	s.Note("written to %s", path)
	return nil
}

func copied(s *session.Session, stream download, w io.Writer, what string) error {
	for stream.Receive() {
		if _, err := w.Write(stream.Msg().GetData()); err != nil {
			_ = stream.Close() // the first error is the one to tell
			return fmt.Errorf("%s: write: %w", what, err)
		}
	}
	err := stream.Err()
	if closed := stream.Close(); err == nil {
		err = closed
	}
	return s.Failed(err, "%s", strings.TrimSpace(what))
}
