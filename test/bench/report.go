package main

import "github.com/signalbox-dev/signalbox/test/bench/figure"

// report has all measurements of the platform.
type report struct {
	plan       plan
	latency    pair // milliseconds per run
	rate       pair // runs per second, per round
	cpu        costs
	steps      steps
	idleMemory float64
	openMemory float64
	ready      []float64
	sizes      []size
}

// markdown writes the section's body.
func (r report) markdown(p func(format string, args ...any)) {
	p("Both sides use the same embedded Temporal (SQLite), which runs on the same machine, as does the store (SQLite). The bare SDK is a")
	p("separate program with eager start, without rows and API: the upper limit.")
	p("")
	p("| what | Signalbox | bare SDK | compared | aim | |")
	p("|---|---|---|---|---|---|")
	ratio := figure.Median(r.rate.signalbox) / figure.Median(r.rate.bare)
	p("| one-step runs per second, API to terminal row, %d callers | %.0f | %.0f | %.2f × | ≥ 0.95 × | %s |",
		r.plan.callers, figure.Median(r.rate.signalbox), figure.Median(r.rate.bare), ratio, figure.Verdict(ratio >= 0.95))
	more := figure.Median(r.latency.signalbox) - figure.Median(r.latency.bare)
	p("| a one-step run, API to terminal row, one at a time: median | %.1f ms | %.1f ms | %+.1f ms | ≤ + 3 ms | %s |",
		figure.Median(r.latency.signalbox), figure.Median(r.latency.bare), more, figure.Verdict(more <= 3))
	p("| the same, 95th percentile | %.1f ms | %.1f ms | %+.1f ms | | |", figure.Quantile(r.latency.signalbox, 0.95),
		figure.Quantile(r.latency.bare, 0.95), figure.Quantile(r.latency.signalbox, 0.95)-figure.Quantile(r.latency.bare, 0.95))
	bare := figure.Median(r.steps.latency.bare)
	p("| 100 steps of `set`, API to the end of the execution, compared with the same in Go, which records nothing | %.1f ms | %.1f ms | %.2f × | | |",
		figure.Median(r.steps.closed), bare, figure.Median(r.steps.closed)/bare)
	row := figure.Median(r.steps.latency.signalbox)
	p("| the same, API to terminal row with 100 steps | %.1f ms | %.1f ms | %.2f × | ≤ 1.8 × | %s |", row, bare, row/bare, figure.Verdict(row/bare <= 1.8))
	step := (row - figure.Median(r.latency.signalbox)) / (stepCount - 1)
	p("| the same, for each step beyond the first | %.3f ms | | | ≤ 0.04 ms | %s |", step, figure.Verdict(step <= 0.04))
	loop := figure.Median(r.steps.loop)
	p("| a `for` over 1,000 items, API to terminal row with 1,001 steps | %.0f ms | | | < 150 ms | %s |", loop, figure.Verdict(loop < 150))
	p("| its history, in events | %d | %d | | ≤ 8 | %s |",
		r.steps.events.signalbox, r.steps.events.bare, figure.Verdict(r.steps.events.signalbox <= 8))
	p("")
	p("| what | figure | aim | |")
	p("|---|---|---|---|")
	single := figure.Median(r.cpu.single)
	p("| processor time of the server for a one-step run, one at a time | %.1f ms | ≤ 4.5 ms | %s |", single, figure.Verdict(single <= 4.5))
	p("| the same, %d callers | %.1f ms | | |", r.plan.callers, figure.Median(r.cpu.concurrent))
	p("| memory of the server (API and worker), idle | %.0f MB | < 120 MB | %s |", r.idleMemory, figure.Verdict(r.idleMemory < 120))
	p("| the same with %d open runs | %.0f MB | < 300 MB | %s |", r.plan.openRuns, r.openMemory, figure.Verdict(r.openMemory < 300))
	p("| `signalbox dev` from start to ready, warm | %.1f s | < 2 s | %s |", figure.Median(r.ready)/1000, figure.Verdict(figure.Median(r.ready) < 2000))
	limits := []float64{180, 70}
	for i, s := range r.sizes {
		p("| size of `%s` | %.0f MB | < %.0f MB | %s |", s.name, s.mb, limits[i], figure.Verdict(s.mb < limits[i]))
	}
	p("")
	p("%d rounds of %d runs one at a time and %d runs by %d callers.",
		r.plan.rounds, r.plan.latencyRuns, r.plan.rateRuns, r.plan.callers)
}
