package runcmd

import (
	"context"
	"fmt"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/cli/session"
)

func stepsCommand(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "steps ID",
		Short: "List a run's steps in the order they were entered",
		Long: `List a run's steps in the order they were entered. A loop enters its tasks once per turn; the path tells the turn.
JSON and YAML hold each step's input, output, error and attempts as well.`,
		Args:              session.Args(1, 1, "ID"),
		ValidArgsFunction: s.CompleteRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return listSteps(cmd.Context(), s, args[0])
		},
	}
	s.BindClient(cmd)
	return cmd
}

func listSteps(ctx context.Context, s *session.Session, id string) error {
	found, _, err := session.Pages(0, func(size int32, token string) ([]*signalboxv1.Step, string, error) {
		ctx, cancel := s.Deadline(ctx)
		defer cancel()
		response, err := s.Runs().ListSteps(ctx, connect.NewRequest(&signalboxv1.ListStepsRequest{
			Project: s.Project(), Id: id, PageSize: size, PageToken: token,
		}))
		if err != nil {
			return nil, "", s.Failed(err, "list the steps of run %q", id)
		}
		return response.Msg.GetSteps(), response.Msg.GetNextPageToken(), nil
	})
	if err != nil {
		return err
	}
	return session.Listing[*signalboxv1.Step]{
		Things: "steps", None: " yet",
		Columns: output.Columns("STEP", "TASK", "KIND", "STATUS", "+WAITS FOR", "TRIES", "TOOK", "PATH", "+STARTED", "+ERROR"),
		Row: func(step *signalboxv1.Step) []string {
			problem := ""
			if step.GetError() != nil {
				problem = problemLine(step.GetError())
			}
			return []string{
				fmt.Sprint(step.GetNumber()), step.GetTask(), step.GetKind(), step.GetStatus(), step.GetWaitingKind(),
				fmt.Sprint(max(1, len(step.GetAttempts()))), stepTook(step), step.GetPath(), output.Moment(step.GetStartTime()), problem,
			}
		},
	}.Print(s, found, false)
}
