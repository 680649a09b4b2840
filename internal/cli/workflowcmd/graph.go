package workflowcmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

func graphCommand(s *invocation.Invocation) *cobra.Command {
	var version string
	var draft bool
	cmd := &cobra.Command{
		Use:   "graph NAME",
		Short: "Show the control flow of one version, or of the draft",
		Long: `Show the tasks of one version, or of the draft, and what may follow each of them. The column NEXT lists the tasks that
may follow, by their JSON pointers, with the kind and the condition of the step. A task that follows its own container
ends the list that contains it.`,
		Example:           `  signalbox workflow graph order --version 1.2.0`,
		Args:              invocation.Args(1, 1, "NAME"),
		ValidArgsFunction: s.CompleteWorkflows,
		RunE: func(cmd *cobra.Command, args []string) error {
			if draft && version != "" {
				return exit.Usagef("--draft and --version exclude each other")
			}
			return showGraph(cmd.Context(), s, &signalboxv1.GetVersionGraphRequest{
				Project: s.Project(), Workflow: args[0], Version: version, Draft: draft,
			})
		},
	}
	cmd.Flags().StringVar(&version, "version", "", "`version` to show; the newest published one when empty")
	cmd.Flags().BoolVar(&draft, "draft", false, "show the draft")
	s.BindClient(cmd)
	return cmd
}

func showGraph(ctx context.Context, s *invocation.Invocation, request *signalboxv1.GetVersionGraphRequest) error {
	response, err := invocation.Call(ctx, s, s.Workflows().GetVersionGraph, request, "show the graph of workflow %q",
		request.GetWorkflow())
	if err != nil {
		return err
	}
	if s.Format().Structured() {
		return output.Message(s.Out, s.Format(), response)
	}
	leaving := map[string][]*signalboxv1.GraphEdge{}
	for _, e := range response.GetEdges() {
		leaving[e.GetFrom()] = append(leaving[e.GetFrom()], e)
	}
	var rows []output.Row
	for _, n := range response.GetNodes() {
		edges, place := leaving[n.GetId()], position(n)
		for i := range max(1, len(edges)) {
			next := ""
			if i < len(edges) {
				next = edgeText(edges[i])
			}
			if i > 0 { // the first row of a node with several edges has the node
				n, place = &signalboxv1.GraphNode{}, ""
			}
			rows = append(rows, output.Cells("NODE", n.GetId(), "KIND", n.GetKind(), "LABEL", n.GetLabel(), "NEXT", next,
				"+LINE", place))
		}
	}
	return output.Rows(s.Out, s.Format(), s.Style(), rows)
}

// edgeText describes an edge: where it leads, and when.
func edgeText(e *signalboxv1.GraphEdge) string {
	text := e.GetTo()
	if e.GetKind() != "next" {
		text = e.GetKind() + " " + text
	}
	if e.GetLabel() != "" {
		text += " (" + e.GetLabel() + ")"
	}
	return text
}

func position(n *signalboxv1.GraphNode) string {
	if n.GetLine() == 0 {
		return ""
	}
	return fmt.Sprintf("%d:%d", n.GetLine(), n.GetColumn())
}
