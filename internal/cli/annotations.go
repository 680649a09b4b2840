package cli

import (
	"context"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

func annotationKinds() []string { return []string{"outage", "publish", "owner"} }

func projectAnnotationsCommand(s *invocation.Invocation) *cobra.Command {
	var period invocation.Period
	var kinds []string
	cmd := &cobra.Command{
		Use:   "annotations",
		Short: "List outages of Temporal, publications and new dispatcher owners",
		Long: `List what happened around the runs of a project: outages of Temporal, published versions, and changes of the dispatcher's owner.
Without --since, those of the last 24 hours.`,
		Example: `  signalbox project annotations --since 7d --kind outage`,
		Args:    invocation.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			chosen, err := invocation.Words("kind", kinds, annotationKinds())
			if err != nil {
				return err
			}
			request := &signalboxv1.ListAnnotationsRequest{Project: s.Project(), Kinds: chosen}
			if request.From, request.To, err = period.Bounds(s); err != nil {
				return err
			}
			return listAnnotations(cmd.Context(), s, request)
		},
	}
	period.Bind(cmd, "only those that overlap the time")
	cmd.Flags().StringSliceVar(&kinds, "kind", nil, "only these `kinds`, separated by commas: outage, publish, owner")
	// the flag is there
	_ = cmd.RegisterFlagCompletionFunc("kind",
		cobra.FixedCompletions(annotationKinds(), cobra.ShellCompDirectiveNoFileComp))
	s.BindClient(cmd)
	return cmd
}

func listAnnotations(ctx context.Context, s *invocation.Invocation, request *signalboxv1.ListAnnotationsRequest) error {
	response, err := invocation.Call(ctx, s, s.Projects().ListAnnotations, request, "list annotations")
	if err != nil {
		return err
	}
	for _, kind := range response.GetMore() {
		s.Note("there are more of kind %s: only the newest are listed", kind)
	}
	if s.Format().Structured() {
		return output.List(s.Out, s.Format(), response.GetAnnotations())
	}
	if len(response.GetAnnotations()) == 0 {
		s.Note("no annotations match in project %s", s.Project())
		return nil
	}
	rows := make([]output.Row, len(response.GetAnnotations()))
	for i, a := range response.GetAnnotations() {
		end := "not yet"
		if a.GetEnd() != nil {
			end = output.Moment(a.GetEnd())
		}
		rows[i] = output.Cells(
			"KIND", a.GetKind(), "START", output.Moment(a.GetStart()), "END", end, "TITLE", a.GetTitle(),
			"DETAIL", a.GetDetail(),
		)
	}
	return output.Rows(s.Out, s.Format(), s.Style(), rows)
}
