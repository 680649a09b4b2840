package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/test/promise"
)

const alertsHead = `# Alerting

For SREs: how long it takes from a fault until its alert arrives, and from the repair until it is resolved.

Each row is a fault that was planted in a
real platform: an API server, workers, Postgres, Redis and Temporal, each in its own process, scraped by Prometheus with the
[configuration and rules](../deploy/prometheus) that are shipped, whose alerts Alertmanager sends to a webhook. The machine had %d
processors, and ran several platforms at once. ` + "`make alerts`" + ` repeats all of them and writes this page; the
[runbooks](runbooks/README.md) were followed during each, with the commands as written.

A scrape and an evaluation take place every 15 seconds, and Alertmanager waits 10 seconds for further alerts of a group, so an alert is
delivered up to 40 seconds after the duration that its rule demands. Resolutions are sent at most once per minute and group. A resolution
that takes much longer is that of a window: the alerts on an hour's takeovers end when the hour has passed, and those that silence symptoms
continue for 2 minutes.

Symptoms of a fault that has an alert of its own fired in Prometheus and did not arrive: Alertmanager silenced them, as
[configured](../deploy/prometheus/alertmanager.yaml). Where a fault is listed with several alerts, each of them demands something else.

After the repair, an alert with a window would still see the outage: an hour's failed cycles, takeovers or lost time. Such an alert is quiet
while an alert that silences it fires, and for its window and 5 minutes after that. In this time it also misses new faults of its own kind; a
cause that lasts has an alert of its own. LostTimeBudgetBurn is therefore about time that was lost in pieces too short for another alert.

A burnt budget is reported only if Prometheus has data for three quarters of the long window: a fresh Prometheus does not alert on the
minutes that it has seen as if they were an hour or a day.

Each Prometheus began with 6 hours in which no time was lost. It had no starts of runs in its past: StartLatencyBudgetBurn takes longer where
most starts of the last hour were fast.

| fault | alert | severity | fires after | delivered after | resolved after |
|---|---|---|---|---|---|
`

const alertsFoot = `
The tickets of StartLatencyBudgetBurn and LostTimeBudgetBurn have no row: the pages for the same objectives silence them for the first hours
of a fault, and their windows are up to 3 days long. ProjectionLag has none: what delays rows by 10 seconds also slows or interrupts the
database, whose alerts silence it. CleanupSlow and TimersLate have none: what a test can do to delay a clean-up by 2 minutes, or
timers, is an outage with an alert. Their unit tests are in [deploy/prometheus](../deploy/prometheus).

Faults of ` + "`make alerts`" + ` without a row, and times that are not recorded, were not part of the recorded runs, or these ended before.
`

// alertsPage lists the times of alerts that were recorded at full length, the latest of each alert and fault.
func alertsPage(all []promise.Figure, processors int) string {
	latest := map[string]*promise.Alert{}
	for _, f := range all {
		if f.Alert != nil && f.Full {
			latest[f.Alert.Fault+"\n"+f.Alert.Name+"\n"+f.Alert.Severity] = f.Alert
		}
	}
	var rows []*promise.Alert
	for _, a := range latest {
		rows = append(rows, a)
	}
	slices.SortFunc(rows, func(a, b *promise.Alert) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a.Fault), strings.ToLower(b.Fault)), cmp.Compare(a.Delivered, b.Delivered),
			cmp.Compare(a.Name, b.Name))
	})
	var b strings.Builder
	fmt.Fprintf(&b, alertsHead, processors)
	for _, a := range rows {
		fmt.Fprintf(&b, "| %s | [%s](runbooks/%s.md) | %s | %s | %s | %s |\n", a.Fault, a.Name, a.Name, a.Severity,
			a.Fired.Round(time.Second), a.Delivered.Round(time.Second), resolved(a))
	}
	return b.String() + alertsFoot
}

func resolved(a *promise.Alert) string {
	if a.Resolved == 0 {
		return "not recorded"
	}
	return a.Resolved.Round(time.Second).String()
}
