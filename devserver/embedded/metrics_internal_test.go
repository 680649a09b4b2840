package embedded

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
)

// metric returns the sum of the series of a metric with these labels, given as name="value", and how many there are: of
// a histogram, the sum of its counts.
func (s *Server) metric(t *testing.T, name string, labels ...string) (sum float64, series int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.MetricsURL(), nil)
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, answer.Body.Close()) }()
	page, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(page)))
	require.NoError(t, err)
	for _, m := range families[name].GetMetric() {
		found := map[string]bool{}
		for _, l := range m.GetLabel() {
			found[l.GetName()+"="+l.GetValue()] = true
		}
		matches := true
		for _, l := range labels {
			matches = matches && found[l]
		}
		if matches {
			series++
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return sum, series
}

// Temporal's own metrics show its timers.
func TestOwnMetricsAreServed(t *testing.T) {
	t.Parallel()
	s, c := serve(t, dynamicConfig())
	r, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: "sleepers"}, sleep)
	require.NoError(t, err)
	require.NoError(t, r.Get(t.Context(), nil))
	fired, _ := s.metric(t, "task_latency_queue", "operation=TimerActiveTaskUserTimer")
	require.InDelta(t, sleeps, fired, 0)
}

// The states of workflows that have ended do not fill the memory.
func TestCacheOfStatesIsBounded(t *testing.T) {
	t.Parallel()
	s, _ := serve(t, dynamicConfig())
	most, _ := s.metric(t, "cache_size", "cache_type=mutablestate")
	require.InDelta(t, maxStates, most, 0)
}
