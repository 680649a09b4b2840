package interp_test

import (
	"regexp"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl/graph"
)

// checkGraph checks that the run followed the graph of its document: each step is a node, and an edge leads to it from
// the task that contains it or from the previous step of its list.
func (w *driver) checkGraph() {
	w.t.Helper()
	for n := int64(1); n <= int64(len(w.steps)); n++ {
		if _, recorded := w.steps[n]; !recorded {
			return // a summary counts the steps of this run
		}
	}
	g := graph.Of(w.doc)
	parents, edges := map[string]string{}, map[[2]string]bool{}
	for _, n := range g.Nodes {
		parents[n.ID] = n.Parent
	}
	for _, e := range g.Edges {
		edges[[2]string{e.From, e.To}] = true
	}
	previous := map[string]string{} // by list
	for n := int64(1); n <= int64(len(w.steps)); n++ {
		s := w.steps[n]
		parent, isNode := parents[s.Pointer]
		require.True(w.t, isNode, "%s is no node", s.Pointer)
		list := regexp.MustCompile(`/[0-9]+/[^/]*$`).ReplaceAllString(s.Path, "")
		from, inside := previous[list]
		switch {
		case inside && !strings.HasSuffix(list, "/fork/branches"):
			require.True(w.t, edges[[2]string{from, s.Pointer}] || edges[[2]string{from + "/catch", s.Pointer}],
				"no edge leads from %s to %s", from, s.Path)
		case parent == "":
			require.True(w.t, edges[[2]string{graph.Start, s.Pointer}], "no edge leads from the start to %s", s.Path)
		default:
			require.True(w.t, edges[[2]string{parent, s.Pointer}], "no edge leads from %s to %s", parent, s.Path)
		}
		previous[list] = s.Pointer
	}
}
