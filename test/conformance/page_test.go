package conformance_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"
)

const page = "../../docs/conformance.md"

// keepPage compares a generated part of the page, or writes it where the environment says so.
func keepPage(t *testing.T, part, text string) {
	t.Helper()
	content, err := os.ReadFile(page)
	require.NoError(t, err)
	begin, end := fmt.Sprintf("<!-- %s: written by make conformance -->\n", part), fmt.Sprintf("<!-- end of %s -->\n", part)
	before, rest, found := strings.Cut(string(content), begin)
	require.True(t, found, "the page has no %q", begin)
	current, after, found := strings.Cut(rest, end)
	require.True(t, found, "the page has no %q", end)
	text = "\n" + text + "\n"
	if os.Getenv("SIGNALBOX_CONFORMANCE_PAGE") != "" {
		require.NoError(t, os.WriteFile(page, []byte(before+begin+text+end+after), 0o600))
		return
	}
	require.Equal(t, text, current, "run make conformance")
}

// table returns the results by feature.
func table(results []result) string {
	var b strings.Builder
	b.WriteString("| feature | passed | scenarios |\n|---|---|---|\n")
	for len(results) > 0 {
		feature := results[0].feature
		passed, n := 0, 0
		var names []string
		for ; n < len(results) && results[n].feature == feature; n++ {
			name := results[n].name
			if results[n].passed {
				passed++
			} else {
				name += " (not run: " + strings.Split(results[n].unsupported, " is in the language")[0] + ")"
			}
			names = append(names, strings.ReplaceAll(name, "|", `\|`))
		}
		fmt.Fprintf(&b, "| %s | %d of %d | %s |\n", feature, passed, n, strings.Join(names, "; "))
		results = results[n:]
	}
	return b.String()
}

// unused lists the properties of the specification's schema that no scenario, of the kit or ours, has.
func unused(t *testing.T, official string) string {
	t.Helper()
	used := map[string]bool{}
	for _, dir := range []string{"testdata", filepath.Join(official, "ctk")} {
		files, err := filepath.Glob(filepath.Join(dir, "*.feature"))
		require.NoError(t, err)
		for _, file := range files {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			for i, block := range strings.Split(string(data), `"""`) {
				var value any
				if i%2 == 1 && yaml.Unmarshal([]byte(strings.TrimPrefix(block, "yaml")), &value) == nil {
					collectKeys(value, used)
				}
			}
		}
	}
	data, err := os.ReadFile(filepath.Join(official, "workflow.yaml"))
	require.NoError(t, err)
	var schema any
	require.NoError(t, yaml.Unmarshal(data, &schema))
	missing := map[string]bool{}
	properties(schema, "", func(of, name string) {
		if !used[name] {
			missing[of+"."+name] = true
		}
	})
	if len(missing) == 0 {
		return "Each property of the schema is in a scenario.\n"
	}
	return fmt.Sprintf("Properties of the schema that are in no scenario: `%s`.\n",
		strings.Join(slices.Sorted(maps.Keys(missing)), "`, `"))
}

func collectKeys(v any, into map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			into[key] = true
			collectKeys(member, into)
		}
	case []any:
		for _, item := range v {
			collectKeys(item, into)
		}
	}
}

// properties calls f for each property that a schema defines, with the title of the object that has it.
func properties(schema any, title string, f func(of, name string)) {
	switch v := schema.(type) {
	case map[string]any:
		if own, ok := v["title"].(string); ok {
			title = own
		}
		members, _ := v["properties"].(map[string]any)
		for name := range members {
			f(title, name)
		}
		for _, member := range v {
			properties(member, title, f)
		}
	case []any:
		for _, item := range v {
			properties(item, title, f)
		}
	}
}
