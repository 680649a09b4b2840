package operations_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

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
				"NoPollers project=shop severity=page", "RunsStuck code=ENGINE_DISCONNECTED severity=page",
				"InboxLag project=shop severity=page",
				"DispatcherMissing project=shop severity=page", "BreakerOpen severity=ticket", "LostTimeBudgetBurn severity=page",
				"TemporalDisconnected severity=ticket host_port=t:7233 namespace=default instance=a",
			},
			[]string{
				"StoreSlow severity=ticket instance=a", "ProblemsUnacknowledged severity=page", "QueueModeFilling severity=page",
				"TemporalDisconnected severity=ticket host_port=other:7233 namespace=default instance=a", "DispatcherDuplicate " +
					"project=shop severity=page",
			},
		},
		{
			"TemporalDisconnected severity=ticket instance=a host_port=t:7233 namespace=default", nil,
			[]string{"NoPollers project=shop severity=page", "RunsStuck code=BACKLOG severity=page"},
		},
		{"ServersMissing severity=page", []string{"LostTimeBudgetBurn severity=page", "ServerUnreachable severity=ticket " +
			"instance=a", "TakeoverSlow severity=ticket"}, []string{"ProblemsUnacknowledged severity=page"}},
		{
			"StoreUnavailable severity=page instance=a",
			[]string{"StoreSlow severity=ticket instance=a", "ProjectionLag severity=ticket",
				"DispatcherMissing project=shop severity=page"},
			[]string{"TemporalDisconnected severity=page host_port=t:7233 namespace=default",
				"MemoryNearLimit severity=page instance=a"},
		},
		{
			"LeasesUnavailable severity=page instance=a",
			[]string{"DispatcherMissing project=shop severity=page", "SupervisorErrors severity=ticket",
				"WorkerEvictionsHigh project=shop severity=ticket"},
			[]string{"InboxLag project=bank severity=page", "RunsStuck code=BACKLOG severity=page"},
		},
		{"ServersOnDifferentTemporals severity=page", []string{"ReconcileCorrections kind=execution_missing severity=ticket"},
			[]string{"InboxLag project=shop severity=page"}},
		{"TemporalLimited severity=page host_port=t:7233",
			[]string{"StartLatencyBudgetBurn severity=page", "NoPollers project=shop severity=page",
				"InboxLag project=shop severity=page"}, []string{"LostTimeBudgetBurn severity=page"}},
		{"StoreSlow severity=ticket instance=a", []string{"ProjectionLag severity=ticket"},
			[]string{"InboxLag project=shop severity=page"}},
		{
			"ProjectWithoutWorkers severity=page project=shop",
			[]string{"NoPollers severity=page project=shop", "InboxLag severity=page project=shop",
				"RunsStuck code=NO_POLLER severity=page", "TakeoverSlow severity=ticket"},
			[]string{"NoPollers severity=page project=bank", "RunsStuck code=BACKLOG severity=page"},
		},
		{
			"NoPollers severity=page project=shop",
			[]string{"DispatcherMissing severity=page project=shop", "RunsStuck code=POLLER_STALE severity=page"},
			[]string{"InboxLag severity=page project=bank", "RunsStuck code=TASK_FAILING severity=page"},
		},
		{"DispatcherForeign severity=page project=shop", []string{"DispatcherMissing severity=page project=shop"},
			[]string{"DispatcherMissing severity=page project=bank"}},
		{"DispatcherStale severity=page project=shop",
			[]string{"InboxLag severity=page project=shop", "CleanupSlow severity=ticket"},
			[]string{"InboxLag severity=page project=bank", "TakeoverSlow severity=ticket"}},
		{"MemoryNearLimit severity=page instance=a", []string{"MemoryNearLimit severity=ticket instance=a"},
			[]string{"MemoryNearLimit severity=ticket instance=b"}},
		{"CertificateExpiring severity=page instance=a", []string{"CertificateExpiring severity=ticket instance=a"},
			[]string{"CertificateExpiring severity=ticket instance=b"}},
		{"ListenerCertificateExpiring severity=page instance=a", []string{"ListenerCertificateExpiring severity=ticket " +
			"instance=a"}, []string{"CertificateExpiring severity=ticket instance=a"}},
		{"LostTimeBudgetBurn severity=page", []string{"LostTimeBudgetBurn severity=ticket"},
			[]string{"StartLatencyBudgetBurn severity=ticket"}},
	}
	for _, test := range tests {
		t.Run(strings.Fields(test.cause)[0], func(t *testing.T) {
			t.Parallel()
			a := startAlertmanager(t, alertmanagerOptions{faster: quicker})
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
					want := slices.ContainsFunc(test.silenced, func(text string) bool {
						return assert.ObjectsAreEqual(labels(text), r.Labels)
					})
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
	for _, match := range regexp.MustCompile(`alertname=~?"([^"]*)"`).
		FindAllStringSubmatch(read(t, prometheus+"/alertmanager.yaml"), -1) {
		for name := range strings.SplitSeq(match[1], "|") {
			seen++
			assert.Contains(t, known, name)
		}
	}
	require.Greater(t, seen, 30)
}
