package cli

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

// noLimit removes a limit, as 0 does.
const noLimit = "none"

type quotaFlags struct {
	runs, steps string
	period      time.Duration
}

func quotaSetCommand(s *invocation.Invocation) *cobra.Command {
	var flags quotaFlags
	cmd := &cobra.Command{
		Use:   "set",
		Short: "Change the quota of a project",
		Long: `Change a project's quota. A limit that is not given keeps its value; 0 or "none" removes a limit. With a higher limit, waiting runs
continue at once; a lower limit stops no run that has started. A limit of steps applies to runs that start afterwards.`,
		Example: `  signalbox quota set --project shop --concurrent-runs 10
  signalbox quota set --project shop --steps 100000 --period 1h
  signalbox quota set --project shop --concurrent-runs none --steps none`,
		Args: invocation.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return setQuota(cmd, s, flags)
		},
	}
	cmd.Flags().StringVar(&flags.runs, "concurrent-runs", "", "maximum number of concurrent `runs`")
	cmd.Flags().StringVar(&flags.steps, "steps", "", "maximum number of `steps` entered per period")
	invocation.LengthVar(cmd.Flags(), &flags.period, "period", "length of a period, in whole seconds, such as 1h or 1d")
	s.BindClient(cmd)
	return cmd
}

func setQuota(cmd *cobra.Command, s *invocation.Invocation, flags quotaFlags) error {
	if !cmd.Flags().Changed("concurrent-runs") && !cmd.Flags().Changed("steps") && !cmd.Flags().Changed("period") {
		return exit.Usagef(`nothing to set: give --concurrent-runs, or --steps with --period; "none" removes a limit`)
	}
	ctx, cancel := s.Deadline(cmd.Context())
	defer cancel()
	const what = "set the quota of project %q"
	get := &signalboxv1.GetQuotaRequest{Project: s.Project()}
	before, err := invocation.Call(ctx, s, s.Quotas().GetQuota, get, what, s.Project())
	if err != nil {
		return err
	}
	quota := before.GetQuota()
	if err := flags.apply(cmd, quota); err != nil {
		return err
	}
	request := &signalboxv1.SetQuotaRequest{Project: s.Project(), Quota: quota}
	if _, err := invocation.Call(ctx, s, s.Quotas().SetQuota, request, what, s.Project()); err != nil {
		return err
	}
	return showQuota(cmd, s)
}

// apply changes a quota as the flags say.
func (f quotaFlags) apply(cmd *cobra.Command, quota *signalboxv1.Quota) (err error) {
	if cmd.Flags().Changed("concurrent-runs") {
		if quota.ConcurrentRuns, err = quotaLimit("concurrent-runs", f.runs); err != nil {
			return err
		}
	}
	if cmd.Flags().Changed("steps") {
		if quota.Steps, err = quotaLimit("steps", f.steps); err != nil {
			return err
		}
	}
	switch {
	case cmd.Flags().Changed("period") && (f.period < time.Second || f.period%time.Second != 0):
		return exit.Usagef("--period %s: use whole seconds, from 1s on", f.period)
	case cmd.Flags().Changed("period"):
		quota.PeriodSeconds = int64(f.period / time.Second)
	case quota.GetSteps() == 0:
		quota.PeriodSeconds = 0
	}
	return nil
}

// quotaLimit reads a number from 0 on, or none.
func quotaLimit(flag, text string) (int64, error) {
	if text == noLimit {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, exit.Usagef("--%s %q: use a number from 0 on, or %q", flag, text, noLimit)
	}
	return n, nil
}

// quotaPeriod is the period of a quota, for people.
func quotaPeriod(quota *signalboxv1.Quota) string {
	return output.Span(time.Duration(quota.GetPeriodSeconds()) * time.Second)
}
