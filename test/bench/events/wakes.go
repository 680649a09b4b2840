package events

import (
	"context"
	"fmt"
	"strings"
	"time"

	"connectrpc.com/connect"
	"go.temporal.io/sdk/client"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/bench/bare"
	"github.com/signalbox-dev/signalbox/test/bench/compare"
	"github.com/signalbox-dev/signalbox/test/feed"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// sleeper is a run that waits for the event with its number.
type sleeper struct {
	run string
	n   int
}

// sleepers starts runs that wait for one event each, of one type with the number of the run, and wakes them.
type sleepers struct {
	s        *environment
	workflow string
	feed     *feed.Feed
	next     int // number of the next run
	waiting  chan sleeper
}

// newSleepers publishes the workflow. At most so many runs wait at a time.
func (s *environment) newSleepers(t platform.T, name string, most int) *sleepers {
	kind := "io.example.wake." + name
	return &sleepers{
		s: s, feed: s.feed(kind), waiting: make(chan sleeper, most),
		workflow: s.server.Publish(t, platform.Document(name, fmt.Sprintf(`  - hear:
      listen:
        to:
          one:
            with: {type: %s}
            correlate: {n: {from: .data.n, expect: '${ .n }'}}
`, kind))),
	}
}

// start starts runs and returns once all wait.
func (w *sleepers) start(t platform.T, count int) {
	const starters = 32
	numbers := make(chan int, count)
	for range count {
		numbers <- w.next
		w.next++
	}
	must(t, platform.Concurrently(count, starters, func() error {
		n := <-numbers
		run, err := w.s.server.TryStart(t.Context(), w.workflow, fmt.Sprintf(`{"n":%d}`, n))
		if err != nil {
			return err
		}
		w.waiting <- sleeper{run: run.GetId(), n: n}
		return nil
	}))
	platform.Eventually(t, patience, func() string {
		res, err := w.s.server.Runs.ListRuns(t.Context(), connect.NewRequest(&signalboxv1.ListRunsRequest{
			Project: platform.DefaultProject,
			Filter:  &signalboxv1.RunFilter{Workflow: w.workflow, Statuses: []string{"queued", "running"}}, PageSize: 1,
		}))
		switch {
		case err != nil:
			return err.Error()
		case len(res.Msg.GetRuns()) > 0:
			return "not all runs wait yet"
		}
		return ""
	})
}

// wake sends the event of one run and waits for the run's end.
func (w *sleepers) wake(ctx context.Context) error {
	one := <-w.waiting
	if err := send(ctx, w.feed, one.n, 1); err != nil {
		return err
	}
	return w.s.server.Follow(ctx, one.run)
}

// wakes measures one event, or one signal, to one waiting run, one at a time.
func (s *environment) wakes(t platform.T, p Plan) compare.Pair {
	ours, theirs := s.newSleepers(t, "wakes", p.Wakes), make(chan client.WorkflowRun, p.Wakes)
	signalbox := s.does(func(t platform.T) { ours.start(t, p.Wakes) }, ours.wake)
	sdk := s.byHand(func(t platform.T) {
		for range p.Wakes {
			run, err := s.bare.Begin(t.Context(), bare.Wait, bare.Input{})
			must(t, err)
			theirs <- run
		}
	}, func(ctx context.Context) error {
		run := <-theirs
		if err := s.bare.Client.SignalWorkflow(ctx, run.GetID(), run.GetRunID(), bare.Signal,
			map[string]any{"n": 1}); err != nil {
			return err
		}
		return run.Get(ctx, nil)
	})
	series := compare.Measure(t, compare.Work{Rounds: p.Rounds, Runs: p.Wakes, Callers: 1}, signalbox, sdk)
	return compare.Pair{Signalbox: series[0], Bare: series[1]}
}

// collected measures many events, or signals, to one run. One run of a side is all of them.
func (s *environment) collected(t platform.T, p Plan) compare.Pair {
	var run *signalboxv1.Run
	var producer *feed.Feed
	round := 0
	signalbox := s.does(func(t platform.T) {
		kind := fmt.Sprintf("io.example.heard.%d", round)
		round++
		name := s.server.Publish(t, platform.Document(strings.ReplaceAll(kind, ".", "-"), fmt.Sprintf(
			"  - hear:\n      listen: {to: {any: [{with: {type: %s}}], until: \"${ length == %d }\"}}\n      output: {as: "+
				"\"${ length }\"}\n", kind, p.Collected)))
		run, producer = s.server.Start(t, name, `{}`), s.feed(kind)
		s.server.Await(t, run.GetId(), time.Minute, "waiting")
	}, func(ctx context.Context) error {
		if err := s.publish(ctx, producer, p.Collected); err != nil {
			return err
		}
		return s.server.Follow(ctx, run.GetId())
	})
	var execution client.WorkflowRun
	sdk := s.byHand(func(t platform.T) {
		var err error
		execution, err = s.bare.Begin(t.Context(), bare.Collect, bare.Input{Steps: p.Collected})
		must(t, err)
	}, func(ctx context.Context) error {
		err := platform.Concurrently(p.Collected, inFlight, func() error {
			return s.bare.Client.SignalWorkflow(ctx, execution.GetID(), execution.GetRunID(), bare.Signal,
				map[string]any{"n": 1})
		})
		if err != nil {
			return err
		}
		return execution.Get(ctx, nil)
	})
	series := compare.Measure(t, compare.Work{Rounds: p.Rounds, Runs: 1, Callers: 1}, signalbox, sdk)
	return compare.Pair{Signalbox: series[0].Of(p.Collected), Bare: series[1].Of(p.Collected)}
}
