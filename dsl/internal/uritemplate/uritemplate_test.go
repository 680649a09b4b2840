package uritemplate_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl/internal/uritemplate"
)

// TestResultIsBounded expands what would take gigabytes or minutes: large values, many of them, and many that expand to
// nothing.
func TestResultIsBounded(t *testing.T) {
	text, list := strings.Repeat("ä", 8<<20), make([]any, 1<<18)
	values := map[string]any{"text": text, "nulls": list, "short": "a b/c"}
	for name, template := range map[string]string{
		"text": "http://h/{text}", "reserved": "http://h/{+text}", "texts": strings.Repeat("{text}", 150_000),
		"nulls":   strings.Repeat("{nulls*}", 100_000),
		"missing": "{" + strings.Repeat("x,", 1<<20) + "x}", "literal": strings.Repeat("x", uritemplate.MaxBytes+1),
		"escapes": "{" + strings.Repeat("short,", 300_000) + "x}", "names": "{?" +
			strings.Repeat(strings.Repeat("n", 500)+",", 2000) + "short}" + strings.Repeat("{?short}", 100_000),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := uritemplate.Expand(template, values)
		runtime.ReadMemStats(&after)
		require.ErrorContains(t, err, "longer than 1048576 bytes", name)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(32<<20), name)
	}
	got, err := uritemplate.Expand(strings.Repeat("x", 1000)+"{?short}{&list}{/list*}{+short}",
		map[string]any{"short": "a b/c", "list": []any{1, nil, "é"}})
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("x", 1000)+"?short=a%20b%2Fc&list=1,%C3%A9/1/%C3%A9a%20b/c", got)
}
