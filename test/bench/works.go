package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"

	"github.com/signalbox-dev/signalbox/test/bench/bare"
	"github.com/signalbox-dev/signalbox/test/bench/compare"
	"github.com/signalbox-dev/signalbox/test/platform"
)

const (
	stepCount  = 100
	loopCount  = 1000
	forkCount  = 50
	largeBytes = 100 << 10
	warmUpRuns = 50
	fewer      = 3 // of the larger works there are so many times fewer runs in a round
)

// works measures the works of the platform's section on one Temporal.
type works struct {
	server   *platform.Server
	temporal *platform.Temporal
	bare     *bare.Program
}

// through is the side of Signalbox: each run is started by the API, and followed until its row is terminal.
func (w works) through(workflow, input string) compare.Side {
	return w.does(func(ctx context.Context) error { return w.server.Completes(ctx, workflow, input) })
}

// closed is the side of Signalbox with runs that are followed in Temporal, until the execution has closed.
func (w works) closed(workflow, input string) compare.Side {
	return w.does(func(ctx context.Context) error {
		run, err := w.server.TryStart(ctx, workflow, input)
		if err != nil {
			return err
		}
		return w.bare.Client.GetWorkflow(ctx, run.GetId(), "").Get(ctx, nil)
	})
}

func (w works) does(f func(context.Context) error) compare.Side {
	return compare.Side{Name: "Signalbox", Run: f, CPU: w.server.CPU, Temporal: w.temporal.CPU}
}

// oneStep measures runs of one step: one at a time, and many at once.
func (w works) oneStep(t platform.T, p plan) (single, concurrent compare.Pair) {
	workflow := w.server.Publish(t,
		platform.Document("one", "  - greet:\n      set: {message: \"${ \\\"Hello, \\\" + .name }\"}\n"))
	signalbox, sdk := w.through(workflow, `{"name":"Ada"}`), w.bare.Side(bare.One, bare.Input{Name: "Ada"})
	measure := func(runs, callers int) compare.Pair {
		s := compare.Measure(t, compare.Work{Rounds: p.rounds, Runs: runs, Callers: callers, WarmUp: warmUpRuns}, signalbox,
			sdk)
		return compare.Pair{Signalbox: s[0], Bare: s[1]}
	}
	return measure(p.latencyRuns, 1), measure(p.rateRuns, p.callers)
}

// steps are the series of the hundred-step workflow. The bare workflows write the rows with one insertion at the end
// (record), one by one (each), or not at all (compute).
type steps struct {
	row, closed           compare.Series // Signalbox, to the terminal row and to the end of the execution
	record, each, compute compare.Series
	events                struct{ signalbox, record int }
}

func (w works) hundredSteps(t platform.T, p plan) (out steps) {
	var tasks strings.Builder
	for i := range stepCount {
		tasks.WriteString("  - step" + strconv.Itoa(i) + ":\n      set: {n: \"${ .n + 1 }\"}\n")
	}
	workflow, in := w.server.Publish(t, platform.Document("hundred", tasks.String())), bare.Input{Steps: stepCount}
	s := compare.Measure(t, compare.Work{Rounds: p.rounds, Runs: p.latencyRuns, Callers: 1, WarmUp: warmUpRuns},
		w.through(workflow, `{"n":0}`), w.closed(workflow, `{"n":0}`),
		w.bare.Side(bare.Record, in), w.bare.Side(bare.Each, in), w.bare.Side(bare.Compute, in))
	out.row, out.closed, out.record, out.each, out.compute = s[0], s[1], s[2], s[3], s[4]

	run := w.server.Start(t, workflow, `{"n":0}`)
	w.server.Await(t, run.GetId(), healthy, "completed")
	out.events.signalbox = len(platform.History(t, w.bare.Client, run.GetId()).GetEvents())
	execution, err := w.bare.Begin(t.Context(), bare.Record, in)
	if err == nil {
		err = execution.Get(t.Context(), nil)
	}
	if err != nil {
		t.Fatalf("run the hundred steps by hand: %v", err)
	}
	out.events.record = len(platform.History(t, w.bare.Client, execution.GetID()).GetEvents())
	return out
}

// larger are the works that take longer.
type larger struct{ loop, fork, large compare.Pair }

func (w works) larger(t platform.T, p plan) larger {
	measure := func(name, tasks, input, by string, in bare.Input) compare.Pair {
		progress(name)
		s := compare.Measure(t, compare.Work{Rounds: p.rounds, Runs: max(1, p.latencyRuns/fewer), Callers: 1, WarmUp: 3},
			w.through(w.server.Publish(t, platform.Document(name, tasks)), input), w.bare.Side(by, in))
		return compare.Pair{Signalbox: s[0], Bare: s[1]}
	}
	var branches strings.Builder
	for i := range forkCount {
		fmt.Fprintf(&branches, "          - branch%d: {set: {n: '${ .n + %d }'}}\n", i, i)
	}
	var text strings.Builder
	for text.Len() < largeBytes {
		text.WriteString(rand.Text()) // does not compress well
	}
	return larger{
		loop: measure("loop", "  - each:\n      for: {each: item, in: \"${ [range("+strconv.Itoa(loopCount)+
			")] }\"}\n      do:\n"+
			"        - add: {set: {sum: \"${ .sum + $item }\"}}\n", `{"sum":0}`, bare.Record, bare.Input{Steps: loopCount}),
		fork: measure("forks", "  - all:\n      fork:\n        branches:\n"+branches.String(), `{"n":0}`, bare.Fork,
			bare.Input{Steps: forkCount}),
		large: measure("large", "  - keep: {set: '${ . }'}\n", `{"text":"`+text.String()+`"}`, bare.Keep,
			bare.Input{Text: text.String()}),
	}
}
