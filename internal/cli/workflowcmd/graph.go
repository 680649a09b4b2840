package workflowcmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/dsl/graph"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/terminal"
)

func graphCommand(s *invocation.Invocation) *cobra.Command {
	var version, as string
	var draft bool
	cmd := &cobra.Command{
		Use:   "graph NAME|FILE",
		Short: "Show the control flow of a file, of one version, or of the draft",
		Long: `Show the tasks of a file (- for standard input), without a server, or of one version or the draft of a workflow, and what
may follow each of them. An argument that ends with .yaml, .yml or .json is a file. The column NEXT lists the tasks that
may follow, by their JSON pointers, with the kind and the condition of the step. A task that follows its own container
ends the list that contains it.

With --as, print an outline (text), the graph in the language of Mermaid or of Graphviz (dot), or a drawing (svg).`,
		Example: `  signalbox workflow graph order --version 1.2.0
  signalbox workflow graph order.yaml --as mermaid
  signalbox workflow graph order.yaml --as svg > order.svg`,
		Args:              invocation.Args(1, 1, "NAME|FILE"),
		ValidArgsFunction: s.CompleteWorkflows,
		RunE: func(cmd *cobra.Command, args []string) error {
			if as != "" && !slices.Contains(renderings(), as) {
				return exit.Usagef("--as: %q is none of %s", as, strings.Join(renderings(), ", "))
			}
			if as != "" && cmd.Flags().Changed("output") {
				return exit.Usagef("--as and -o exclude each other")
			}
			if draft && version != "" {
				return exit.Usagef("--draft and --version exclude each other")
			}
			if !isYAML(args[0]) && args[0] != stdinName {
				response, err := invocation.Call(cmd.Context(), s, s.Workflows().GetVersionGraph,
					&signalboxv1.GetVersionGraphRequest{Project: s.Project(), Workflow: args[0], Version: version, Draft: draft},
					"show the graph of workflow %q", args[0])
				if err != nil {
					return err
				}
				return showGraph(s, response, as)
			}
			if draft || version != "" {
				return exit.Usagef("--draft and --version concern workflows on the server, not the file %q", args[0])
			}
			response, err := graphOfFile(s, args[0])
			if err != nil {
				return err
			}
			return showGraph(s, response, as)
		},
	}
	cmd.Flags().StringVar(&version, "version", "", "`version` to show; the newest published one when empty")
	cmd.Flags().BoolVar(&draft, "draft", false, "show the draft")
	cmd.Flags().StringVar(&as, "as", "", "`form` of the graph: text, mermaid, dot or svg; a table when empty")
	// the flag is there
	_ = cmd.RegisterFlagCompletionFunc("as", cobra.FixedCompletions(renderings(), cobra.ShellCompDirectiveNoFileComp))
	s.BindClient(cmd)
	return cmd
}

// The forms of "--as".
const (
	asText    = "text"
	asMermaid = "mermaid"
	asDOT     = "dot"
	asSVG     = "svg"
)

func renderings() []string { return []string{asText, asMermaid, asDOT, asSVG} }

// graphOfFile returns the graph of a file in the form in which the server returns that of a version.
func graphOfFile(s *invocation.Invocation, file string) (*signalboxv1.GetVersionGraphResponse, error) {
	source, err := readDocument(file, s.In)
	if err != nil {
		return nil, err
	}
	doc := source.resolve().parsed
	if doc == nil {
		return nil, wrongDocument("graph", source, check(source).Violations)
	}
	g := graph.Of(doc)
	response := &signalboxv1.GetVersionGraphResponse{Workflow: doc.Namespace + "/" + doc.Name, Version: doc.Version}
	for _, n := range g.Nodes {
		response.Nodes = append(response.Nodes, &signalboxv1.GraphNode{
			Id: n.ID, Name: n.Name, Kind: n.Kind, Parent: n.Parent, Label: n.Label, Line: int32(n.Pos.Line),
			Column: int32(n.Pos.Column),
		})
	}
	for _, e := range g.Edges {
		response.Edges = append(response.Edges, &signalboxv1.GraphEdge{
			From: e.From, To: e.To, Kind: string(e.Kind), Label: e.Label,
		})
	}
	return response, nil
}

// draw writes a graph in a form of "--as".
func draw(response *signalboxv1.GetVersionGraphResponse, as string) string {
	var g graph.Graph
	for _, n := range response.GetNodes() {
		g.Nodes = append(g.Nodes, graph.Node{
			ID: n.GetId(), Name: n.GetName(), Kind: n.GetKind(), Parent: n.GetParent(), Label: n.GetLabel(),
		})
	}
	for _, e := range response.GetEdges() {
		g.Edges = append(g.Edges, graph.Edge{From: e.GetFrom(), To: e.GetTo(), Kind: graph.EdgeKind(e.GetKind()),
			Label: e.GetLabel()})
	}
	switch as {
	case asMermaid:
		return g.Mermaid()
	case asDOT:
		return g.DOT()
	case asSVG:
		return g.SVG()
	}
	return g.Text()
}

func showGraph(s *invocation.Invocation, response *signalboxv1.GetVersionGraphResponse, as string) error {
	if as != "" {
		return terminal.Draw(s.Out, draw(response, as))
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
