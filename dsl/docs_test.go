package dsl_test

import (
	"os"
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
	require.Len(t, blocks, 7)
	for _, block := range blocks {
		source, _, _ := strings.Cut(block, "```")
		if !strings.HasPrefix(source, "document:") {
			source = header + source
		}
		parse(t, source)
	}
	for _, code := range dsl.Codes() {
		require.Contains(t, string(page), "| `"+string(code)+"` |")
	}
}
