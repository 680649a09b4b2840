package events

import (
	"context"
	"fmt"
	"sync"
	"time"

	"connectrpc.com/connect"
	"go.temporal.io/api/workflow/v1"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/bench/bare"
	"github.com/signalbox-dev/signalbox/test/bench/compare"
	"github.com/signalbox-dev/signalbox/test/bench/figure"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

// rates has the measurements of one store.
type rates struct {
	store                     string
	accepted, routed          []float64 // per second, by round
	started, wakes, collected compare.Pair
	startedTimes, streamTimes times
	latency                   promise.Times // to the first execution
}

// times are the milliseconds of both sides.
type times struct{ signalbox, bare []float64 }

// unwanted publishes events that start nothing, and keeps how many per second were accepted, and routed.
func (s *environment) unwanted(t platform.T, count int) {
	began, f := time.Now(), s.feed("io.example.unwanted")
	if err := s.publish(t.Context(), f, count); err != nil {
		t.Fatalf("publish: %v", err)
	}
	s.rates.accepted = append(s.rates.accepted, perSecond(count, began))
	accepted := f.Accepted()
	position := accepted[len(accepted)-1].Position
	platform.Eventually(t, patience, func() string {
		res, err := s.server.Dispatchers.GetDispatcher(t.Context(),
			connect.NewRequest(&signalboxv1.GetDispatcherRequest{Project: platform.DefaultProject}))
		if err != nil {
			return err.Error()
		}
		if at := res.Msg.GetDispatcher().GetProgress().GetRouted(); at < position {
			return fmt.Sprintf("routed to %d of %d", at, position)
		}
		return ""
	})
	s.rates.routed = append(s.rates.routed, perSecond(count, began))
}

func perSecond(count int, began time.Time) float64 {
	return float64(count) / time.Since(began).Seconds()
}

// starting measures events that start a run each, all at once; the bare SDK starts as many workflows. One run of a side
// is all of them.
func (s *environment) starting(t platform.T, p Plan) {
	sides := func(count int) (signalbox, sdk compare.Side) {
		return s.does(nil, func(ctx context.Context) error {
				return s.completes(ctx, runType, count, func() error { return s.publish(ctx, s.feed(wanted), count) })
			}), s.byHand(nil, func(ctx context.Context) error {
				return s.completes(ctx, bare.One, count, func() error {
					return platform.Concurrently(count, inFlight, func() error {
						_, err := s.bare.Begin(ctx, bare.One, bare.Input{})
						return err
					})
				})
			})
	}
	signalbox, sdk := sides(min(batch, p.Starting))
	compare.Measure(t, compare.Work{Rounds: 1, Runs: 1, Callers: 1}, signalbox, sdk) // warms up all parts
	signalbox, sdk = sides(p.Starting)
	began := time.Now()
	series := compare.Measure(t, compare.Work{Rounds: p.Rounds, Runs: 1, Callers: 1}, signalbox, sdk)
	s.rates.started = compare.Pair{Signalbox: series[0].Of(p.Starting), Bare: series[1].Of(p.Starting)}
	s.rates.startedTimes = times{
		startToClose(s.executions(t, runType, began)), startToClose(s.executions(t, bare.One, began))}
}

func startToClose(executions map[string]*workflow.WorkflowExecutionInfo) []float64 {
	out := make([]float64, 0, len(executions))
	for _, e := range executions {
		out = append(out, milliseconds(e.GetCloseTime().AsTime().Sub(e.GetStartTime().AsTime())))
	}
	return out
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// stream measures an even stream of events that start a run each: the time from sending an event to the close of its
// execution.
func (s *environment) stream(t platform.T, p Plan) {
	for range p.Rounds {
		began, f := time.Now(), s.feed(wanted)
		must(t, s.completes(t.Context(), runType, p.Paced, func() error {
			return evenly(t.Context(), p.Paced, func(n int) error { return send(t.Context(), f, n, 1) })
		}))
		closed := s.executions(t, runType, began)
		for _, e := range f.Accepted() {
			run, err := s.runOf(t.Context(), e.Position)
			must(t, err)
			s.rates.streamTimes.signalbox = append(s.rates.streamTimes.signalbox,
				milliseconds(closed[run.GetId()].GetCloseTime().AsTime().Sub(e.Sent)))
		}

		var mu sync.Mutex
		sent := map[string]time.Time{}
		began = time.Now()
		must(t, s.completes(t.Context(), bare.One, p.Paced, func() error {
			return evenly(t.Context(), p.Paced, func(int) error {
				at := time.Now()
				run, err := s.bare.Begin(t.Context(), bare.One, bare.Input{})
				if err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				sent[run.GetID()] = at
				return nil
			})
		}))
		for id, e := range s.executions(t, bare.One, began) {
			s.rates.streamTimes.bare = append(s.rates.streamTimes.bare, milliseconds(e.GetCloseTime().AsTime().Sub(sent[id])))
		}
	}
}

func must(t platform.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
}

// evenly calls f count times at an even rate, whatever becomes of earlier calls, and returns the first error.
func evenly(ctx context.Context, count int, f func(n int) error) error {
	ticker := time.NewTicker(time.Second / paceRate)
	defer ticker.Stop()
	failures := make(chan error, count)
	var flying sync.WaitGroup
	for n := range count {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		flying.Go(func() {
			if err := f(n); err != nil {
				failures <- err
			}
		})
	}
	flying.Wait()
	select {
	case err := <-failures:
		return err
	default:
		return nil
	}
}

// single publishes one event after another, and keeps how long each took from being sent to the first execution of its
// run.
func (s *environment) single(t platform.T, count int) {
	f := s.feed(wanted)
	for n := range count {
		sent := time.Now()
		events := f.Send(t.Context(), n, 1)
		if len(events) != 1 {
			t.Fatalf("event %d was not accepted", n)
		}
		s.rates.latency = append(s.rates.latency, s.started(t, events[0].Position).Sub(sent))
	}
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

// compared are the comparisons with the bare SDK.
func (r *rates) compared() []compare.Compared {
	return []compare.Compared{
		{What: "events that start runs (" + r.store + ")", By: r.started.Rate(), Rate: true},
		{What: "an event to one run that waits (" + r.store + ")", By: r.wakes.Latency()},
		{What: "many events to one run (" + r.store + ")", By: r.collected.Rate(), Rate: true},
	}
}

// aim is the figure with an aim beside the bare SDK.
func (r *rates) aim() figure.Aim {
	const longest = 2000
	ratio, tail := r.started.Rate(), r.tail()
	return figure.Aim{
		What: "events that start runs, of the bare SDK with eager start (" + r.store + ")", Aim: "≥ 0.9 ×, none over 2 s",
		Seen: fmt.Sprintf("%s, longest %.1f s", ratio.Times(), tail/1000), Met: ratio.Mid >= .9 && tail <= longest,
	}
}

// tail returns the longest time of a run that an event has started.
func (r *rates) tail() float64 {
	return max(figure.Quantile(r.startedTimes.signalbox, 1), figure.Quantile(r.streamTimes.signalbox, 1))
}

func (r *rates) markdown(line func(format string, args ...any)) {
	row := func(what, signalbox, bare, compared, aim, verdict string) {
		line("| %s | %s | %s | %s | %s | %s | %s |", what, r.store, signalbox, bare, compared, aim, verdict)
	}
	rate := func(what string, p compare.Pair, aim, verdict string) {
		row(what, fmt.Sprintf("%.0f/s", figure.Median(p.Signalbox.Rates())),
			fmt.Sprintf("%.0f/s", figure.Median(p.Bare.Rates())), p.Rate().Times(), aim, verdict)
	}
	cost := func(what string, p compare.Pair) {
		row("processor time for "+what+", the program's own + Temporal's", p.Signalbox.CPUs(), p.Bare.CPUs(), "", "", "")
	}
	routed := figure.Median(r.routed)
	row("events accepted", fmt.Sprintf("%.0f/s", figure.Median(r.accepted)), "", "", "", "")
	row("events accepted and routed, none of which starts a run", fmt.Sprintf("%.0f/s", routed), "", "", "≥ 10,000/s",
		figure.Verdict(routed >= 10_000))
	rate("events accepted and routed, each of which starts a run that ends", r.started, "≥ 0.9 ×",
		figure.Verdict(r.started.Rate().Mid >= .9))
	row("the same, from start to close: p50, p95, p99, longest", figure.Four(r.startedTimes.signalbox),
		figure.Four(r.startedTimes.bare), "", "≤ 2 s", figure.Verdict(figure.Quantile(r.startedTimes.signalbox, 1) <= 2000))
	cost("each of them", r.started)
	row("an even stream of such events, from sending to close: p50, p95, p99, longest",
		figure.Four(r.streamTimes.signalbox), figure.Four(r.streamTimes.bare), "", "≤ 2 s",
		figure.Verdict(figure.Quantile(r.streamTimes.signalbox, 1) <= 2000))
	row("from sending an event to the first execution of its run: p50, p95, longest",
		fmt.Sprintf("%s, %s, %s", promise.Round(r.latency.At(.5)),
			promise.Round(r.latency.At(.95)), promise.Round(r.latency.Worst())), "", "", "< 30 ms (p50)",
		figure.Verdict(r.latency.At(.5) < 30*time.Millisecond))
	row("an event to one run that waits, until its row is terminal: p50, p95, p99, longest",
		figure.Four(r.wakes.Signalbox.Times()), figure.Four(r.wakes.Bare.Times()), r.wakes.Latency().Times(), "", "")
	cost("each of them", r.wakes)
	woken := figure.Median(r.collected.Signalbox.Rates())
	rate("events to one run that listens, until it has received all", r.collected, "≥ 500/s", figure.Verdict(woken >= 500))
	cost("each of them", r.collected)
}
