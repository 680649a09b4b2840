package integration_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// The script of docs/publishing.md publishes a folder with a token that may do nothing else, changes nothing when it is
// repeated, and ends with the exit codes of the page.
func TestScriptPublishesFolder(t *testing.T) {
	t.Parallel()
	g := startTokenServer(t, platform.SQLite(t))
	admin := g.create(t, "", "admin")
	require.Equal(t, platform.ExitOK, g.cli(t, admin, "project", "create", "shop").Code)
	token := g.create(t, admin, "ci", "shop=publisher")

	folder := t.TempDir()
	workflows := filepath.Join(folder, "workflows")
	require.NoError(t, os.Mkdir(workflows, 0o700))
	write := func(name, source string) {
		require.NoError(t, os.WriteFile(filepath.Join(workflows, name+".yaml"), []byte(source), 0o600))
	}
	require.NoError(t, os.Symlink(platform.ServerBinary(t), filepath.Join(folder, "signalbox")))
	script, err := filepath.Abs("../../examples/ci/publish.sh")
	require.NoError(t, err)
	publish := func(args ...string) (int, string) {
		cmd := exec.CommandContext(t.Context(), script, args...)
		cmd.Env = platform.Environment(t,
			append(g.env, "SIGNALBOX_TOKEN="+token, "SIGNALBOX_PROJECT=shop", "PATH="+folder+":"+os.Getenv("PATH"))...)
		out, _ := cmd.CombinedOutput()
		return cmd.ProcessState.ExitCode(), string(out)
	}

	source := platform.Document("order", "  - a: {set: {b: 1}}\n")
	write("order", source)
	write("price", platform.Document("price", "  - a: {set: {b: 1}}\n"))
	for _, args := range [][]string{{"--check", workflows}, {workflows}, {workflows}} {
		code, out := publish(args...)
		require.Zero(t, code, out)
	}
	listed := g.cli(t, admin, "workflow", "versions", "order", "--project", "shop", "--no-headers")
	require.Equal(t, platform.ExitOK, listed.Code, listed)
	require.Len(t, strings.Split(strings.TrimSpace(listed.Stdout), "\n"), 1, "published once")

	changed := strings.Replace(source, "b: 1", "b: 2", 1)
	write("order", changed)
	code, out := publish(workflows)
	require.Equal(t, 8, code, out)
	require.Contains(t, out, "VERSION_TAKEN")

	write("order", version(changed, "1.1.0"))
	code, out = publish(workflows)
	require.Zero(t, code, out)

	write("order.test", "cases: [{name: sets b, expect: {output: {b: 3}}}]\n")
	code, out = publish("--check", workflows)
	require.Equal(t, 1, code, out)
	require.Contains(t, out, "the output differs")
	write("order.test", "cases: [{name: sets b, expect: {output: {b: 2}}}]\n")
	code, out = publish(workflows)
	require.Zero(t, code, out)

	write("price", "document: wrong\n")
	code, out = publish("--check", workflows)
	require.Equal(t, 1, code, out)

	started := g.cli(t, token, "run", "start", "order", "--project", "shop")
	require.Equal(t, 7, started.Code, "a publisher starts no runs: %s", started)
	entries := g.cli(t, admin, "audit", "list", "--action", "workflow.publish", "--project", "shop", "-o", "json", "--jq",
		`[.. | .actor? // empty | tojson | select(contains("ci"))] | length`)
	require.Equal(t, platform.ExitOK, entries.Code, entries)
	require.Equal(t, "3", strings.TrimSpace(entries.Stdout), "each publication with the token's name")
}
