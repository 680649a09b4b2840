package runcmd

import (
	"context"
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

func valueCommand(s *invocation.Invocation) *cobra.Command {
	request := &signalboxv1.GetStepValueRequest{}
	cmd := &cobra.Command{
		Use:   "value ID NUMBER input|output",
		Short: "Print the whole input or output of a step",
		Long: `Print the whole input or output of a step as JSON, also where other commands show it shortened: that is over 16 KiB. It is read from
the run's history in Temporal, which takes longer than other reads, and is available as long as that history.`,
		Example: `  signalbox run value 0199a4f2 1 input
  signalbox run value 0199a4f2 1 input --pointer /sku -o yaml`,
		Args:              invocation.Args(3, 3, "ID NUMBER input|output"),
		ValidArgsFunction: s.CompleteRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			number, err := stepNumber(args[1])
			if err != nil {
				return err
			}
			if args[2] != "input" && args[2] != "output" {
				return exit.Usagef("value %q: give input or output", args[2])
			}
			request.Project, request.Id, request.Number, request.Value = s.Project(), args[0], number, args[2]
			return printValue(cmd.Context(), s, request)
		},
	}
	cmd.Flags().StringVar(&request.Pointer, "pointer", "", "only the part at this JSON `pointer`, such as /orders/0")
	s.BindRuns(cmd, 1)
	return cmd
}

// printValue reads a value page by page. It prints the text as the server has it, or in the format that was asked for.
func printValue(ctx context.Context, s *invocation.Invocation, request *signalboxv1.GetStepValueRequest) error {
	var text []byte
	for {
		response, err := invocation.Call(ctx, s, s.Runs().GetStepValue, request, "read the %s of step %d of run %q",
			request.GetValue(), request.GetNumber(), request.GetId())
		if err != nil {
			return err
		}
		text = append(text, response.GetText()...)
		if request.Offset = response.GetNextOffset(); request.GetOffset() == 0 {
			break
		}
	}
	if s.Format().Structured() {
		return output.Value(s.Out, s.Format(), json.RawMessage(text))
	}
	_, err := io.WriteString(s.Out, string(text)+"\n")
	return err
}
