// Package events measures events: how many are accepted and routed per second, how soon after an event its run
// starts, compared with starting the same runs by the SDK alone on the same Temporal; how soon another worker owns a dispatcher
// after its owner crashed, and how soon a dispatcher without workers is cleaned up.
package events

import (
	"fmt"

	"github.com/signalbox-dev/signalbox/test/bench/figure"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

// Plan sets the amount of measurement.
type Plan struct {
	Rounds int
	// Unwanted are events of a round that start nothing, Starting those that start a run each, Single those sent one at a time.
	Unwanted, Starting, Single int
	// Places is the number of environments with crashes in parallel, Crashes is the number of each kind in sequence.
	Places, Crashes int
}

// Full is the plan for the page: 40 crashes of each kind.
func Full(rounds int) Plan {
	return Plan{Rounds: min(rounds, 3), Unwanted: 50_000, Starting: 2000, Single: 100, Places: 4, Crashes: 10}
}

// Short is the plan for a quick check.
func Short() Plan {
	return Plan{Rounds: 1, Unwanted: 2000, Starting: 100, Single: 10, Places: 1, Crashes: 1}
}

// Report has all measurements.
type Report struct {
	plan   Plan
	stores []*rates
	// takeovers and cleanups are durations since the crash.
	takeovers, cleanups promise.Times
}

// Measure executes a plan. It calls progress with the name of each part that begins.
func Measure(t platform.T, p Plan, progress func(string)) Report {
	r := Report{plan: p}
	stores := []func(platform.T) platform.Store{platform.SQLite}
	if platform.HasPostgres() {
		stores = append(stores, platform.Postgres)
	}
	for _, store := range stores {
		scope := platform.NewScope(t.Context(), t.Name())
		s := build(scope, store(scope))
		progress("events on " + s.rates.store)
		for range p.Rounds {
			s.round(scope, p)
		}
		r.stores = append(r.stores, s.rates)
		scope.Close()
	}
	if platform.HasPostgres() {
		progress("owners that crash")
		r.takeovers = crashes(t, p, takeover)
		progress("dispatchers without an owner")
		r.cleanups = crashes(t, p, cleanup)
	}
	return r
}

// Markdown writes the section's body, one line per call.
func (r Report) Markdown(line func(format string, args ...any)) {
	line("One server (API and worker) and Temporal on the same machine. Events are published by gRPC, %d per request by %d callers for rates, one per request", batch, callers)
	line("at a time for latencies. The bare SDK starts the same number of one-step workflows eagerly, with as many callers as a")
	line("dispatcher has concurrent deliveries, and executes them. One run receives events without a limit until it has all of them.")
	line("")
	line("| what | store | figure | reference | compared | aim | |")
	line("|---|---|---|---|---|---|---|")
	for _, s := range r.stores {
		s.markdown(line)
	}
	if len(r.takeovers) > 0 {
		line("")
		line("Workers are killed (SIGKILL), with the default settings:")
		line("")
		line("| what | trials | p50, p95, longest | aim of p95 | |")
		line("|---|---|---|---|---|")
		line("| owner killed, another worker lives: until it owns the dispatcher | %d | %s | 20 s | %s |", len(r.takeovers), three(r.takeovers), figure.Verdict(r.takeovers.At(.95).Seconds() < 20))
		line("| the only worker of a project killed: until another project's supervisor has ended its dispatcher | %d | %s | 30 s | %s |",
			len(r.cleanups), three(r.cleanups), figure.Verdict(r.cleanups.At(.95).Seconds() < 30))
	}
	line("")
	line("%d rounds of %d events that start no run, %d that start a run each and %d single ones; medians of rounds, percentiles of all.",
		r.plan.Rounds, r.plan.Unwanted, r.plan.Starting, r.plan.Single)
}

func three(d promise.Times) string {
	return fmt.Sprintf("%s, %s, %s", promise.Round(d.At(.5)), promise.Round(d.At(.95)), promise.Round(d.Worst()))
}
