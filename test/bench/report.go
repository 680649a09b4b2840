package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// report is everything measured.
type report struct {
	machine    string
	plan       plan
	latency    pair // milliseconds per run
	rate       pair // runs per second, per round
	steps      steps
	idleMemory float64
	openMemory float64
	ready      []float64
	sizes      []size
}

// quantile of values, by nearest rank. NaN when there are none.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

func median(values []float64) float64 { return quantile(values, 0.5) }

// verdict says whether an aim was met.
func verdict(met bool) string {
	if met {
		return "met"
	}
	return "missed"
}

// markdown is the page.
func (r report) markdown() string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("# Benchmarks")
	p("")
	p("Made by `make bench`; the program is [test/bench](../test/bench). Both sides use the same embedded Temporal (SQLite), which runs")
	p("on the same machine, as does the store (SQLite). The bare SDK is a program of its own with eager start, no rows and no API: the limit.")
	p("Rounds of both sides alternate; figures are medians.")
	p("")
	p("Machine: %s.", r.machine)
	p("")
	p("| what | Signalbox | bare SDK | compared | aim | |")
	p("|---|---|---|---|---|---|")
	ratio := median(r.rate.signalbox) / median(r.rate.bare)
	p("| one-step runs per second, API to terminal row, %d callers | %.0f | %.0f | %.2f × | ≥ 0.7 × | %s |",
		r.plan.callers, median(r.rate.signalbox), median(r.rate.bare), ratio, verdict(ratio >= 0.7))
	more := median(r.latency.signalbox) - median(r.latency.bare)
	p("| a one-step run, API to terminal row, one at a time: median | %.1f ms | %.1f ms | %+.1f ms | ≤ + 5 ms | %s |",
		median(r.latency.signalbox), median(r.latency.bare), more, verdict(more <= 5))
	p("| the same, 95th percentile | %.1f ms | %.1f ms | %+.1f ms | | |", quantile(r.latency.signalbox, 0.95),
		quantile(r.latency.bare, 0.95), quantile(r.latency.signalbox, 0.95)-quantile(r.latency.bare, 0.95))
	bare := median(r.steps.latency.bare)
	hundred := median(r.steps.closed) / bare
	p("| 100 steps of `set`, API to the end of the execution, against the same in Go | %.1f ms | %.1f ms | %.2f × | ≤ 1.3 × | %s |",
		median(r.steps.closed), bare, hundred, verdict(hundred <= 1.3))
	p("| the same, API to terminal row with 100 steps | %.1f ms | %.1f ms | %.2f × | | |",
		median(r.steps.latency.signalbox), bare, median(r.steps.latency.signalbox)/bare)
	p("| its history, in events | %d | %d | | ≤ 8 | %s |",
		r.steps.events.signalbox, r.steps.events.bare, verdict(r.steps.events.signalbox <= 8))
	p("")
	p("| what | figure | aim | |")
	p("|---|---|---|---|")
	p("| memory of the server (API and worker), idle | %.0f MB | < 120 MB | %s |", r.idleMemory, verdict(r.idleMemory < 120))
	p("| the same with %d open runs | %.0f MB | < 300 MB | %s |", r.plan.openRuns, r.openMemory, verdict(r.openMemory < 300))
	p("| `signalbox dev` from start to ready, warm | %.1f s | < 2 s | %s |", median(r.ready)/1000, verdict(median(r.ready) < 2000))
	limits := []float64{180, 70}
	for i, s := range r.sizes {
		p("| size of `%s` | %.0f MB | < %.0f MB | %s |", s.name, s.mb, limits[i], verdict(s.mb < limits[i]))
	}
	p("")
	p("%d rounds of %d runs one at a time and %d runs by %d callers.",
		r.plan.rounds, r.plan.latencyRuns, r.plan.rateRuns, r.plan.callers)
	return b.String()
}
