package batchcmd

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

func itemStatuses() []string { return []string{"pending", "succeeded", "started", "refused", "failed"} }

func outcomes() []string {
	return []string{"open", "completed", "failed_same_cause", "failed_other_cause", "canceled", "terminated", "unknown"}
}

func batchStatuses() []string {
	return []string{"selecting", "running", "paused", "started", "completed"}
}

func listCommand(s *invocation.Invocation) *cobra.Command {
	var limit int
	var statuses []string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List batches, newest first",
		Example: `  signalbox batch list --status running
  signalbox batch list -o wide --limit 0`,
		Args: invocation.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			chosen, err := invocation.Words("status", statuses, batchStatuses())
			if err != nil {
				return err
			}
			return list(cmd.Context(), s, chosen, limit)
		},
	}
	cmd.Flags().StringSliceVarP(&statuses, "status", "s", nil,
		"only these `statuses`, separated by commas: selecting, running, paused, started, completed")
	// the flag is there
	_ = cmd.RegisterFlagCompletionFunc("status",
		cobra.FixedCompletions(batchStatuses(), cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().IntVarP(&limit, "limit", "n", 50, "at most this many; 0 for all")
	s.BindClient(cmd)
	return cmd
}

func list(ctx context.Context, s *invocation.Invocation, statuses []string, limit int) error {
	return invocation.Listing[*signalboxv1.Batch]{
		Thing: "batch",
		Row: func(b *signalboxv1.Batch) output.Row {
			return output.Cells(
				"#ID", b.GetId(), "ACTION", action(b), "STATUS", b.GetStatus(), "RUNS", counts(b),
				"OUTCOMES", outcomeCounts(b), "AGE", s.Age(b.GetCreateTime()),
				"+CREATED", output.Moment(b.GetCreateTime()), "+ENDED", output.Moment(b.GetEndTime()),
				"+FILTER", filterLine(b.GetFilter()), "+ACTOR", b.GetActor(), "+WAITING", b.GetWaiting(),
				"REASON", b.GetReason(),
			)
		},
	}.List(s, limit, func(size int32, token string) ([]*signalboxv1.Batch, string, error) {
		response, err := invocation.Call(ctx, s, s.Batches().ListBatches, &signalboxv1.ListBatchesRequest{
			Project: s.Project(), PageSize: size, PageToken: token, Statuses: statuses,
		}, "list batches")
		return response.GetBatches(), response.GetNextPageToken(), err
	})
}

func showCommand(s *invocation.Invocation) *cobra.Command {
	var items bool
	var status, outcome string
	var limit int
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show the progress of a batch, or with --items the result of each run",
		Long: `Show the progress of a batch, or with --items the result of each run. A batch of replays is "started" while runs that it started are open,
and "completed" when all have ended; OUTCOMES counts what became of them. "run list --started-by-batch ID" lists these runs.`,
		Example: `  signalbox batch show 0199a4f2 --items --status failed
  signalbox batch show 0199a4f2 --items --outcome failed_same_cause
  signalbox batch show 0199a4f2 --items --limit 0 --jq '.[].newRunId'`,
		Args:              invocation.Args(1, 1, "ID"),
		ValidArgsFunction: s.CompleteBatches,
		RunE: func(cmd *cobra.Command, args []string) error {
			if items {
				return listItems(cmd.Context(), s, args[0], status, outcome, limit)
			}
			for _, name := range []string{"status", "outcome", "limit"} {
				if cmd.Flags().Changed(name) {
					return exit.Usagef("--%s applies to the runs of the batch; give --items too", name)
				}
			}
			b, err := get(cmd.Context(), s, args[0])
			if err != nil {
				return err
			}
			return show(s, b)
		},
	}
	cmd.Flags().BoolVar(&items, "items", false, "list the runs with their results")
	cmd.Flags().StringVarP(&status, "status", "s", "",
		"only runs with this `status`: pending, succeeded, started, refused or failed")
	cmd.Flags().StringVar(&outcome, "outcome", "",
		"only runs whose replay has this `outcome`: "+strings.Join(outcomes(), ", "))
	// the flag is there
	_ = cmd.RegisterFlagCompletionFunc("outcome", cobra.FixedCompletions(outcomes(), cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().IntVarP(&limit, "limit", "n", 200, "at most this many runs; 0 for all")
	// the flag is there
	_ = cmd.RegisterFlagCompletionFunc("status",
		cobra.FixedCompletions(itemStatuses(), cobra.ShellCompDirectiveNoFileComp))
	s.BindBatch(cmd)
	return cmd
}

func listItems(ctx context.Context, s *invocation.Invocation, id, status, outcome string, limit int) error {
	if status != "" {
		if _, err := invocation.Words("status", []string{status}, itemStatuses()); err != nil {
			return err
		}
	}
	if outcome != "" {
		if _, err := invocation.Words("outcome", []string{outcome}, outcomes()); err != nil {
			return err
		}
	}
	return invocation.Listing[*signalboxv1.BatchItem]{
		Thing: "run",
		Row: func(item *signalboxv1.BatchItem) output.Row {
			return output.Cells(
				"#RUN", item.GetRunId(), "STATUS", item.GetStatus(), "#NEW RUN", item.GetNewRunId(),
				"OUTCOME", item.GetOutcome(), "+ENDED", output.Moment(item.GetEndTime()), "REASON", item.GetError(),
			)
		},
	}.List(s, limit, func(size int32, token string) ([]*signalboxv1.BatchItem, string, error) {
		response, err := invocation.Call(ctx, s, s.Batches().ListBatchItems, &signalboxv1.ListBatchItemsRequest{
			Project: s.Project(), Id: id, Status: status, Outcome: outcome, PageSize: size, PageToken: token,
		}, "list the runs of batch %q", id)
		return response.GetItems(), response.GetNextPageToken(), err
	})
}
