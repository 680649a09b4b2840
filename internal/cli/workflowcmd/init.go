package workflowcmd

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
)

//go:embed first.yaml
var firstDocument string

//go:embed first.test.yaml
var firstTests string

func initCommand(s *invocation.Invocation) *cobra.Command {
	var namespace string
	cmd := &cobra.Command{
		Use:   "init FILE",
		Short: "Write a first workflow and its tests to files, to begin with",
		Long: `Write a workflow with an input, a step, a call with retries and a catch to a new file, and its tests to a file beside it. The
workflow is named after the file. Existing files are not changed.`,
		Example: `  signalbox workflow init order.yaml
  signalbox workflow init --namespace shop refund.yaml`,
		Args: invocation.Args(1, 1, "FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			return initialize(s, args[0], namespace)
		},
	}
	cmd.Flags().StringVar(&namespace, "namespace", "default", "`namespace` of the workflow")
	s.BindOutput(cmd)
	return cmd
}

func initialize(s *invocation.Invocation, file, namespace string) error {
	name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	fill := strings.NewReplacer("NAMESPACE", namespace, "NAME", name, "FILE", file)
	source := fill.Replace(firstDocument)
	doc := document{name: file, source: []byte(source)}
	if checked := check(doc); !checked.Valid { // the names are not those of a workflow
		return wrongDocument("init", doc, checked.Violations)
	}
	tests := strings.TrimSuffix(file, filepath.Ext(file)) + testSuffix + ".yaml"
	for _, name := range []string{file, tests} { // before anything is written
		if _, err := os.Lstat(name); err == nil {
			return exit.Errorf(exit.Conflict, "init: %s exists; name another file", name)
		}
	}
	if err := writeNew(file, source); err != nil {
		return err
	}
	if err := writeNew(tests, fill.Replace(firstTests)); err != nil {
		return err
	}
	s.Note("wrote %s and %s with its tests; run them: %s", file, tests, s.Command("workflow test %s", file))
	return nil
}

// writeNew writes a file that must not exist.
func writeNew(file, content string) error {
	out, err := os.OpenFile(filepath.Clean(file), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644) //nolint:gosec // a source file
	if errors.Is(err, fs.ErrExist) {
		return exit.Errorf(exit.Conflict, "init: %s exists; name another file", file)
	}
	if err != nil {
		return fmt.Errorf("init: %w", err)
	}
	_, err = out.WriteString(content)
	if err := errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	return nil
}
