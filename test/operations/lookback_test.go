package operations_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// delayed is for how long after an outage its effects are counted: a takeover, for example, ends some time after the
// workers are back.
const delayed = 5 * time.Minute

// inhibitions are the parts of alertmanager.yaml that the tests read.
type inhibitions struct {
	Rules []struct {
		Source []string `yaml:"source_matchers"`
		Target []string `yaml:"target_matchers"`
		Equal  []string `yaml:"equal"`
	} `yaml:"inhibit_rules"`
}

// selects reports whether the matchers of an inhibition select an alert by its name and severity.
func selects(t *testing.T, matchers []string, r rule) bool {
	t.Helper()
	for _, m := range matchers {
		parts := regexp.MustCompile(`^(\w+)(=~?)"(.*)"$`).FindStringSubmatch(m)
		require.NotNil(t, parts, m)
		value, ok := map[string]string{"alertname": r.Alert, "severity": r.Labels["severity"]}[parts[1]]
		if ok && !regexp.MustCompile("^(?:"+parts[3]+")$").MatchString(value) {
			return false
		}
	}
	return true
}

// An inhibition ends with the alert of the cause, and the windows of what it silences outlive the cause: the rule of
// each alert that is silenced excludes the time in which its windows still contain the cause.
func TestSilencedAlertsStayQuietAfterTheirCause(t *testing.T) {
	t.Parallel()
	all, windows := alerts(t), recordedWindows(t)
	pairs := 0
	for _, i := range parse[inhibitions](t, prometheus+"/alertmanager.yaml").Rules {
		for _, source := range all {
			if !selects(t, i.Source, source) {
				continue
			}
			for _, target := range all {
				if !selects(t, i.Target, target) || slices.Contains(i.Equal, "alertname") && source.Alert != target.Alert {
					continue
				}
				pairs++
				for _, branch := range split(target.Expr, " or ") {
					if window := lookBack(branch, windows); window > 0 {
						assert.GreaterOrEqual(t, excluded(branch, source), window+delayed,
							"%s (%s) after %s (%s): it is silenced, and sees %s of the past in\n%s",
							target.Alert, target.Labels["severity"], source.Alert, source.Labels["severity"], window, branch)
					}
				}
			}
		}
	}
	require.Greater(t, pairs, 60)
}

func TestLookBackOfExpressions(t *testing.T) {
	t.Parallel()
	windows := map[string]time.Duration{"a:b:ratio1h": time.Hour, "a:b:ratio5m": 5 * time.Minute}
	tests := map[string]time.Duration{
		"up == 0":                               0,
		"rate(x[5m]) > 1":                       5 * time.Minute,
		"a:b:ratio1h > 0.9":                     time.Hour,
		"(x[1h] > 1) and y > 0":                 time.Hour,
		"(a:b:ratio1h > 1 and a:b:ratio5m > 1)": 5 * time.Minute,
		"(sum(increase(x[1h])) > 1) and sum(increase(x[10m])) > 0":                          10 * time.Minute,
		`rate(x[5m]) > 1 unless on () last_over_time(ALERTS{alertname="A"}[1d])`:            5 * time.Minute,
		"sum((rate(x[1h]) and on (instance) y[5m]) or z) > 0":                               time.Hour,
		"a:b:ratio1h > 1\n  and a:b:ratio5m > 1\n  unless on () last_over_time(ALERTS[2h])": 5 * time.Minute,
	}
	for expr, want := range tests {
		assert.Equal(t, want, lookBack(flat(expr), windows), expr)
	}
	assert.Equal(t, []string{"a or b", "c"}, split("(a or b) or\n  (c)", " or "))
	quiet := `x unless on () last_over_time(ALERTS{alertstate="firing",alertname=~"A|B",severity="page"}[10m])`
	for want, source := range map[time.Duration]rule{
		10 * time.Minute: {Alert: "B", Labels: map[string]string{"severity": "page"}},
		0:                {Alert: "B", Labels: map[string]string{"severity": "ticket"}},
	} {
		assert.Equal(t, want, excluded(quiet, source))
	}
}

// recordedWindows returns the look-back of each recorded series. A series that ends in :bool is a state of the moment.
func recordedWindows(t *testing.T) map[string]time.Duration {
	t.Helper()
	windows := map[string]time.Duration{}
	for _, group := range parse[rules](t, prometheus+"/rules.yaml").Groups {
		for _, r := range group.Rules {
			if r.Record != "" && !strings.HasSuffix(r.Record, ":bool") {
				windows[r.Record] = longest(flat(r.Expr), windows)
			}
		}
	}
	return windows
}

// lookBack returns for how long a branch of an expression, which has no `or` at its top level, can be true because of
// the past. All sides of an `and` have to be, so the one with the shortest window ends it; a side without a window does
// not depend on the past.
func lookBack(expr string, windows map[string]time.Duration) (back time.Duration) {
	for _, side := range split(expr, " and ") {
		side = split(side, " unless ")[0]
		own := longest(side, windows)
		if inner := split(side, " and "); len(inner) > 1 {
			own = lookBack(side, windows)
		}
		if own > 0 && (back == 0 || own < back) {
			back = own
		}
	}
	return back
}

var (
	ranges   = regexp.MustCompile(`\[(\d+)([smhd])(?::\d+[smhd])?\]`)
	recorded = regexp.MustCompile(`\b[a-z_]+:[a-z_]+:[a-z0-9_]+\b`)
	quiets   = regexp.MustCompile(
		`^on \(\) last_over_time\(ALERTS\{alertstate="firing",alertname=~?"([A-Za-z|]+)"(?:,severity="(\w+)")?\}(\[\w+\])\)$`)
)

// longest returns the longest window in an expression.
func longest(expr string, windows map[string]time.Duration) (window time.Duration) {
	for _, found := range ranges.FindAllStringSubmatch(expr, -1) {
		n, _ := strconv.Atoi(found[1]) // digits
		window = max(window, time.Duration(n)*units[found[2]])
	}
	for _, name := range recorded.FindAllString(expr, -1) {
		window = max(window, windows[name])
	}
	return window
}

// excluded returns for how long after an alert a branch of an expression is quiet.
func excluded(branch string, source rule) (quiet time.Duration) {
	for _, part := range split(branch, " unless ")[1:] {
		found := quiets.FindStringSubmatch(part)
		if found != nil && slices.Contains(strings.Split(found[1], "|"), source.Alert) &&
			(found[2] == "" || found[2] == source.Labels["severity"]) {
			quiet = max(quiet, longest(found[3], nil))
		}
	}
	return quiet
}

// flat puts an expression on one line.
func flat(expr string) string { return strings.Join(strings.Fields(expr), " ") }

// split returns the sides of an operator at the top level of an expression, without the parentheses around each.
func split(expr, operator string) (sides []string) {
	expr = unwrap(flat(expr))
	depth, from := 0, 0
	for i, c := range expr {
		switch c {
		case '(', '{', '[':
			depth++
		case ')', '}', ']':
			depth--
		case ' ':
			if depth == 0 && strings.HasPrefix(expr[i:], operator) {
				sides = append(sides, unwrap(expr[from:i]))
				from = i + len(operator)
			}
		}
	}
	return append(sides, unwrap(expr[from:]))
}

// unwrap removes parentheses around a whole expression.
func unwrap(expr string) string {
	expr = strings.TrimSpace(expr)
	for strings.HasPrefix(expr, "(") {
		depth, end := 0, -1
		for i, c := range expr {
			if c == '(' {
				depth++
			} else if c == ')' {
				if depth--; depth == 0 {
					end = i
					break
				}
			}
		}
		if end != len(expr)-1 {
			break
		}
		expr = strings.TrimSpace(expr[1:end])
	}
	return expr
}
