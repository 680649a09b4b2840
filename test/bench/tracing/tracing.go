// Package tracing measures the cost of traces and metrics over OTLP: how many runs per second start and end without
// them, with every trace sampled, and with few of them.
package tracing

import (
	"context"
	"slices"

	"github.com/signalbox-dev/signalbox/test/bench/compare"
	"github.com/signalbox-dev/signalbox/test/bench/figure"
	"github.com/signalbox-dev/signalbox/test/collector"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// callers is the number of concurrent callers, each of which starts a run and waits for its end.
const callers = 32

// Plan sets the amount of measurement.
type Plan struct{ Rounds, Runs int }

// Full is the plan for the page.
func Full(rounds int) Plan { return Plan{Rounds: rounds, Runs: 600} }

// Short is the plan for a quick check.
func Short() Plan { return Plan{Rounds: 1, Runs: 60} }

// kind is one configuration of tracing, with the namespace of its server in Temporal.
type kind struct {
	what, namespace string
	traced          bool
	env             []string
}

func kinds() []kind {
	return []kind{
		{what: "off", namespace: "off"},
		{what: "every trace (`parentbased_always_on`, the default)", namespace: "all", traced: true},
		{
			what: "one trace in twenty (`parentbased_traceidratio`, 0.05)", namespace: "ratio", traced: true,
			env: []string{"OTEL_TRACES_SAMPLER=parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG=0.05"},
		},
	}
}

// Report has all measurements, by kind.
type Report struct {
	plan   Plan
	series []compare.Series
	spans  []float64 // that the receiver got, per run
}

// Measure executes a plan. It calls progress with the name of each part that begins. All servers use one Temporal, in a
// namespace each.
func Measure(t platform.T, p Plan, progress func(string)) Report {
	progress("tracing")
	scope := platform.NewScope(t.Context(), t.Name())
	defer scope.Close()
	temporal := platform.StartTemporal(scope)
	var sides []compare.Side
	var receivers []*collector.Collector
	warmUp := p.Runs / 4
	for _, k := range kinds() {
		receiver := collector.New(scope)
		receivers = append(receivers, receiver)
		sides = append(sides, k.side(scope, temporal, receiver))
	}
	r := Report{plan: p, series: compare.Measure(scope,
		compare.Work{Rounds: p.Rounds, Runs: p.Runs, Callers: callers, WarmUp: warmUp}, sides...)}
	for i, k := range kinds() {
		// Those of the last seconds are not exported yet.
		spans := float64(len(receivers[i].Spans())) / float64(warmUp+p.Rounds*p.Runs)
		if k.traced != (spans > 0) {
			scope.Fatalf("%s: the receiver has %.2f spans per run", k.what, spans)
		}
		r.spans = append(r.spans, spans)
	}
	return r
}

// side starts the server of a kind.
func (k kind) side(t platform.T, temporal *platform.Temporal, receiver *collector.Collector) compare.Side {
	temporal.CreateNamespace(t, k.namespace)
	o := platform.ServerOptions{
		Temporal: temporal.Address, Store: platform.SQLite(t), Args: []string{"--temporal-namespace", k.namespace}}
	if k.traced {
		o.Env = slices.Concat(receiver.Env(collector.GRPC), k.env)
	}
	server := platform.StartServer(t, o)
	workflow := server.Publish(t,
		platform.Document("one", "  - greet:\n      set: {message: \"${ \\\"Hello, \\\" + .name }\"}\n"))
	return compare.Side{
		Name: k.what, CPU: server.CPU, Temporal: temporal.CPU,
		Run: func(ctx context.Context) error { return server.Completes(ctx, workflow, `{"name":"Ada"}`) },
	}
}

// Markdown writes the section's body, one line per call.
func (r Report) Markdown(line func(format string, args ...any)) {
	line("Traces and metrics over OTLP (gRPC) to a receiver on the same machine, which takes a part of the processors. " +
		"Runs of one step, started by")
	line("%d callers; each waits for the end of one run before it starts the next. Processor time is that of the server "+
		"and of Temporal, for one run.", callers)
	line("")
	line("| traces | runs | compared with off (smallest to largest of the rounds) | processor time | compared with off " +
		"| spans per run |")
	line("|---|---|---|---|---|---|")
	for i, k := range kinds() {
		s := r.series[i]
		rate, cost := "", ""
		if i > 0 {
			rate = figure.Ratio(s.Rates(), r.series[0].Rates()).Times()
			cost = figure.Ratio(s.CPUValues(), r.series[0].CPUValues()).Times()
		}
		line("| %s | %.0f/s | %s | %s | %s | %.2f |", k.what, figure.Median(s.Rates()), rate, s.CPUs(), cost, r.spans[i])
	}
	line("")
	line("%d rounds of %d runs of each kind; medians.", r.plan.Rounds, r.plan.Runs)
}
