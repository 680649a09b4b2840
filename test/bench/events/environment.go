package events

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/bench/bare"
	"github.com/signalbox-dev/signalbox/test/bench/compare"
	"github.com/signalbox-dev/signalbox/test/feed"
	"github.com/signalbox-dev/signalbox/test/platform"
)

const (
	batch    = 200 // events in a request
	callers  = 4   // requests at a time
	inFlight = 64  // concurrent calls of the bare SDK: as many as a dispatcher has concurrent deliveries
	paceRate = 40  // events per second of the even stream, well below what either side can do

	wanted  = "io.example.wanted"
	runType = "signalbox.run"

	patience = 5 * time.Minute
)

// environment is a server with its Temporal, and the bare SDK on the same one.
type environment struct {
	server   *platform.Server
	temporal *platform.Temporal
	bare     *bare.Program
	rates    *rates
}

func newEnvironment(t platform.T, store platform.Store) *environment {
	temporal := platform.StartTemporal(t)
	return &environment{
		temporal: temporal, bare: bare.Start(t, temporal), rates: &rates{store: store.Driver},
		server: platform.StartServer(t, platform.ServerOptions{Temporal: temporal.Address, Store: store}),
	}
}

// does is the side of Signalbox.
func (s *environment) does(begin func(platform.T), run func(context.Context) error) compare.Side {
	return compare.Side{Name: "Signalbox", Begin: begin, Run: run, CPU: s.server.CPU, Temporal: s.temporal.CPU}
}

// byHand is the side of the bare SDK.
func (s *environment) byHand(begin func(platform.T), run func(context.Context) error) compare.Side {
	side := s.bare.Does(run)
	side.Begin = begin
	return side
}

// feed returns a producer of events of a type.
func (s *environment) feed(kind string) *feed.Feed {
	return feed.New(feed.Options{Type: kind, Servers: []*platform.Server{s.server}})
}

// publish publishes events in batches.
func (s *environment) publish(ctx context.Context, f *feed.Feed, count int) error {
	requests := make(chan int, count/batch+1)
	for n := 0; n < count; n += batch {
		requests <- n
	}
	return platform.Concurrently(len(requests), callers, func() error {
		n := <-requests
		return send(ctx, f, n, min(batch, count-n))
	})
}

func send(ctx context.Context, f *feed.Feed, n, count int) error {
	if got := f.Send(ctx, n, count); len(got) == 0 {
		return fmt.Errorf("%d events from %d on were not accepted", count, n)
	}
	return nil
}

// count returns how many executions of a type have completed.
func (s *environment) count(ctx context.Context, kind string) (int, error) {
	return platform.CountExecutions(ctx, s.bare.Client, "WorkflowType = '"+kind+"' AND ExecutionStatus = 'Completed'")
}

// completes calls f and waits until the given number of executions of a type has completed since.
func (s *environment) completes(ctx context.Context, kind string, count int, f func() error) error {
	const interval = 20 * time.Millisecond
	before, err := s.count(ctx, kind)
	if err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		now, err := s.count(ctx, kind)
		if err == nil && now >= before+count {
			return nil
		}
		select {
		case <-time.After(interval):
		case <-ctx.Done():
			return fmt.Errorf("%d of %d executions of %s have completed (%w): %w", now-before, count, kind, err, ctx.Err())
		}
	}
}

// executions reads the completed executions of a type that began since a time, by workflow ID.
func (s *environment) executions(t platform.T, kind string,
	since time.Time) map[string]*workflow.WorkflowExecutionInfo {
	query := fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Completed' AND StartTime >= '%s'", kind,
		since.UTC().Format(time.RFC3339Nano))
	found := map[string]*workflow.WorkflowExecutionInfo{}
	var token []byte
	for {
		page, err := s.bare.Client.ListWorkflow(t.Context(),
			&workflowservice.ListWorkflowExecutionsRequest{Query: query, NextPageToken: token})
		if err != nil {
			t.Fatalf("list the executions of %s: %v", kind, err)
		}
		for _, e := range page.GetExecutions() {
			found[e.GetExecution().GetWorkflowId()] = e
		}
		if token = page.GetNextPageToken(); len(token) == 0 {
			return found
		}
	}
}

// runOf returns the run that an event has started.
func (s *environment) runOf(ctx context.Context, position int64) (*signalboxv1.Run, error) {
	event, err := s.server.Events.GetEvent(ctx,
		connect.NewRequest(&signalboxv1.GetEventRequest{Project: platform.DefaultProject, Position: position}))
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
