package operations_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

// incident is a fault in a real platform, with the alerts that it causes.
type incident struct {
	parts parts
	// short incidents are part of `make test`, with the durations of the rules divided.
	short   bool
	breaks  func(*testing.T, *watched)
	repairs func(*testing.T, *watched)
	// settles ends what the alerts that arrive after the repair are about.
	settles func(*testing.T, *watched)
	// alerts arrive at the receiver, and are resolved after the repair.
	alerts []expected
	// silent alerts fire in Prometheus and do not arrive: their cause silences them. They are checked with the durations
	// of production; with short ones a symptom may fire before its cause.
	silent []string
	// also may arrive beside them: other effects of the fault.
	also []string
}

// expected is an alert that arrives, with what its runbook shows.
type expected struct {
	name, severity string
	// sees are patterns that the commands of "See it" print while the fault lasts.
	sees []string
	// fixes are commands of "Causes and fixes" that repair the platform, before the function repairs is called.
	fixes []string
	// verifies are patterns that the commands of "Verify" print after the repair.
	verifies []string
	// after the repair: the alert arrives only then, because another one silences it, or because it describes the past.
	after bool
}

// Each incident is planted in a platform of its own. Its alerts fire in Prometheus, arrive at the receiver of
// Alertmanager, and are resolved after the repair; symptoms do not arrive. The runbooks of the alerts are followed
// meanwhile.
func TestAlertsArriveAndAreResolved(t *testing.T) {
	t.Parallel()
	for name, i := range incidents() {
		t.Run(i.title(name), func(t *testing.T) {
			t.Parallel()
			if !i.short && !promise.Full() {
				t.Skip("`make alerts` runs it with the durations of production")
			}
			i.prove(t, name)
		})
	}
}

// title is the name of the incident with its alerts, so that `make alerts` can select it by them.
func (i incident) title(name string) string {
	var names []string
	for _, e := range i.alerts {
		names = append(names, e.name)
	}
	return strings.Join(append([]string{name}, names...), ", ")
}

func (i incident) prove(t *testing.T, name string) {
	t.Helper()
	w := build(t, i.parts)
	log := map[string]*promise.Alert{}
	for _, e := range i.alerts {
		log[e.key()] = &promise.Alert{Name: e.name, Severity: e.severity, Fault: name}
	}
	began := time.Now()
	w.faulted = began
	i.breaks(t, w)
	i.observe(t, w, log)
	i.resolve(t, w, log)
	for _, arrived := range withoutBudgets(w.receiver.names(began)) {
		known := slices.ContainsFunc(i.alerts, func(e expected) bool {
			return e.name == arrived
		}) || slices.Contains(i.also, arrived) || !promise.Full() && slices.Contains(i.silent, arrived)
		assert.True(t, known, "%s arrived, and is not an alert of this fault", arrived)
	}
}

// observe waits for the alerts of the fault, and looks at what shows it: a panel for each, and what their runbooks say.
func (i incident) observe(t *testing.T, w *watched, log map[string]*promise.Alert) {
	t.Helper()
	if len(i.alerts) == 0 {
		requireQuiet(t, w)
	}
	for _, e := range i.alerts {
		if !e.after {
			w.awaitFiring(t, e, log[e.key()])
			w.scraper.requirePanel(t, e.name, w.faulted.Add(-time.Minute))
		}
	}
	i.requireSilent(t, w)
	for _, e := range i.alerts {
		if !e.after {
			w.follow(t, e.name, "See it", e.sees)
		}
	}
}

// resolve repairs the platform, executes what the runbooks say to verify it, and waits until all alerts are resolved.
func (i incident) resolve(t *testing.T, w *watched, log map[string]*promise.Alert) {
	t.Helper()
	for _, e := range i.alerts {
		for _, command := range e.fixes {
			w.fix(t, e.name, command)
		}
	}
	if i.repairs != nil {
		i.repairs(t, w)
	}
	repaired := time.Now()
	for _, e := range i.alerts {
		if e.after {
			w.awaitFiring(t, e, log[e.key()])
			w.follow(t, e.name, "See it", e.sees)
		}
	}
	if i.settles != nil {
		i.settles(t, w)
	}
	for _, e := range i.alerts {
		w.follow(t, e.name, "Verify", e.verifies)
	}
	for _, e := range i.alerts {
		w.awaitResolved(t, e, repaired, log[e.key()])
	}
}

func (e expected) key() string { return e.name + " " + e.severity }

// limit is how long an alert may take to arrive. At full length some are resolved only when the fault has left the
// window of an hour.
func limit() time.Duration { return promise.Length(90*time.Second, 75*time.Minute) }

func (w *watched) awaitFiring(t *testing.T, e expected, log *promise.Alert) {
	t.Helper()
	platform.Eventually(t, min(limit(), 25*time.Minute), func() string {
		a, ok := w.receiver.first(e.name, e.severity, "firing", w.faulted)
		if !ok {
			return fmt.Sprintf("%s has not arrived; %v have, and %v fire", e.key(), w.receiver.names(time.Time{}), w.firing(t))
		}
		log.Fired, log.Delivered = a.StartsAt.Sub(w.faulted), a.at.Sub(w.faulted)
		return ""
	})
	record(t, log)
}

// record records the times of an alert: when it has arrived, and again when it is resolved, which may be an hour later.
func record(t *testing.T, a *promise.Alert) {
	t.Helper()
	promise.Record(t, promise.Figure{
		Promise: "R12", What: fmt.Sprintf("%s: until %s (%s) arrives and is resolved", a.Fault, a.Name, a.Severity),
		Trials: 1, Figure: a.String(), Alert: a,
	})
}

// requireQuiet requires that no alert arrives for longer than any alert that names the fault would take.
func requireQuiet(t *testing.T, w *watched) {
	t.Helper()
	platform.Throughout(t, spell(4*time.Minute), func() string {
		return strings.Join(withoutBudgets(w.receiver.names(w.faulted)), " ")
	})
}

// withoutBudgets removes the alerts of burnt budgets with short durations: a slow machine itself exceeds the objectives
// of latency.
func withoutBudgets(alerts []string) []string {
	if promise.Full() {
		return alerts
	}
	return slices.DeleteFunc(alerts, func(name string) bool { return strings.HasSuffix(name, "BudgetBurn") })
}

func (w *watched) awaitResolved(t *testing.T, e expected, repaired time.Time, log *promise.Alert) {
	t.Helper()
	platform.Eventually(t, limit(), func() string {
		a, ok := w.receiver.first(e.name, e.severity, "resolved", repaired)
		if !ok {
			return e.key() + " is not resolved"
		}
		log.Resolved = a.at.Sub(repaired)
		return ""
	})
	record(t, log)
}

// requireSilent waits until the symptoms fire, and requires that Alertmanager inhibits them.
func (i incident) requireSilent(t *testing.T, w *watched) {
	t.Helper()
	if !promise.Full() {
		return
	}
	platform.Eventually(t, 10*time.Minute, func() string {
		list, wrong := w.alerts.alerts(t)
		if wrong != "" {
			return wrong
		}
		for _, name := range i.silent {
			n := slices.IndexFunc(list, func(r received) bool { return r.Labels["alertname"] == name })
			if n < 0 || !list[n].inhibited() {
				return fmt.Sprintf("%s is not inhibited; %v fire", name, w.firing(t))
			}
		}
		return ""
	})
}

// Each alert has an incident in which it arrives, or a reason why it has none.
func TestEveryAlertHasAnIncident(t *testing.T) {
	t.Parallel()
	covered := map[string]bool{}
	for _, i := range incidents() {
		for _, e := range i.alerts {
			covered[e.key()] = true
		}
	}
	without := notPlanted()
	for _, r := range alerts(t) {
		key := r.Alert + " " + r.Labels["severity"]
		reason := without[key]
		assert.Equal(t, covered[key], reason == "", "%s: it has an incident or a reason why not: %q", key, reason)
		delete(without, key)
	}
	require.Empty(t, without, "reasons for alerts that do not exist")
	for name, i := range incidents() {
		for _, quiet := range slices.Concat(i.silent, i.also) {
			require.Contains(t, alertNames(t), quiet, name)
		}
		require.NotContains(t, name, "|", "it is a cell of a table")
		require.False(t, strings.HasSuffix(name, "."), name)
	}
}
