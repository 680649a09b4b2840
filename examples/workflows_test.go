package examples_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/workflowtest"
	"github.com/signalbox-dev/signalbox/internal/cli/workflowcmd"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// parse parses one example, which must have no problems.
func parse(t *testing.T, path string) *dsl.Document {
	t.Helper()
	source, err := os.ReadFile(path)
	require.NoError(t, err)
	resources := dsl.NewResources()
	_, _ = dsl.Parse(source, dsl.WithResources(resources))
	for _, missing := range resources.Missing() {
		content, err := os.ReadFile(filepath.Join(filepath.Dir(path), missing.URI))
		require.NoError(t, err)
		resources.Add(missing.URI, content)
	}
	document, problems := dsl.Parse(source, dsl.WithResources(resources))
	require.Empty(t, problems)
	return document
}

func files(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("workflows/*.yaml")
	require.NoError(t, err)
	paths = slices.DeleteFunc(paths, func(path string) bool { return !workflowcmd.IsWorkflowFile(path) })
	require.NotEmpty(t, paths)
	return paths
}

func TestEveryExampleIsValidAndDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, path := range files(t) {
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			document := parse(t, path)
			require.Equal(t, name, document.Name, "the file is named after the workflow")
			require.Equal(t, "examples", document.Namespace)
			require.NotEmpty(t, document.Summary)

			source, err := os.ReadFile(path)
			require.NoError(t, err)
			begin := "signalbox run start " + name
			if document.Schedule != nil {
				begin = "signalbox event send"
			}
			for _, want := range []string{"# Shows:", "# Run:", "# Result:", begin} {
				require.Contains(t, string(source), want)
			}
			require.Contains(t, string(page), "(workflows/"+name+".yaml)", "the table of README.md lists every example")
		})
	}
}

// Every example has tests, which take at least two thirds of its tasks and branches.
func TestEveryExampleHasTestsThatPass(t *testing.T) {
	t.Parallel()
	for _, path := range files(t) {
		document := parse(t, path)
		source, err := os.ReadFile(strings.TrimSuffix(path, ".yaml") + ".test.yaml")
		require.NoError(t, err)
		tests, violations := workflowtest.Parse(source)
		require.Empty(t, violations, path)
		require.Empty(t, tests.Check(document), path)
		report := tests.Run(t.Context(), document, nil, 1)
		for _, result := range report.Results {
			require.True(t, result.Passed(), "%s: %s\n%s", path, result.Case, result.Explain())
		}
		require.Empty(t, report.Unused, path)
		require.GreaterOrEqual(t, report.Coverage.Percent(), 66, path)
	}
}

// TestQuickStart runs the document of the quick start.
func TestQuickStart(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/quickstart.md")
	require.NoError(t, err)
	match := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)
	require.NotNil(t, match)
	document, problems := dsl.Parse(match[1])
	require.Empty(t, problems)

	outcome, _ := run(t, nil, document, map[string]any{"names": []any{"Ada", "Grace"}})
	require.Equal(t, map[string]any{"greetings": []any{"Hello, Ada!", "Hello, Grace!"}}, outcome.Output)
}
