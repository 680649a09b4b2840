package operations_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// posted is an alert as Alertmanager lists it.
type posted struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	GeneratorURL string            `json:"generatorURL"`
}

// A real Alertmanager accepts what a webhook with its format sends, and the end of an outage resolves the alert of its
// beginning.
func TestWebhooksReachAlertmanager(t *testing.T) {
	t.Parallel()
	a := startAlertmanager(t, alertmanagerOptions{})
	temporal := platform.StartTemporal(t)
	s := platform.StartServer(t, platform.ServerOptions{
		Temporal: temporal.Address, Store: platform.SQLite(t),
		Env: []string{"SIGNALBOX_API_PUBLIC_URL=https://signalbox.example.com"},
	})
	created := s.CLI(t, "webhook", "create", "alerts", "--format", "alertmanager", "--url", a.url+"/api/v2/alerts",
		"--type", "*")
	require.Equal(t, platform.ExitOK, created.Code, created.String())
	test := s.CLI(t, "webhook", "test", "alerts")
	require.Equal(t, platform.ExitOK, test.Code, test.String())
	find := func(name string) (found posted, wrong string) {
		var list []posted
		if wrong := fetch(t, a.url+"/api/v2/alerts", &list); wrong != "" {
			return posted{}, wrong
		}
		i := slices.IndexFunc(list, func(p posted) bool { return p.Labels["alertname"] == name })
		if i < 0 {
			return posted{}, "no alert " + name
		}
		return list[i], ""
	}
	await := func(name string) (found posted) {
		platform.Eventually(t, soon, func() (wrong string) {
			found, wrong = find(name)
			return wrong
		})
		return found
	}
	await("SignalboxTest")

	workflow := s.Publish(t, platform.Document("fails",
		"  - reject:\n      raise:\n        error: {type: https://example.com/bad, status: 400, title: Bad order}\n"))
	id := s.Start(t, workflow, "").GetId()
	failed := await("SignalboxRunFailed")
	require.Equal(t, map[string]string{
		"alertname": "SignalboxRunFailed", "project": "default", "severity": "warning",
		"event_type": "io.signalbox.run.failed", "workflow": workflow,
	}, failed.Labels)
	require.Equal(t, "Run "+id+", task reject: Bad order (status 400)", failed.Annotations["description"])
	require.Equal(t, "https://signalbox.example.com/runs/"+id, failed.GeneratorURL)

	temporal.Kill()
	require.Equal(t, "critical", await("SignalboxTemporalDisconnected").Labels["severity"])
	temporal.Restart(t)
	platform.Eventually(t, soon, func() string {
		if _, wrong := find("SignalboxTemporalDisconnected"); wrong == "" {
			return "the alert is not resolved"
		}
		return ""
	})
	var deliveries []struct{ Status, Reason string }
	s.CLI(t, "webhook", "deliveries", "alerts", "--limit", "0", "-o", "json").JSON(t, &deliveries)
	require.NotEmpty(t, deliveries)
	for _, d := range deliveries {
		require.Equal(t, "delivered", d.Status, d.Reason)
	}
}
