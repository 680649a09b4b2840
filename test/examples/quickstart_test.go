package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// Each command of the quick start succeeds as it is written, in its order, on what `make dev` starts.
func TestQuickStartCommandsSucceed(t *testing.T) {
	t.Parallel()
	examples, err := filepath.Abs("../../examples/workflows")
	require.NoError(t, err)
	s := platform.StartDev(t, "--publish", examples)
	page, err := os.ReadFile("../../docs/quickstart.md")
	require.NoError(t, err)
	folder := t.TempDir()
	_, rest, found := strings.Cut(string(page), "Save this as `greet.yaml`:\n\n```yaml\n")
	require.True(t, found)
	document, _, _ := strings.Cut(rest, "```")
	require.NoError(t, os.WriteFile(filepath.Join(folder, "greet.yaml"), []byte(document), 0o600))

	commands := quickStartCommands(string(page))
	require.Greater(t, len(commands), 15)
	for _, command := range commands {
		text := strings.ReplaceAll(command, "127.0.0.1:8080", s.Address)
		if strings.Contains(text, " ID") {
			r := s.CLI(t, "run", "start", "greet", "--input", `{"names": ["Ada"]}`, "-o", "name")
			require.Equal(t, platform.ExitOK, r.Code, r.String())
			text = strings.Replace(text, " ID", " "+strings.TrimSpace(r.Stdout), 1)
		}
		cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", text)
		cmd.Dir = folder
		cmd.Env = platform.Environment(t, append(s.ClientEnv(), "PATH="+filepath.Dir(platform.Binary(t))+":"+os.Getenv("PATH"))...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s\n%s", command, out)
	}
}

// quickStartCommands returns the commands of a page that need a running platform.
func quickStartCommands(page string) (commands []string) {
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(page, -1) {
		for line := range strings.Lines(strings.ReplaceAll(block[1], "\\\n", " ")) {
			if strings.HasPrefix(line, "signalbox ") || strings.HasPrefix(line, "curl ") {
				commands = append(commands, strings.TrimSpace(line))
			}
		}
	}
	return commands
}
