package batchcmd

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/cli/runcmd"
)

// askEvery is how often a batch is looked at that is waited for.
const askEvery = 500 * time.Millisecond

type startFlags struct {
	runcmd.Selection

	confirmation invocation.Confirmation

	action, reason, requestID, view string
	rate                            float64
	expect                          int64
	all, latest, dryRun, wait       bool
}

func actions() []string { return []string{"cancel", "terminate", "replay"} }

func startCommand(s *invocation.Invocation) *cobra.Command {
	var flags startFlags
	cmd := &cobra.Command{
		Use:   "start [ID…]",
		Short: "Cancel, terminate or replay many runs",
		Long: `Cancel, terminate or replay many runs, given by their IDs, or selected by the flags with which "run list" selects them. All runs
of the project are selected only with --all. With --view, the runs of a saved view are selected.

The server stores the list of runs when the command is given; the servers then process it at --rate runs per second at most.
"batch show ID --items" lists the outcome of each. A batch continues after this command has ended and when a server dies; it waits
while Temporal is unavailable. No run is processed twice.

With --wait the command returns when the batch and the runs that it started have ended, with exit code 1 when an item or a run
failed. Ctrl-C ends the command, not the batch.`,
		Example: `  signalbox batch start --action cancel --workflow shop/order --status running,waiting --reason "wrong prices"
  signalbox batch start --action replay --latest --status failed --since 24h --reason "bug is fixed" --dry-run
  signalbox batch start --action terminate --reason "test data" --wait $(cat ids.txt)`,
		Args: invocation.Args(0, -1, "[ID…]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			request, err := flags.request(cmd, s, args)
			if err != nil {
				return err
			}
			if err := flags.confirm(cmd.Context(), s, request); err != nil {
				return err
			}
			return start(cmd.Context(), s, request, flags.wait)
		},
	}
	cmd.Flags().StringVar(&flags.action, "action", "", "action for each run: cancel, terminate or replay")
	cmd.Flags().StringVarP(&flags.reason, "reason", "r", "", "why, for the audit log and the runs' history")
	flags.Bind(s, cmd)
	cmd.Flags().StringVar(&flags.view, "view", "", "the runs of this saved view, by `name` or ID")
	cmd.Flags().BoolVar(&flags.all, "all", false, "every run of the project")
	cmd.Flags().BoolVar(&flags.latest, "latest", false,
		"replay with the newest published version instead of each run's own")
	cmd.Flags().Float64Var(&flags.rate, "rate", 0, "runs per second, from 0.1 to 500; 50 when not given")
	cmd.Flags().StringVar(&flags.requestID, "request-id", "",
		"`ID` of this request, unique in the project; generated when empty")
	flags.confirmation.Bind(cmd)
	cmd.Flags().BoolVar(&flags.dryRun, "dry-run", false,
		"count the runs, list those for which the action is refused, and start nothing")
	cmd.Flags().Int64Var(&flags.expect, "expect", 0, "start only if this many runs are selected, as --dry-run counts them")
	cmd.Flags().BoolVarP(&flags.wait, "wait", "w", false, "return when the batch and the runs that it started have ended")
	// the flag is there
	_ = cmd.RegisterFlagCompletionFunc("action", cobra.FixedCompletions(actions(), cobra.ShellCompDirectiveNoFileComp))
	s.BindRuns(cmd, math.MaxInt)
	return cmd
}

// latest stands for the newest published version of a workflow.
const latest = "latest"

// request is what the flags ask for.
func (f *startFlags) request(cmd *cobra.Command, s *invocation.Invocation,
	ids []string) (*signalboxv1.StartBatchRequest, error) {
	if f.action == "" {
		return nil, exit.Usagef("%s: --action is missing: give cancel, terminate or replay", cmd.CommandPath())
	}
	if _, err := invocation.Words("action", []string{f.action}, actions()); err != nil {
		return nil, err
	}
	if f.reason == "" && !f.dryRun {
		return nil, exit.Usagef("%s: --reason is missing; it goes into the audit log with every run", cmd.CommandPath())
	}
	if version, err := cmd.Flags().GetString("version"); err == nil && version == latest { // no version has this name
		return nil, exit.Usagef("--version selects the runs of one version; to replay with the newest one, give --latest")
	}
	request := &signalboxv1.StartBatchRequest{
		Project: s.Project(), Action: f.action, RunIds: ids, Reason: f.reason, Rate: f.rate, RequestId: f.requestID,
		DryRun: f.dryRun,
	}
	if request.GetRequestId() == "" {
		request.RequestId = uuid.NewString()
	}
	if f.latest {
		request.Version = latest
	}
	if cmd.Flags().Changed("expect") {
		switch {
		case len(ids) > 0:
			return nil, exit.Usagef("--expect: the runs are named by their IDs; leave out --expect")
		case f.dryRun:
			return nil, exit.Usagef("--expect: a dry run counts the runs; leave out --expect")
		}
		request.ExpectedTotal = &f.expect
	}
	selects := runcmd.GivenFlag(cmd, "view", "all")
	switch {
	case f.view != "" && (f.all || selects != "view"):
		return nil, exit.Usagef("--view: the view has the filter; leave out the other flags that select runs")
	case f.view != "" && len(ids) == 0:
		filter, _, err := runcmd.ViewFilter(cmd.Context(), s, f.view)
		if err == nil && proto.Equal(filter, &signalboxv1.RunFilter{}) {
			err = exit.Usagef("--view: the view %q selects every run of the project; give --all to mean that", f.view)
		}
		request.Filter = filter
		return request, err
	case f.all && selects != "all":
		return nil, exit.Usagef("--all: all runs are selected, and --%s selects some of them; leave out one of the two",
			selects)
	case len(ids) > 0 && selects != "":
		return nil, exit.Usagef("--%s: the runs are named by their IDs; leave out either these or --%s", selects, selects)
	case len(ids) > 0:
		return request, nil
	case selects == "":
		return nil, exit.Usagef("%s: no runs are given: give their IDs, or some of --%s, or --all for every run",
			cmd.CommandPath(), strings.Join(runcmd.SelectionFlags(), ", --"))
	}
	filter, err := f.Filter(s)
	request.Filter = filter
	return request, err
}

// confirm asks whether to start the batch, with what a dry run counts. The batch then selects as many runs as were
// shown, or is refused.
func (f *startFlags) confirm(ctx context.Context, s *invocation.Invocation,
	request *signalboxv1.StartBatchRequest) error {
	if request.GetDryRun() || !f.confirmation.Needed(s) {
		return nil
	}
	preview := &signalboxv1.StartBatchRequest{
		Project: request.GetProject(), Action: request.GetAction(), RunIds: request.GetRunIds(), Filter: request.GetFilter(),
		Version: request.GetVersion(),
		Reason:  request.GetReason(), RequestId: request.GetRequestId(), DryRun: true,
	}
	response, err := invocation.Call(ctx, s, s.Batches().StartBatch, preview, "count the runs")
	if err != nil {
		return err
	}
	total := response.GetBatch().GetTotal()
	if request.ExpectedTotal == nil && request.GetFilter() != nil {
		request.ExpectedTotal = &total
	}
	action := strings.ToUpper(f.action[:1]) + f.action[1:]
	return f.confirmation.Ask(s,
		fmt.Sprintf("%s %s of %d selected?", action, output.Count(response.GetEligible(), "run"), total))
}

func start(ctx context.Context, s *invocation.Invocation, request *signalboxv1.StartBatchRequest, wait bool) error {
	patience, stop := s.Patience(ctx)
	defer stop()
	response, err := invocation.Send(patience, s, s.Batches().StartBatch, request)
	if err != nil {
		hint := ""
		if invocation.UnknownOutcome(ctx, err) && !request.GetDryRun() {
			hint = "it is unknown whether the batch was started: repeated with --request-id " + request.GetRequestId() +
				", the command starts it once"
		}
		return s.FailedHint(err, hint, "start a batch")
	}
	b := response.GetBatch()
	if request.GetDryRun() {
		s.Note("dry run: would %s %s of %d selected", b.GetAction(), output.Count(response.GetEligible(), "run"),
			b.GetTotal())
		if s.Format().Structured() {
			return output.Message(s.Out, s.Format(), response)
		}
		return PrintPreview(s, response.GetUnchanged(), response.GetPreview())
	}
	if !response.GetCreated() {
		s.Note("this batch was started before with the request ID %s", request.GetRequestId())
	}
	if !wait {
		if s.Format() == output.Table {
			s.Note("show its progress: %s", s.Command("batch show %s", b.GetId()))
		}
		return show(s, b)
	}
	b, err = untilEnd(patience, s, b)
	if err != nil {
		return err
	}
	if err := show(s, b); err != nil {
		return err
	}
	if b.GetFailed() > 0 {
		s.Note("%d of %s failed: %s lists the reasons", b.GetFailed(), output.Count(b.GetTotal(), "run"),
			s.Command("batch show %s --items --status failed", b.GetId()))
	}
	o := b.GetOutcomes()
	if n := o.GetFailedSameCause() + o.GetFailedOtherCause(); n > 0 {
		s.Note("%d of %s that the batch started failed: %s lists them", n, output.Count(o.GetStarted(), "run"),
			s.Command("run list --started-by-batch %s --status failed,timed_out", b.GetId()))
	} else if b.GetFailed() == 0 {
		return nil
	}
	return exit.Silently(exit.Failed)
}

// PrintPreview lists the runs on which the action of a dry run has no effect.
func PrintPreview(s *invocation.Invocation, unchanged int64, refused []*signalboxv1.IneligibleRuns) error {
	if unchanged > 0 {
		s.Note("%s would not change: the same was requested before", output.Count(unchanged, "run"))
	}
	if len(refused) == 0 {
		return nil
	}
	var rows []output.Row
	for _, i := range refused {
		rows = append(rows, output.Cells(
			"REFUSED", i.GetReason(), "RUNS", fmt.Sprint(i.GetCount()),
			"SUCH AS", strings.Join(i.GetSampleRunIds(), " "),
		))
	}
	return output.Rows(s.Out, s.Format(), s.Style(), rows)
}

// untilEnd polls a batch until it has ended. While the server is unavailable, it continues to poll.
func untilEnd(ctx context.Context, s *invocation.Invocation, b *signalboxv1.Batch) (*signalboxv1.Batch, error) {
	s.Note("waiting for the end of batch %s", b.GetId())
	id, noted, lost := b.GetId(), "", false
	ticker := time.NewTicker(askEvery)
	defer ticker.Stop()
	progress := s.Progress()
	defer progress.Clear()
	for b.GetStatus() != completed {
		why := b.GetWaiting()
		if b.GetStatus() == paused {
			why = "it is paused"
		}
		if why != "" && why != noted {
			progress.Clear()
			s.Note("the batch waits: %s", why)
		}
		noted = why
		// The runs that are started count when they have ended.
		progress.Of(b.GetTotal()-b.GetPending()-b.GetOutcomes().GetOpen(), b.GetTotal(), "run")
		select {
		case <-ctx.Done():
			return nil, s.Failed(ctx.Err(), "wait for batch %s, which continues", id)
		case <-ticker.C:
		}
		next, err := get(ctx, s, id)
		switch {
		case err == nil:
			if lost {
				progress.Clear()
				s.Note("connected again")
			}
			b, lost = next, false
		case ctx.Err() == nil && connect.CodeOf(err) == connect.CodeUnavailable:
			if !lost {
				progress.Clear()
				s.Note("connection lost; waiting for Signalbox at %s (the batch continues)", s.Address())
			}
			lost = true
		default:
			return nil, err
		}
	}
	return b, nil
}
