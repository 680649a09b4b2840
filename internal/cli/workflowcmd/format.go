package workflowcmd

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/signalbox-dev/signalbox/dsl/docformat"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/terminal"
)

// formatted is the JSON of the result of "format" for one file.
type formatted struct {
	File    string `json:"file"`
	Changed bool   `json:"changed"`
}

func formatCommand(s *invocation.Invocation) *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use:   "format FILE...",
		Short: "Lay out workflow files and their tests uniformly, without a server",
		Long: `Lay out workflow files and their tests, or all YAML and JSON files in folders, uniformly: two spaces for each level, at most
one empty line between others, one space around what is written in one line. Comments, the order of keys, quotes and the
choice between block and flow style stay as they are. Files are rewritten in place, and listed if they have changed; - lays
out standard input to standard output.

With --check, write nothing and exit with 1 when a file would change.`,
		Example: `  signalbox workflow format order.yaml
  signalbox workflow format --check examples/workflows/hello.yaml`,
		Args: invocation.Args(1, -1, "FILE..."),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] == stdinName {
				return formatStdin(s, check)
			}
			return format(s, args, check)
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "write nothing, and fail when a file would change")
	s.BindOutput(cmd)
	return cmd
}

func formatStdin(s *invocation.Invocation, check bool) error {
	doc, err := readDocument(stdinName, s.In)
	if err != nil {
		return err
	}
	laidOut, err := docformat.Format(doc.source)
	switch {
	case err != nil:
		return exit.Errorf(exit.Failed, "format %s: %w", doc.name, err)
	case check && !bytes.Equal(laidOut, doc.source):
		return exit.Errorf(exit.Failed, "%s would change", doc.name)
	case check:
		return nil
	}
	_, err = s.Out.Write(laidOut)
	return err
}

func format(s *invocation.Invocation, args []string, check bool) error {
	files, err := filesOf(args, isYAML)
	if err != nil {
		return err
	}
	results := make([]formatted, len(files))
	changed := 0
	for i, file := range files {
		doc, err := readDocument(file, s.In)
		if err != nil {
			return err
		}
		laidOut, err := docformat.Format(doc.source)
		if err != nil {
			return exit.Errorf(exit.Failed, "format %s: %w", file, err)
		}
		results[i] = formatted{file, !bytes.Equal(laidOut, doc.source)}
		if !results[i].Changed {
			continue
		}
		if changed++; check {
			continue
		}
		// the mode of the file that exists stays
		if err := os.WriteFile(filepath.Clean(file), laidOut, 0o644); err != nil { //nolint:gosec // a source file
			return exit.Errorf(exit.Failed, "format: %w", err)
		}
	}
	if err := printFormatted(s, results); err != nil {
		return err
	}
	verb := "changed"
	if check {
		verb = "would change"
	}
	s.Note("%s, %d %s", output.Count(int64(len(files)), "file"), changed, verb)
	if check && changed > 0 {
		return exit.Silently(exit.Failed)
	}
	return nil
}

func printFormatted(s *invocation.Invocation, results []formatted) error {
	if s.Format().Structured() {
		return output.Value(s.Out, s.Format(), results)
	}
	var text strings.Builder
	for _, r := range results {
		if r.Changed {
			text.WriteString(terminal.Line(r.File) + "\n")
		}
	}
	return terminal.Draw(s.Out, text.String())
}
