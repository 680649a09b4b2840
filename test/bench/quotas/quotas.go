// Package quotas measures the cost of quotas: how many runs per second start and end without one, under limits that are not reached, and
// under one that makes runs wait for each other.
package quotas

import (
	"fmt"
	"time"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/bench/figure"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// callers is the number of concurrent callers, each of which starts a run and waits for its end; few is the limit of concurrent runs.
const (
	callers = 32
	few     = 8
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
	quota *signalboxv1.Quota
}

func kinds() []kind {
	const month = 30 * 24 * 60 * 60
	return []kind{
		{"no quota", &signalboxv1.Quota{}},
		{"a limit of concurrent runs that is not reached", &signalboxv1.Quota{ConcurrentRuns: 1000}},
		{fmt.Sprintf("%d concurrent runs: the others wait in order", few), &signalboxv1.Quota{ConcurrentRuns: few}},
		{"a limit of steps that is not reached", &signalboxv1.Quota{Steps: 1_000_000_000, PeriodSeconds: month}},
	}
}

// rates are runs per second on one store, by kind and round.
type rates struct {
	store string
	rates [][]float64
}

// Report has all measurements.
type Report struct {
	plan   Plan
	stores []rates
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

func measure(t platform.T, p Plan, store func(platform.T) platform.Store, progress func(string)) rates {
	scope := platform.NewScope(t.Context(), t.Name())
	defer scope.Close()
	kept := store(scope)
	progress("quotas on " + kept.Driver)
	server := platform.StartServer(scope, platform.ServerOptions{Temporal: platform.StartTemporal(scope).Address, Store: kept})
	workflow := server.Publish(scope, platform.Document("one", "  - greet:\n      set: {message: \"${ \\\"Hello, \\\" + .name }\"}\n"))
	rate(scope, server, workflow, p.Runs/4) // warms up all parts
	r := rates{store: kept.Driver, rates: make([][]float64, len(kinds()))}
	for range p.Rounds {
		for i, k := range kinds() {
			if _, err := server.Quotas.SetQuota(scope.Context(), connect.NewRequest(&signalboxv1.SetQuotaRequest{Quota: k.quota})); err != nil {
				scope.Fatalf("set the quota: %v", err)
			}
			r.rates[i] = append(r.rates[i], rate(scope, server, workflow, p.Runs))
		}
	}
	return r
}

// rate starts runs and waits for their ends, and returns how many ended per second.
func rate(t platform.T, s *platform.Server, workflow string, runs int) float64 {
	began := time.Now()
	err := platform.Concurrently(runs, callers, func() error {
		started, err := s.TryStart(t.Context(), workflow, `{"name":"Ada"}`)
		if err != nil {
			return err
		}
		ended, err := s.Watch(t.Context(), started.GetId())
		if err == nil && ended.GetStatus() != "completed" {
			err = fmt.Errorf("run %s is %s", ended.GetId(), ended.GetStatus())
		}
		return err
	})
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	return float64(runs) / time.Since(began).Seconds()
}

// Markdown writes the section's body, one line per call.
func (r Report) Markdown(line func(format string, args ...any)) {
	line("Runs of one step, started by %d callers; each waits for the end of one run before it starts the next.", callers)
	line("")
	line("| quota | store | runs | ratio to no quota |")
	line("|---|---|---|---|")
	for _, s := range r.stores {
		without := figure.Median(s.rates[0])
		for i, k := range kinds() {
			line("| %s | %s | %.0f/s | %.2f |", k.what, s.store, figure.Median(s.rates[i]), figure.Median(s.rates[i])/without)
		}
	}
	line("")
	line("%d rounds of %d runs of each kind; medians.", r.plan.Rounds, r.plan.Runs)
}
