package cli_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/cli/exit"
)

func TestFormatRewritesFilesInPlace(t *testing.T) {
	t.Parallel()
	shell := newShell(t, "127.0.0.1:1")
	path := write(t, "a.yaml", "do:\n- a:\n     wait:   PT1S   # a second\n")
	c := shell.run(t, "workflow", "format", "--check", path)
	require.Equal(t, exit.Failed, c.code)
	require.Contains(t, c.out.String(), path)
	require.Equal(t, "1 file, 1 would change\n", c.err.String())

	require.Zero(t, shell.run(t, "workflow", "format", path).code)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "do:\n  - a:\n      wait: PT1S # a second\n", string(content))
	c = shell.run(t, "workflow", "format", "--check", path)
	require.Zero(t, c.code)
	require.Equal(t, "1 file, 0 would change\n", c.err.String())

	shell.stdin = "a:   1"
	require.Equal(t, "a: 1\n", shell.run(t, "workflow", "format", "-").out.String())
	shell.stdin = "a:   1"
	requireRefusal(t, shell.run(t, "workflow", "format", "-", "--check"), exit.Failed, "standard input would change")
	requireRefusal(t, shell.run(t, "workflow", "format", write(t, "b.yaml", "a: [")), exit.Failed, "b.yaml: 1:4:")
}
