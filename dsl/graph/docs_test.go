package graph_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/graph"
)

// The page of the language shows the graph of each construct that changes the flow. With UPDATE=1 in the environment this
// writes the graphs there.
func TestThePageOfTheLanguageShowsItsGraphs(t *testing.T) {
	t.Parallel()
	const path = "../../docs/language.md"
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	example := regexp.MustCompile("(?s)```yaml\n(do:\n[^`]*)```\n\n```mermaid\n([^`]*)```\n")
	found := map[string]bool{}
	updated := example.ReplaceAllStringFunc(string(page), func(block string) string {
		parts := example.FindStringSubmatch(block)
		doc, violations := dsl.Parse([]byte("document: {dsl: '1.0.3', namespace: a, name: b, version: '1.0.0'}\n" + parts[1]))
		require.NotNil(t, doc, "%s\n%v", parts[1], violations)
		g := graph.Of(doc)
		for _, n := range g.Nodes {
			found[n.Kind] = true
		}
		return strings.Replace(block, parts[2], g.Mermaid(), 1)
	})
	for _, kind := range []string{"switch", "for", "fork", "try", "catch", "do", "listen", "wait", "raise"} {
		require.True(t, found[kind], "there is no graph of %s", kind)
	}
	if os.Getenv("UPDATE") == "1" {
		require.NoError(t, os.WriteFile(path, []byte(updated), 0o600))
		return
	}
	require.Equal(t, string(page), updated)
}
