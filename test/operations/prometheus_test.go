package operations_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// scraper is a running Prometheus with the configuration and rules of deploy/prometheus.
type scraper struct {
	*platform.Process

	url string
}

// scraperOptions are what differs from deploy/prometheus.
type scraperOptions struct {
	targets      []string      // host:port of each server
	alertmanager string        // host:port; "": alerts are sent to none
	past         time.Duration // for so long no time was lost before the start
	// files: the token of Prometheus, and the authority of the servers' certificates; "": they have none
	token, ca string
	faster    int // all intervals and the durations of the rules are divided by it; 0: those of production
}

var (
	durations = regexp.MustCompile(`(for: |keep_firing_for: |interval: |timeout: |group_wait: |\[|:)(\d+)([smhd])`)
	units     = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}
)

// faster divides the durations of a configuration or of rules. Seconds that are numbers in expressions stay as they
// are.
func faster(t *testing.T, text string, by int) string {
	t.Helper()
	if by <= 1 {
		return text
	}
	return durations.ReplaceAllStringFunc(text, func(found string) string {
		parts := durations.FindStringSubmatch(found)
		n, err := strconv.Atoi(parts[2])
		require.NoError(t, err)
		return fmt.Sprintf("%s%dms", parts[1], (time.Duration(n) * units[parts[3]] / time.Duration(by)).Milliseconds())
	})
}

// startPrometheus runs Prometheus and waits until it is ready. It scrapes from then on.
func startPrometheus(t *testing.T, o scraperOptions) *scraper {
	t.Helper()
	binary := program(t, "prometheus")
	folder := t.TempDir()
	const authorization, secure = "    authorization: {credentials_file: /run/signalbox/prometheus.token}\n",
		"    # scheme: https\n    # tls_config: {ca_file: /etc/prometheus/signalbox-ca.pem}\n"
	replacements := map[string]string{
		"['signalbox-1:8080', 'signalbox-2:8080']": "['" + strings.Join(o.targets, "', '") + "']"}
	if o.token == "" {
		replacements[authorization] = ""
	} else {
		replacements["/run/signalbox/prometheus.token"] = o.token
	}
	if o.ca != "" {
		replacements[secure] = strings.ReplaceAll(strings.ReplaceAll(secure, "# ", ""), "/etc/prometheus/signalbox-ca.pem",
			o.ca)
	}
	config := replaceAll(t, read(t, prometheus+"/prometheus.yaml"), replacements)
	if o.alertmanager == "" {
		config, _, _ = strings.Cut(config, "alerting:")
	} else {
		config = replaceAll(t, config, map[string]string{"alertmanager:9093": o.alertmanager})
	}
	file := filepath.Join(folder, "prometheus.yaml")
	require.NoError(t, os.WriteFile(file, []byte(faster(t, config, o.faster)), 0o600))
	rules := faster(t, read(t, prometheus+"/rules.yaml"), o.faster)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "rules.yaml"), []byte(rules), 0o600))

	runIn(t, folder, "promtool", "check", "config", "prometheus.yaml")
	if o.past > 0 {
		backfill(t, filepath.Join(folder, "data"), o.past)
	}
	address := platform.Address(platform.FreePort(t))
	s := &scraper{url: "http://" + address}
	s.Process = platform.StartProcess(t, "prometheus", binary, nil, []string{
		"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(folder, "data"), "--web.listen-address=" + address,
	})
	t.Cleanup(s.Kill) // its data is not needed
	platform.Eventually(t, soon, func() string { return fetch(t, s.url+"/-/ready", nil) })
	return s
}

// backfill writes the samples of a platform that was available until now: shares of time are small only where the time
// is long.
func backfill(t *testing.T, data string, past time.Duration) {
	t.Helper()
	var text strings.Builder
	text.WriteString("# TYPE signalbox:lost:bool gauge\n")
	const interval = 15 * time.Second
	for at := time.Now().Add(-past).Truncate(interval); at.Before(time.Now().Add(-interval)); at = at.Add(interval) {
		fmt.Fprintf(&text, "signalbox:lost:bool 0 %d\n", at.Unix())
	}
	text.WriteString("# EOF\n")
	file := filepath.Join(t.TempDir(), "past.txt")
	require.NoError(t, os.WriteFile(file, []byte(text.String()), 0o600))
	runIn(t, filepath.Dir(file), "promtool", "tsdb", "create-blocks-from", "openmetrics", file, data)
}

// replaceAll replaces each key by its value. A key that does not occur is an error: the test would use other settings
// than it states.
func replaceAll(t *testing.T, text string, replacements map[string]string) string {
	t.Helper()
	for old, replacement := range replacements {
		require.Contains(t, text, old)
		text = strings.ReplaceAll(text, old, replacement)
	}
	return text
}

// sample is one series of the answer to a query.
type sample struct {
	labels map[string]string
	value  float64
}

// query executes an expression at the present time. It returns what is wrong with the expression or with Prometheus.
func (s *scraper) query(t *testing.T, expression string) (samples []sample, wrong string) {
	t.Helper()
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string `json:"metric"`
				Value  [2]any            `json:"value"`
			} `json:"result"`
		} `json:"data"`
	}
	if wrong := fetch(t, s.url+"/api/v1/query?query="+url.QueryEscape(expression), &answer); wrong != "" {
		return nil, wrong
	}
	for _, r := range answer.Data.Result {
		value, err := strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64)
		require.NoError(t, err, expression)
		samples = append(samples, sample{labels: r.Metric, value: value})
	}
	return samples, ""
}

// waitForScrapes waits until every target was scraped.
func (s *scraper) waitForScrapes(t *testing.T, targets int) {
	t.Helper()
	platform.Eventually(t, soon, func() string {
		up, wrong := s.query(t, `up{job="signalbox"} == 1`)
		if wrong != "" {
			return wrong
		}
		if len(up) != targets {
			return fmt.Sprintf("%d of %d servers were scraped", len(up), targets)
		}
		return ""
	})
}

// A Prometheus with our configuration scrapes a real server, and its rules can be evaluated.
func TestPrometheusScrapesAServer(t *testing.T) {
	t.Parallel()
	server := platform.StartDev(t)
	requireValidMetrics(t, server)
	s := startPrometheus(t, scraperOptions{targets: []string{server.Address}, faster: 10})
	s.waitForScrapes(t, 1)
	platform.Eventually(t, soon, func() string {
		lost, wrong := s.query(t, "signalbox:lost:bool")
		if wrong == "" && (len(lost) != 1 || lost[0].value != 0) {
			return fmt.Sprint(lost)
		}
		return wrong
	})
}

// requireValidMetrics requires that promtool has no finding about the metrics of a server that
// docs/reference/metrics.md lists. Those of Temporal's SDK have no descriptions.
func requireValidMetrics(t *testing.T, server *platform.Server) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(t, "promtool"), "check", "metrics")
	cmd.Stdin = strings.NewReader(metricsOf(t, server))
	out, _ := cmd.CombinedOutput() // it exits with 3 where it has findings
	ours, _, found := strings.Cut(read(t, "../../docs/reference/metrics.md"), "## Temporal's SDK")
	require.True(t, found)
	for finding := range strings.Lines(string(out)) {
		name, _, _ := strings.Cut(finding, " ")
		require.False(t, strings.Contains(ours, "`"+name+"`"), finding)
		require.True(t, strings.HasPrefix(name, "temporal_"), finding)
	}
}

// metricsOf returns the metrics of a server as Prometheus reads them.
func metricsOf(t *testing.T, server *platform.Server) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/metrics", nil)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusOK, res.StatusCode)
	return string(text)
}
