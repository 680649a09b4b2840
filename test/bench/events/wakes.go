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
	"github.com/signalbox-dev/signalbox/test/bench/figure"
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

// listeners compares an event that wakes one among many waiting runs with one that wakes one among few.
type listeners struct {
	few, many    int
	fewer, among compare.Series
	earlier      earlier
	idle         float64 // processor time of the server per second while all wait, in milliseconds
	memory       float64
}

// measureListeners measures on SQLite. The runs of both sides wait at the same time on one server, for events of two
// types.
func measureListeners(t platform.T, p Plan) listeners {
	scope := platform.NewScope(t.Context(), t.Name())
	defer scope.Close()
	s := newEnvironment(scope, platform.SQLite(scope))
	few := p.Wakes * p.Rounds
	l := listeners{few: few, many: p.Waiting}
	small, large := s.newSleepers(scope, "few", few), s.newSleepers(scope, "many", p.Waiting)
	large.start(scope, p.Waiting)
	small.start(scope, few)
	l.memory = s.server.Memory(scope)
	l.idle = idle(scope, s.server)
	series := compare.Measure(scope, compare.Work{Rounds: p.Rounds, Runs: p.Wakes, Callers: 1}, s.does(nil, small.wake),
		s.does(nil, large.wake))
	l.fewer, l.among = series[0], series[1]
	l.earlier = s.measureEarlier(scope, p)
	return l
}

// idle returns the processor time that a server uses per second without requests, in milliseconds.
func idle(t platform.T, server *platform.Server) float64 {
	const length = 5 * time.Second
	before := server.CPU(t)
	select {
	case <-time.After(length):
	case <-t.Context().Done():
	}
	return milliseconds(server.CPU(t)-before) / length.Seconds()
}

const listenersAim = 5 // milliseconds of processor time

func (l listeners) aim() figure.Aim {
	return figure.Aim{
		What: fmt.Sprintf("processor time of the server for an event that wakes one among %d waiting runs", l.many),
		Aim:  fmt.Sprintf("< %d ms", listenersAim),
		Seen: fmt.Sprintf("%.1f ms", l.among.CPU()), Met: l.among.CPU() < listenersAim,
	}
}

func (l listeners) markdown(line func(format string, args ...any), p Plan) {
	line("One event at a time wakes one run, which it finds by type and a correlation key; both kinds wait on one " +
		"server at the same time (SQLite):")
	line("")
	line("| what | p50, p95, p99, longest | processor time: Signalbox + Temporal | aim | |")
	line("|---|---|---|---|---|")
	line("| one of %d runs that wait for events of its type | %s | %s | | |", l.few, figure.Four(l.fewer.Times()),
		l.fewer.CPUs())
	line("| one of %d | %s | %s | < %d ms of Signalbox | %s |", l.many, figure.Four(l.among.Times()), l.among.CPUs(),
		listenersAim, figure.Verdict(l.among.CPU() < listenersAim))
	line("")
	line("%d rounds of %d events of each kind. The processor time contains what the server uses without any event: %.0f "+
		"ms per second while all wait; its memory is %.0f MB then.",
		p.Rounds, p.Wakes, l.idle, l.memory)
}
