package runcmd

import (
	"context"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
)

type replayFlags struct {
	invocation.Labels

	input, patch, version, reason, requestID string
	wait, dryRun                             bool
}

func replayCommand(s *invocation.Invocation) *cobra.Command {
	var flags replayFlags
	cmd := &cobra.Command{
		Use:   "replay ID",
		Short: "Start a new run with the input of an earlier one",
		Long: `Start a new run with the input of an earlier one, of the same version, and print it. The input is the original
one, also where it is shown with marks.

With --patch the input is edited: a JSON patch (RFC 6902) against what "run show" prints, which the server applies to the
original. With --input the whole input is replaced; an input that contains a mark is refused.

The new run has the labels of the earlier one, and those of --label, which replace labels with the same key.

--wait, the exit codes with it, and the request ID are those of "run start".`,
		Example: `  signalbox run replay 0199a4f2 --reason "the shop's database was down"
  signalbox run replay 0199a4f2 --reason "wrong amount" --patch '[{"op": "replace", "path": "/amount", "value": 12}]' --wait
  signalbox run replay 0199a4f2 --version latest --dry-run
  signalbox run replay 0199a4f2 --reason "fixed in 1.2.0" --version latest`,
		Args:              invocation.Args(1, 1, "ID"),
		ValidArgsFunction: s.CompleteRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return replay(cmd.Context(), s, args[0], flags)
		},
	}
	cmd.Flags().StringVarP(&flags.input, "input", "i", "",
		"another input: a `file` of JSON, - for standard input, or JSON itself")
	cmd.Flags().StringVar(&flags.patch, "patch", "",
		"a JSON patch of the input: a `file`, - for standard input, or JSON itself")
	cmd.Flags().StringVar(&flags.version, "version", "", "`version` to run, or latest; that of the earlier run when empty")
	cmd.Flags().StringVar(&flags.requestID, "request-id", "",
		"`ID` of this request, unique in the project; generated when empty")
	cmd.Flags().BoolVarP(&flags.wait, "wait", "w", false, "return when the run has ended")
	cmd.Flags().BoolVar(&flags.dryRun, "dry-run", false, "only check the request, and start nothing; needs no reason")
	flags.Bind(cmd)
	bindReason(cmd, &flags.reason, true)
	s.BindRuns(cmd, 1)
	return cmd
}

func replay(ctx context.Context, s *invocation.Invocation, id string, flags replayFlags) error {
	request, err := replayRequest(s, id, flags)
	if err != nil {
		return err
	}
	patience, stop := s.Patience(ctx)
	defer stop()
	response, err := invocation.Send(patience, s, s.Runs().ReplayRun, request)
	if err != nil {
		return s.FailedHint(err, startedOnce(ctx, err, request.GetRequestId()), "replay run %q", id)
	}
	if flags.dryRun {
		return showChecked(s, response.GetRun())
	}
	return showStarted(patience, s, response.GetRun(), response.GetCreated(), flags.wait)
}

func replayRequest(s *invocation.Invocation, id string, flags replayFlags) (*signalboxv1.ReplayRunRequest, error) {
	if err := noWait(flags.dryRun, flags.wait); err != nil {
		return nil, err
	}
	if err := reasonGiven(!flags.dryRun, flags.reason); err != nil {
		return nil, err
	}
	if flags.input != "" && flags.patch != "" {
		return nil, exit.Usagef("--input and --patch are both given: write another input, or what changes in the original " +
			"one")
	}
	request := &signalboxv1.ReplayRunRequest{
		Project: s.Project(), Id: id, Version: flags.version, Reason: flags.reason, RequestId: flags.requestID,
		DryRun: flags.dryRun,
	}
	var err error
	if request.Labels, err = flags.Given(); err != nil {
		return nil, err
	}
	if flags.input != "" {
		given, err := invocation.ReadJSON("input", flags.input, s.In)
		if err != nil {
			return nil, err
		}
		request.Input = &signalboxv1.JsonValue{Json: given}
	}
	if flags.patch != "" {
		given, err := invocation.ReadJSON("patch", flags.patch, s.In)
		if err != nil {
			return nil, err
		}
		request.Patch = &signalboxv1.JsonValue{Json: given}
	}
	if request.GetRequestId() == "" {
		request.RequestId = uuid.NewString()
	}
	return request, nil
}
