package operations_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// soon is enough for a process to start on a busy machine.
const soon = time.Minute

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Clean(path))
	require.NoError(t, err)
	return string(text)
}

// alertmanager is a running Alertmanager.
type alertmanager struct{ url string }

// startAlertmanager runs Alertmanager with the configuration of deploy/prometheus. Each replacement changes the text of the configuration
// and must occur in it.
func startAlertmanager(t *testing.T, replacements map[string]string) *alertmanager {
	t.Helper()
	binary := program(t, "prometheus-alertmanager", "alertmanager")
	config := replaceAll(t, read(t, prometheus+"/alertmanager.yaml"), replacements)
	folder := t.TempDir()
	file := filepath.Join(folder, "alertmanager.yaml")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	address := platform.Address(platform.FreePort(t))
	p := platform.StartProcess(t, "alertmanager", binary, nil, []string{
		"--config.file=" + file, "--storage.path=" + filepath.Join(folder, "data"), "--web.listen-address=" + address, "--cluster.listen-address=",
	})
	t.Cleanup(p.Kill)
	a := &alertmanager{url: "http://" + address}
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

// labels parses "Name key=value …".
func labels(text string) map[string]string {
	fields := strings.Fields(text)
	found := map[string]string{"alertname": fields[0]}
	for _, field := range fields[1:] {
		key, value, _ := strings.Cut(field, "=")
		found[key] = value
	}
	return found
}

// A real Alertmanager with our configuration silences the symptoms of each cause, and nothing else.
func TestCausesSilenceTheirSymptoms(t *testing.T) {
	t.Parallel()
	tests := []struct {
		cause          string
		silenced, loud []string
	}{
		{
			"TemporalDisconnected severity=page host_port=t:7233 namespace=default",
			[]string{
				"NoPollers project=shop severity=page", "RunsStuck code=ENGINE_DISCONNECTED severity=page", "InboxLag project=shop severity=page",
				"DispatcherMissing project=shop severity=page", "BreakerOpen severity=ticket", "LostTimeBudgetBurn severity=page",
				"TemporalDisconnected severity=ticket host_port=t:7233 namespace=default instance=a",
			},
			[]string{
				"StoreSlow severity=ticket instance=a", "ProblemsUnacknowledged severity=page", "QueueModeFilling severity=page",
				"TemporalDisconnected severity=ticket host_port=other:7233 namespace=default instance=a", "DispatcherDuplicate project=shop severity=page",
			},
		},
		{
			"TemporalDisconnected severity=ticket instance=a host_port=t:7233 namespace=default", nil,
			[]string{"NoPollers project=shop severity=page", "RunsStuck code=BACKLOG severity=page"},
		},
		{"ServersMissing severity=page", []string{"LostTimeBudgetBurn severity=page", "ServerUnreachable severity=ticket instance=a"}, []string{"ProblemsUnacknowledged severity=page"}},
		{
			"StoreUnavailable severity=page instance=a",
			[]string{"StoreSlow severity=ticket instance=a", "ProjectionLag severity=ticket", "DispatcherMissing project=shop severity=page"},
			[]string{"TemporalDisconnected severity=page host_port=t:7233 namespace=default", "MemoryNearLimit severity=page instance=a"},
		},
		{
			"LeasesUnavailable severity=page instance=a",
			[]string{"DispatcherMissing project=shop severity=page", "SupervisorErrors severity=ticket", "WorkerEvictionsHigh project=shop severity=ticket"},
			[]string{"InboxLag project=bank severity=page", "RunsStuck code=BACKLOG severity=page"},
		},
		{"ServersOnDifferentTemporals severity=page", []string{"ReconcileCorrections kind=execution_missing severity=ticket"}, []string{"InboxLag project=shop severity=page"}},
		{"TemporalLimited severity=page host_port=t:7233", []string{"StartLatencyBudgetBurn severity=page"}, []string{"LostTimeBudgetBurn severity=page"}},
		{"StoreSlow severity=ticket instance=a", []string{"ProjectionLag severity=ticket"}, []string{"InboxLag project=shop severity=page"}},
		{
			"ProjectWithoutWorkers severity=page project=shop",
			[]string{"NoPollers severity=page project=shop", "InboxLag severity=page project=shop", "RunsStuck code=NO_POLLER severity=page"},
			[]string{"NoPollers severity=page project=bank", "RunsStuck code=BACKLOG severity=page"},
		},
		{
			"NoPollers severity=page project=shop",
			[]string{"DispatcherMissing severity=page project=shop", "RunsStuck code=POLLER_STALE severity=page"},
			[]string{"InboxLag severity=page project=bank", "RunsStuck code=TASK_FAILING severity=page"},
		},
		{"DispatcherForeign severity=page project=shop", []string{"DispatcherMissing severity=page project=shop"}, []string{"DispatcherMissing severity=page project=bank"}},
		{"DispatcherStale severity=page project=shop", []string{"InboxLag severity=page project=shop"}, []string{"InboxLag severity=page project=bank"}},
		{"MemoryNearLimit severity=page instance=a", []string{"MemoryNearLimit severity=ticket instance=a"}, []string{"MemoryNearLimit severity=ticket instance=b"}},
		{"CertificateExpiring severity=page instance=a", []string{"CertificateExpiring severity=ticket instance=a"}, []string{"CertificateExpiring severity=ticket instance=b"}},
		{"LostTimeBudgetBurn severity=page", []string{"LostTimeBudgetBurn severity=ticket"}, []string{"StartLatencyBudgetBurn severity=ticket"}},
	}
	for _, test := range tests {
		t.Run(strings.Fields(test.cause)[0], func(t *testing.T) {
			t.Parallel()
			a := startAlertmanager(t, map[string]string{"group_wait: 10s": "group_wait: 1s", "group_interval: 1m": "group_interval: 1s"})
			posted := []map[string]string{labels(test.cause)}
			for _, text := range slices.Concat(test.silenced, test.loud) {
				posted = append(posted, labels(text))
			}
			a.post(t, posted)
			platform.Eventually(t, soon, func() string {
				list, wrong := a.alerts(t)
				if wrong != "" {
					return wrong
				}
				for _, r := range list {
					if r.Status.State == "unprocessed" {
						return fmt.Sprintf("%v is not processed", r.Labels)
					}
				}
				if len(list) < len(posted) {
					return fmt.Sprintf("%d of %d alerts have arrived", len(list), len(posted))
				}
				for _, r := range list {
					want := slices.ContainsFunc(test.silenced, func(text string) bool { return assert.ObjectsAreEqual(labels(text), r.Labels) })
					if want != r.inhibited() {
						return fmt.Sprintf("%v: inhibited: %t", r.Labels, r.inhibited())
					}
				}
				return ""
			})
		})
	}
}

// A misspelled name would silence nothing.
func TestInhibitionNamesAlerts(t *testing.T) {
	t.Parallel()
	known := alertNames(t)
	seen := 0
	for _, match := range regexp.MustCompile(`alertname=~?"([^"]*)"`).FindAllStringSubmatch(read(t, prometheus+"/alertmanager.yaml"), -1) {
		for name := range strings.SplitSeq(match[1], "|") {
			seen++
			assert.Contains(t, known, name)
		}
	}
	require.Greater(t, seen, 30)
}
