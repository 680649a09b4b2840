package dev_test

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/devserver/dev"
	"github.com/signalbox-dev/signalbox/internal/cli"
)

// The help of every command has one line of purpose and an example. test/examples runs the examples.
func TestEveryCommandHasPurposeAndExample(t *testing.T) {
	t.Parallel()
	const longest = 72
	commands := 0
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		commands++
		path := cmd.CommandPath()
		require.NotEmpty(t, cmd.Short, path)
		require.LessOrEqual(t, len(cmd.Short), longest, "%s: %s", path, cmd.Short)
		require.False(t, strings.HasSuffix(cmd.Short, "."), "%s: %s", path, cmd.Short)
		if !cmd.HasSubCommands() && cmd.Name() != "help" {
			require.Contains(t, cmd.Example, "  "+path, path)
		}
		for line := range strings.Lines(cmd.Example) {
			require.True(t, strings.HasPrefix(line, "  "), "%s: %q", path, line)
		}
		for _, inner := range cmd.Commands() {
			check(inner)
		}
	}
	program := dev.Main()
	program.Program = "signalbox" // in place of the name of the test
	check(cli.New(program))
	require.Greater(t, commands, 100)
}
