package operations_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// soon is enough for a process to start on a busy machine.
const soon = platform.Patience

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Clean(path))
	require.NoError(t, err)
	return string(text)
}

// alertmanager is a running Alertmanager.
type alertmanager struct{ url, address string }

// alertmanagerOptions are what differs from deploy/prometheus.
type alertmanagerOptions struct {
	receiver string // URL of the receiver; "": notifications go nowhere
	faster   int    // all intervals are divided by it; 0: those of production
}

// startAlertmanager runs Alertmanager with the configuration of deploy/prometheus.
func startAlertmanager(t *testing.T, o alertmanagerOptions) *alertmanager {
	t.Helper()
	binary := program(t, "prometheus-alertmanager", "alertmanager")
	config := faster(t, read(t, prometheus+"/alertmanager.yaml"), o.faster)
	if o.receiver != "" {
		config = replaceAll(t, config, map[string]string{"http://127.0.0.1:9094": o.receiver})
	}
	folder := t.TempDir()
	file := filepath.Join(folder, "alertmanager.yaml")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	address := platform.Address(platform.FreePort(t))
	p := platform.StartProcess(t, "alertmanager", binary, nil, []string{
		"--config.file=" + file, "--storage.path=" + filepath.Join(folder, "data"), "--web.listen-address=" +
			address, "--cluster.listen-address=",
	})
	t.Cleanup(p.Kill)
	a := &alertmanager{url: "http://" + address, address: address}
	platform.Eventually(t, soon, func() string { return fetch(t, a.url+"/-/ready", nil) })
	return a
}

// fetch reads JSON into v, if v is not nil, and returns what is wrong.
func fetch(t *testing.T, url string, v any) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = res.Body.Close() }() // read below
	if res.StatusCode != http.StatusOK {
		return res.Status
	}
	if v == nil {
		return ""
	}
	if err := json.NewDecoder(res.Body).Decode(v); err != nil {
		return err.Error()
	}
	return ""
}

// received is an alert that Alertmanager has.
type received struct {
	Labels map[string]string `json:"labels"`
	Status struct {
		State       string   `json:"state"`
		InhibitedBy []string `json:"inhibitedBy"`
	} `json:"status"`
}

func (r received) inhibited() bool { return len(r.Status.InhibitedBy) > 0 }

func (a *alertmanager) alerts(t *testing.T) (list []received, wrong string) {
	t.Helper()
	wrong = fetch(t, a.url+"/api/v2/alerts", &list)
	return list, wrong
}

func (a *alertmanager) post(t *testing.T, list []map[string]string) {
	t.Helper()
	type alert struct {
		Labels map[string]string `json:"labels"`
	}
	var body []alert
	for _, labels := range list {
		body = append(body, alert{labels})
	}
	text, err := json.Marshal(body)
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.url+"/api/v2/alerts", bytes.NewReader(text))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusOK, res.StatusCode)
}
