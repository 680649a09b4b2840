package operations_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// dashboard is the part of a file of deploy/grafana/dashboards that the tests read.
type dashboard struct {
	Title      string
	Panels     []panel
	Templating struct {
		List []struct{ Type, Definition string }
	}
	Annotations struct {
		List []struct{ Target struct{ Expr string } }
	}
}

// panel is a panel of a dashboard. Rows have no targets.
type panel struct {
	Title, Description string
	Targets            []struct{ Expr string }
	FieldConfig        struct {
		Defaults struct {
			Unit     string
			Max      *float64
			Min      *float64
			Mappings []struct {
				Type    string
				Options map[string]any
			}
		}
	}
}

func dashboards(t *testing.T) (all []dashboard) {
	t.Helper()
	files, err := filepath.Glob(root + "/deploy/grafana/dashboards/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		var d dashboard
		require.NoError(t, json.Unmarshal([]byte(read(t, file)), &d))
		all = append(all, d)
	}
	return all
}

// shown is an expression of a dashboard.
type shown struct {
	panel

	where, expression string
}

// queries returns the expressions of all panels and annotations, with the variables replaced as Grafana does.
func queries(t *testing.T) (all []shown) {
	t.Helper()
	// Grafana's rate interval is at least four scrapes.
	rate := fmt.Sprintf("%ds", int(spell(100*time.Second).Seconds()))
	variables := strings.NewReplacer("$__rate_interval", rate, "$__interval_ms", "2000", "$project", ".*", "$instance",
		".*")
	add := func(p panel, where, expression string) {
		s := shown{panel: p, where: where, expression: variables.Replace(expression)}
		require.NotContains(t, s.expression, "$", where)
		all = append(all, s)
	}
	for _, d := range dashboards(t) {
		for _, p := range d.Panels {
			for n, target := range p.Targets {
				add(p, fmt.Sprintf("%s / %s, query %c", d.Title, p.Title, 'A'+n), target.Expr)
			}
		}
		for _, a := range d.Annotations.List {
			add(panel{}, d.Title+", annotation", a.Target.Expr)
		}
	}
	require.Greater(t, len(all), 60)
	return all
}

// notShown are the metrics that the platform of the test does not have, with the reason. Their queries have no series.
func notShown() map[string]string {
	return map[string]string{
		"signalbox_listener_certificate_expiry_timestamp_seconds":  "its listeners use no TLS",
		"signalbox_listener_certificate_renewal_timestamp_seconds": "its listeners use no TLS",
		"signalbox_processor_limit":                                "its control group may have no limit",
		"signalbox_processor_periods_total":                        "its control group may have no limit",
		"signalbox_processor_throttled":                            "its control group may have no limit",
	}
}

// drawn returns what is wrong with a query since a time: it fails, has no number, or one that its panel cannot mean.
func (s *scraper) drawn(t *testing.T, q shown, since time.Time) string {
	t.Helper()
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Values [][2]any
			}
		}
	}
	at := func(when time.Time) string { return strconv.FormatInt(when.Unix(), 10) }
	values := url.Values{"query": {q.expression}, "start": {at(since)}, "end": {at(time.Now())}, "step": {"2"}}
	if wrong := fetch(t, s.url+"/api/v1/query_range?"+values.Encode(), &answer); wrong != "" {
		return wrong
	}
	found := false
	for _, series := range answer.Data.Result {
		for _, v := range series.Values {
			value, err := strconv.ParseFloat(fmt.Sprint(v[1]), 64)
			require.NoError(t, err)
			if math.IsNaN(value) || math.IsInf(value, 0) {
				continue
			}
			found = true
			if wrong := q.implausible(value); wrong != "" {
				return fmt.Sprintf("%v is %v: %s", series.Metric, value, wrong)
			}
		}
	}
	if !found {
		return fmt.Sprintf("no number in %d series", len(answer.Data.Result))
	}
	return ""
}

// implausible returns why a panel cannot mean a value.
func (p panel) implausible(value float64) string {
	const year = 366 * 24 * 3600
	d := p.FieldConfig.Defaults
	for _, m := range d.Mappings {
		if _, mapped := m.Options[strconv.FormatFloat(value, 'f', -1, 64)]; m.Type == "value" && !mapped {
			return "the panel has no text for it"
		}
	}
	// Prometheus extrapolates each rate by itself, so a share may be a little outside of the whole.
	beyond := 0.0
	if d.Unit == "percentunit" {
		beyond = 0.25
	}
	switch {
	case d.Min != nil && value < *d.Min-beyond:
		return "it is less than the axis"
	case d.Max != nil && value > *d.Max+beyond, d.Unit == "percentunit" && value > 1+beyond:
		return "it is more than the whole"
	case d.Unit == "s" && value > year:
		return "it is a time, not a duration"
	case d.Unit == "bytes" && value < 1<<20:
		return "no process is as small"
	case d.Unit == "cps" && value > 1e5:
		return "the platform is not as fast"
	}
	return ""
}

func TestImplausibleValues(t *testing.T) {
	t.Parallel()
	all := queries(t)
	of := func(title string) panel {
		n := slices.IndexFunc(all, func(q shown) bool { return q.Title == title })
		require.GreaterOrEqual(t, n, 0, title)
		return all[n].panel
	}
	for title, values := range map[string][2]float64{ // one that is plausible, one that is not
		"Takeovers in time": {1, 1.5}, "Failed cycles in an hour": {0, 60}, "Time since the last cycle": {30, 1.8e9},
		"Inbox lag":       {0, -1},
		"Resident memory": {1 << 27, 130}, "Connection": {1, 2},
	} {
		assert.Empty(t, of(title).implausible(values[0]), title)
		assert.NotEmpty(t, of(title).implausible(values[1]), title)
	}
	assert.Empty(t, of("Budgets that remain of 30 days").implausible(-20), "a budget may be exceeded")
}

// requirePanel requires that a panel whose description links the runbook of an alert shows something since a time: a
// person who follows the alert looks at it. Not all do in an idle platform, such as those of durations.
func (s *scraper) requirePanel(t *testing.T, alert string, since time.Time) {
	t.Helper()
	linked := slices.DeleteFunc(queries(t), func(q shown) bool {
		return !strings.Contains(q.Description, "/"+alert+".md)")
	})
	require.NotEmpty(t, linked, alert)
	platform.Eventually(t, soon, func() string {
		if empty := s.problems(t, linked, since); len(empty) == len(linked) {
			return strings.Join(empty, "\n")
		}
		return ""
	})
}

// problems returns what is wrong with queries.
func (s *scraper) problems(t *testing.T, of []shown, since time.Time) (all []string) {
	t.Helper()
	for _, q := range of {
		if wrong := s.drawn(t, q, since); wrong != "" {
			all = append(all, q.where+": "+wrong+": "+q.expression)
		}
	}
	return all
}

// load has the platform do something of every kind: runs that complete, fail, repeat a call and have a quota, events
// that are delivered and one that is given up, a webhook, and a problem that is acknowledged.
func load(t *testing.T, w *watched) {
	t.Helper()
	var calls atomic.Int64
	origin := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) < 3 {
			answer.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(origin.Close)
	run := func(args ...string) {
		out := w.CLI(t, args...)
		require.Zero(t, out.Code, out)
	}
	run("webhook", "create", "pager", "--url", origin.URL, "--type", "io.example.*")
	w.publishEvents(t)
	w.Start(t, w.Publish(t, platform.Document("repeats", `  - attempt:
      try:
        - get:
            call: http
            with: {method: get, endpoint: `+origin.URL+`}
      catch:
        errors: {with: {status: 503}}
        retry: {delay: {milliseconds: 10}, limit: {attempt: {count: 5}}}
`)), "")
	w.Publish(t, picky("1.0.0", "integer"))
	run("event", "send", "--type", "io.example.picky", "--source", "/picky", "--id", "1", "--data", `{"n":"text"}`)
	run("quota", "set", "--project", platform.DefaultProject, "--concurrent-runs", "1000")
	w.fail(t, "fails")
	w.awaitProblem(t, "fails")
	run("problem", "acknowledge", w.names["ID"], "--note", "it is expected")
}

// await waits until an expression has a series.
func (s *scraper) await(t *testing.T, expression string) {
	t.Helper()
	platform.Eventually(t, patience, func() string {
		found, wrong := s.query(t, expression)
		if wrong == "" && len(found) == 0 {
			wrong = "no series: " + expression
		}
		return wrong
	})
}

// crash kills worker 1, which owns the dispatchers of two projects. Worker 0 takes over that of the first one, which it
// serves too, and cleans up after the second one, which it does not serve.
func (w *watched) crash(t *testing.T) {
	t.Helper()
	w.workers[1].Kill()
	out := w.CLI(t, "event", "send", "--project", side, "--type", "io.example.waits", "--source", "/waits")
	require.Zero(t, out.Code, out)
	w.scraper.await(t, `sum(dispatcher_takeovers_total{outcome="takeover"}) > 0`)
	w.scraper.await(t, "sum(dispatcher_cleanup_seconds_count) > 0")
	w.restart(t, 1)
}

// ownBoth has worker 1 own the dispatchers of two projects, of which worker 0 serves one.
func (w *watched) ownBoth(t *testing.T) {
	t.Helper()
	_, err := w.Projects.CreateProject(t.Context(), connect.NewRequest(&signalboxv1.CreateProjectRequest{Name: side}))
	require.NoError(t, err)
	w.stop(t, 0)
	require.Equal(t, 1, w.waitForOwner(t))
	w.restart(t, 0, "--projects", platform.DefaultProject)
	w.scraper.await(t, fmt.Sprintf("dispatcher_active{project=%q,instance=%q} == 1", side, w.workers[1].Address))
}

// After a load, an outage of Temporal, and a crash of the worker that owned the dispatchers, no panel is empty: every
// query of every dashboard has a number that its panel can mean.
func TestDashboardsShowARealPlatform(t *testing.T) {
	t.Parallel()
	began := time.Now()
	w := build(t, parts{
		temporal: true, frontend: true, prepare: func(t *testing.T, w *watched) { w.certify(t, 30*24*time.Hour) },
		args: []string{
			"--dispatch-ttl", "3s", "--dispatch-renew", "500ms", "--dispatch-heartbeat", "500ms", "--dispatch-stale-after", "4s",
			"--dispatch-check-interval", "1s",
			"--supervisor-interval", "1s", "--supervisor-confirm", "500ms", "--retention-interval", "1s",
			"--retention-audit-max-count", "1",
			"--memory-limit", "2GiB", "--runs-queue-when-unavailable-enabled",
		},
	})
	load(t, w)
	w.temporal.Kill()
	w.scraper.await(t, "sum(temporal_connection_status) == 0")
	w.temporal = w.temporal.Restart(t)
	w.scraper.await(t, "sum(temporal_connection_status) == 3 and sum(dispatcher_active) > 0")
	w.ownBoth(t)
	w.crash(t)

	missing := notShown()
	rest := slices.DeleteFunc(queries(t), func(q shown) bool {
		for metric := range missing {
			if strings.Contains(q.expression, metric) {
				return true
			}
		}
		return false
	})
	platform.Eventually(t, soon, func() string {
		var empty []string
		rest = slices.DeleteFunc(rest, func(q shown) bool {
			wrong := w.scraper.problems(t, []shown{q}, began)
			empty = append(empty, wrong...)
			return len(wrong) == 0
		})
		return strings.Join(empty, "\n")
	})
	for _, d := range dashboards(t) {
		for _, v := range d.Templating.List {
			if v.Type == "query" {
				w.scraper.requireChoices(t, v.Definition)
			}
		}
	}
}

var labelValues = regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`)

// requireChoices requires that a variable of a dashboard has values.
func (s *scraper) requireChoices(t *testing.T, definition string) {
	t.Helper()
	match := labelValues.FindStringSubmatch(definition)
	require.NotNil(t, match, definition)
	found, wrong := s.query(t, match[1])
	require.Empty(t, wrong)
	require.NotEmpty(t, found, definition)
	for _, each := range found {
		assert.NotEmpty(t, each.labels[match[2]], definition)
	}
}
