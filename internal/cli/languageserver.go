package cli

import (
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/languageserver"
)

// spareHeap is how far the heap of the language server may grow, in percent, before it is collected. What it holds is a
// few open texts, and each keystroke allocates a multiple of that: with Go's 100 % a third of each answer is collection.
const spareHeap = 400

func languageServerCommand(s *invocation.Invocation, version string) *cobra.Command {
	return &cobra.Command{
		Use:   "language-server",
		Short: "Serve an editor: errors, completion, help and renames in workflows",
		Long: `Serve an editor by the Language Server Protocol over standard input and output: errors and warnings while a workflow or its
tests are written, with fixes; completion of keys, tasks, references, variables and functions of expressions; help for each
of them; definitions, references, renames, layout, folding and an outline. Editors start it; docs/editors.md has the few
lines that each of them needs. No server is needed.`,
		Example: `  signalbox language-server`,
		Args:    invocation.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			defer debug.SetGCPercent(debug.SetGCPercent(spareHeap))
			return languageserver.Serve(cmd.Context(), s.In, s.Out, version)
		},
	}
}
