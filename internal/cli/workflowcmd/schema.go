package workflowcmd

import (
	"github.com/spf13/cobra"

	"github.com/signalbox-dev/signalbox/dsl/vocabulary"
	"github.com/signalbox-dev/signalbox/dsl/workflowtest"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
)

func schemaCommand(s *invocation.Invocation) *cobra.Command {
	var tests bool
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of workflow files, for editors",
		Long: `Print the JSON Schema of workflow files, or of their tests with --tests, for editors that complete and check YAML and JSON
with one. It has a description for each key. The command "signalbox language-server" gives editors more: it finds every
error that "validate" finds.`,
		Example: `  signalbox workflow schema > workflow.schema.json
  signalbox workflow schema --tests > tests.schema.json`,
		Args: invocation.Args(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			schema := workflowtest.Schema()
			if !tests {
				schema = vocabulary.New().Schema()
			}
			_, err := s.Out.Write(schema)
			return err
		},
	}
	cmd.Flags().BoolVar(&tests, "tests", false, "print the schema of test files")
	return cmd
}
