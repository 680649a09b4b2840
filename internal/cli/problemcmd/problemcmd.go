// Package problemcmd is the noun "problem": what an operator has to act on, and what was done about it.
//
//	root.AddCommand(problemcmd.New(s))
package problemcmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/terminal"
)

// New returns the noun with its verbs.
func New(s *invocation.Invocation) *cobra.Command {
	noun := invocation.Noun("problem", "List what an operator has to act on, and record what was done about it", "")
	noun.AddCommand(listCommand(s), countCommand(s), showCommand(s), acknowledgeCommand(s), snoozeCommand(s),
		updateCommand(s), reopenCommand(s))
	return noun
}

func kinds() []string  { return []string{"stuck", "retrying", "failure", "platform"} }
func states() []string { return []string{"open", "acknowledged", "snoozed", "resolved"} }

type listFlags struct {
	kinds, states        []string
	project, owner, text string
	limit                int
}

func listCommand(s *invocation.Invocation) *cobra.Command {
	var flags listFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List problems of all projects: platform, stuck, retrying and failed runs",
		Long: `List what an operator has to act on, in all projects in which the caller has a role: parts of the platform that do not work, runs that
are stuck, by their code, runs that attempt a failing task again and again, and runs of the last seven days that failed at the same task with the same cause. A problem that no longer exists
is listed as resolved for 24 hours; --state resolved lists these, and --state all every problem.`,
		Example: `  signalbox problem list
  signalbox problem list --kind failure --project shop
  signalbox problem list --state all --jq '.[].id'`,
		Args: invocation.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return list(cmd.Context(), s, flags) },
	}
	cmd.Flags().StringSliceVar(&flags.kinds, "kind", nil,
		"only these `kinds`, separated by commas: stuck, retrying, failure, platform")
	cmd.Flags().StringSliceVar(&flags.states, "state", []string{"open", "acknowledged", "snoozed"},
		"only these `states`, separated by commas: open, acknowledged, snoozed, resolved; all for every state")
	cmd.Flags().StringVar(&flags.project, "project", "", "only problems of this `project`")
	cmd.Flags().StringVar(&flags.owner, "owner", "", "only problems of this `owner`")
	cmd.Flags().StringVar(&flags.text, "text", "", "only problems that contain this `text`")
	cmd.Flags().IntVarP(&flags.limit, "limit", "n", 50, "at most this many; 0 for all")
	_ = cmd.RegisterFlagCompletionFunc("project", s.CompleteProjects) // the flag is there
	for flag, words := range map[string][]string{"kind": kinds(), "state": append(states(), "all")} {
		// the flag is there
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
	s.BindServer(cmd)
	return cmd
}

func list(ctx context.Context, s *invocation.Invocation, flags listFlags) error {
	request := &signalboxv1.ListProblemsRequest{Project: flags.project, Owner: flags.owner, Text: flags.text}
	var err error
	if request.Kinds, err = invocation.Words("kind", flags.kinds, kinds()); err != nil {
		return err
	}
	if len(flags.states) != 1 || flags.states[0] != "all" {
		if request.States, err = invocation.Words("state", flags.states, states()); err != nil {
			return err
		}
	}
	var partial []string
	found, more, err := invocation.Pages(flags.limit,
		func(size int32, token string) ([]*signalboxv1.Problem, string, error) {
			request.PageSize, request.PageToken = size, token
			response, err := invocation.Call(ctx, s, s.Problems().ListProblems, request, "list problems")
			partial = response.GetErrors()
			return response.GetProblems(), response.GetNextPageToken(), err
		})
	if err != nil {
		return err
	}
	for _, line := range partial {
		s.Note("partial result: %s", terminal.Line(line))
	}
	return invocation.Listing[*signalboxv1.Problem]{
		Thing: "problem",
		Row: func(p *signalboxv1.Problem) output.Row {
			return output.Cells(
				"ID", p.GetId(), "STATE", p.GetState(), "PROJECT", p.GetProject(), "TITLE", p.GetTitle(),
				"WHERE", where(p), "COUNT", count(p), "NOT REPLAYED", notReplayed(p),
				"FIRST", output.Moment(p.GetFirstTime()), "LAST", output.Moment(p.GetLastTime()), "OWNER", p.GetOwner(),
				"+VERSIONS", versions(p), "+CODE", p.GetCode(), "+CAUSE", p.GetCause(),
				"+ACKNOWLEDGED BY", p.GetAcknowledger(), "+REVISION", fmt.Sprint(p.GetRevision()), "+NOTE", p.GetNote(),
			)
		},
	}.Print(s, found, more)
}

// where is what the problem is about: a workflow with its task, or a task queue.
func where(p *signalboxv1.Problem) string {
	if p.GetWorkflow() == "" {
		return p.GetTaskQueue()
	}
	return strings.TrimSpace(p.GetWorkflow() + " " + p.GetTask())
}

// versions are those of the failed runs, with the number of runs of each.
func versions(p *signalboxv1.Problem) string {
	parts := make([]string, len(p.GetVersions()))
	for i, v := range p.GetVersions() {
		parts[i] = fmt.Sprintf("%s (%d)", v.GetVersion(), v.GetCount())
	}
	return strings.Join(parts, ", ")
}

func count(p *signalboxv1.Problem) string {
	switch {
	case p.Count == nil:
		return ""
	case p.GetMore():
		return fmt.Sprintf("%d+", p.GetCount())
	}
	return fmt.Sprint(p.GetCount())
}

func notReplayed(p *signalboxv1.Problem) string {
	if p.NotReplayed == nil {
		return ""
	}
	return fmt.Sprint(p.GetNotReplayed())
}

func countCommand(s *invocation.Invocation) *cobra.Command {
	var project string
	cmd := &cobra.Command{
		Use:     "count",
		Short:   "Count problems by state, with the mean time to acknowledge",
		Long:    `Count problems by state, with the mean time to acknowledge of the last 24 hours.`,
		Example: `  signalbox problem count --project shop`,
		Args:    invocation.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			response, err := invocation.Call(cmd.Context(), s, s.Problems().CountProblems,
				&signalboxv1.CountProblemsRequest{Project: project}, "count problems")
			if err != nil {
				return err
			}
			for _, line := range response.GetErrors() {
				s.Note("partial result: %s", terminal.Line(line))
			}
			mean := ""
			if d := response.GetMeanTimeToAcknowledge(); d != nil {
				mean = output.Span(d.AsDuration())
			}
			var fields []output.Field
			for _, state := range states() {
				fields = append(fields, output.Field{Name: state, Value: stateCount(response, state)})
			}
			return s.Card(response, append(fields, output.Field{Name: "mean time to acknowledge", Value: mean}))
		},
	}
	cmd.Flags().StringVar(&project, "project", "", "only problems of this `project`")
	s.BindServer(cmd)
	return cmd
}

// stateCount is the number of problems in a state. Where a kind of problems could not be read, there may be more than
// were counted.
func stateCount(response *signalboxv1.CountProblemsResponse, state string) string {
	n := response.GetStates()[state]
	switch partial := len(response.GetErrors()) > 0; {
	case partial && n == 0:
		return "unknown"
	case partial:
		return fmt.Sprintf("at least %d", n)
	default:
		return fmt.Sprint(n)
	}
}

func showCommand(s *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show ID",
		Short:   "Show a problem: cause, advice, newest runs, and what was done about it",
		Example: `  signalbox problem show stuck.shop.NO_POLLER`,
		Args:    invocation.Args(1, 1, "ID"), ValidArgsFunction: s.CompleteProblems,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := get(cmd.Context(), s, args[0])
			if err != nil {
				return err
			}
			return show(s, p)
		},
	}
	s.BindServer(cmd)
	return cmd
}

func get(ctx context.Context, s *invocation.Invocation, id string) (*signalboxv1.Problem, error) {
	response, err := invocation.Call(ctx, s, s.Problems().GetProblem, &signalboxv1.GetProblemRequest{Id: id},
		"show problem %q", id)
	return response.GetProblem(), err
}

func show(s *invocation.Invocation, p *signalboxv1.Problem) error {
	snoozed := output.Moment(p.GetSnoozeUntil())
	if p.GetSnoozeCount() > 0 {
		snoozed = fmt.Sprintf("the count is %d", p.GetSnoozeCount())
	}
	return s.Card(p, []output.Field{
		{Name: "id", Value: p.GetId()},
		{Name: "state", Value: p.GetState()},
		{Name: "project", Value: p.GetProject()},
		{Name: "title", Value: p.GetTitle()},
		{Name: "where", Value: where(p)},
		{Name: "versions", Value: versions(p)},
		{Name: "pointer", Value: p.GetPointer()},
		{Name: "count", Value: count(p)},
		{Name: "not replayed", Value: notReplayed(p)},
		{Name: "first", Value: output.Moment(p.GetFirstTime())},
		{Name: "last", Value: output.Moment(p.GetLastTime())},
		{Name: "code", Value: p.GetCode()},
		{Name: "cause", Value: p.GetCause()},
		{Name: "detail", Value: p.GetDetail()},
		{Name: "advice", Value: p.GetAdvice()},
		{Name: "runbook", Value: p.GetRunbook()},
		{Name: "failure group", Value: p.GetFailureGroup()},
		{Name: "newest runs", Value: strings.Join(p.GetSamples(), " ")},
		{Name: "owner", Value: p.GetOwner()},
		{Name: "note", Value: p.GetNote()},
		{Name: "detected", Value: output.Moment(p.GetDetectTime())},
		{Name: "acknowledged", Value: output.Moment(p.GetAcknowledgeTime())},
		{Name: "acknowledged by", Value: p.GetAcknowledger()},
		{Name: "snoozed until", Value: snoozed},
		{Name: "resolved", Value: output.Moment(p.GetResolveTime())},
		{Name: "revision", Value: fmt.Sprint(p.GetRevision())},
	})
}
