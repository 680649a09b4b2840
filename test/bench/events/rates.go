package events

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/bench/figure"
	"github.com/signalbox-dev/signalbox/test/feed"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

const (
	batch   = 200 // events in a request
	callers = 4   // requests at a time
	starts  = 64  // concurrent starts of the bare SDK: as many as a dispatcher has concurrent deliveries

	bareQueue = "bench-events-bare"
	bareType  = "bench.events"

	wanted = "io.example.wanted"
)

// rates has the measurements of one store.
type rates struct {
	store                                      string
	accepted, routed, started, bareRate, woken []float64 // per second, by round
	latency                                    promise.Times
}

// environment is a server with its Temporal, and the bare SDK on the same one.
type environment struct {
	server   *platform.Server
	client   client.Client
	workflow string
	ended    int // runs so far
	rates    *rates
}

func build(t platform.T, store platform.Store) *environment {
	temporal := platform.StartTemporal(t)
	s := &environment{
		server: platform.StartServer(t, platform.ServerOptions{Temporal: temporal.Address, Store: store}),
		client: platform.DialTemporal(t, temporal.Address),
		rates:  &rates{store: store.Driver},
	}
	s.workflow = s.server.Publish(t, feed.Starter("wanted", wanted))
	w := worker.New(s.client, bareQueue, worker.Options{})
	w.RegisterWorkflowWithOptions(func(workflow.Context) (map[string]any, error) { return map[string]any{"seen": true}, nil },
		workflow.RegisterOptions{Name: bareType})
	if err := w.Start(); err != nil {
		t.Fatalf("start the bare worker: %v", err)
	}
	t.Cleanup(w.Stop)
	s.starting(t, batch) // warms up all parts
	s.bare(t, batch)
	return s
}

// round measures everything once.
func (s *environment) round(t platform.T, p Plan) {
	accepted, routed := s.unwanted(t, p.Unwanted)
	s.rates.accepted, s.rates.routed = append(s.rates.accepted, accepted), append(s.rates.routed, routed)
	s.rates.started = append(s.rates.started, s.starting(t, p.Starting))
	s.rates.bareRate = append(s.rates.bareRate, s.bare(t, p.Starting))
	s.rates.latency = append(s.rates.latency, s.single(t, p.Single)...)
	s.rates.woken = append(s.rates.woken, s.waking(t, len(s.rates.woken)))
}

// publish publishes events of a type and returns the position of the newest.
func (s *environment) publish(t platform.T, kind string, count int) int64 {
	f := feed.New(feed.Options{Type: kind, Servers: []*platform.Server{s.server}})
	requests := make(chan int, count/batch+1)
	for n := 0; n < count; n += batch {
		requests <- n
	}
	err := platform.Concurrently(len(requests), callers, func() error {
		n := <-requests
		if got := f.Send(t.Context(), n, min(batch, count-n)); len(got) == 0 {
			return fmt.Errorf("%d events from %d on were not accepted", batch, n)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("publish: %v", err)
	}
	events := f.Accepted()
	return events[len(events)-1].Position
}

// unwanted publishes events that start nothing and returns how many per second were accepted, and routed.
func (s *environment) unwanted(t platform.T, count int) (accepted, routed float64) {
	began := time.Now()
	position := s.publish(t, "io.example.unwanted", count)
	accepted = perSecond(count, began)
	platform.Eventually(t, 5*time.Minute, func() string {
		res, err := s.server.Dispatchers.GetDispatcher(t.Context(), connect.NewRequest(&signalboxv1.GetDispatcherRequest{Project: platform.DefaultProject}))
		if err != nil {
			return err.Error()
		}
		if at := res.Msg.GetDispatcher().GetProgress().GetRouted(); at < position {
			return fmt.Sprintf("routed to %d of %d", at, position)
		}
		return ""
	})
	return accepted, perSecond(count, began)
}

// starting publishes events that start a run each, and returns how many runs per second started and ended.
func (s *environment) starting(t platform.T, count int) float64 {
	began := time.Now()
	s.publish(t, wanted, count)
	s.ended += count
	s.completed(t, s.ended)
	return perSecond(count, began)
}

// completed waits until the given number of runs has ended.
func (s *environment) completed(t platform.T, count int) {
	query := "WorkflowType != 'signalbox.dispatcher' AND WorkflowType != '" + bareType + "' AND ExecutionStatus = 'Completed'"
	s.counted(t, query, count)
}

// counted waits until Temporal counts the given number of executions.
func (s *environment) counted(t platform.T, query string, count int) {
	platform.Eventually(t, 5*time.Minute, func() string {
		n, err := platform.CountExecutions(t.Context(), s.client, query)
		switch {
		case err != nil:
			return err.Error()
		case n < count:
			return fmt.Sprintf("%d of %d runs have ended", n, count)
		}
		return ""
	})
}

// bare starts the same number of workflows by the SDK alone and returns how many per second started and ended.
func (s *environment) bare(t platform.T, count int) float64 {
	query := "WorkflowType = '" + bareType + "' AND ExecutionStatus = 'Completed'"
	before, err := platform.CountExecutions(t.Context(), s.client, query)
	if err != nil {
		t.Fatalf("count: %v", err)
	}
	began := time.Now()
	err = platform.Concurrently(count, starts, func() error {
		_, err := s.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: bareQueue, EnableEagerStart: true}, bareType)
		return err
	})
	if err != nil {
		t.Fatalf("start by the SDK: %v", err)
	}
	s.counted(t, query, before+count)
	return perSecond(count, began)
}

// waking publishes events to one run that listens, and returns how many per second it received. The number identifies the round.
func (s *environment) waking(t platform.T, round int) float64 {
	const count = 1000
	kind := fmt.Sprintf("io.example.heard.%d", round)
	name := s.server.Publish(t, platform.Document("hear", fmt.Sprintf(
		"  - hear:\n      listen: {to: {any: [{with: {type: %s}}], until: \"${ length == %d }\"}}\n      output: {as: \"${ length }\"}\n", kind, count)))
	run := s.server.Start(t, name, `{}`)
	s.server.Await(t, run.GetId(), time.Minute, "waiting")
	began := time.Now()
	s.publish(t, kind, count)
	s.server.Await(t, run.GetId(), 5*time.Minute, "completed")
	s.ended++
	return perSecond(count, began)
}

// single publishes one event after another, and returns how long each took from being sent to the first execution of its run.
func (s *environment) single(t platform.T, count int) promise.Times {
	f := feed.New(feed.Options{Type: wanted, Servers: []*platform.Server{s.server}})
	var times promise.Times
	for n := range count {
		sent := time.Now()
		events := f.Send(t.Context(), n, 1)
		if len(events) != 1 {
			t.Fatalf("event %d was not accepted", n)
		}
		started := s.started(t, events[0].Position)
		times = append(times, started.Sub(sent))
		s.ended++
	}
	s.completed(t, s.ended)
	return times
}

// started waits until the run of an event was executed, and returns when that began.
func (s *environment) started(t platform.T, position int64) time.Time {
	var at time.Time
	platform.Eventually(t, time.Minute, func() string {
		run, err := s.runOf(t.Context(), position)
		switch {
		case err != nil:
			return err.Error()
		case run.GetStartTime() == nil:
			return "the run has not started"
		}
		at = run.GetStartTime().AsTime()
		return ""
	})
	return at
}

func (s *environment) runOf(ctx context.Context, position int64) (*signalboxv1.Run, error) {
	event, err := s.server.Events.GetEvent(ctx, connect.NewRequest(&signalboxv1.GetEventRequest{Project: platform.DefaultProject, Position: position}))
	if err != nil {
		return nil, err
	}
	if len(event.Msg.GetDeliveries()) == 0 {
		return nil, fmt.Errorf("event %d has no delivery yet", position)
	}
	run, err := s.server.Runs.GetRun(ctx, connect.NewRequest(&signalboxv1.GetRunRequest{
		Project: platform.DefaultProject, Id: event.Msg.GetDeliveries()[0].GetRunId(),
	}))
	if err != nil {
		return nil, err
	}
	return run.Msg.GetRun(), nil
}

func perSecond(count int, began time.Time) float64 {
	return float64(count) / time.Since(began).Seconds()
}

func (r *rates) markdown(line func(format string, args ...any)) {
	accepted, routed := figure.Median(r.accepted), figure.Median(r.routed)
	started, bare := figure.Median(r.started), figure.Median(r.bareRate)
	line("| events accepted | %s | %.0f/s | | | | |", r.store, accepted)
	line("| events accepted and routed, none of which starts a run | %s | %.0f/s | | | ≥ 10,000/s | %s |", r.store, routed, figure.Verdict(routed >= 10_000))
	line("| events accepted and routed, each of which starts a run that ends | %s | %.0f/s | bare SDK %.0f/s | %.2f × | ≥ 0.9 × | %s |",
		r.store, started, bare, started/bare, figure.Verdict(started/bare >= .9))
	woken := figure.Median(r.woken)
	line("| events to one run that listens, until it has received all | %s | %.0f/s | | | ≥ 500/s | %s |", r.store, woken, figure.Verdict(woken >= 500))
	line("| from sending an event to the first execution of its run: p50 | %s | %s | | | < 30 ms | %s |",
		r.store, promise.Round(r.latency.At(.5)), figure.Verdict(r.latency.At(.5) < 30*time.Millisecond))
	line("| the same: p95 | %s | %s | | | | |", r.store, promise.Round(r.latency.At(.95)))
}
