package graph

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
)

// Every example is drawn without overlaps: nodes of one list keep their distance, and each is inside of what contains it.
func TestDrawingsHaveNoOverlaps(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../examples/workflows/*.yaml")
	require.NoError(t, err)
	drawn := 0
	for _, path := range paths {
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		doc, _ := dsl.Parse(source)
		if doc == nil {
			continue
		}
		drawn++
		g := Of(doc)
		p := place(g)
		for id, children := range p.children {
			around := p.boxes[id]
			for i, child := range children {
				b := p.boxes[child]
				require.GreaterOrEqual(t, b.x, around.x, path)
				require.LessOrEqual(t, b.right(), around.right(), path)
				require.LessOrEqual(t, b.bottom(), around.bottom(), path)
				for _, other := range children[:i] {
					o := p.boxes[other]
					apart := b.x >= o.right() || o.x >= b.right() || b.y >= o.bottom() || o.y >= b.bottom()
					require.True(t, apart, "%s: %s and %s", path, child, other)
				}
			}
		}
		text := g.SVG()
		require.NoError(t, xml.Unmarshal([]byte(text), new(struct{})), "%s\n%s", path, text)
		require.Equal(t, len(g.Edges), strings.Count(text, "marker-end="), path)
		require.Equal(t, text, g.SVG(), "it is always the same")
	}
	require.Greater(t, drawn, 5)
}

func TestDrawingsFollowTheFlow(t *testing.T) {
	t.Parallel()
	doc, violations := dsl.Parse([]byte(`
document: {dsl: '1.0.3', namespace: shop, name: order, version: '1.0.0'}
do:
  - pick: {switch: [{large: {when: '.n > 9', then: pay}}, {other: {then: end}}]}
  - pay: {set: {n: 1}}
  - both: {fork: {branches: [{a: {set: {n: 3}}}, {b: {set: {n: 4}}}]}}
  - again: {if: .x, set: {n: 1}, then: pick}
`))
	require.NotNil(t, doc, violations)
	p := place(Of(doc))
	at := func(id string) *box { return p.boxes[id] }
	require.Less(t, at("start").bottom(), at("/do/0/pick").y)
	require.Less(t, at("/do/0/pick").bottom(), at("/do/1/pay").y)
	a, b := at("/do/2/both/fork/branches/0/a"), at("/do/2/both/fork/branches/1/b")
	require.Equal(t, a.y, b.y, "branches are side by side")
	require.Equal(t, a.right()+betweenNodes, b.x, "in the order of the document")
	require.Len(t, p.lanes[""], 2, "an edge back, and one that passes tasks, have lanes")
}
