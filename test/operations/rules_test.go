package operations_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// program returns the path of a program of Prometheus or Alertmanager, or skips the test.
func program(t *testing.T, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skipf("%s is missing; `make setup` installs it", names[0])
	return ""
}

func runIn(t *testing.T, folder, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(t, name), args...)
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s\n%s", cmd, out)
}

func TestRulesPassTheirUnitTests(t *testing.T) {
	t.Parallel()
	runIn(t, prometheus, "promtool", "test", "rules", "rules_test.yaml", "rules_days_test.yaml")
}

func TestConfigurationsAreValid(t *testing.T) {
	t.Parallel()
	runIn(t, prometheus, "promtool", "check", "rules", "rules.yaml")
	// the file of the token is not here
	runIn(t, prometheus, "promtool", "check", "config", "--syntax-only", "prometheus.yaml")
	runIn(t, prometheus, "amtool", "check-config", "alertmanager.yaml")
}

// unitTests are the parts of rules_test.yaml that the tests read.
type unitTests struct {
	Tests []struct {
		Name        string `yaml:"name"`
		Expressions []struct {
			Expr    string `yaml:"expr"`
			Samples []any  `yaml:"exp_samples"`
		} `yaml:"promql_expr_test"`
	} `yaml:"tests"`
}

// Each alert has a unit test in which it fires, and one in which it does not.
func TestEveryAlertHasUnitTests(t *testing.T) {
	t.Parallel()
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, test := range parse[unitTests](t, prometheus+"/rules_test.yaml").Tests {
		for _, x := range test.Expressions {
			_, rest, found := strings.Cut(x.Expr, `alertname="`)
			if !found {
				continue
			}
			name, _, _ := strings.Cut(rest, `"`)
			fires[name] = fires[name] || len(x.Samples) > 0
			quiet[name] = quiet[name] || len(x.Samples) == 0
		}
	}
	for _, name := range alertNames(t) {
		assert.True(t, fires[name], "%s never fires in rules_test.yaml", name)
		assert.True(t, quiet[name], "%s always fires in rules_test.yaml", name)
	}
}

// The names that the design of the platform lists, so that none is dropped by mistake.
func TestAlertsAreComplete(t *testing.T) {
	t.Parallel()
	require.Subset(t, alertNames(t), strings.Fields(`
		DispatcherMissing DispatcherDuplicate DispatcherStale TakeoverSlow CleanupSlow SupervisorErrors TerminateErrors WorkerEvictionsHigh
		TemporalDisconnected TemporalFlapping BreakerOpen NoPollers RunsStuck RunsRetrying InboxLag DeadLetters ReconcileCorrections QueueModeFilling
		StoreSlow ProjectionLag DispatcherForeign ProjectWithoutWorkers TemporalLimited ServersOnDifferentTemporals PoisonRuns
		MemoryNearLimit CertificateExpiring ProblemsUnacknowledged WebhookDeliveriesFailing`))
}

func TestAlertsAreDescribed(t *testing.T) {
	t.Parallel()
	const pages = "https://github.com/signalbox-dev/signalbox/blob/main/docs/runbooks/"
	for _, r := range alerts(t) {
		assert.Contains(t, []string{"page", "ticket"}, r.Labels["severity"], r.Alert)
		assert.NotEmpty(t, r.Annotations["summary"], r.Alert)
		assert.NotEmpty(t, r.Annotations["description"], r.Alert)
		assert.Equal(t, pages+r.Alert+".md", r.Annotations["runbook_url"])
	}
}

// Each alert has a runbook, each runbook an alert, and the index lists each once.
func TestEveryAlertHasARunbook(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(runbooks + "/*.md")
	require.NoError(t, err)
	var pages []string
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), ".md"); name != "README" {
			pages = append(pages, name)
		}
	}
	require.Equal(t, alertNames(t), pages)
	index := read(t, runbooks+"/README.md")
	for _, name := range pages {
		assert.Equal(t, 1, strings.Count(index, "("+name+".md)"), "links to %s in the index", name)
		page := read(t, runbooks+"/"+name+".md")
		assert.True(t, strings.HasPrefix(page, "# "+name+"\n"), "%s begins with its name", name)
		for _, section := range []string{"## Effect", "## See it", "## Causes and fixes", "## Verify", "## Escalate"} {
			assert.Equal(t, 1, strings.Count(page, section+"\n"), "sections %q of %s", section, name)
		}
	}
}
