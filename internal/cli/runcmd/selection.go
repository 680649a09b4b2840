package runcmd

import (
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/proto"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
)

// Selection is the flags that choose among runs, the same whatever is done with those that are chosen.
type Selection struct {
	conditions     *signalboxv1.BatchFilter // nil before Bind
	created, ended invocation.Period
}

// Chosen is what the flags of a Selection ask for.
type Chosen struct {
	// Conditions are those of the flags, for [selection.Copy].
	Conditions *signalboxv1.BatchFilter
	// Period and EndedPeriod are the lengths of time that --since and --ended-since name; 0 if one names a moment or was not given.
	Period, EndedPeriod time.Duration
}

// SelectionFlags names the flags that Bind adds.
func SelectionFlags() []string {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.SortFlags = false
	(&Selection{}).bind(flags)
	var names []string
	flags.VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	return names
}

// Bind adds the flags with their completions.
func (f *Selection) Bind(cmd *cobra.Command) {
	f.bind(cmd.Flags())
	for flag, words := range map[string][]string{"status": Statuses(), "problem": problems(), "trigger": triggers()} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	}
}

func (f *Selection) bind(flags *pflag.FlagSet) {
	f.conditions = &signalboxv1.BatchFilter{}
	c := f.conditions
	flags.StringSliceVarP(&c.Statuses, "status", "s", nil, "only these `statuses`, separated by commas")
	flags.StringVar(&c.Workflow, "workflow", "", "only runs of this workflow, by `name`")
	flags.StringVar(&c.Version, "version", "", "only runs of this `version` of the --workflow")
	f.created.BindTo(flags, "", "only runs created")
	f.ended.BindTo(flags, "ended-", "only runs that ended")
	flags.StringSliceVar(&c.Problems, "problem", nil, "only runs that are stuck with one of these `codes`, separated by commas; any for all of them")
	flags.StringVar(&c.ErrorType, "error", "", "only runs that failed with an error of this `type`: the whole type, or its last part, such as execution_missing")
	flags.StringVar(&c.FailureGroup, "failure-group", "", "only runs that failed in the same way, by the `key` that problem list shows")
	flags.StringVar(&c.Trigger, "trigger", "", "only runs that this `trigger` started: "+strings.Join(triggers(), ", "))
	flags.StringVar(&c.Text, "text", "", "only runs whose ID or request ID begins with this `text`")
	flags.StringArrayVarP(&c.Labels, "label", "l", nil, "only runs with this label, as `key=value`; may be repeated for several")
	flags.StringVar(&c.ParentRunId, "parent", "", "only runs that the run with this `ID` started")
	flags.StringVar(&c.ReplayOf, "replay-of", "", "only replays of the run with this `ID`")
	flags.StringVar(&c.BatchId, "batch", "", "only runs that the batch with this `ID` selected")
	flags.StringVar(&c.StartedByBatchId, "started-by-batch", "", "only runs that the batch with this `ID` started: the newest replay of each run")
	flags.BoolVar(&c.NotReplayed, "not-replayed", false, "only runs without a replay")
}

// Chosen reads the flags.
func (f *Selection) Chosen(s *invocation.Invocation) (Chosen, error) {
	c := proto.CloneOf(f.conditions)
	if c.GetVersion() != "" && c.GetWorkflow() == "" {
		return Chosen{}, exit.Usagef("--version %s requires --workflow", c.GetVersion())
	}
	err := invocation.CheckLabels(c.GetLabels())
	if err != nil {
		return Chosen{}, err
	}
	if c.Statuses, err = invocation.Words("status", c.GetStatuses(), Statuses()); err != nil {
		return Chosen{}, err
	}
	if c.Problems, err = invocation.Words("problem", upper(c.GetProblems()), problems()); err != nil {
		return Chosen{}, err
	}
	if c.GetTrigger() != "" {
		if _, err = invocation.Words("trigger", []string{c.GetTrigger()}, triggers()); err != nil {
			return Chosen{}, err
		}
	}
	if c.Since, c.Until, err = f.created.Bounds(s); err != nil {
		return Chosen{}, err
	}
	c.EndedSince, c.EndedUntil, err = f.ended.Bounds(s)
	return Chosen{Conditions: c, Period: f.created.Length(), EndedPeriod: f.ended.Length()}, err
}

// upper writes codes as the API does, whatever their case.
func upper(codes []string) []string {
	out := make([]string, len(codes))
	for i, code := range codes {
		if out[i] = strings.ToUpper(code); strings.EqualFold(code, anyProblem) {
			out[i] = anyProblem
		}
	}
	return out
}
