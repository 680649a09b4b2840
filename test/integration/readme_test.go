package integration_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// The first example of the README prints what it shows, except times and durations.
func TestReadmeExamplePrintsWhatItShows(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "```console\n$ cat order.yaml\n")
	require.True(t, found)
	document, rest, found := strings.Cut(rest, "$ signalbox workflow run order.yaml ")
	require.True(t, found)
	args, rest, _ := strings.Cut(rest, "\n")
	shown, _, found := strings.Cut(rest, "```")
	require.True(t, found)
	parts := regexp.MustCompile(`^--input '(.*)' --jq (\S+)$`).FindStringSubmatch(args)
	require.NotNil(t, parts, args)

	file := filepath.Join(t.TempDir(), "order.yaml")
	require.NoError(t, os.WriteFile(file, []byte(document), 0o600))
	r := sqliteServer.Get(t).CLI(t, "workflow", "run", file, "--input", parts[1], "--jq", parts[2])
	require.Equal(t, platform.ExitOK, r.Code, r.String())
	var printed []string
	for line := range strings.Lines(r.Stderr + r.Stdout) {
		if !strings.Contains(line, "waiting") && !strings.Contains(line, "run queued") &&
			!strings.Contains(line, "run running") && !strings.Contains(line, "running pay") {
			printed = append(printed, line)
		}
	}
	require.Equal(t, withoutTimes(shown), withoutTimes(strings.Join(printed, "")))
}

// withoutTimes replaces times of day and durations.
func withoutTimes(text string) string {
	text = regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d`).ReplaceAllString(text, "TIME")
	return regexp.MustCompile(`\b[0-9.]+(µs|ms|s)\b`).ReplaceAllString(text, "DURATION")
}
