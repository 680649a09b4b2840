package operations_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/conn/conntest"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// Each command of the runbooks runs as it is written, on a platform that has one of everything that they name. That
// they show and repair faults is part of the incidents.
func TestCommandsOfRunbooksRun(t *testing.T) {
	t.Parallel()
	w := build(t, parts{workers: 1, args: []string{"--memory-limit", "1GiB"}})
	w.populate(t)
	done := map[string]bool{}
	for _, alert := range alertNames(t) {
		w.names["ID"] = w.subject(t, alert)
		for _, section := range []string{"See it", "Causes and fixes", "Verify"} {
			for _, command := range commands(t, alert, section) {
				if !done[command] || strings.Contains(command, " ID") {
					w.try(t, alert, command)
				}
				done[command] = true
			}
		}
	}
	require.Greater(t, len(done), 60)
}

// populate makes what the commands name: a webhook, failed runs, an event that was given up, a certificate.
func (w *watched) populate(t *testing.T) {
	t.Helper()
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(receiver.Close)
	w.Publish(t, picky("1.0.0", "integer"))
	w.operate(t, "webhook", "create", "pager", "--url", receiver.URL, "--type", "io.example.*")
	w.operate(t, "event", "send", "--type", "io.example.picky", "--source", "/picky", "--id", "4711", "--data",
		`{"n":"text"}`)
	w.fail(t, "fails")
	a, err := conntest.NewAuthority()
	require.NoError(t, err)
	certificate, _ := writeClient(t, a, w.folder, time.Hour)
	require.NoError(t, exec.CommandContext(t.Context(), "cp", certificate, filepath.Join(w.folder, "client.pem")).Run())
	require.NoError(t, exec.CommandContext(t.Context(), "cp", certificate, filepath.Join(w.folder, "server.pem")).Run())
	maps.Copy(w.names, map[string]string{
		"WEBHOOK": "pager", "URL": receiver.URL, "ALERTMANAGER:9093": w.alerts.address,
		"WORKFLOW": w.Publish(t, platform.Document("waits", "  - wait:\n      wait: {hours: 10}\n")),
	})
}

// operate runs a command, which must succeed, and returns its output.
func (w *watched) operate(t *testing.T, args ...string) string {
	t.Helper()
	out := w.CLI(t, args...)
	require.Zero(t, out.Code, out)
	return strings.TrimSpace(out.Stdout)
}

// subject returns the ID of what the commands of a runbook are about, and prepares it.
func (w *watched) subject(t *testing.T, alert string) string {
	t.Helper()
	const first = ".[0].id"
	switch alert {
	case "AcknowledgeTimeHigh", "ProblemsUnacknowledged":
		w.fail(t, strings.ToLower(alert))
		w.awaitProblem(t, strings.ToLower(alert))
		w.names["KEY"] = w.operate(t, "problem", "show", w.names["ID"], "-o", "json", "-q", ".failureGroup")
		return w.names["ID"]
	case "RunsRetrying":
		return w.again(t)
	case "DeadLetters", "InboxLag":
		return "4711"
	case "WebhookDeliveriesFailing":
		return w.operate(t, "webhook", "deliveries", "pager", "-o", "json", "-q", first)
	case "TemporalLimited":
		for range 3 {
			w.Start(t, w.names["WORKFLOW"], "")
		}
		return w.operate(t, "batch", "start", "--action", "cancel", "--workflow", w.names["WORKFLOW"], "--rate", "0.1",
			"--reason", "a test", "-o", "name")
	case "ProjectionLag":
		return w.Await(t, w.Start(t, w.Publish(t, platform.Document("ends", hello)), "").GetId(), patience,
			"completed").GetId()
	default:
		return w.Start(t, w.names["WORKFLOW"], "").GetId()
	}
}

// try runs a command, which must succeed. A program that is not installed here is omitted.
func (w *watched) try(t *testing.T, alert, command string) {
	t.Helper()
	program, _, _ := strings.Cut(command, " ")
	if _, err := exec.LookPath(program); err != nil && program != "signalbox" && program != "for" {
		t.Logf("%s: %s is not installed here", command, program)
		return
	}
	if strings.HasPrefix(command, "signalbox server ") {
		p := platform.StartCommand(t, "server of the runbook", w.shell(t, "exec "+command))
		platform.Eventually(t, patience, func() string {
			if !strings.Contains(p.Output(), "Signalbox is ready") {
				return p.Output()
			}
			return ""
		})
		p.Terminate()
		_, ended := p.WaitFor(soon)
		require.True(t, ended, command)
		return
	}
	out, err := w.shell(t, command).CombinedOutput()
	assert.NoError(t, err, "%s: %s\n%s", alert, command, out)
}
