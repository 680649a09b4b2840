package operations_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

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
	targets      []string // host:port of each server
	alertmanager string   // host:port; "": alerts are sent to none
	// config and rules change the text of a file: each key must occur in it.
	config, rules map[string]string
}

// startPrometheus runs Prometheus and waits until it is ready. It scrapes from then on.
func startPrometheus(t *testing.T, o scraperOptions) *scraper {
	t.Helper()
	binary := program(t, "prometheus")
	folder := t.TempDir()
	config := replaceAll(t, read(t, prometheus+"/prometheus.yaml"), map[string]string{
		"['signalbox-1:8080', 'signalbox-2:8080']": "['" + strings.Join(o.targets, "', '") + "']",
	})
	if o.alertmanager == "" {
		config, _, _ = strings.Cut(config, "alerting:")
	} else {
		config = replaceAll(t, config, map[string]string{"alertmanager:9093": o.alertmanager})
	}
	file := filepath.Join(folder, "prometheus.yaml")
	require.NoError(t, os.WriteFile(file, []byte(replaceAll(t, config, o.config)), 0o600))
	rules := replaceAll(t, read(t, prometheus+"/rules.yaml"), o.rules)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "rules.yaml"), []byte(rules), 0o600))

	address := platform.Address(platform.FreePort(t))
	s := &scraper{url: "http://" + address}
	s.Process = platform.StartProcess(t, "prometheus", binary, nil, []string{
		"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(folder, "data"), "--web.listen-address=" + address,
	})
	t.Cleanup(s.Kill) // its data is not needed
	platform.Eventually(t, soon, func() string { return fetch(t, s.url+"/-/ready", nil) })
	return s
}

// replaceAll replaces each key by its value. A key that does not occur is an error: the test would use other settings than it states.
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
	s := startPrometheus(t, scraperOptions{targets: []string{server.Address}, config: map[string]string{"interval: 15s": "interval: 1s", "scrape_timeout: 10s": "scrape_timeout: 1s"}})
	s.waitForScrapes(t, 1)
	platform.Eventually(t, soon, func() string {
		lost, wrong := s.query(t, "signalbox:lost:bool")
		if wrong == "" && (len(lost) != 1 || lost[0].value != 0) {
			return fmt.Sprint(lost)
		}
		return wrong
	})
}
