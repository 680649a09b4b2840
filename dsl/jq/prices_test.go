package jq_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// TestFuelIsPinned fails if the cost of an expression changes: the compute of a run determines where its
// workflow tasks end, so recorded histories would not replay. An intended change, also one by another version of gojq
// or of Go, needs a new version of the interpreter.
func TestFuelIsPinned(t *testing.T) {
	t.Parallel()
	const input = `{"a":[3,1,2],"b":{"c":"xyz","d":null},"s":"a,b,,c","n":7,"f":1.5,"o":[{"k":"x","v":1},{"k":"y","v":2},{"k":"x","v":3}],"deep":{"x":{"y":[{"z":1},{"z":2}]}},"big":12345678901234567890}`
	var all strings.Builder
	for _, source := range sameAsJQ() {
		fuel := jq.NewFuel(jq.DefaultFuel)
		_, err := run(source, decode(t, input), nil, fuel)
		fmt.Fprintln(&all, source, fuel.Used(), err != nil)
	}
	sum := sha256.Sum256([]byte(all.String()))
	require.Equal(t, "3e9e41efdc734a5c", hex.EncodeToString(sum[:8]), all.String())
}

// TestPatternsAreBounded runs the searches of this package on inputs that are known to be costly.
func TestPatternsAreBounded(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		`"a" | test("(?:(?:a{100}){100}){100}")`:                               "longer than 2000 parts",
		`"a" | test("(?:` + strings.Repeat(`a{1000}`, 100) + `)")`:             "longer than 2000 parts",
		`"a" | test("` + strings.Repeat("a", 1025) + `")`:                      "a pattern of 1025 bytes",
		`[range(4)] | map([("a" * 16000) | match("(a*)*b|a?"; "g")] | length)`: "compute budget",
		`("a" * 16000000) | explode`:                                           "262144",
		`[("a" * 100000) | match("a?"; "g")]`:                                  "compute budget",
	} {
		_, err := run(source, nil, nil, jq.NewFuel(1_250_000))
		require.ErrorContains(t, err, want, source)
	}
	got, err := run(`[range(4)] | map([("a" * 8000) | match("a?"; "g")] | length)`, nil, nil, jq.NewFuel(1_250_000))
	require.NoError(t, err)
	require.Equal(t, []any{8001, 8001, 8001, 8001}, got)
}
