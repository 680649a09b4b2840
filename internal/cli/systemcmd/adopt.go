package systemcmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/terminal"
)

func adoptCommand(s *invocation.Invocation) *cobra.Command {
	var (
		dryRun  bool
		reason  string
		confirm invocation.Confirmation
	)
	cmd := &cobra.Command{
		Use:   "adopt-temporal [ADDRESS NAMESPACE]",
		Short: "Start runs in the server's Temporal though open runs are in another one",
		Long: `Record that runs start in the Temporal of the server at --address from now on. While open runs are in the recorded Temporal, a
server that is connected to another one starts none: most often its address is a mistake. With this command the open runs
are left there:

  - they are neither failed nor started again, and "signalbox run list" shows them as IN_ANOTHER_TEMPORAL
  - they continue once the servers use their Temporal again; "signalbox run terminate" ends them here alone

ADDRESS and NAMESPACE are those of the server's Temporal, so that no other one is adopted by mistake; --dry-run shows them. The
command is refused while live workers are connected to the former Temporal. A Temporal without open runs is replaced without
it. It requires the role admin in all projects, and is recorded in the audit log.`,
		Example: `  signalbox system adopt-temporal --dry-run
  signalbox system adopt-temporal temporal.internal:7233 default --reason 'the former Temporal is lost'`,
		Args: invocation.Args(0, 2, "[ADDRESS NAMESPACE]"), //nolint:mnd // both or none
		RunE: func(cmd *cobra.Command, args []string) error {
			request := &signalboxv1.AdoptTemporalRequest{DryRun: dryRun, Reason: reason}
			switch {
			case len(args) == 2: //nolint:mnd // both
				request.Address, request.Namespace = args[0], args[1]
			case len(args) == 1 || !dryRun:
				return exit.Usagef("give ADDRESS and NAMESPACE of the Temporal to adopt: \"%s\" shows those of the server",
					s.Command("system adopt-temporal --dry-run"))
			}
			return adopt(cmd.Context(), s, request, &confirm)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would be adopted, and which open runs would be left")
	cmd.Flags().StringVarP(&reason, "reason", "r", "", "`text` for the audit log")
	confirm.Bind(cmd)
	s.BindServer(cmd)
	return cmd
}

func adopt(ctx context.Context, s *invocation.Invocation, request *signalboxv1.AdoptTemporalRequest,
	confirm *invocation.Confirmation) error {
	if confirm.Needed(s) && !request.GetDryRun() {
		found, err := callAdopt(ctx, s, &signalboxv1.AdoptTemporalRequest{DryRun: true})
		if err != nil {
			return err
		}
		if found.GetNeeded() {
			question := fmt.Sprintf("Start runs in %s from now on? %s in %s, and %s no more here.", temporalName(found.GetNow()),
				stay(found), temporalName(found.GetFormer()), continues(found))
			if err := confirm.Ask(s, question); err != nil {
				return err
			}
		}
	}
	done, err := callAdopt(ctx, s, request)
	if err != nil {
		return err
	}
	if s.Format().Structured() {
		return output.Message(s.Out, s.Format(), done)
	}
	return printAdoption(s, done)
}

func callAdopt(ctx context.Context, s *invocation.Invocation,
	request *signalboxv1.AdoptTemporalRequest) (*signalboxv1.AdoptTemporalResponse, error) {
	return invocation.Call(ctx, s, s.System().AdoptTemporal, request, "adopt the server's Temporal")
}

func printAdoption(s *invocation.Invocation, a *signalboxv1.AdoptTemporalResponse) error {
	fields := []output.Field{{Name: "server", Value: temporalName(a.GetNow())}}
	if former := a.GetFormer(); former != nil && a.GetNeeded() {
		fields = append(fields, output.Field{
			Name: "former", Value: temporalName(former) + ", since " + output.Moment(a.GetSince())})
	}
	for _, left := range a.GetLeftRuns() {
		fields = append(fields, output.Field{
			Name: "left", Value: fmt.Sprintf("%s of project %s", output.Count(left.GetRuns(), "open run"), left.GetProject())})
	}
	if err := output.Card(s.Out, s.Style(), fields); err != nil {
		return err
	}
	switch {
	case !a.GetNeeded():
		s.Note("nothing to adopt: the server's Temporal holds the runs")
	case a.GetDryRun():
		s.Note("nothing was adopted: this is a dry run")
	default:
		s.Note("runs start in the server's Temporal from now on; %s in the former one", stay(a))
	}
	return nil
}

func temporalName(t *signalboxv1.TemporalNamespace) string {
	return fmt.Sprintf("Temporal at %s (namespace %q, ID %s)", terminal.Line(t.GetAddress()), t.GetNamespace(),
		terminal.Line(t.GetNamespaceId()))
}

func leftRuns(a *signalboxv1.AdoptTemporalResponse) (sum int64) {
	for _, left := range a.GetLeftRuns() {
		sum += left.GetRuns()
	}
	return sum
}

func stay(a *signalboxv1.AdoptTemporalResponse) string {
	n := leftRuns(a)
	if n == 1 {
		return "1 open run stays"
	}
	return output.Count(n, "open run") + " stay"
}

func continues(a *signalboxv1.AdoptTemporalResponse) string {
	if leftRuns(a) == 1 {
		return "continues"
	}
	return "continue"
}
