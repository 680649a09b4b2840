package runcmd

import (
	"cmp"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

type listFlags struct {
	Selection

	request, by, view string
	limit             int
	watch             bool
}

func listCommand(s *invocation.Invocation) *cobra.Command {
	var flags listFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List runs, newest first",
		Long: `List runs, newest first. With --watch, print the first --limit runs (200 at most), and then one line whenever a run of the list
changes, is created, or ceases to match; with -o json one JSON object per line. If the server becomes unavailable, the command
waits for it, and prints the list again if the server cannot report what has changed since. Ctrl-C ends the command.`,
		Example: `  signalbox run list --status running,waiting
  signalbox run list --stuck any
  signalbox run list --error execution_missing --ended-since 1h
  signalbox run list --label order=4711
  signalbox run list --status failed --watch
  signalbox run list --view failed-orders
  signalbox run list --workflow shop/order --since 24h --status failed --jq '.[].id'`,
		Args: invocation.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return list(cmd, s, flags)
		},
	}
	flags.Bind(s, cmd)
	cmd.Flags().StringVar(&flags.request, "request-id", "", "only the run with this request `ID`")
	cmd.Flags().StringVar(&flags.by, "order", "newest", "`order`: newest, oldest or longest first")
	cmd.Flags().StringVar(&flags.view, "view", "", "only the runs of this saved view, by `name` or ID, in its order")
	cmd.Flags().IntVarP(&flags.limit, "limit", "n", 50, "at most this many; 0 for all")
	cmd.Flags().BoolVarP(&flags.watch, "watch", "w", false, "print the runs as they change")
	// the flag is there
	_ = cmd.RegisterFlagCompletionFunc("order", cobra.FixedCompletions(orders(), cobra.ShellCompDirectiveNoFileComp))
	s.BindClient(cmd)
	return cmd
}

func list(cmd *cobra.Command, s *invocation.Invocation, flags listFlags) error {
	ctx := cmd.Context()
	request, err := listRequest(cmd, s, flags)
	if err != nil {
		return err
	}
	if flags.watch {
		return watchList(ctx, s, request, flags.limit)
	}
	return invocation.Listing[*signalboxv1.Run]{
		Thing: "run", None: "no runs match in project " + s.Project(),
		Row: func(run *signalboxv1.Run) output.Row {
			return output.Cells(
				"#ID", run.GetId(), "WORKFLOW", run.GetWorkflow(), "-VERSION", run.GetVersion(), "STATUS", run.GetStatus(),
				"REASON", statusDetail(run), "STUCK", run.GetStuck().GetCode(), "ERROR", errorTitle(run.GetError()),
				"-STEPS", stepCount(run), "-DURATION", took(run), "AGE", s.Age(run.GetCreateTime()),
				"+CREATED", output.Moment(run.GetCreateTime()), "+WAITED FOR START", startDelay(run),
				"+EXPIRES", output.Moment(run.GetQueueExpireTime()), "+REQUEST ID", run.GetRequestId(),
				"+ACTOR", run.GetActor(), "+TRIGGER", run.GetTrigger(), "+CAUSE", run.GetStuck().GetCause(),
				"+BEHIND", output.Moment(run.GetBehind().GetSince()), "+LABELS", invocation.LabelLine(run.GetLabels()),
			)
		},
	}.List(s, flags.limit, func(size int32, token string) ([]*signalboxv1.Run, string, error) {
		request.PageSize, request.PageToken = size, token
		response, err := invocation.Call(ctx, s, s.Runs().ListRuns, request, "list runs")
		return response.GetRuns(), response.GetNextPageToken(), err
	})
}

// mostTitle is how many characters of an error's title are in a list.
const mostTitle = 60

// errorTitle is the title of the error of a run that failed; its type where it has none.
func errorTitle(runError *signalboxv1.RunError) string {
	title := cmp.Or(runError.GetTitle(), runError.GetType())
	if runes := []rune(title); len(runes) > mostTitle {
		return string(runes[:mostTitle]) + "…"
	}
	return title
}

func listRequest(cmd *cobra.Command, s *invocation.Invocation, flags listFlags) (*signalboxv1.ListRunsRequest, error) {
	if _, err := invocation.Words("order", []string{flags.by}, orders()); err != nil {
		return nil, err
	}
	if cmd.Flags().Changed("view") {
		return viewRequest(cmd, s, flags)
	}
	filter, err := flags.Filter(s)
	return &signalboxv1.ListRunsRequest{Project: s.Project(), Filter: filter, RequestId: flags.request, Order: flags.by},
		err
}

// orders are the orders of a list of runs, in the API's words.
func orders() []string { return []string{"newest", "oldest", "longest"} }
