package dsl_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/taskindex"
)

const goFunction = `{program: pricing, function: price, version: 1.2.0, idempotent: true, input: '${ .order }'}`

func TestCallsOfGoFunctions(t *testing.T) {
	t.Parallel()
	doc := requireValid(t, referring+`
use: {functions: {price: {call: go, with: `+goFunction+`}}}
do:
  - direct: {call: go, with: {program: pricing, function: price, version: 1.2.0, signature: 'sha256:`+
		strings.Repeat("0a", 32)+`'}}
  - named: {call: price, with: {order: 1}, metadata: {signalbox.repeat: allowed}}
`, nil)
	tasks := taskindex.Of(doc)
	direct, ok := tasks["/do/0/direct"].Body.(*dsl.GoCall)
	require.True(t, ok)
	require.Equal(t, "sha256:"+strings.Repeat("0a", 32), direct.Signature)
	require.True(t, tasks["/do/0/direct"].ForbidsRepeat(), "it may have effects")
	named, ok := tasks["/do/1/named/call/price"].Body.(*dsl.GoCall)
	require.True(t, ok)
	require.Equal(t, "pricing", named.Program)
	require.False(t, tasks["/do/1/named/call/price"].ForbidsRepeat(), "it is idempotent")
}

// A function of the document comes before the call of the same name.
func TestFunctionsMayHaveTheNameGo(t *testing.T) {
	t.Parallel()
	doc := requireValid(t, referring+"use: {functions: {go: {set: {x: 1}}}}\ndo: [{a: {call: go}}]\n", nil)
	require.IsType(t, &dsl.FunctionCall{}, doc.Do[0].Body)
}

func TestWrongCallsOfGoFunctions(t *testing.T) {
	t.Parallel()
	for want, task := range map[string]string{
		`missing_key: a call of kind go needs the key "with"`:               `{call: go}`,
		`missing_key: with needs the key "version"`:                         `{call: go, with: {program: p, function: f}}`,
		`value: the program of a Go function "P" is not a name`:             `{call: go, with: {program: P, function: f, version: 1.0.0}}`,
		`value: the Go function "f()" is not a name`:                        `{call: go, with: {program: p, function: 'f()', version: 1.0.0}}`,
		`value: the version "1" of a Go function is not a semantic version`: `{call: go, with: {program: p, function: f, version: '1'}}`,
		`value: the signature "md5:1" of a Go function is not a SHA-256`:    `{call: go, with: {program: p, function: f, version: 1.0.0, signature: 'md5:1'}}`,
		`unknown_variable: there is no variable $nothing here`:              `{call: go, with: {program: p, function: f, version: 1.0.0, input: '${ $nothing }'}}`,
		`value: signalbox.repeat must be one of never, allowed`:             `{call: go, with: ` + goFunction + `, metadata: {signalbox.repeat: often}}`,
		`signalbox.repeat must be never`:                                    `{call: http, with: {method: get, endpoint: 'https://x'}, metadata: {signalbox.repeat: allowed}}`,
	} {
		_, violations := dsl.Parse([]byte(referring + "do: [{a: " + task + "}]\n"))
		texts := make([]string, len(violations))
		for i, v := range violations {
			texts[i] = v.String()
		}
		require.Contains(t, strings.Join(texts, "\n"), want)
	}
}
