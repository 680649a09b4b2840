package workflowcmd

import (
	"context"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

// ofDocument leaves a setting to the document.
const ofDocument = "none"

// setting is a flag that changes one of the settings of a schedule.
type setting struct {
	name, usage string
	// change changes the settings by the text of the flag; "" leaves the setting to the document.
	change func(s *invocation.Invocation, to *signalboxv1.ScheduleSettings, text string) error
}

func settings() []setting {
	return []setting{
		{"time-zone", "`zone` of the cron expression, such as Europe/Berlin",
			func(_ *invocation.Invocation, to *signalboxv1.ScheduleSettings, text string) error {
				to.TimeZone = text
				return nil
			}},
		{"overlap", "what a fire does while a run of the schedule is open: `allow`, skip, \"queue one\" or \"cancel the open one\"",
			func(_ *invocation.Invocation, to *signalboxv1.ScheduleSettings, text string) error {
				to.Overlap = text
				return nil
			}},
		{"jitter", "longest random `delay` of a fire, such as 30s",
			func(_ *invocation.Invocation, to *signalboxv1.ScheduleSettings, text string) (err error) {
				to.Jitter, err = lengthOf("jitter", text)
				return err
			}},
		{"catch-up", "`age` up to which a missed fire is made up for, such as 2h",
			func(_ *invocation.Invocation, to *signalboxv1.ScheduleSettings, text string) (err error) {
				to.CatchUp, err = lengthOf("catch-up", text)
				return err
			}},
		{"pause-until", "`time` before which the schedule does not fire: in how long (\"12h\") or a moment (2027-01-31T12:00:00Z)",
			func(s *invocation.Invocation, to *signalboxv1.ScheduleSettings, text string) error {
				if to.PausedUntil = nil; text == "" {
					return nil
				}
				at, err := s.Ahead("pause-until", text)
				to.PausedUntil = invocation.Timestamp(at)
				return err
			}},
	}
}

func lengthOf(flag, text string) (*durationpb.Duration, error) {
	switch text {
	case "":
		return nil, nil
	case "0s": // no jitter, whatever the document has
		return durationpb.New(0), nil
	}
	length, err := invocation.Span(flag, text)
	if err != nil {
		return nil, err
	}
	return durationpb.New(length), nil
}

func setCommand(s *invocation.Invocation) *cobra.Command {
	all := settings()
	texts := make([]string, len(all))
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Change the schedule of a workflow, beside its document",
		Long: `Change settings of the schedule of a workflow: they take precedence over those in its document, also for versions that are
published later. A setting that is not given keeps its value; "none" leaves it to the document.`,
		Example: `  signalbox workflow set shop/report --overlap skip --catch-up 2h
  signalbox workflow set shop/report --pause-until 2027-01-02T06:00:00Z
  signalbox workflow set shop/report --pause-until none`,
		Args:              invocation.Args(1, 1, "NAME"),
		ValidArgsFunction: s.CompleteWorkflows,
	}
	for i, f := range all {
		cmd.Flags().StringVar(&texts[i], f.name, "", f.usage)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		given := func(f setting) bool { return cmd.Flags().Changed(f.name) }
		if !slices.ContainsFunc(all, given) {
			return exit.Usagef(`nothing to set: give --time-zone, --overlap, --jitter, --catch-up or --pause-until; "none" leaves it ` +
				"to the document")
		}
		return setSchedule(cmd.Context(), s, args[0], func(to *signalboxv1.ScheduleSettings) error {
			for i, f := range all {
				if !given(f) {
					continue
				}
				text := texts[i]
				if text == ofDocument {
					text = ""
				}
				if err := f.change(s, to, text); err != nil {
					return err
				}
			}
			return nil
		})
	}
	s.BindClient(cmd)
	return cmd
}

// setSchedule changes the settings as they are now.
func setSchedule(ctx context.Context, s *invocation.Invocation, name string,
	change func(*signalboxv1.ScheduleSettings) error) error {
	ctx, cancel := s.Deadline(ctx)
	defer cancel()
	const what = "change the schedule of workflow %q"
	get := &signalboxv1.GetWorkflowRequest{Project: s.Project(), Workflow: name}
	before, err := invocation.Call(ctx, s, s.Workflows().GetWorkflow, get, what, name)
	if err != nil {
		return err
	}
	settings := before.GetTimer().GetSettings()
	if settings == nil {
		settings = &signalboxv1.ScheduleSettings{}
	}
	if err := change(settings); err != nil {
		return err
	}
	response, err := invocation.Call(ctx, s, s.Workflows().SetSchedule, &signalboxv1.SetScheduleRequest{
		Project: s.Project(), Workflow: name, Settings: settings}, what, name)
	if err != nil {
		return err
	}
	return s.Card(response.GetTimer(), append([]output.Field{{Name: "workflow", Value: before.GetWorkflow().GetName()}},
		timerFields(response.GetTimer())...))
}

func timesCommand(s *invocation.Invocation) *cobra.Command {
	var period invocation.Period
	var outcomes []string
	var limit int32
	cmd := &cobra.Command{
		Use:   "times NAME",
		Short: "List when the schedule of a workflow was due, with outcomes",
		Long: `List the newest times at which the schedule of a workflow was due since the publication of its newest version, newest first, each
with its outcome: fired, due (its event may still come), paused, skipped (a run of the schedule was open) or missed.`,
		Example: `  signalbox workflow times shop/report --since 7d
  signalbox workflow times shop/report --outcome missed,skipped --limit 1000`,
		Args:              invocation.Args(1, 1, "NAME"),
		ValidArgsFunction: s.CompleteWorkflows,
		RunE: func(cmd *cobra.Command, args []string) error {
			since, until, err := period.Bounds(s)
			if err != nil {
				return err
			}
			response, err := invocation.Call(cmd.Context(), s, s.Workflows().ListDueTimes, &signalboxv1.ListDueTimesRequest{
				Project: s.Project(), Workflow: args[0], Since: since, Until: until, Limit: limit, Outcomes: outcomes,
			}, "list the due times of workflow %q", args[0])
			if err != nil {
				return err
			}
			return dueTimes("the schedule was not due at such a time").Print(s, response.GetDueTimes(), false)
		},
	}
	period.Bind(cmd, "only times")
	cmd.Flags().StringSliceVar(&outcomes, "outcome", nil,
		"only these `outcomes`, separated by commas: fired, due, paused, skipped, missed")
	cmd.Flags().Int32VarP(&limit, "limit", "n", 0, "look at this `number` of due times at most, up to 1000 (default 100)")
	s.BindClient(cmd)
	return cmd
}

func dueTimes(none string) invocation.Listing[*signalboxv1.DueTime] {
	return invocation.Listing[*signalboxv1.DueTime]{
		Thing: "due time", None: none,
		Row: func(d *signalboxv1.DueTime) output.Row {
			event := ""
			if d.GetPosition() != 0 {
				event = strconv.FormatInt(d.GetPosition(), 10)
			}
			return output.Cells("TIME", output.Moment(d.GetTime()), "OUTCOME", d.GetOutcome(), "EVENT", event,
				"REASON", d.GetReason())
		},
	}
}

func backfillCommand(s *invocation.Invocation) *cobra.Command {
	var period invocation.Period
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "backfill NAME",
		Short: "Fire the schedule of a workflow at past times at which it did not fire",
		Long: `Fire the schedule of a workflow at the due times of a period at which it did not fire, 1,000 at most. Each fire is an event whose ID is
the due time, so that a repeated command starts no second run. With an overlap other than allow, one run starts after the other.`,
		Example: `  signalbox workflow backfill shop/report --since 2026-11-20 --until 2026-11-24 --dry-run
  signalbox workflow backfill shop/report --since 24h`,
		Args:              invocation.Args(1, 1, "NAME"),
		ValidArgsFunction: s.CompleteWorkflows,
		RunE: func(cmd *cobra.Command, args []string) error {
			since, until, err := period.Bounds(s)
			if err != nil {
				return err
			}
			if since == nil {
				return exit.Usagef("--since is not given: name the beginning of the period")
			}
			response, err := invocation.Call(cmd.Context(), s, s.Workflows().BackfillWorkflow,
				&signalboxv1.BackfillWorkflowRequest{
					Project: s.Project(), Workflow: args[0], Since: since, Until: until, DryRun: dryRun,
				}, "backfill workflow %q", args[0])
			if err != nil {
				return err
			}
			return dueTimes("the schedule fired at all due times of the period").Print(s, response.GetDueTimes(), false)
		},
	}
	period.Bind(cmd, "only due times")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "list the times, and fire none")
	s.BindClient(cmd)
	return cmd
}
