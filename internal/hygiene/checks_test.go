package hygiene_test

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/signalbox-dev/signalbox/internal/hygiene"
)

// plant writes an archive of files below a temporary folder.
func plant(t *testing.T, archive string) string {
	t.Helper()
	root := t.TempDir()
	for _, f := range txtar.Parse([]byte(archive)).Files {
		path := filepath.Join(root, filepath.FromSlash(f.Name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, f.Data, 0o600))
	}
	return root
}

func TestLogDurations(t *testing.T) {
	t.Parallel()
	tree, err := hygiene.Load(plant(t, `-- a/a.go --
package a

func f(log *slog.Logger, d time.Duration) {
	log.Info("fine", "took", d, "age_seconds", d.Seconds(), "addr", a.String(), "n", d)
	log.WarnContext(ctx, "wrong", "took", d.Milliseconds(), "age", d.Seconds())
	log.With("since", time.Since(begin).String()).Error("wrong")
	log.Info("wrong", "check_every", l.opts.CheckEvery.String())
}
-- a/a_test.go --
package a

func g() { log.Info("a test", "took", d.Milliseconds()) }
`))
	require.NoError(t, err)
	require.Equal(t, `a: logs "took" in Milliseconds: pass the duration itself
a: logs "age" in seconds: name it age_seconds
a: logs "since" as text with varying units: pass the duration itself
a: logs "check_every" as text with varying units: pass the duration itself
`, render(hygiene.LogDurations(tree)))
}

func render(findings []hygiene.Finding) string {
	text := ""
	for _, f := range findings {
		text += f.String() + "\n"
	}
	return text
}

func TestLoadNamesAFileThatDoesNotParse(t *testing.T) {
	t.Parallel()
	_, err := hygiene.Load(plant(t, "-- a/broken.go --\npackage a\nfunc {\n"))
	require.ErrorContains(t, err, "broken.go:2")
}

func TestDirection(t *testing.T) {
	t.Parallel()
	const m = hygiene.Module + "/"
	rules := []hygiene.Rule{
		{From: "dsl", Why: "pure"},
		{From: "dsl/interp", Allow: []string{"dsl"}},
		{From: "internal/app", Allow: []string{"internal/store"}},
		{From: "internal/store", Why: "rows only"},
		{From: "internal/cli", Allow: []string{"dsl"}, Why: "a client"},
	}
	tests := []struct {
		name  string
		graph hygiene.Imports
		want  string
	}{
		{"allowed, and what is not ours", hygiene.Imports{m + "internal/app": {m + "internal/store/sql", "fmt"}, m + "internal/store/sql": nil}, ""},
		{"inside one subtree", hygiene.Imports{m + "internal/store": {m + "internal/store/sql"}, m + "internal/store/sql": nil}, ""},
		{"against the arrow", hygiene.Imports{m + "internal/store": {m + "internal/app"}, m + "internal/app": nil},
			"internal/store: must not import internal/app: rows only\n"},
		{"an allowed tree does not open a tree with a rule of its own", hygiene.Imports{m + "internal/cli": {m + "dsl/interp"}, m + "dsl/interp": nil},
			"internal/cli: must not import dsl/interp: a client\n"},
		{"a parent may not import a child with a rule of its own", hygiene.Imports{m + "dsl": {m + "dsl/interp"}, m + "dsl/interp": nil},
			"dsl: must not import dsl/interp: pure\n"},
		{"a package without a rule", hygiene.Imports{m + "internal/new": nil}, "internal/new: has no rule; add one in Arrows with the packages that it may import\n"},
		{"a name with the same beginning", hygiene.Imports{m + "internal/application": nil}, "internal/application: has no rule; add one in Arrows with the packages that it may import\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, render(hygiene.Direction(tt.graph, rules)))
		})
	}
}

func TestLinked(t *testing.T) {
	t.Parallel()
	const m = hygiene.Module + "/"
	bans := []hygiene.Ban{
		{From: "dsl", Links: []string{"go.temporal.io/...", "database/sql"}, Except: []string{"dsl/run"}, Why: "no engine"},
		{Links: []string{"go.temporal.io/server/..."}, Why: "no server"},
		{From: "conn", Links: []string{hygiene.Module + "/internal/...", "!" + hygiene.Module + "/internal/loop"}, Why: "no platform"},
	}
	graph := hygiene.Imports{
		m + "dsl":                   {"fmt", "example.com/a"},
		m + "dsl/run":               {"go.temporal.io/sdk/client"},
		m + "internal/x":            {m + "internal/y"},
		m + "internal/y":            {"go.temporal.io/server/temporal"},
		m + "conn":                  {m + "internal/loop", m + "internal/z"},
		m + "dsl/small":             {"database/sql/driver"},
		m + "dsl/sql":               {"database/sql"},
		"example.com/a":             {"go.temporal.io/sdk/client"},
		"go.temporal.io/sdk/client": {"example.com/a"}, // a cycle, as in tests of the standard library
	}
	require.Equal(t, `conn: links `+m+`internal/z: no platform
dsl: links example.com/a → go.temporal.io/sdk/client: no engine
dsl/sql: links database/sql: no engine
internal/x: links `+m+`internal/y → go.temporal.io/server/temporal: no server
internal/y: links go.temporal.io/server/temporal: no server
`, render(hygiene.Linked(graph, bans)))
}

func TestTestCode(t *testing.T) {
	t.Parallel()
	graph := hygiene.Imports{
		"example.com/program":                {"example.com/sdk/internal", "testing/fstest", "fmt"},
		"example.com/sdk/internal":           {"github.com/stretchr/testify/mock"},
		"github.com/stretchr/testify/mock":   {"github.com/stretchr/testify/assert", "testing"},
		"github.com/stretchr/testify/assert": {"net/http/httptest"},
	}
	accepted := []hygiene.Importer{{Tree: "example.com/sdk", Why: "its suite"}, {Tree: "example.com/gone", Why: "its mocks"}}
	require.Equal(t, `example.com/program: imports testing/fstest, which is for tests, into a program
example.com/gone: imports no library for tests any more; remove it from TestImporters (its mocks)
`, render(hygiene.TestCode(graph, accepted)))
}

func TestRequirements(t *testing.T) {
	t.Parallel()
	findings, err := hygiene.Requirements(plant(t, `
-- go.mod --
module example.com/a
require example.com/other v1.0.0
-- dev/go.mod --
module example.com/a/dev
require example.com/server v1.0.0
-- test/go.mod --
module example.com/a/test
require example.com/server v1.0.0 // indirect
-- testdata/go.mod --
module example.com/a/skipped
require example.com/server v1.0.0
`), "example.com/server", "dev")
	require.NoError(t, err)
	require.Equal(t, "test: requires example.com/server, which only this may: [dev]\n", render(findings))

	_, err = hygiene.Requirements(plant(t, "-- a/go.mod --\nmodul x\n"), "example.com/server")
	require.ErrorContains(t, err, "a/go.mod:1")
}

func TestBinary(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	info, err := os.Stat(self)
	require.NoError(t, err)

	findings, err := hygiene.Binary(self, info.Size()+1)
	require.NoError(t, err)
	require.Empty(t, findings)

	findings, err = hygiene.Binary(self, info.Size())
	require.NoError(t, err)
	require.Len(t, findings, 1)
	require.Contains(t, findings[0].What, "it must stay under")

	_, err = hygiene.Binary(filepath.Join(t.TempDir(), "absent"), 1)
	require.ErrorContains(t, err, "look at a built binary")
}

func TestBuilt(t *testing.T) {
	t.Parallel()
	built := &debug.BuildInfo{Deps: []*debug.Module{{Path: "example.com/server"}, {Path: "example.com/server/more"}}}
	require.Equal(t, "x: has 10 bytes; it must stay under 10\nx: links example.com/server\n",
		render(hygiene.Built("x", 10, 10, built, "example.com/server", "example.com/absent")))
}
