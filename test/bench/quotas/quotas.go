// Package quotas measures the cost of quotas: how many runs per second start and end without one, under limits that are
// not reached, and under one that makes runs wait for each other.
package quotas

import (
	"context"
	"fmt"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/bench/compare"
	"github.com/signalbox-dev/signalbox/test/bench/figure"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// callers is the number of concurrent callers, each of which starts a run and waits for its end; few is the limit of
// concurrent runs.
const (
	callers  = 32
	few      = 8
	stepsAim = 0.8 // of the runs per second without a quota
)

// Plan sets the amount of measurement.
type Plan struct{ Rounds, Runs int }

// Full is the plan for the page.
func Full(rounds int) Plan { return Plan{Rounds: min(rounds, 3), Runs: 300} }

// Short is the plan for a quick check.
func Short() Plan { return Plan{Rounds: 1, Runs: 60} }

// kind is one quota that is measured.
type kind struct {
	what  string
	aim   string
	quota *signalboxv1.Quota
}

func kinds() []kind {
	const month = 30 * 24 * 60 * 60
	return []kind{
		{what: "no quota", quota: &signalboxv1.Quota{}},
		{what: "a limit of concurrent runs that is not reached", quota: &signalboxv1.Quota{ConcurrentRuns: 1000}},
		{what: fmt.Sprintf("%d concurrent runs: the others wait in order", few),
			quota: &signalboxv1.Quota{ConcurrentRuns: few}},
		{what: "a limit of steps that is not reached", aim: fmt.Sprintf("≥ %.1f ×", stepsAim),
			quota: &signalboxv1.Quota{Steps: 1_000_000_000, PeriodSeconds: month}},
	}
}

// costs are the series of one store, by kind.
type costs struct {
	store  string
	series []compare.Series
}

// Report has all measurements.
type Report struct {
	plan   Plan
	stores []costs
}

// Measure executes a plan. It calls progress with the name of each part that begins.
func Measure(t platform.T, p Plan, progress func(string)) Report {
	r := Report{plan: p}
	stores := []func(platform.T) platform.Store{platform.SQLite}
	if platform.HasPostgres() {
		stores = append(stores, platform.Postgres)
	}
	for _, store := range stores {
		r.stores = append(r.stores, measure(t, p, store, progress))
	}
	return r
}

func measure(t platform.T, p Plan, store func(platform.T) platform.Store, progress func(string)) costs {
	scope := platform.NewScope(t.Context(), t.Name())
	defer scope.Close()
	kept, temporal := store(scope), platform.StartTemporal(scope)
	progress("quotas on " + kept.Driver)
	server := platform.StartServer(scope, platform.ServerOptions{Temporal: temporal.Address, Store: kept})
	workflow := server.Publish(scope,
		platform.Document("one", "  - greet:\n      set: {message: \"${ \\\"Hello, \\\" + .name }\"}\n"))
	var sides []compare.Side
	for _, k := range kinds() {
		sides = append(sides, compare.Side{
			Name: k.what, CPU: server.CPU, Temporal: temporal.CPU,
			Begin: func(t platform.T) {
				if _, err := server.Quotas.SetQuota(t.Context(),
					connect.NewRequest(&signalboxv1.SetQuotaRequest{Quota: k.quota})); err != nil {
					t.Fatalf("set the quota: %v", err)
				}
			},
			Run: func(ctx context.Context) error { return server.Completes(ctx, workflow, `{"name":"Ada"}`) },
		})
	}
	work := compare.Work{Rounds: p.Rounds, Runs: p.Runs, Callers: callers, WarmUp: p.Runs / 4}
	return costs{store: kept.Driver, series: compare.Measure(scope, work, sides...)}
}

// Markdown writes the section's body, one line per call.
func (r Report) Markdown(line func(format string, args ...any)) {
	line("Runs of one step, started by %d callers; each waits for the end of one run before it starts the next. "+
		"Processor time is that of the server", callers)
	line("and of Temporal, for one run.")
	line("")
	line("| quota | store | runs | compared with no quota (smallest to largest of the rounds) | processor time | aim | |")
	line("|---|---|---|---|---|---|---|")
	for _, s := range r.stores {
		for i, k := range kinds() {
			compared, verdict := "", ""
			ratio := figure.Ratio(s.series[i].Rates(), s.series[0].Rates())
			if i > 0 {
				compared = ratio.Times()
			}
			if k.aim != "" {
				verdict = figure.Verdict(ratio.Mid >= stepsAim)
			}
			line("| %s | %s | %.0f/s | %s | %s | %s | %s |", k.what, s.store, figure.Median(s.series[i].Rates()), compared,
				s.series[i].CPUs(), k.aim, verdict)
		}
	}
	line("")
	line("%d rounds of %d runs of each kind; medians.", r.plan.Rounds, r.plan.Runs)
}
