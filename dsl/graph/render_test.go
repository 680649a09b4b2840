package graph_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/graph"
)

const rendered = `
document: {dsl: '1.0.3', namespace: shop, name: order, version: '1.0.0'}
do:
  - pick: {switch: [{large: {when: '.n > "9"', then: pay}}, {other: {then: end}}]}
  - pay:
      try: [{charge: {set: {n: 1}}}]
      catch: {do: [{give: {set: {n: 2}}}]}
  - both: {fork: {branches: [{a: {set: {n: 3}}}, {b: {set: {n: 4}}}]}}
`

func render(t *testing.T) graph.Graph {
	t.Helper()
	doc, violations := dsl.Parse([]byte(rendered))
	require.False(t, violations.HasErrors(), "%v", violations)
	return graph.Of(doc)
}

func TestMermaidHasEveryNodeAndEdge(t *testing.T) {
	t.Parallel()
	g := render(t)
	got := g.Mermaid()
	require.True(t, strings.HasPrefix(got, "flowchart TD\n  n0([\"start\"])\n"), got)
	require.Contains(t, got, `n1{"pick<br/>switch`)
	require.Contains(t, got, `-->|".n #gt; #quot;9#quot;"|`)
	require.Equal(t, strings.Count(got, "subgraph "), strings.Count(got, "  end\n"))
	require.Equal(t, len(g.Edges), strings.Count(got, "-->")+strings.Count(got, "-.->"))
}

func TestDOTHasEveryNodeAndEdge(t *testing.T) {
	t.Parallel()
	g := render(t)
	got := g.DOT()
	nodes := 0
	for line := range strings.Lines(got) {
		if strings.Contains(line, ` [label="`) && !strings.Contains(line, " -> ") {
			nodes++
		}
	}
	require.Equal(t, len(g.Nodes), nodes)
	require.Equal(t, len(g.Edges), strings.Count(got, " -> "))
	require.Equal(t, strings.Count(got, "{"), strings.Count(got, "}"))
	require.Contains(t, got, `\"9\"`)
}

func TestTextIsAnOutline(t *testing.T) {
	t.Parallel()
	require.Equal(t, `start
pick  switch  2 cases
  .n > "9" → pay
  other → end
pay  try
  catch: any error → catch
  charge  set  n
  catch  any error
    give  set  n
both  fork  2 branches
  a  set  n
  b  set  n
end
`, render(t).Text())
}
