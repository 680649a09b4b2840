package graph_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/graph"
	"github.com/signalbox-dev/signalbox/dsl/taskindex"
)

func TestGraphs(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			require.NoError(t, err)
			require.Len(t, archive.Files, 2)
			doc, violations := dsl.Parse(archive.Files[0].Data)
			require.False(t, violations.HasErrors(), violations)
			got := text(graph.Of(doc))
			if os.Getenv("UPDATE") != "" {
				archive.Files[1].Data = []byte(got)
				require.NoError(t, os.WriteFile(file, txtar.Format(archive), 0o600))
			}
			require.Equal(t, string(archive.Files[1].Data), got)
		})
	}
}

func text(g graph.Graph) string {
	var b strings.Builder
	for _, n := range g.Nodes {
		fmt.Fprintf(&b, "%d:%d %s %s in %q: %q\n", n.Pos.Line, n.Pos.Column, n.ID, n.Kind, n.Parent, n.Label)
	}
	for _, e := range g.Edges {
		fmt.Fprintf(&b, "%s -> %s %s %q\n", e.From, e.To, e.Kind, e.Label)
	}
	return b.String()
}

// documents returns the documents of the repository and, if they are there, those of the specification.
func documents(t *testing.T) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	add := func(pattern string, atLeast int) {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(files), atLeast, pattern)
		for _, file := range files {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			if archive := txtar.Parse(data); len(archive.Files) > 0 {
				data = archive.Files[0].Data
			}
			out[file] = data
		}
	}
	add(filepath.Join("..", "..", "examples", "workflows", "*.yaml"), 10)
	add(filepath.Join("testdata", "*.txtar"), 1)
	dir := os.Getenv("OWS_DIR")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "open-workflow")
	}
	add(filepath.Join(dir, "examples", "*.yaml"), 0)
	features, err := filepath.Glob(filepath.Join(dir, "ctk", "*.feature"))
	require.NoError(t, err)
	for _, file := range features {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		for i, part := range strings.Split(string(data), "Given a workflow with definition:")[1:] {
			out[fmt.Sprint(file, " ", i)] = []byte(strings.TrimPrefix(strings.Split(part, `"""`)[1], "yaml"))
		}
	}
	return out
}

func TestGraphsAreComplete(t *testing.T) {
	t.Parallel()
	parsed := 0
	for name, source := range documents(t) {
		doc, violations := dsl.Parse(source)
		if doc == nil {
			continue // this version does not run it
		}
		parsed++
		g := graph.Of(doc)
		require.Equal(t, g, graph.Of(doc), name)
		nodes := map[string]graph.Node{}
		for _, n := range g.Nodes {
			require.NotContains(t, nodes, n.ID, name)
			nodes[n.ID] = n
		}
		for pointer, task := range taskindex.Of(doc) {
			n := nodes[pointer]
			require.Equal(t, []any{pointer, task.Name, string(task.Body.Kind()), task.Pos}, []any{n.ID, n.Name, n.Kind, n.Pos},
				name)
			require.Positive(t, n.Pos.Line, name)
		}
		for _, n := range g.Nodes {
			if n.Parent != "" {
				require.Contains(t, nodes, n.Parent, name)
				require.True(t, strings.HasPrefix(n.ID, n.Parent+"/"), name)
			}
			require.LessOrEqual(t, len([]rune(n.Label)), 80, name)
			require.NotContains(t, n.Label, "\n", name)
		}
		seen := map[graph.Edge]bool{}
		for _, e := range g.Edges {
			require.Contains(t, nodes, e.From, name)
			require.Contains(t, nodes, e.To, name)
			require.False(t, seen[e], "%s: %v twice", name, e)
			seen[e] = true
			requireNesting(t, nodes, e, name)
		}
		requireReachable(t, g, violations, name)
	}
	require.GreaterOrEqual(t, parsed, 10)
	t.Logf("%d documents", parsed)
}

// requireNesting checks that an edge stays in its list, enters a list of its task, leaves to the containing node, or
// ends the run.
func requireNesting(t *testing.T, nodes map[string]graph.Node, e graph.Edge, name string) {
	t.Helper()
	from, to := nodes[e.From], nodes[e.To]
	switch {
	case e.To == graph.End, from.Parent == to.Parent, to.Parent == e.From, from.Parent == e.To:
	// the directive of a catch is that of its try
	case from.Kind == graph.KindCatch && nodes[from.Parent].Parent == to.Parent:
	case from.Kind == graph.KindCatch && nodes[from.Parent].Parent == e.To:
	default:
		t.Errorf("%s: the edge %v crosses lists", name, e)
	}
}

// requireReachable compares the nodes that no edges lead to with those that the parser reports as unreachable.
func requireReachable(t *testing.T, g graph.Graph, violations dsl.Violations, name string) {
	t.Helper()
	reached := map[string]bool{}
	begins := []string{graph.Start}
	for _, n := range g.Nodes {
		if n.Kind == graph.KindBefore || n.Kind == graph.KindAfter {
			begins = append(begins, n.ID)
		}
	}
	for queue := begins; len(queue) > 0; queue = queue[1:] {
		if reached[queue[0]] {
			continue
		}
		reached[queue[0]] = true
		for _, e := range g.Edges {
			if e.From == queue[0] {
				queue = append(queue, e.To)
			}
		}
	}
	var unreachable []string
	for _, p := range violations {
		if p.Code == dsl.CodeUnreachable {
			unreachable = append(unreachable, p.Path)
		}
	}
	for _, n := range g.Nodes {
		expected := !slices.ContainsFunc(unreachable, func(pointer string) bool {
			return n.ID == pointer || strings.HasPrefix(n.ID, pointer+"/")
		})
		if n.ID != graph.End {
			require.Equal(t, expected, reached[n.ID], "%s: %s", name, n.ID)
		}
	}
}
