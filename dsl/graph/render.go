package graph

import (
	"fmt"
	"slices"
	"strings"
)

// Mermaid writes a graph as a Mermaid flowchart. A task that contains others is a node inside of a subgraph with them; a
// dotted edge from an inner task to it ends the list.
func (g Graph) Mermaid() string {
	r := g.renderer()
	r.line(0, "flowchart TD")
	r.nested("", 1, func(depth int, n Node, inner func()) {
		open, shut := mermaidShape(n.Kind)
		node := r.name(n.ID) + open + `"` + mermaidText(n.lines()) + `"` + shut
		if inner == nil {
			r.line(depth, "%s", node)
			return
		}
		r.line(depth, `subgraph %s_list[" "]`, r.name(n.ID))
		r.line(depth+1, "%s", node)
		inner()
		r.line(depth, "end")
	})
	for _, e := range g.Edges {
		arrow, label := "-->", ""
		if r.endsList(e) {
			arrow = "-.->"
		}
		if text := e.text(); text != "" {
			label = `|"` + mermaidText([]string{text}) + `"|`
		}
		r.line(1, "%s %s%s %s", r.name(e.From), arrow, label, r.name(e.To))
	}
	return r.String()
}

// DOT writes a graph in the language of Graphviz, with the same nodes and edges as Mermaid.
func (g Graph) DOT() string {
	r := g.renderer()
	r.line(0, "digraph workflow {")
	r.line(1, `node [shape=box, style=rounded, fontname="sans-serif"]`)
	r.line(1, `edge [fontname="sans-serif", fontsize=10]`)
	r.nested("", 1, func(depth int, n Node, inner func()) {
		shape := ""
		switch n.Kind {
		case Start, End:
			shape = ", shape=oval"
		case "switch":
			shape = ", shape=diamond, style=solid"
		}
		node := fmt.Sprintf("%s [label=%s%s]", r.name(n.ID), dotText(n.lines()), shape)
		if inner == nil {
			r.line(depth, "%s", node)
			return
		}
		r.line(depth, "subgraph cluster_%s {", r.name(n.ID))
		r.line(depth+1, "%s", node)
		inner()
		r.line(depth, "}")
	})
	for _, e := range g.Edges {
		var attributes []string
		if text := e.text(); text != "" {
			attributes = append(attributes, "label="+dotText([]string{text}))
		}
		if r.endsList(e) {
			attributes = append(attributes, "style=dotted")
		}
		list := ""
		if len(attributes) > 0 {
			list = " [" + strings.Join(attributes, ", ") + "]"
		}
		r.line(1, "%s -> %s%s", r.name(e.From), r.name(e.To), list)
	}
	r.line(0, "}")
	return r.String()
}

// Text writes a graph as an outline: a task with its kind and label on each line, those that it contains below it, and
// the steps that do not lead to the next line.
func (g Graph) Text() string {
	r := g.renderer()
	names := map[string]string{}
	for _, n := range g.Nodes {
		names[n.ID] = n.title()
	}
	r.nested("", 0, func(depth int, n Node, inner func()) {
		line := n.title()
		if n.Kind != line {
			line += "  " + n.Kind
		}
		if n.Label != "" {
			line += "  " + n.Label
		}
		r.line(depth, "%s", line)
		for _, e := range g.Edges {
			if e.From != n.ID || r.expected(n, e) {
				continue
			}
			text := e.text()
			if text != "" {
				text += " "
			}
			r.line(depth+1, "%s→ %s", text, names[e.To])
		}
		if inner != nil {
			inner()
		}
	})
	return r.String()
}

// title names a node for people.
func (n Node) title() string {
	if n.Name != "" {
		return n.Name
	}
	return n.Kind
}

// lines are the texts of a node: its name, then its kind and label.
func (n Node) lines() []string {
	lines := []string{n.title()}
	if n.Kind != n.title() {
		lines = append(lines, n.Kind)
	}
	if n.Label != "" {
		lines = append(lines, n.Label)
	}
	return lines
}

// text describes why an edge is taken; empty if it simply follows.
func (e Edge) text() string {
	switch {
	case e.Label != "" && e.Kind != Case && e.Kind != Next:
		return string(e.Kind) + ": " + e.Label
	case e.Label != "":
		return e.Label
	case e.Kind == Next || e.Kind == Enter || e.Kind == Case:
		return ""
	}
	return string(e.Kind)
}

// renderer writes the nodes of a graph with short names.
type renderer struct {
	strings.Builder
	graph   Graph
	names   map[string]string
	parents map[string]string
}

func (g Graph) renderer() *renderer {
	r := &renderer{graph: g, names: map[string]string{}, parents: map[string]string{}}
	for i, n := range g.Nodes {
		r.names[n.ID], r.parents[n.ID] = fmt.Sprintf("n%d", i), n.Parent
	}
	return r
}

func (r *renderer) name(id string) string { return r.names[id] }

func (r *renderer) line(depth int, format string, args ...any) {
	r.WriteString(strings.Repeat("  ", depth))
	fmt.Fprintf(r, format, args...)
	r.WriteByte('\n')
}

// nested writes the nodes below a parent. inner writes those inside of a node, nil if there are none.
func (r *renderer) nested(parent string, depth int, write func(depth int, n Node, inner func())) {
	for _, n := range r.graph.Nodes {
		if n.Parent != parent {
			continue
		}
		var inner func()
		if slices.ContainsFunc(r.graph.Nodes, func(o Node) bool { return o.Parent == n.ID }) {
			inner = func() { r.nested(n.ID, depth+1, write) }
		}
		write(depth, n, inner)
	}
}

// endsList reports whether an edge leads from a task to the one that contains it.
func (r *renderer) endsList(e Edge) bool { return r.parents[e.From] == e.To }

// expected reports whether an edge leads where a reader of an outline expects it: to the next line of the same list, into
// the list, or out of it at its end.
func (r *renderer) expected(n Node, e Edge) bool {
	if e.Kind != Next && e.Kind != Enter && e.Kind != Branch {
		return false
	}
	if e.Kind == Enter || e.Kind == Branch || r.endsList(e) {
		return e.Label == "" || e.Kind == Branch
	}
	var siblings []string
	for _, o := range r.graph.Nodes {
		if o.Parent == n.Parent {
			siblings = append(siblings, o.ID)
		}
	}
	i := slices.Index(siblings, n.ID)
	return e.Label == "" && i+1 < len(siblings) && siblings[i+1] == e.To
}

func mermaidShape(kind string) (open, shut string) {
	switch kind {
	case Start, End:
		return "([", "])"
	case "switch":
		return "{", "}"
	}
	return "[", "]"
}

// mermaidText escapes lines for a quoted text of Mermaid.
func mermaidText(lines []string) string {
	escape := strings.NewReplacer("#", "#35;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "\n", " ")
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = escape.Replace(line)
	}
	return strings.Join(out, "<br/>")
}

// dotText quotes lines as one text of DOT.
func dotText(lines []string) string {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ")
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = escape.Replace(line)
	}
	return `"` + strings.Join(out, `\n`) + `"`
}
