package runcmd

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

type countFlags struct {
	Selection

	request string
	bucket  time.Duration
}

func countCommand(s *invocation.Invocation) *cobra.Command {
	var flags countFlags
	cmd := &cobra.Command{
		Use:   "count",
		Short: "Count runs by status, and with --bucket by time of creation",
		Long: `Count runs by status, and stuck runs by code. Ended runs are counted up to 10000 per status.

With --bucket, runs are counted by their time of creation instead, in intervals of this length from --since to --until (now).`,
		Example: `  signalbox run count --workflow shop/order --since 24h
  signalbox run count --since 24h --bucket 1h --status failed`,
		Args: invocation.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return count(cmd.Context(), s, flags)
		},
	}
	flags.Bind(s, cmd)
	cmd.Flags().StringVar(&flags.request, "request-id", "", "only the run with this request `ID`")
	invocation.LengthVar(cmd.Flags(), &flags.bucket, "bucket",
		"count by intervals of this `length` (\"1h\", \"1d\"); requires --since")
	s.BindClient(cmd)
	return cmd
}

func count(ctx context.Context, s *invocation.Invocation, flags countFlags) error {
	filter, err := flags.Filter(s)
	if err != nil {
		return err
	}
	request := &signalboxv1.CountRunsRequest{Project: s.Project(), Filter: filter, RequestId: flags.request}
	switch {
	case flags.bucket > 0 && filter.GetSince() == nil:
		return exit.Usagef("--bucket requires --since, the start of the first interval")
	case flags.bucket > 0:
		request.Bucket = durationpb.New(flags.bucket)
	}
	response, err := invocation.Call(ctx, s, s.Runs().CountRuns, request, "count runs")
	if err != nil {
		return err
	}
	if flags.bucket > 0 {
		return printBuckets(s, response.GetBuckets())
	}
	var fields []output.Field
	for _, status := range runStatuses() {
		if n := response.GetStatuses()[status]; n > 0 {
			value := strconv.FormatInt(n, 10)
			if slices.Contains(response.GetMore(), status) {
				value += " or more"
			}
			fields = append(fields, output.Field{Name: status, Value: value})
		}
	}
	for _, code := range stuckCodes() {
		if n := response.GetStuck()[code]; n > 0 {
			fields = append(fields, output.Field{Name: "stuck: " + code, Value: strconv.FormatInt(n, 10)})
		}
	}
	if len(fields) == 0 && (s.Format() == output.Table || s.Format() == output.Wide) {
		s.Note("no runs match in project %s", s.Project())
		return nil
	}
	return s.Card(response, fields)
}

// printBuckets prints one row for each interval.
func printBuckets(s *invocation.Invocation, buckets []*signalboxv1.RunBucket) error {
	return invocation.Listing[*signalboxv1.RunBucket]{
		Thing: "interval",
		Row: func(b *signalboxv1.RunBucket) output.Row {
			total, statuses := int64(0), output.Row(nil)
			for _, status := range runStatuses() {
				n := b.GetStatuses()[status]
				total += n
				statuses = append(statuses,
					output.Cell{Head: strings.ToUpper(strings.ReplaceAll(status, "_", " ")), Value: strconv.FormatInt(n, 10)})
			}
			return append(output.Cells("START", output.Moment(b.GetStart()), "RUNS", fmt.Sprint(total)), statuses...)
		},
	}.Print(s, buckets, false)
}
