package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/test/platform"
)

const (
	bareQueue  = "bench-bare"
	oneStep    = "bench.one"
	manySteps  = "bench.hundred"
	stepCount  = 100
	warmUpRuns = 50
	loopShare  = 6 // one run of 1,000 steps for so many of a hundred
)

// side starts one run and returns when it has ended with its result.
type side struct {
	name string
	one  func(platform.T) error
	many func(platform.T) (id string, err error)
}

// sides are Signalbox and the bare SDK, on the same Temporal.
type sides struct {
	signalbox, bare side
	// closed is Signalbox with runs that are followed in Temporal, until the execution has closed.
	closed   side
	temporal client.Client
	server   *platform.Server
	// loop starts a run with 1,000 steps in a `for`, each of which has a row.
	loop func(platform.T) error
}

func newSides(t platform.T, server *platform.Server, temporal *platform.Temporal) *sides {
	c := platform.DialTemporal(t, temporal.Address)
	w := worker.New(c, bareQueue, worker.Options{})
	w.RegisterWorkflowWithOptions(setOnce, workflow.RegisterOptions{Name: oneStep})
	w.RegisterWorkflowWithOptions(setMany, workflow.RegisterOptions{Name: manySteps})
	if err := w.Start(); err != nil {
		t.Fatalf("start the bare worker: %v", err)
	}
	t.Cleanup(w.Stop)

	one := server.Publish(t, platform.Document("one", "  - greet:\n      set: {message: \"${ \\\"Hello, \\\" + .name }\"}\n"))
	var tasks strings.Builder
	for i := range stepCount {
		tasks.WriteString("  - step" + strconv.Itoa(i) + ":\n      set: {n: \"${ .n + 1 }\"}\n")
	}
	many := server.Publish(t, platform.Document("hundred", tasks.String()))
	loop := server.Publish(t, platform.Document("loop",
		"  - each:\n      for: {each: item, in: \"${ [range(1000)] }\"}\n      do:\n        - add: {set: {sum: \"${ .sum + $item }\"}}\n"))
	return &sides{
		temporal: c, server: server,
		loop: func(t platform.T) error { _, err := throughAPI(t, server, loop, `{"sum":0}`); return err },
		signalbox: side{
			name: "Signalbox",
			one:  func(t platform.T) error { _, err := throughAPI(t, server, one, `{"name":"Ada"}`); return err },
			many: func(t platform.T) (string, error) { return throughAPI(t, server, many, `{"n":0}`) },
		},
		closed: side{
			name: "Signalbox, to the end of the execution",
			many: func(t platform.T) (string, error) {
				run, err := server.TryStart(t.Context(), many, `{"n":0}`)
				if err != nil {
					return "", err
				}
				var out map[string]any
				return run.GetId(), c.GetWorkflow(t.Context(), run.GetId(), "").Get(t.Context(), &out)
			},
		},
		bare: side{
			name: "bare SDK",
			one:  func(t platform.T) error { _, err := throughSDK(t, c, oneStep); return err },
			many: func(t platform.T) (string, error) { return throughSDK(t, c, manySteps) },
		},
	}
}

// setOnce is the one-step workflow, written by hand.
func setOnce(_ workflow.Context, input map[string]any) (map[string]any, error) {
	name, _ := input["name"].(string)
	return map[string]any{"message": "Hello, " + name}, nil
}

// setMany is the hundred-step workflow, written by hand.
func setMany(_ workflow.Context, input map[string]any) (map[string]any, error) {
	data := input
	for range stepCount {
		n, _ := data["n"].(float64)
		data = map[string]any{"n": n + 1}
	}
	return data, nil
}

// throughAPI starts a run and follows it until its row is terminal.
func throughAPI(t platform.T, s *platform.Server, name, input string) (string, error) {
	run, err := s.TryStart(t.Context(), name, input)
	if err != nil {
		return "", err
	}
	run, err = s.Watch(t.Context(), run.GetId())
	if err == nil && run.GetStatus() != "completed" {
		err = fmt.Errorf("run %s is %s", run.GetId(), run.GetStatus())
	}
	return run.GetId(), err
}

// throughSDK starts an execution eagerly and waits for its result.
func throughSDK(t platform.T, c client.Client, name string) (string, error) {
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: bareQueue, EnableEagerStart: true},
		name, map[string]any{"name": "Ada", "n": 0})
	if err != nil {
		return "", err
	}
	var out map[string]any
	return run.GetID(), run.Get(t.Context(), &out)
}

// pair holds one figure of both sides, one value per round or run.
type pair struct{ signalbox, bare []float64 }

// costs are milliseconds of the server's processor time per run, by round.
type costs struct{ single, concurrent []float64 }

// cost returns the server's processor time in milliseconds for each of n runs that f executes.
func (s *sides) cost(t platform.T, n int, f func()) float64 {
	before := s.server.CPU(t)
	f()
	return float64((s.server.CPU(t) - before).Microseconds()) / 1000 / float64(n)
}

// oneStep measures runs of one step: latency in milliseconds one at a time, runs per second many at once, and processor time.
func (s *sides) oneStep(t platform.T, p plan) (latency, rate pair, cpu costs) {
	s.many(t, s.signalbox, warmUpRuns, p.callers)
	s.many(t, s.bare, warmUpRuns, p.callers)
	for range p.rounds {
		cpu.single = append(cpu.single, s.cost(t, p.latencyRuns, func() {
			latency.signalbox = append(latency.signalbox, timed(t, p.latencyRuns, s.signalbox.one)...)
		}))
		latency.bare = append(latency.bare, timed(t, p.latencyRuns, s.bare.one)...)
		cpu.concurrent = append(cpu.concurrent, s.cost(t, p.rateRuns, func() {
			rate.signalbox = append(rate.signalbox, s.many(t, s.signalbox, p.rateRuns, p.callers))
		}))
		rate.bare = append(rate.bare, s.many(t, s.bare, p.rateRuns, p.callers))
	}
	return latency, rate, cpu
}

// steps are the figures of the hundred-step workflow.
type steps struct {
	latency pair      // to the terminal row
	closed  []float64 // to the end of the execution
	loop    []float64 // of 1,000 steps in a `for`, to the terminal row
	events  struct{ signalbox, bare int }
}

func (s *sides) hundredSteps(t platform.T, p plan) (out steps) {
	id := func(side side) func(platform.T) error {
		return func(t platform.T) error { _, err := side.many(t); return err }
	}
	timed(t, warmUpRuns, id(s.signalbox))
	timed(t, warmUpRuns, id(s.bare))
	for range p.rounds {
		out.latency.signalbox = append(out.latency.signalbox, timed(t, p.latencyRuns, id(s.signalbox))...)
		out.latency.bare = append(out.latency.bare, timed(t, p.latencyRuns, id(s.bare))...)
		out.closed = append(out.closed, timed(t, p.latencyRuns, id(s.closed))...)
		out.loop = append(out.loop, timed(t, max(1, p.latencyRuns/loopShare), s.loop)...)
	}
	count := func(side side) int {
		id, err := side.many(t)
		if err != nil {
			t.Fatalf("%s: %v", side.name, err)
		}
		return len(platform.History(t, s.temporal, id).GetEvents())
	}
	out.events.signalbox, out.events.bare = count(s.signalbox), count(s.bare)
	return out
}

// timed runs one at a time and returns milliseconds.
func timed(t platform.T, n int, one func(platform.T) error) []float64 {
	out := make([]float64, 0, n)
	for range n {
		began := time.Now()
		if err := one(t); err != nil {
			t.Fatalf("run: %v", err)
		}
		out = append(out, float64(time.Since(began).Microseconds())/1000)
	}
	return out
}

// many runs n with several callers at once and returns runs per second.
func (*sides) many(t platform.T, s side, n, callers int) float64 {
	began := time.Now()
	if err := platform.Concurrently(n, callers, func() error { return s.one(t) }); err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	return float64(n) / time.Since(began).Seconds()
}
