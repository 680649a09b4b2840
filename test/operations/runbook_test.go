package operations_test

import (
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// block is a block of commands in a runbook. Those under a list item are indented.
var block = regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```$")

// commands returns the commands of a section of a runbook, in order.
func commands(t *testing.T, alert, section string) (list []string) {
	t.Helper()
	_, rest, found := strings.Cut(read(t, runbooks+"/"+alert+".md"), "## "+section+"\n")
	require.True(t, found, "%s has no section %q", alert, section)
	rest, _, _ = strings.Cut(rest, "\n## ")
	for _, match := range block.FindAllStringSubmatch(rest, -1) {
		for line := range strings.Lines(match[1]) {
			if line = strings.TrimSpace(line); line != "" {
				list = append(list, line)
			}
		}
	}
	return list
}

// placeholder is a name in capitals that a reader of a runbook replaces.
var placeholder = regexp.MustCompile(
	`\b(SERVER:8080|WORKER:8080|TEMPORAL:7233|ALERTMANAGER:9093|NAME|WORKFLOW|PROBLEM|WEBHOOK|ID|KEY|URL)\b`)

// shell returns a command of a runbook as it is to be executed on this platform: as written, with the placeholders
// replaced.
func (w *watched) shell(t *testing.T, command string) *exec.Cmd {
	t.Helper()
	text := placeholder.ReplaceAllStringFunc(command, func(name string) string {
		require.Contains(t, w.names, name, command)
		return w.names[name]
	})
	cmd := exec.CommandContext(t.Context(), "bash", "-c", text)
	cmd.Dir = w.folder
	cmd.Env = append(platform.Environment(t, platform.AllowLoopback), platform.Path(t), "DSN="+w.options.Store.DSN,
		"OWNER_DSN="+w.options.Store.DSN)
	if w.Server != nil {
		cmd.Env = append(cmd.Env, "SIGNALBOX_ADDRESS="+w.Address, "REDIS_URL="+w.redis.URL())
	}
	return cmd
}

// execute runs a command of a runbook and returns its output. A program that is not installed here is omitted.
func (w *watched) execute(t *testing.T, command string) string {
	t.Helper()
	program, _, _ := strings.Cut(command, " ")
	if _, err := exec.LookPath(program); err != nil && program != "signalbox" {
		return fmt.Sprintf("$ %s\n%s is not installed here\n", command, program)
	}
	out, err := w.shell(t, command).CombinedOutput()
	if err != nil {
		out = fmt.Append(out, err, "\n")
	}
	return fmt.Sprintf("$ %s\n%s", command, out)
}

// follow executes all commands of a section, until together they print what the section promises.
func (w *watched) follow(t *testing.T, alert, section string, patterns []string) {
	t.Helper()
	list := commands(t, alert, section)
	require.NotEmpty(t, list, "%s: %s", alert, section)
	if len(patterns) == 0 {
		return
	}
	platform.Eventually(t, patience, func() string {
		out := ""
		for _, command := range list {
			out += w.execute(t, command)
		}
		for _, pattern := range patterns {
			if !regexp.MustCompile(pattern).MatchString(out) {
				return fmt.Sprintf("the commands of %q in %s.md do not print %s, but\n%s", section, alert, pattern, out)
			}
		}
		t.Logf("%s, %s:\n%s", alert, section, out)
		return ""
	})
}

// fix executes a command of the causes and fixes of an alert. A server that it starts runs until the end of the test.
func (w *watched) fix(t *testing.T, alert, command string) {
	t.Helper()
	require.True(t, slices.Contains(commands(t, alert, "Causes and fixes"), command), "%s does not have the command %q",
		alert, command)
	if strings.HasPrefix(command, "signalbox server ") {
		cmd := w.shell(t, "exec "+command)
		platform.StartCommand(t, "server of the runbook", cmd)
		return
	}
	out, err := w.shell(t, command).CombinedOutput()
	require.NoError(t, err, "%s\n%s", command, out)
	t.Logf("$ %s\n%s", command, out)
}

// The commands for Alertmanager work with the real one, and what they do has the effect that the pages describe.
func TestAlertmanagerCommandsOfRunbooks(t *testing.T) {
	t.Parallel()
	r := startReceiver(t)
	w := &watched{receiver: r, alerts: startAlertmanager(t, alertmanagerOptions{receiver: r.URL, faster: quicker}),
		folder: t.TempDir()}
	w.names = map[string]string{"ALERTMANAGER:9093": w.alerts.address, "NAME": side}
	seen := 0
	for _, name := range alertNames(t) {
		for _, command := range commands(t, name, "Causes and fixes") {
			if strings.HasPrefix(command, "amtool ") {
				seen++
				w.fix(t, name, command)
			}
		}
	}
	require.Positive(t, seen)
	platform.Eventually(t, soon, func() string {
		if names := r.names(time.Time{}); !slices.Equal(names, []string{"Test"}) {
			return strings.Join(names, " ")
		}
		return ""
	})
	var silences []struct{ Comment string }
	require.Empty(t, fetch(t, w.alerts.url+"/api/v2/silences", &silences))
	require.Len(t, silences, 1)
}
