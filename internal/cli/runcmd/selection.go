package runcmd

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

// Selection is the flags that select runs, the same in every command.
type Selection struct {
	filter         *signalboxv1.RunFilter // nil before Bind
	created, ended invocation.Period
}

// condition is a flag, and the field of a RunFilter that it sets: a text, a list or a truth. A period has two flags and
// two fields.
type condition struct {
	flag, short, usage string

	text *string
	list *[]string
	on   *bool
	// each: every occurrence of the flag is one element of the list. Otherwise its elements are separated by commas.
	each bool
	// words are the values of the text or of the list, in any case; any value if it is empty.
	words []string

	period       *invocation.Period
	since, until **timestamppb.Timestamp
}

// conditions returns the flags in the order of the help.
func (f *Selection) conditions() []condition {
	m := f.filter
	return []condition{
		{flag: "status", short: "s", list: &m.Statuses, words: runStatuses(),
			usage: "only these `statuses`, separated by commas"},
		{flag: "workflow", text: &m.Workflow, usage: "only runs of this workflow, by `name`"},
		{flag: "version", text: &m.Version, usage: "only runs of this `version` of the --workflow"},
		{flag: "", period: &f.created, since: &m.Since, until: &m.Until, usage: "only runs created"},
		{flag: "ended-", period: &f.ended, since: &m.EndedSince, until: &m.EndedUntil, usage: "only runs that ended"},
		{flag: "stuck", list: &m.Stuck, words: stuckCodes(),
			usage: "only runs that are stuck with one of these `codes`, separated by commas; any for all of them"},
		{flag: "cause", text: &m.Cause, words: causes(),
			usage: "only runs whose workflow tasks fail for this `cause`"},
		{flag: "waiting", text: &m.Waiting, words: waitingKinds(),
			usage: "only runs that wait for this `kind`: " + strings.Join(waitingKinds(), ", ")},
		{flag: "retrying", text: &m.Retrying, usage: "only runs that attempt this `task` again after it failed; any for all " +
			"such runs"},
		{flag: "error", text: &m.ErrorType, usage: "only runs that failed with an error of this `type`: the whole type, or " +
			"its last part, such as execution_missing"},
		{flag: "error-text", text: &m.ErrorText, usage: "only runs with an error that has these `words`, or words that begin " +
			"with them"},
		{flag: "task", text: &m.FailedTask, usage: "only runs that failed at the task with this `name`"},
		{flag: "failure-group", text: &m.FailureGroup,
			usage: "only runs that failed in the same way, by the `key` that problem list shows"},
		{flag: "trigger", text: &m.Trigger, words: triggers(),
			usage: "only runs that this `trigger` started: " + strings.Join(triggers(), ", ")},
		{flag: "text", text: &m.Text,
			usage: "only runs whose ID or request ID begins with this `text`, or whose ID ends with it (8 characters or more)"},
		{flag: "words", text: &m.Words,
			usage: "only runs in whose labels, request ID or error these `words` are, or words that begin with them"},
		{flag: "label", short: "l", list: &m.Labels, each: true,
			usage: "only runs with this label, as `key=value`; may be repeated for several"},
		{flag: "parent", text: &m.ParentRunId, usage: "only runs that the run with this `ID` started"},
		{flag: "replay-of", text: &m.ReplayOf, usage: "only replays of the run with this `ID`"},
		{flag: "batch", text: &m.BatchId, usage: "only runs that the batch with this `ID` selected"},
		{flag: "started-by-batch", text: &m.StartedByBatchId,
			usage: "only runs that the batch with this `ID` started: the newest replay of each run"},
		{flag: "not-replayed", on: &m.NotReplayed, usage: "only runs without a replay"},
	}
}

func (c condition) bind(flags *pflag.FlagSet) {
	switch {
	case c.period != nil:
		c.period.BindTo(flags, c.flag, c.usage)
	case c.on != nil:
		flags.BoolVarP(c.on, c.flag, c.short, false, c.usage)
	case c.text != nil:
		flags.StringVarP(c.text, c.flag, c.short, "", c.usage)
	case c.each:
		flags.StringArrayVarP(c.list, c.flag, c.short, nil, c.usage)
	default:
		flags.StringSliceVarP(c.list, c.flag, c.short, nil, c.usage)
	}
}

// check writes the values as the API does, or returns an error for those that it does not have.
func (c condition) check(s *invocation.Invocation) (err error) {
	switch {
	case c.period != nil:
		*c.since, *c.until, err = c.period.Bounds(s)
	case c.words == nil:
	case c.list != nil:
		*c.list, err = invocation.Words(c.flag, inCaseOf(c.words, *c.list), c.words)
	case *c.text != "":
		given := inCaseOf(c.words, []string{*c.text})
		*c.text = given[0]
		_, err = invocation.Words(c.flag, given, c.words)
	}
	return err
}

// inCaseOf writes values like the words that they equal in another case.
func inCaseOf(words, values []string) []string {
	out := slices.Clone(values)
	for i, value := range values {
		if at := slices.IndexFunc(words, func(word string) bool { return strings.EqualFold(word, value) }); at >= 0 {
			out[i] = words[at]
		}
	}
	return out
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

// GivenFlag returns the first of the flags of a Selection, and of others, that a command was given; empty if there is
// none.
func GivenFlag(cmd *cobra.Command, others ...string) string {
	for _, name := range append(SelectionFlags(), others...) {
		if cmd.Flags().Changed(name) {
			return name
		}
	}
	return ""
}

// Bind adds the flags with their completions.
func (f *Selection) Bind(s *invocation.Invocation, cmd *cobra.Command) {
	f.bind(cmd.Flags())
	_ = cmd.RegisterFlagCompletionFunc("workflow", s.CompleteWorkflowFlag) // the flag is there
	for _, c := range f.conditions() {
		if c.words != nil {
			// the flag is there
			_ = cmd.RegisterFlagCompletionFunc(c.flag, cobra.FixedCompletions(c.words, cobra.ShellCompDirectiveNoFileComp))
		}
	}
}

func (f *Selection) bind(flags *pflag.FlagSet) {
	f.filter = &signalboxv1.RunFilter{}
	for _, c := range f.conditions() {
		c.bind(flags)
	}
}

// Filter reads the flags.
func (f *Selection) Filter(s *invocation.Invocation) (*signalboxv1.RunFilter, error) {
	read := &Selection{filter: proto.CloneOf(f.filter), created: f.created, ended: f.ended}
	m := read.filter
	if m.GetVersion() != "" && m.GetWorkflow() == "" {
		return nil, exit.Usagef("--version %s requires --workflow", m.GetVersion())
	}
	if err := invocation.CheckLabels(m.GetLabels()); err != nil {
		return nil, err
	}
	for _, c := range read.conditions() {
		if err := c.check(s); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Lengths returns the lengths of time that --since and --ended-since name; 0 if one names a moment or was not given.
func (f *Selection) Lengths() (created, ended time.Duration) {
	return f.created.Length(), f.ended.Length()
}

// FilterLine is a filter in the words of the flags. Last is the length of time that it reaches back, endedLast that in
// which the runs ended; empty if it names moments or no time.
func FilterLine(m *signalboxv1.RunFilter, last, endedLast string) string {
	var parts []string
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+" "+value)
		}
	}
	of := &Selection{filter: m}
	if m == nil {
		of.filter = &signalboxv1.RunFilter{}
	}
	for _, c := range of.conditions() {
		name := strings.ReplaceAll(c.flag, "-", " ")
		switch {
		case c.period != nil:
			length := last
			if c.period == &of.ended {
				length = endedLast
			}
			add(name+"last", length)
			add(name+"since", output.Moment(*c.since))
			add(name+"until", output.Moment(*c.until))
		case c.text != nil:
			add(name, *c.text)
		case c.each:
			for _, value := range *c.list {
				add(name, value)
			}
		case c.list != nil:
			add(name, strings.Join(*c.list, ","))
		case *c.on:
			parts = append(parts, name)
		}
	}
	if len(parts) == 0 {
		return "all runs"
	}
	return strings.Join(parts, ", ")
}
