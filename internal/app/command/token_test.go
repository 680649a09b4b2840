package command_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/cli/exit"
)

// A token that is written to a file is not printed, and the command can be repeated.
func TestTokenFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	database, file := filepath.Join(folder, "signalbox.db"), filepath.Join(folder, "token")
	create := []string{"token", "create", "--bootstrap", "--name", "prometheus", "--role", "*=viewer", "--store-dsn",
		database, "--file"}
	code, _, problems := run(t, database, append(create, filepath.Join(folder, "missing", "token"))...)
	require.Equal(t, exit.Usage, code)
	require.Contains(t, problems, "--file: the file cannot be written")

	code, out, problems := run(t, database, append(create, file, "-o", "json")...)
	require.Equal(t, exit.OK, code, problems)
	require.NotContains(t, out+problems, "sbx_")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Regexp(t, `^sbx_[a-z2-7]{16}_[a-z2-7]{59}\n$`, string(text))
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode())

	code, _, problems = run(t, database, append(create, file)...)
	require.Equal(t, exit.OK, code)
	require.Contains(t, problems, "exists: no token is created")
	again, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, text, again)
	left, err := filepath.Glob(filepath.Join(folder, ".token-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}
