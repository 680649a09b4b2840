package jq_test

import (
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// TestDifferencesFromJQ keeps the list of differences on the page of expressions true: for this package, and for an
// installed jq of version 1.7 or later.
func TestDifferencesFromJQ(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/expressions.md")
	require.NoError(t, err)
	_, list, found := strings.Cut(string(page), "\n## Differences from jq\n")
	require.True(t, found)
	rows := regexp.MustCompile("(?m)^\\| `(.+?)` \\| (.+?) \\| (.+?) \\| .+ \\|$").FindAllStringSubmatch(list, -1)
	require.Greater(t, len(rows), 8)
	require.Len(t, rows, strings.Count(list, "\n| `"), "a row has another form")
	version, _ := exec.Command("jq", "--version").Output()
	recent := regexp.MustCompile(`^jq-1\.([7-9]|[1-9]\d)`).Match(version)
	t.Logf("jq: %q, compared: %v", strings.TrimSpace(string(version)), recent)
	for _, row := range rows {
		expression, here, there := strings.ReplaceAll(row[1], `\|`, "|"), row[2], row[3]
		fuel := jq.NewFuel(jq.DefaultFuel)
		fuel.Now = time.Unix(1, 0)
		got, err := run(expression, nil, nil, fuel)
		if here == "fails" {
			require.Error(t, err, expression)
		} else {
			require.NoError(t, err, expression)
			text, err := jq.EncodeJSON(got)
			require.NoError(t, err)
			require.Equal(t, strings.Trim(here, "`"), string(text), expression)
		}
		if recent && strings.HasPrefix(there, "`") {
			out, err := exec.Command("jq", "-n", "-c", expression).Output()
			require.NoError(t, err, expression)
			require.Equal(t, strings.Trim(there, "`"), strings.TrimSpace(string(out)), expression)
		}
	}
}

// TestRefusedBuiltinsAreListed compares the builtins of jq, of which testdata has a list, with those of this package.
func TestRefusedBuiltinsAreListed(t *testing.T) {
	t.Parallel()
	all, err := os.ReadFile("testdata/builtins.txt")
	require.NoError(t, err)
	page, err := os.ReadFile("../../docs/expressions.md")
	require.NoError(t, err)
	_, text, found := strings.Cut(string(page), "\nThese builtins of jq are refused")
	require.True(t, found)
	text, _, _ = strings.Cut(text, "Nor are there")
	ours, refused := jq.Builtins(), map[string]bool{}
	for builtin := range strings.FieldsSeq(string(all)) {
		if !slices.Contains(ours, builtin) {
			name, _, _ := strings.Cut(builtin, "/")
			refused[name] = true
		}
	}
	var listed []string
	for _, name := range regexp.MustCompile("`([A-Za-z0-9_]+)`").FindAllStringSubmatch(text, -1) {
		listed = append(listed, name[1])
	}
	require.Equal(t, slices.Sorted(maps.Keys(refused)), slices.Sorted(slices.Values(listed)))
}
