package main

import (
	"fmt"

	"github.com/signalbox-dev/signalbox/test/bench/compare"
	"github.com/signalbox-dev/signalbox/test/bench/figure"
)

// report has all measurements of the platform.
type report struct {
	plan               plan
	single, concurrent compare.Pair
	steps              steps
	larger             larger
	idleMemory         float64
	openMemory         float64
	ready              []float64
	sizes              []size
}

// Aims are the figures with aims that this section measures.
func (r report) Aims() []figure.Aim {
	more := figure.Difference(r.single.Signalbox.Medians(), r.single.Bare.Medians())
	rate := r.concurrent.Rate()
	rows := compare.Pair{Signalbox: r.steps.row, Bare: r.steps.record}.Latency()
	step := r.stepCost()
	loop := figure.Median(r.larger.loop.Signalbox.Times())
	cpu := r.single.Signalbox.CPU()
	return []figure.Aim{
		{What: "a one-step run, API to terminal row, one at a time: median, beyond the bare SDK", Aim: "≤ + 3 ms",
			Seen: more.Milliseconds(), Met: more.Mid <= 3},
		{What: fmt.Sprintf("one-step runs per second, %d callers, of the bare SDK", r.plan.callers), Aim: "≥ 0.95 ×",
			Seen: rate.Times(), Met: rate.Mid >= .95},
		{What: "100 steps of `set`, API to terminal row, of a workflow by hand that writes 100 rows", Aim: "≤ 1.8 ×",
			Seen: rows.Times(), Met: rows.Mid <= 1.8},
		{What: "the same, for each step beyond the first", Aim: "≤ 0.04 ms", Seen: fmt.Sprintf("%.3f ms", step),
			Met: step <= .04},
		{What: "a `for` over 1,000 items, API to terminal row", Aim: "< 150 ms", Seen: fmt.Sprintf("%.0f ms", loop),
			Met: loop < 150},
		{
			What: "processor time of the server for a one-step run, one at a time", Aim: "≤ 4.5 ms",
			Seen: fmt.Sprintf("%.1f ms", cpu), Met: cpu <= 4.5,
		},
	}
}

// stepCost returns the milliseconds of each of the hundred steps beyond the first, with Signalbox.
func (r report) stepCost() float64 { return beyondFirst(r.steps.row, r.single.Signalbox) }

// beyondFirst returns the milliseconds of each step beyond the first, from the series of the hundred steps and of one.
func beyondFirst(hundred, one compare.Series) float64 {
	return (figure.Median(hundred.Times()) - figure.Median(one.Times())) / (stepCount - 1)
}

// Markdown writes the section's body.
func (r report) Markdown(p func(format string, args ...any)) {
	p("Both sides use the same embedded Temporal (SQLite), which runs on the same machine, as does Signalbox's store " +
		"(SQLite). The bare SDK is a")
	p("program with workflows written by hand, whose starts are eager: client and worker in one process, no API, and no " +
		"rows beyond those that")
	p("a workflow writes itself, to a SQLite database with the settings of Signalbox's store. Processor time is that of " +
		"Signalbox's server, or of the")
	p("program with the bare SDK, and of Temporal, for one run. Signalbox's callers are a process of their own, which " +
		"is not counted.")
	p("")
	compare.RateHead(p)
	r.concurrent.RateRow(p, fmt.Sprintf("one-step runs per second, API to terminal row, %d callers", r.plan.callers))
	p("")
	p("One at a time, API to terminal row:")
	p("")
	compare.LatencyHead(p)
	rate := compare.Compared{What: "one-step runs per second", By: r.concurrent.Rate(), Rate: true}
	compared := []compare.Compared{rate}
	for _, one := range r.latencies() {
		one.pair.LatencyRow(p, one.what)
		compared = append(compared, compare.Compared{What: one.what, By: one.pair.Latency()})
	}
	p("")
	compare.Leads(p, compared)
	p("The history of 100 steps has %d events with Signalbox (aim: ≤ 8, %s), and %d by hand with one insertion.",
		r.steps.events.signalbox, figure.Verdict(r.steps.events.signalbox <= 8), r.steps.events.record)
	p("Each step beyond the first takes %.3f ms with Signalbox; by hand, %.3f ms with one insertion, and %.3f ms with a "+
		"local activity for each.",
		r.stepCost(), beyondFirst(r.steps.record, r.single.Bare), beyondFirst(r.steps.each, r.single.Bare))
	p("")
	p("| what | figure | aim | |")
	p("|---|---|---|---|")
	p("| memory of the server (API and worker), idle | %.0f MB | < 120 MB | %s |", r.idleMemory,
		figure.Verdict(r.idleMemory < 120))
	p("| the same with %d open runs | %.0f MB | < 300 MB | %s |", r.plan.openRuns, r.openMemory,
		figure.Verdict(r.openMemory < 300))
	p("| `signalbox dev` from start to ready, warm | %.1f s | < 2 s | %s |", figure.Median(r.ready)/1000,
		figure.Verdict(figure.Median(r.ready) < 2000))
	for _, s := range r.sizes {
		p("| size of `%s` | %.0f MB | < %.0f MB | %s |", s.name, s.mb, s.limit, figure.Verdict(s.mb < s.limit))
	}
	p("")
	p("%d rounds of %d runs one at a time (the last three kinds: %d) and %d runs by %d callers.",
		r.plan.rounds, r.plan.latencyRuns, max(1, r.plan.latencyRuns/fewer), r.plan.rateRuns, r.plan.callers)
}

// latency is one row of works that are done one at a time.
type latency struct {
	what string
	pair compare.Pair
}

func (r report) latencies() []latency {
	hundred := fmt.Sprintf("%d steps of `set`", stepCount)
	rows := func(bare compare.Series) compare.Pair { return compare.Pair{Signalbox: r.steps.row, Bare: bare} }
	return []latency{
		{"a one-step run", r.single},
		{hundred + "; by hand, as many rows with one insertion at the end", rows(r.steps.record)},
		{hundred + "; by hand, a local activity for each row", rows(r.steps.each)},
		{hundred + "; by hand, no rows", rows(r.steps.compute)},
		{hundred + ", to the end of the execution instead of the row; by hand, no rows",
			compare.Pair{Signalbox: r.steps.closed, Bare: r.steps.compute}},
		{fmt.Sprintf("a `for` over %d items with a row each; by hand, as many rows with one insertion", loopCount),
			r.larger.loop},
		{fmt.Sprintf("a `fork` with %d branches and a row each; by hand, as many coroutines and rows", forkCount),
			r.larger.fork},
		{fmt.Sprintf("one step that returns its input of %d KiB", largeBytes>>10), r.larger.large},
	}
}
