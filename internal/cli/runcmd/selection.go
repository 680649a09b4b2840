package runcmd

import (
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/session"
)

// Selection is the flags that choose among runs, the same whatever is done with those that are chosen.
type Selection struct {
	statuses, problems         []string
	workflow, version, trigger string
	failureGroup               string
	notReplayed                bool
	text                       string
	labels                     []string
	parent, replayOf, batch    string
	startedByBatch             string
	period                     session.Period
}

// Chosen is what the flags of a Selection ask for, in the API's words.
type Chosen struct {
	Statuses, Problems         []string
	Workflow, Version, Trigger string
	FailureGroup               string
	NotReplayed                bool
	Text                       string
	Labels                     []string
	ParentRunID, ReplayOf      string
	BatchID, StartedByBatchID  string
	Since, Until               *timestamppb.Timestamp // nil where they were not given
	// Period is the length of time that --since names; 0 if it names a moment or was not given.
	Period time.Duration
}

// SelectionFlags names the flags that Bind adds.
func SelectionFlags() []string {
	return []string{"status", "workflow", "version", "since", "until", "problem", "trigger", "not-replayed", "text", "parent", "replay-of", "batch", "started-by-batch", "failure-group", "label"}
}

// Bind adds the flags with their completions.
func (f *Selection) Bind(cmd *cobra.Command) {
	cmd.Flags().StringSliceVarP(&f.statuses, "status", "s", nil, "only these `statuses`, separated by commas")
	cmd.Flags().StringSliceVar(&f.problems, "problem", nil, "only runs that are stuck with one of these `codes`, separated by commas; any for all of them")
	cmd.Flags().StringVar(&f.workflow, "workflow", "", "only runs of this workflow, by `name`")
	cmd.Flags().StringVar(&f.version, "version", "", "only runs of this `version` of the --workflow")
	cmd.Flags().StringVar(&f.trigger, "trigger", "", "only runs that this `trigger` started: "+strings.Join(triggers(), ", "))
	cmd.Flags().BoolVar(&f.notReplayed, "not-replayed", false, "only runs without a replay")
	cmd.Flags().StringVar(&f.failureGroup, "failure-group", "", "only runs that failed in the same way, by the `key` that problem list shows")
	cmd.Flags().StringVar(&f.text, "text", "", "only runs whose ID or request ID begins with this `text`")
	cmd.Flags().StringArrayVarP(&f.labels, "label", "l", nil, "only runs with this label, as `key=value`; may be repeated for several")
	cmd.Flags().StringVar(&f.parent, "parent", "", "only runs that the run with this `ID` started")
	cmd.Flags().StringVar(&f.replayOf, "replay-of", "", "only replays of the run with this `ID`")
	cmd.Flags().StringVar(&f.batch, "batch", "", "only runs that the batch with this `ID` selected")
	cmd.Flags().StringVar(&f.startedByBatch, "started-by-batch", "", "only runs that the batch with this `ID` started: the newest replay of each run")
	f.period.Bind(cmd, "only runs created")
	for flag, words := range map[string][]string{"status": Statuses(), "problem": problems(), "trigger": triggers()} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	}
}

// Chosen reads the flags.
func (f *Selection) Chosen(s *session.Session) (Chosen, error) {
	c := Chosen{
		Workflow: f.workflow, Version: f.version, Trigger: f.trigger, NotReplayed: f.notReplayed, Text: f.text,
		ParentRunID: f.parent, ReplayOf: f.replayOf, BatchID: f.batch, StartedByBatchID: f.startedByBatch, FailureGroup: f.failureGroup,
		Labels: f.labels,
	}
	if f.version != "" && f.workflow == "" {
		return Chosen{}, exit.Usagef("--version %s requires --workflow", f.version)
	}
	err := session.CheckLabels(f.labels)
	if err != nil {
		return Chosen{}, err
	}
	if c.Statuses, err = session.Words("status", f.statuses, Statuses()); err != nil {
		return Chosen{}, err
	}
	if c.Problems, err = session.Words("problem", upper(f.problems), problems()); err != nil {
		return Chosen{}, err
	}
	if f.trigger != "" {
		if _, err = session.Words("trigger", []string{f.trigger}, triggers()); err != nil {
			return Chosen{}, err
		}
	}
	c.Since, c.Until, err = f.period.Bounds(s)
	c.Period = f.period.Length()
	return c, err
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
