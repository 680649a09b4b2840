// Command bench measures the real platform beside the bare Temporal SDK on the same Temporal, in interleaved rounds on one
// machine, and writes the results as a page:
//
//	make bench
//
// What it compares with: a program that uses the SDK alone, with eager start, no rows and no API, which is the limit of what
// can be reached. It measures ratios; absolute figures belong to the machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// plan says how much is measured.
type plan struct {
	rounds      int
	latencyRuns int // per round, one after the other
	rateRuns    int // per round, many at once
	callers     int
	openRuns    int
	starts      int
}

func main() { os.Exit(run()) }

func run() int {
	out := flag.String("out", "", "file to write the page to; standard output when empty")
	rounds := flag.Int("rounds", 5, "interleaved rounds")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	text, err := measure(ctx, plan{rounds: *rounds, latencyRuns: 60, rateRuns: 600, callers: 32, openRuns: 1000, starts: 5})
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		return 1
	}
	if *out == "" {
		fmt.Print(text)
		return 0
	}
	if err := os.WriteFile(*out, []byte(text), 0o644); err != nil {
		fmt.Fprintf(os.Stderr, "bench: write the page: %v\n", err)
		return 1
	}
	fmt.Fprintf(os.Stderr, "bench: results are in %s\n", *out)
	return 0
}

// measure runs the plan. The kit's failures come as panics, which end here.
func measure(ctx context.Context, p plan) (text string, err error) {
	scope := platform.NewScope(ctx, "bench")
	defer scope.Close()
	defer func() {
		if caught := recover(); caught != nil {
			failure, ok := caught.(platform.Failure)
			if !ok {
				panic(caught)
			}
			err = failure
		}
	}()
	r := report{machine: machine(), plan: p}
	temporal := platform.StartTemporal(scope)
	server := platform.StartServer(scope, platform.ServerOptions{Temporal: temporal.Address, Store: platform.SQLite(scope)})
	r.idleMemory = memory(scope, server.PID())

	progress("one-step runs")
	sides := newSides(scope, server, temporal)
	r.latency, r.rate = sides.oneStep(scope, p)
	progress("100-step runs")
	r.steps = sides.hundredSteps(scope, p)
	progress("memory with open runs")
	r.openMemory = openRuns(scope, server, p)
	progress("start of dev")
	r.ready = devStarts(scope, p)
	r.sizes = sizes(scope)
	return r.markdown(), nil
}

func progress(what string) { fmt.Fprintf(os.Stderr, "bench: %s\n", what) }
