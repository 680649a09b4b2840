package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const (
	root      = "../.."
	committed = root + "/deploy/grafana/dashboards"
)

func TestMain(m *testing.M) {
	plugins.RegisterDefaultPlugins() // the SDK decodes panels and queries by a registry of the process
	os.Exit(m.Run())
}

func TestCommittedDashboardsAreFresh(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(committed + "/*.json")
	require.NoError(t, err)
	require.Len(t, files, len(boards()))
	for _, b := range boards() {
		text, err := os.ReadFile(filepath.Join(committed, b.name+".json"))
		require.NoError(t, err)
		fresh, err := render(b)
		require.NoError(t, err)
		require.Equal(t, string(fresh), string(text), "%s.json: run make generate", b.name)
	}
}

// The SDK accepts the files with nothing unknown and nothing missing, and decodes what was built. It has no fields for
// formats.
func TestDashboardsDecodeStrictly(t *testing.T) {
	t.Parallel()
	for _, b := range boards() {
		text, err := render(b)
		require.NoError(t, err)
		var file map[string]any
		require.NoError(t, json.Unmarshal(text, &file))
		for _, annotation := range annotations(file) {
			for key := range formats() {
				require.NotEmpty(t, annotation[key])
				delete(annotation, key)
			}
		}
		text, err = json.Marshal(file)
		require.NoError(t, err)
		require.Empty(t, undecoded(t, text), b.name)
		require.NotEmpty(t, undecoded(t, []byte(strings.Replace(string(text), `"noValue"`, `"noValu"`, 1))))
		require.NotEmpty(t, undecoded(t, []byte(strings.Replace(string(text), `"gridPos"`, `"gridPo"`, 1))))
	}
}

// undecoded decodes a dashboard strictly and returns what is wrong with it. The SDK does not report all unknown fields,
// but drops them, so that the dashboard is another one afterwards.
func undecoded(t *testing.T, text []byte) string {
	t.Helper()
	var decoded dashboard.Dashboard
	if err := decoded.UnmarshalJSONStrict(text); err != nil {
		return err.Error()
	}
	again, err := json.Marshal(decoded)
	require.NoError(t, err)
	var before, after any
	require.NoError(t, json.Unmarshal(text, &before))
	// of rows
	require.NoError(t, json.Unmarshal([]byte(strings.ReplaceAll(string(again), `"panels":null`, `"panels":[]`)), &after))
	if !assert.ObjectsAreEqual(before, after) {
		return "it has fields that the SDK does not know"
	}
	return ""
}

// Grafana shows a panel on top of another one, or cuts it off, without a complaint.
func TestPanelsArePlacedBesideEachOther(t *testing.T) {
	t.Parallel()
	for _, b := range boards() {
		built, err := b.build()
		require.NoError(t, err)
		taken, ids := map[[2]uint32]string{}, map[uint32]bool{}
		for _, p := range built.Panels {
			if p.RowPanel != nil {
				require.False(t, ids[p.RowPanel.Id])
				ids[p.RowPanel.Id] = true
				continue
			}
			require.False(t, ids[*p.Panel.Id])
			ids[*p.Panel.Id] = true
			grid := p.Panel.GridPos
			require.LessOrEqual(t, grid.X+grid.W, uint32(width), *p.Panel.Title)
			for x := grid.X; x < grid.X+grid.W; x++ {
				for y := grid.Y; y < grid.Y+grid.H; y++ {
					require.Empty(t, taken[[2]uint32{x, y}], *p.Panel.Title)
					taken[[2]uint32{x, y}] = *p.Panel.Title
				}
			}
		}
	}
}

// each calls a function with every panel.
func each(t *testing.T, call func(board, panel)) {
	t.Helper()
	for _, b := range boards() {
		for _, r := range b.rows {
			require.NotEmpty(t, r.panels, r.title)
			for _, p := range r.panels {
				call(b, p)
			}
		}
	}
}

func TestPanelsAreDescribed(t *testing.T) {
	t.Parallel()
	titles := map[string]bool{}
	each(t, func(b board, p panel) {
		assert.False(t, titles[p.title], "%s: two panels have this title", p.title)
		titles[p.title] = true
		assert.Regexp(t, `^[A-Z].*[.]$`, p.about, p.title)
		assert.NotEmpty(t, p.unit, p.title)
		for _, q := range p.queries {
			assert.NotEmpty(t, q.legend, p.title)
			assert.NotContains(t, q.expr, "vector(", "%s: what is not there would be shown as a number", p.title)
			assert.False(t, strings.Contains(q.expr, "$project") && !b.byProject, "%s: the dashboard has no variable project",
				p.title)
		}
		for _, name := range p.runbooks {
			assert.FileExists(t, root+"/docs/runbooks/"+name+".md", p.title)
			assert.Contains(t, p.description(), pages+name+".md")
		}
		if p.from != nil || p.below != nil {
			assert.NotEmpty(t, p.runbooks, "%s: a limit is that of an alert", p.title)
		}
	})
}

// Every alert is seen on a panel whose description links its runbook.
func TestEveryAlertHasAPanel(t *testing.T) {
	t.Parallel()
	linked := map[string]bool{}
	each(t, func(_ board, p panel) {
		for _, name := range p.runbooks {
			linked[name] = true
		}
	})
	for _, r := range rules(t) {
		if r.Alert != "" {
			assert.True(t, linked[r.Alert], "%s has no panel", r.Alert)
		}
	}
}

type rule struct{ Alert, Record, Expr string }

func rules(t *testing.T) (all []rule) {
	t.Helper()
	text, err := os.ReadFile(root + "/deploy/prometheus/rules.yaml")
	require.NoError(t, err)
	var file struct{ Groups []struct{ Rules []rule } }
	require.NoError(t, yaml.Unmarshal(text, &file))
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	require.NotEmpty(t, all)
	return all
}

var (
	compared = regexp.MustCompile(`(>=|>|<|==)\s*([0-9.]+)`)
	bucket   = regexp.MustCompile(`le=~?"([0-9.]+)`)
	recorded = regexp.MustCompile(`signalbox:[a-z0-9_:]+`)
	// platformWide are the conditions on the whole platform, such as its maintenance: the line that has them.
	platformWide = regexp.MustCompile(`\b(and|unless) on \(\) .*`)
)

// thresholds are the numbers that the rules of an alert compare with: those of the comparisons, and the bucket of a
// ratio. More than zero things are at least one.
func thresholds(all []rule, alert string) (numbers []float64) {
	add := func(text string) {
		n, err := strconv.ParseFloat(strings.TrimSuffix(text, "."), 64)
		if err == nil {
			numbers = append(numbers, n)
		}
	}
	for _, r := range all {
		if r.Alert != alert {
			continue
		}
		expressions := r.Expr
		for _, name := range recorded.FindAllString(r.Expr, -1) {
			for _, other := range all {
				if other.Record == name {
					expressions += "\n" + other.Expr
				}
			}
		}
		for _, match := range compared.FindAllStringSubmatch(platformWide.ReplaceAllString(r.Expr, ""), -1) {
			if match[2] == "0" {
				match[2] = "1"
			}
			add(match[2])
		}
		for _, match := range bucket.FindAllStringSubmatch(expressions, -1) {
			add(match[1])
		}
	}
	return numbers
}

func TestLimitsAreThoseOfTheAlerts(t *testing.T) {
	t.Parallel()
	all := rules(t)
	require.Equal(t, []float64{60}, thresholds(all, "InboxLag"))
	require.Contains(t, thresholds(all, "TakeoverSlow"), 30.0)
	seen := 0
	each(t, func(_ board, p panel) {
		var known []float64
		for _, name := range p.runbooks {
			known = append(known, thresholds(all, name)...)
		}
		for _, limit := range append(p.from, p.below...) {
			seen++
			assert.Contains(t, known, limit, "%s: the limit is in no alert of %v", p.title, p.runbooks)
		}
	})
	require.Greater(t, seen, 20)
}

// unitOf returns the unit that the names of the metrics and the functions of an expression have.
func unitOf(expr string) string {
	has := func(text string) bool { return strings.Contains(expr, text) }
	switch {
	case has("$__interval_ms / 1000"), regexp.MustCompile(`^signalbox:\S+ / 0`).MatchString(expr):
		return count // of the interval; burn rates
	case has("histogram_quantile("), has("time() - "), has(" - time()"), has(":mean"),
		regexp.MustCompile(`_seconds_sum.*/.*_seconds_count`).MatchString(expr):
		return seconds
	case has(" / ") || strings.HasPrefix(expr, "signalbox:"):
		return ratio
	case has("increase("), has("resets("), regexp.MustCompile(`rate\(\w*_seconds_total`).MatchString(expr):
		return count // seconds per second are things at once
	case has("rate("):
		return perSecond
	case regexp.MustCompile(`_seconds\{`).MatchString(expr):
		return seconds
	case regexp.MustCompile(`_bytes\{`).MatchString(expr):
		return bytes
	}
	return count
}

func TestUnitsAreThoseOfTheMetrics(t *testing.T) {
	t.Parallel()
	require.Equal(t, seconds, unitOf("max by (project) (dispatcher_inbox_lag_seconds{})"))
	require.Equal(t, perSecond, unitOf("sum(rate(signalbox_runs_total[5m]))"))
	require.Equal(t, ratio, unitOf("a_bytes{} / b_bytes{}"))
	each(t, func(_ board, p panel) {
		for _, q := range p.queries {
			assert.Equal(t, unitOf(q.expr), p.unit, "%s: %s", p.title, q.expr)
		}
	})
}

// What every server exports with the same value is not added up.
func TestMetricsOfAllProcessesAreReadWithMax(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(root + "/docs/reference/metrics.md")
	require.NoError(t, err)
	shared := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| gauge .*of all processes").FindAllStringSubmatch(string(page), -1)
	require.Greater(t, len(shared), 8)
	seen := 0
	each(t, func(_ board, p panel) {
		for _, q := range p.queries {
			for _, m := range shared {
				if regexp.MustCompile(`\b` + m[1] + `\b`).MatchString(q.expr) {
					seen++
					assert.Regexp(t, `max(?: by \([a-z, ]+\))? ?\(`+m[1]+`\b`, q.expr, p.title)
				}
			}
		}
	})
	require.Greater(t, seen, 8)
}

// The names of the series that an override colours, as far as they are fixed.
func TestColoursAreOfThePalette(t *testing.T) {
	t.Parallel()
	each(t, func(_ board, p panel) {
		var used []string
		for _, c := range p.colors {
			regexp.MustCompile(c.pattern)
			used = append(used, c.color)
		}
		for _, s := range p.states {
			assert.NotEmpty(t, s.text, p.title)
			used = append(used, s.color)
		}
		assert.Len(t, slices.Compact(slices.Sorted(slices.Values(used))), len(used), "%s: two have the same colour", p.title)
		for n, a := range used {
			for _, b := range used[n+1:] {
				for deficiency, distance := range distances(t, a, b) {
					assert.Greater(t, distance, 9.0, "%s: %s and %s with %s", p.title, a, b, deficiency)
				}
			}
		}
	})
}
