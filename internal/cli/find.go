package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

func findCommand(s *invocation.Invocation) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "find TEXT…",
		Short: "Find runs, problems, workflows, tasks, events and more by a text",
		Long: `Find what a text is, or is a part of: runs by the beginning or the end of their ID, by their request ID, by the values of their
labels and by their errors; workflows, tasks and projects by their names; problems by their titles; events, batches and deliveries of webhooks
by their IDs. The newest of each kind are listed, with what matched. Several words must all match.

IDs of runs and events, and request IDs, are found in all projects in which you have a role, everything else in the --project.`,
		Example: `  signalbox find order 4711
  signalbox find 22f0ab71
  signalbox find payment refused -o json`,
		Args: invocation.Args(1, -1, "TEXT…"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return find(cmd.Context(), s, strings.Join(args, " "), limit)
		},
	}
	cmd.Flags().IntVarP(&limit, "limit", "n", 10, "at most this many of each kind, up to 50")
	s.BindClient(cmd)
	return cmd
}

// found is a hit with its kind.
type found struct {
	kind string
	*signalboxv1.SearchHit
}

func find(ctx context.Context, s *invocation.Invocation, text string, limit int) error {
	request := &signalboxv1.SearchRequest{Project: s.Project(), Text: text, Limit: int32(limit)} //nolint:gosec // the server checks it
	response, err := invocation.Call(ctx, s, s.Search().Search, request, "find %q", text)
	if err != nil {
		return err
	}
	if s.Format().Structured() {
		return output.Message(s.Out, s.Format(), response)
	}
	var rows []output.Row
	for _, group := range response.GetGroups() {
		for _, hit := range group.GetHits() {
			rows = append(rows, findRow(s, found{group.GetKind(), hit}))
		}
		if group.GetMore() {
			s.Note("more %s match; write more of the text, or give a larger --limit", output.Plural(group.GetKind()))
		}
	}
	if len(rows) == 0 {
		s.Note("nothing matches %q in project %s", text, s.Project())
		return nil
	}
	return output.Rows(s.Out, s.Format(), s.Style(), rows)
}

func findRow(s *invocation.Invocation, hit found) output.Row {
	age, project := "", ""
	if hit.GetTime() != nil {
		age = s.Age(hit.GetTime())
	}
	if hit.GetProject() != s.Project() {
		project = hit.GetProject()
	}
	return output.Cells(
		"KIND", hit.kind, "#ID", hit.GetId(), "NAME", hit.name(), "STATUS", hit.GetStatus(), "MATCH", hit.match(),
		"ERROR", hit.GetDetail(), "AGE", age, "PROJECT", project,
		"+VERSION", hit.GetVersion(), "+CREATED", output.Moment(hit.GetTime()),
	)
}

// name is what the hit is in words; empty where its ID is that.
func (h found) name() string {
	switch {
	case h.kind == "task":
		return h.GetWorkflow() + " " + h.GetTitle()
	case h.GetTitle() == h.GetId():
		return ""
	default:
		return h.GetTitle()
	}
}

// around is how many characters of a text are shown before the first match.
const around = 12

// match is the field that matched, and its text from a little before the match.
func (h found) match() string {
	switch h.GetField() {
	case "", "id", "name", "title":
		return "" // another column has it
	}
	var text strings.Builder
	for i, part := range h.GetParts() {
		shown := []rune(part.GetText())
		if i == 0 && !part.GetMatch() && len(shown) > around {
			shown = append([]rune("…"), shown[len(shown)-around:]...)
		}
		text.WriteString(string(shown))
	}
	return strings.TrimPrefix(h.GetField(), "label.") + ": " + text.String()
}
