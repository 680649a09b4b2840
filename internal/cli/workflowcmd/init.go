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

func initCommand(s *invocation.Invocation) *cobra.Command {
	var namespace string
	cmd := &cobra.Command{
		Use:   "init FILE",
		Short: "Write a first workflow to a file, to begin with",
		Long: `Write a workflow with an input, a step, a call with retries and a catch to a new file. The workflow is named after the file. An existing file is
not changed.`,
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
	source := strings.NewReplacer("NAMESPACE", namespace, "NAME", name, "FILE", file).Replace(firstDocument)
	doc := document{name: file, source: []byte(source)}
	if checked := check(doc); !checked.Valid { // the names are not those of a workflow
		return wrongDocument("init", doc, checked.Violations)
	}
	out, err := os.OpenFile(filepath.Clean(file), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644) //nolint:gosec // a source file
	if errors.Is(err, fs.ErrExist) {
		return exit.Errorf(exit.Conflict, "init: %s exists; name another file", file)
	}
	if err != nil {
		return fmt.Errorf("init: %w", err)
	}
	_, err = out.WriteString(source)
	if err := errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	s.Note("wrote %s; its first lines show how to run, check and change it", file)
	return nil
}
