package examples_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// ranElsewhere are commands whose examples need more than a platform, and the tests that run them.
func ranElsewhere() map[string]string {
	return map[string]string{
		"dev": "the other tests here", "dev temporal": "integration", "server": "integration", "migrate up": "integration",
		"migrate status": "integration",
		"migrate import": "integration/import_test.go",
	}
}

// alone are the commands that disturb others: they run one after the other, at the end.
func alone() []string {
	return []string{
		"restore check", "problem acknowledge", "problem snooze", "problem update", "problem reopen", "workflow pause", "workflow unpause",
		"workflow stop", "workflow set",
		"quota set", "system maintenance", "dispatcher handover", "workflow delete",
	}
}

// otherCodes are the exit codes of examples that do not end with 0 on a new platform.
func otherCodes() map[string]int {
	return map[string]int{
		"batch retry":                           platform.ExitRefused,  // no item has failed
		"token revoke-session k5x2m7qdw3a4ebfz": platform.ExitNotFound, // a platform without tokens has no sessions
		"run list --status failed --watch":      interrupted,
	}
}

// appears is how long a failed run may take to be listed as a problem.
const appears = 30 * time.Second

// interrupted is the exit code of a watch that its --timeout ends.
const interrupted = 130

// The examples in the help of each command succeed as they are written; names and files are prepared, and IDs are
// replaced.
func TestHelpExamplesSucceed(t *testing.T) {
	t.Parallel()
	h := newHelp(t)
	examples := helpExamples(t)
	require.Greater(t, len(examples), 90)
	last := alone()
	t.Run("parallel", func(t *testing.T) {
		for command, lines := range examples {
			if ranElsewhere()[command] == "" && !slices.Contains(last, command) {
				t.Run(command, func(t *testing.T) {
					t.Parallel()
					h.run(t, command, lines)
				})
			}
		}
	})
	for _, command := range last {
		require.NotEmpty(t, examples[command], command)
		t.Run(command, func(t *testing.T) { h.run(t, command, examples[command]) })
	}
}

// helpExamples returns the examples of each command in the generated reference.
func helpExamples(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/reference/cli.md")
	require.NoError(t, err)
	found := map[string][]string{}
	for _, section := range regexp.MustCompile("(?m)^#+ signalbox ").Split(string(page), -1)[1:] {
		command, text, _ := strings.Cut(section, "\n")
		if _, block, has := strings.Cut(text, "Examples:\n\n```sh\n"); has {
			lines, _, _ := strings.Cut(block, "```")
			found[command] = strings.Split(strings.TrimSpace(lines), "\n")
		}
	}
	return found
}

// help is a platform with what the examples name.
type help struct {
	server   *platform.Server
	receiver string // the URL of a receiver of webhooks
}

const orderSource = `document: {dsl: '1.0.3', namespace: shop, name: order, version: '%s'}
do:
  - check:
      switch:
        - slow: {when: '.sku == "slow"', then: hold}
        - bad: {when: '.sku == "bad"', then: refuse}
        - fine: {then: done}
  - hold: {wait: PT1H, then: end}
  - refuse:
      raise: {error: {type: https://example.com/refused, status: 422, title: Refused}}
  - done: {set: {version: '%s'}}
`

// reportSource is a workflow with a schedule.
const reportSource = `document: {dsl: '1.0.3', namespace: shop, name: report, version: '1.0.0'}
schedule: {cron: '0 6 * * 1-5'}
do:
  - report: {set: {reported: true}}
`

func newHelp(t *testing.T) *help {
	t.Helper()
	hello, err := filepath.Abs("../../examples/workflows/hello.yaml")
	require.NoError(t, err)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(receiver.Close)
	h := &help{server: platform.StartDev(t, "--publish", hello), receiver: receiver.URL}
	h.cli(t, "", "project", "create", "shop")
	for _, version := range []string{"1.0.0", "1.1.0", "1.2.0"} {
		h.cli(t, fmt.Sprintf(orderSource, version, version), "workflow", "publish", "-")
	}
	h.cli(t, reportSource, "workflow", "publish", "-")
	h.order(t, "bad")
	var events []string
	for n := range 20 {
		events = append(events, fmt.Sprintf(
			`{"specversion": "1.0", "id": "%d", "source": "/shop", "type": "com.example.order.created", "data": {"order": %d}}`, 4700+n, n))
	}
	file := filepath.Join(t.TempDir(), "events.json")
	require.NoError(t, os.WriteFile(file, []byte("["+strings.Join(events, ",\n")+"]"), 0o600))
	h.cli(t, "", "event", "send", "--file", file)
	return h
}

// cli runs a command that must succeed and returns its output.
func (h *help) cli(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	r := h.server.CLIWithInput(t, stdin, args...)
	require.Equal(t, platform.ExitOK, r.Code, r.String())
	return strings.TrimSpace(r.Stdout)
}

// order starts a run of shop/order: a slow one stays open, any other ends. It returns its ID.
func (h *help) order(t *testing.T, sku string) string {
	t.Helper()
	args := []string{"run", "start", "shop/order", "--input", `{"sku": "` + sku + `", "amount": 10}`, "-o", "name"}
	if sku != "slow" {
		args = append(args, "--wait")
	}
	return strings.TrimSpace(h.server.CLI(t, args...).Stdout)
}

// run runs the examples of a command one after the other, in a folder of their own.
func (h *help) run(t *testing.T, command string, lines []string) {
	folder := h.folder(t)
	env := append(h.server.ClientEnv(), "HOME="+folder, "XDG_CONFIG_HOME="+folder, platform.Path(t))
	h.prepare(t, command, env)
	if command == "workflow init" {
		require.NoError(t, os.Remove(filepath.Join(folder, "order.yaml")))
		require.NoError(t, os.Remove(filepath.Join(folder, "order.test.yaml")))
	}
	for _, line := range lines {
		text := h.replaced(t, command, line)
		want := 0
		for prefix, code := range otherCodes() {
			if strings.HasPrefix(line, "signalbox "+prefix) {
				want = code
			}
		}
		if want == interrupted {
			text += " --timeout 300ms"
		}
		cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", text)
		cmd.Dir, cmd.Env = folder, platform.Environment(t, env...)
		out, _ := cmd.CombinedOutput()
		require.Equal(t, want, cmd.ProcessState.ExitCode(), "%s\n%s\n%s", line, text, out)
	}
}

// folder returns a new folder with the files that examples name.
func (h *help) folder(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	examples, err := filepath.Abs("../../examples")
	require.NoError(t, err)
	require.NoError(t, os.Symlink(examples, filepath.Join(folder, "examples")))
	for name, content := range map[string]string{
		"order.yaml":      fmt.Sprintf(orderSource, "1.2.0", "1.2.0"),
		"order.test.yaml": `cases: [{name: refuses, input: {sku: bad}, expect: {error: {status: 422}}}]`,
		"order.json":      `{"sku": "A-7", "amount": 10}`,
		"price.yaml":      "set: {price: 3}\n",
		"photo.jpg":       "\xff\xd8",
		"events.json": `[{"specversion": "1.0", "id": "` + filepath.Base(folder) +
			`", "source": "/shop", "type": "com.example.order.created"}]`,
		"signalbox.yaml": "temporal: {address: '127.0.0.1:7233'}\nstore: {driver: sqlite, dsn: signalbox.db, " +
			"auto_migrate: true}\nauth: {mode: tokens}\nencryption: {keys: {first: " + filepath.Join(folder, "signalbox.key") +
			"}, active: first}\n",
		"signalbox.key":    base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32))),
		".signalbox-token": "",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(folder, "workflows"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "workflows", "ship.yaml"),
		[]byte("document: {dsl: '1.0.3', namespace: shop, name: ship, version: 1.0.0}\ndo:\n  - pack: {set: {done: true}}\n"),
		0o600))
	return folder
}

// prepare creates what the examples of a command name.
func (h *help) prepare(t *testing.T, command string, env []string) {
	t.Helper()
	switch noun, verb, _ := strings.Cut(command, " "); {
	case noun == "context" && verb != "set":
		r := platform.Run(t, platform.Command{
			Binary: platform.Binary(t), Args: []string{"context", "set", "prod", "--address", "signalbox.example.com"},
			Env: env})
		require.Equal(t, platform.ExitOK, r.Code, r.String())
	case command == "run list":
		h.cli(t, "", "view", "save", "failed-orders", "--status", "failed")
	case command == "function show", command == "function delete":
		h.cli(t, "set: {price: 3}\n", "function", "publish", h.function(command)+":1.0.0", "-")
	case command == "workflow publish":
		h.cli(t, fmt.Sprintf(orderSource, "1.3.0", "draft"), "workflow", "save", "-")
	}
}

// function returns the name of the function that the examples of a command name, which are not those of another command.
func (h *help) function(command string) string {
	return "price-" + strings.TrimPrefix(command, "function ")
}

// replaced returns an example with IDs and names of this platform.
func (h *help) replaced(t *testing.T, command, line string) string {
	t.Helper()
	noun, verb, _ := strings.Cut(command, " ")
	id := ""
	switch {
	case noun == "run" && slices.Contains([]string{"cancel", "terminate", "pause", "unpause", "waits"}, verb),
		command == "quota resume":
		id = h.order(t, "slow")
	case noun == "run" && strings.Contains(line, "0199a4f2"), command == "event list",
		command == "workflow eval", command == "workflow test":
		id = h.order(t, "A-7")
	case command == "batch start":
		line = strings.ReplaceAll(line, "$(cat ids.txt)", h.order(t, "slow"))
	case noun == "batch" && strings.Contains(line, "0199a4f2"):
		id = h.cli(t, "", "batch", "start", "--action", "cancel", "--reason", "x", "--rate", "0.1", h.order(t, "slow"),
			h.order(t, "slow"), "-o", "name")
	case command == "webhook delivery", command == "webhook redeliver":
		line = strings.ReplaceAll(line, "0199a4f2-9e07-7c54-8a3c-5a0d1e0b7f11",
			h.cli(t, "", "webhook", "test", h.webhook(t), "--jq", ".id"))
		line = strings.ReplaceAll(line, " orders", " "+h.webhook(t))
	case noun == "webhook" && verb != "create":
		line = strings.ReplaceAll(line, " orders", " "+h.webhook(t))
	case noun == "problem":
		line = strings.ReplaceAll(line, "stuck.shop.NO_POLLER", h.problem(t))
	case command == "token revoke":
		line = strings.ReplaceAll(line, "k5x2m7qdw3a4ebfz",
			h.cli(t, "", "token", "create", "--name", "x", "--role", "shop=viewer", "--jq", ".token.id"))
	case command == "function show", command == "function delete":
		line = strings.ReplaceAll(line, verb+" price", verb+" "+h.function(command))
	case noun == "view":
		line = strings.ReplaceAll(line, "failed-orders", h.view(t, verb, line))
	}
	line = strings.ReplaceAll(line, "https://example.com/hook", h.receiver)
	if id != "" {
		line = strings.ReplaceAll(line, "0199a4f2", id)
	}
	return line
}

func (h *help) webhook(t *testing.T) string {
	t.Helper()
	name := "w" + uuid.NewString()[:8]
	h.cli(t, "", "webhook", "create", name, "--url", h.receiver, "--type", "com.example.*")
	return name
}

// view returns the name of a view, which exists for commands that do not create it.
func (h *help) view(t *testing.T, verb, line string) string {
	t.Helper()
	name := "orders-" + verb
	if verb == "delete" || strings.Contains(line, "run list") {
		h.server.CLI(t, "view", "save", name, "--status", "failed")
	}
	return name
}

// problem returns the ID of a problem, which a failed run is.
func (h *help) problem(t *testing.T) string {
	t.Helper()
	var id string
	platform.Eventually(t, appears, func() string {
		if id = h.cli(t, "", "problem", "list", "--state", "all", "--kind", "failure", "--jq", ".[0].id // empty"); id == "" {
			return "the failed run is no problem yet"
		}
		return ""
	})
	return id
}
