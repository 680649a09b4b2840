package dsl_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
)

// TestLanguagePage keeps the page for authors true: its documents parse and every code is explained.
func TestLanguagePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/language.md")
	require.NoError(t, err)
	blocks := strings.Split(string(page), "```yaml\n")[1:]
	require.Len(t, blocks, 16)
	for _, block := range blocks {
		source, _, _ := strings.Cut(block, "```")
		if !strings.HasPrefix(source, "document:") {
			source = header + source
		}
		doc, violations, _ := parseWith(source, map[string]string{"https://shop.example/openapi.yaml": `
openapi: 3.1.0
paths:
  /customers/{customer}/orders:
    post:
      operationId: createOrder
      parameters:
        - {name: customer, in: path, required: true, schema: {type: string}}
        - {name: dryRun, in: query, schema: {type: boolean}}
      requestBody: {content: {application/json: {schema: {required: [sku], properties: {quantity: {type: integer}}}}}}
`})
		require.Empty(t, violations)
		require.NotNil(t, doc)
	}
	for _, code := range dsl.Codes() {
		require.Contains(t, string(page), "| `"+string(code)+"` |")
	}
}

// TestConformancePage keeps the page of choices true: each has a passage, and a test that exists.
func TestConformancePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/conformance.md")
	require.NoError(t, err)
	var tests strings.Builder
	for _, pattern := range []string{"*", "*/*", "*/*/*", "../internal/engine/*/*", "../internal/engine/httpcall/*/*", "../internal/sandbox/*/*"} {
		files, err := filepath.Glob(pattern + "_test.go")
		require.NoError(t, err)
		for _, file := range files {
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			tests.Write(source)
		}
	}
	_, table, found := strings.Cut(string(page), "|---|---|---|---|---|\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(row), " | ")
		require.Len(t, cells, 5, row)
		require.Regexp(t, `^\| dsl(-reference)?\.md, |^\| examples/|^\| schema/`, cells[0])
		names := regexp.MustCompile("`(Test[A-Za-z]+)`").FindAllStringSubmatch(cells[4], -1)
		require.NotEmpty(t, names, row)
		for _, name := range names {
			require.Contains(t, tests.String(), "func "+name[1]+"(", row)
		}
	}
}
