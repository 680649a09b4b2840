package batchcmd

import (
	"context"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
)

// steering is a command that changes one batch.
func steering(
	s *invocation.Invocation, verb, short, long string,
	act func(ctx context.Context, id string) (*signalboxv1.Batch, error),
) *cobra.Command {
	cmd := &cobra.Command{
		Use: verb + " ID", Short: short, Long: long, Example: "  signalbox batch " + verb + " 0199a4f2",
		Args:              invocation.Args(1, 1, "ID"),
		ValidArgsFunction: s.CompleteBatches,
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := act(cmd.Context(), args[0])
			if err != nil {
				return s.Failed(err, "%s batch %q", verb, args[0])
			}
			return show(s, b)
		},
	}
	s.BindBatch(cmd)
	return cmd
}

func pauseCommand(s *invocation.Invocation) *cobra.Command {
	return steering(s, "pause", "Stop a batch after the items in flight", "",
		func(ctx context.Context, id string) (*signalboxv1.Batch, error) {
			request := &signalboxv1.PauseBatchRequest{Project: s.Project(), Id: id}
			response, err := invocation.Send(ctx, s, s.Batches().PauseBatch, request)
			return response.GetBatch(), err
		})
}

func unpauseCommand(s *invocation.Invocation) *cobra.Command {
	return steering(s, "unpause", "Continue a paused batch", "",
		func(ctx context.Context, id string) (*signalboxv1.Batch, error) {
			request := &signalboxv1.UnpauseBatchRequest{Project: s.Project(), Id: id}
			response, err := invocation.Send(ctx, s, s.Batches().UnpauseBatch, request)
			return response.GetBatch(), err
		})
}

func retryCommand(s *invocation.Invocation) *cobra.Command {
	return steering(s, "retry", "Retry the failed runs of a batch",
		`Retry the failed runs of a batch, and no others. Of a batch of replays, this also replays the runs that it started and that failed.
Refused runs stay refused: their state did not allow the action.`,
		func(ctx context.Context, id string) (*signalboxv1.Batch, error) {
			request := &signalboxv1.RetryBatchRequest{Project: s.Project(), Id: id}
			response, err := invocation.Send(ctx, s, s.Batches().RetryBatch, request)
			return response.GetBatch(), err
		})
}
