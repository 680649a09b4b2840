package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/cli/exit"
)

func TestEvalNeedsNoServer(t *testing.T) {
	t.Parallel()
	shell := newShell(t, "127.0.0.1:1")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{".a + 1", "--input", `{"a": 12345678901234567890}`}, "12345678901234567891\n"},
		{[]string{"${ $context.b }", "--context", `{"b": "x"}`}, "\"x\"\n"},
		{[]string{"$secrets.s + $other", "--secrets", `{"s": "a"}`, "--var", `other="b"`}, "\"ab\"\n"},
		{[]string{"--template", "{a: '${ .x }'}", "--input", `{"x": 1}`}, "{\n  \"a\": 1\n}\n"},
		{[]string{"@base64", "--input", `"a"`}, "\"YQ==\"\n"},
		{[]string{"@" + write(t, "e.jq", ".a\n"), "--input", `{"a": 1}`}, "1\n"},
	} {
		c := shell.run(t, append([]string{"workflow", "eval"}, tt.args...)...)
		require.Zero(t, c.code, c.err.String())
		require.Equal(t, tt.want, c.out.String(), tt.args)
	}
	c := shell.run(t, "workflow", "eval", ".a", "--input", `{"a": [1]}`)
	require.Regexp(t, `^an array, \d+ units of fuel\n$`, c.err.String())
	c = shell.run(t, "workflow", "eval", ".a", "--input", `{"a": [1]}`, "-o", "json")
	require.Contains(t, c.out.String(), `"type": "array"`)
	require.Contains(t, c.out.String(), `"fuel": `)

	c = shell.run(t, "workflow", "eval", ".a + $contxt")
	require.Equal(t, exit.Failed, c.code)
	require.Contains(t, c.err.String(), `expression:1:6: unknown_variable: there is no variable $contxt here (did you mean "context"?)`)
	requireRefusal(t, shell.run(t, "workflow", "eval", ".a", "--input", "1"), exit.Failed, "expected an object")
	requireRefusal(t, shell.run(t, "workflow", "eval", "[range(1e9)]"), exit.Failed, "units of fuel used")
	requireRefusal(t, shell.run(t, "workflow", "eval", ".a", "--input", "{"), exit.Usage, "input")
	requireRefusal(t, shell.run(t, "workflow", "eval", ".a", "--var", "x"), exit.Usage, "NAME=VALUE")
	requireRefusal(t, shell.run(t, "workflow", "eval", ".a", "--run", "x", "--step", "1", "--input", "1"), exit.Usage,
		"exclude each other")
	requireRefusal(t, shell.run(t, "workflow", "eval", ".a", "--run", "x"), exit.Usage, "step")
	requireRefusal(t, shell.run(t, "workflow", "eval", "@nope.jq"), exit.Failed, "nope.jq")
}
