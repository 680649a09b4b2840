// Package bare is what Signalbox is compared with: workflows that were written by hand with the Temporal SDK. Their
// worker runs in the program that starts them, so that starts are eager: the first task comes with the answer to the
// start. There is no API, and there are no rows beyond those that a workflow writes itself.
package bare

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/test/bench/compare"
	"github.com/signalbox-dev/signalbox/test/platform"
)

const (
	queue  = "bench-bare"
	prefix = "bench."
)

// Types of the workflows.
const (
	One     = prefix + "one"     // makes a greeting
	Keep    = prefix + "keep"    // returns its input
	Compute = prefix + "compute" // adds one so many times
	Record  = prefix + "record"  // the same, and writes a row for each, all of them at the end
	Each    = prefix + "each"    // the same, and writes each row at once
	Fork    = prefix + "fork"    // adds in branches, and writes their rows at the end
	Wait    = prefix + "wait"    // waits for one signal
	Collect = prefix + "collect" // waits for so many signals
	Call    = prefix + "call"    // calls a service in an activity, until it answers
	Sleep   = prefix + "sleep"   // waits for a second
	Parent  = prefix + "parent"  // runs One as a child
)

// Signal is what Wait and Collect wait for.
const Signal = "event"

// Input is the input of every workflow.
type Input struct {
	Name  string `json:"name,omitempty"`
	Steps int    `json:"steps,omitempty"`
	Text  string `json:"text,omitempty"`
	URL   string `json:"url,omitempty"`
}

// Program is a client and a worker in one process.
type Program struct {
	Client   client.Client
	temporal *platform.Temporal
}

// Start starts the worker. Its workflows write rows to an SQLite database of their own, with the settings of
// Signalbox's store.
func Start(t platform.T, server *platform.Temporal) *Program {
	t.Helper()
	c := platform.DialTemporal(t, server.Address)
	w := worker.New(c, queue, worker.Options{})
	for name, f := range map[string]any{
		One: one, Keep: keep, Compute: compute, Record: record, Each: each, Fork: fork, Wait: wait, Collect: collect,
		Call: call, Sleep: sleep, Parent: parent} {
		w.RegisterWorkflowWithOptions(f, workflow.RegisterOptions{Name: name})
	}
	w.RegisterActivity(openRows(t))
	w.RegisterActivity(get)
	if err := w.Start(); err != nil {
		t.Fatalf("start the bare worker: %v", err)
	}
	t.Cleanup(w.Stop)
	return &Program{Client: c, temporal: server}
}

// Side is the execution of one workflow after another, each to its end.
func (p *Program) Side(name string, in Input) compare.Side {
	return p.Does(func(ctx context.Context) error {
		run, err := p.Begin(ctx, name, in)
		if err != nil {
			return err
		}
		return run.Get(ctx, nil)
	})
}

// Does is a side of which each run calls f.
func (p *Program) Does(f func(context.Context) error) compare.Side {
	return compare.Side{Name: "bare SDK", Run: f, CPU: platform.OwnCPU, Temporal: p.temporal.CPU}
}

// Begin starts a workflow eagerly.
func (p *Program) Begin(ctx context.Context, name string, in Input) (client.WorkflowRun, error) {
	return p.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: queue, EnableEagerStart: true}, name, in)
}

func one(_ workflow.Context, in Input) (map[string]any, error) {
	return map[string]any{"message": "Hello, " + in.Name}, nil
}

func keep(_ workflow.Context, in Input) (Input, error) { return in, nil }

func compute(_ workflow.Context, in Input) (counter, error) {
	data := counter{}
	for range in.Steps {
		data = next(data)
	}
	return data, nil
}

// counter is the data of the workflows that compute.
type counter struct {
	N int `json:"n"`
}

// next is one step.
func next(data counter) counter { return counter{N: data.N + 1} }

func record(ctx workflow.Context, in Input) (counter, error) {
	data := counter{}
	written := make([]row, in.Steps)
	for i := range written {
		output := next(data)
		written[i] = newRow(ctx, i, data, output)
		data = output
	}
	return data, write(ctx, written)
}

func each(ctx workflow.Context, in Input) (counter, error) {
	data := counter{}
	for i := range in.Steps {
		output := next(data)
		if err := write(ctx, []row{newRow(ctx, i, data, output)}); err != nil {
			return data, err
		}
		data = output
	}
	return data, nil
}

func fork(ctx workflow.Context, in Input) ([]counter, error) {
	outputs, written := make([]counter, in.Steps), make([]row, in.Steps)
	branches := workflow.NewWaitGroup(ctx)
	for i := range in.Steps {
		branches.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer branches.Done()
			input := counter{N: i}
			outputs[i] = next(input)
			written[i] = newRow(ctx, i, input, outputs[i])
		})
	}
	branches.Wait(ctx)
	return outputs, write(ctx, written)
}

func wait(ctx workflow.Context, _ Input) (map[string]any, error) {
	var data map[string]any
	workflow.GetSignalChannel(ctx, Signal).Receive(ctx, &data)
	return data, nil
}

func collect(ctx workflow.Context, in Input) (int, error) {
	events := workflow.GetSignalChannel(ctx, Signal)
	for range in.Steps {
		events.Receive(ctx, nil)
	}
	return in.Steps, nil
}

func call(ctx workflow.Context, in Input) (map[string]any, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, BackoffCoefficient: 1},
	})
	var answer map[string]any
	err := workflow.ExecuteActivity(ctx, get, in.URL).Get(ctx, &answer)
	return answer, err
}

// get is the activity of call.
func get(ctx context.Context, url string) (answer map[string]any, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }() // it was read
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the service answered %s", res.Status)
	}
	err = json.NewDecoder(res.Body).Decode(&answer)
	return answer, err
}

func sleep(ctx workflow.Context, _ Input) error { return workflow.Sleep(ctx, time.Second) }

func parent(ctx workflow.Context, in Input) (map[string]any, error) {
	var result map[string]any
	err := workflow.ExecuteChildWorkflow(ctx, One, in).Get(ctx, &result)
	return result, err
}

func write(ctx workflow.Context, written []row) error {
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{StartToCloseTimeout: time.Minute})
	var r *rows
	return workflow.ExecuteLocalActivity(ctx, r.Write, written).Get(ctx, nil)
}
