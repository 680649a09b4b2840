package hygiene_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/hygiene"
)

const (
	root = "../.."
	mib  = 1 << 20
)

func repository(t *testing.T) hygiene.Tree {
	t.Helper()
	tree, err := hygiene.Load(root)
	require.NoError(t, err)
	return tree
}

func clean(t *testing.T, violations []hygiene.Violation) {
	t.Helper()
	require.Empty(t, render(violations))
}

func TestEveryPackageIsInTheArchitecture(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	require.NoError(t, err)
	tree := repository(t)
	clean(t, hygiene.Unlisted(tree, string(page)))
	require.NotEmpty(t, hygiene.Unlisted(tree, strings.ReplaceAll(string(page), "`keyring`", "")),
		"missing packages are found")
	require.NotEmpty(t, hygiene.Unlisted(tree, string(page)+"\n| `internal/redact` `keyring` | again |\n"),
		"duplicates are found")
}

func TestLogsHaveDurationsInSeconds(t *testing.T) {
	t.Parallel()
	clean(t, hygiene.LogDurations(repository(t)))
}

// One constant defines the mark that replaces sensitive values, so that checks for the mark cannot miss another
// spelling.
func TestOnlyOnePackageDefinesTheMark(t *testing.T) {
	t.Parallel()
	for _, spelling := range []string{"\u27e6redacted\u27e7", `\u27e6redacted`} {
		out, err := exec.CommandContext(t.Context(), "git", "-C", root, "grep", "-l", "-F", spelling, "--", "internal/*.go",
			"cmd/*.go", "dsl/*.go",
			":!*_test.go", ":!internal/redact").CombinedOutput()
		require.Empty(t, string(out), "use redact.Mark")
		require.Error(t, err) // nothing was found
	}
}

func TestImportsFollowTheArchitecture(t *testing.T) {
	t.Parallel()
	graph, err := hygiene.Graph(t.Context(), root, "./...")
	require.NoError(t, err)
	require.Contains(t, graph, hygiene.Module+"/dsl")
	clean(t, hygiene.Direction(graph, hygiene.Arrows()))
	clean(t, hygiene.Linked(graph, hygiene.Bans()))
}

func TestOnlyOneModuleEmbedsTemporal(t *testing.T) {
	t.Parallel()
	violations, err := hygiene.Requirements(root, "go.temporal.io/server", "devserver")
	require.NoError(t, err)
	clean(t, violations)
}

func TestProgramsLinkNoTestLibraries(t *testing.T) {
	t.Parallel()
	for _, module := range []string{".", "devserver"} {
		graph, err := hygiene.Graph(t.Context(), filepath.Join(root, module), "./cmd/signalbox")
		require.NoError(t, err)
		require.Contains(t, graph, hygiene.Module+"/internal/app")
		clean(t, hygiene.TestCode(graph, hygiene.TestImporters(module)))
	}
}

func TestBinariesStaySmall(t *testing.T) {
	t.Parallel()
	tests := []struct {
		variable string
		limit    int64
		banned   []string
	}{
		{"SIGNALBOX_SERVER_BIN", 90 * mib, []string{"go.temporal.io/server"}},
		{"SIGNALBOX_BIN", 200 * mib, nil},
	}
	for _, tt := range tests {
		t.Run(tt.variable, func(t *testing.T) {
			t.Parallel()
			path := os.Getenv(tt.variable)
			if path == "" {
				t.Skipf("%s is not set; make test sets it to the binary it built", tt.variable)
			}
			violations, err := hygiene.Binary(filepath.Clean(path), tt.limit, tt.banned...)
			require.NoError(t, err)
			clean(t, violations)
		})
	}
}

func TestCommentsBeginWithTheName(t *testing.T) {
	t.Parallel()
	clean(t, hygiene.DocComments(repository(t)))
}

func TestCommentsNameWhatExists(t *testing.T) {
	t.Parallel()
	clean(t, hygiene.NamedPackages(repository(t)))
}
