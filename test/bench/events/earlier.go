package events

import (
	"context"
	"fmt"

	"github.com/signalbox-dev/signalbox/test/bench/compare"
	"github.com/signalbox-dev/signalbox/test/bench/figure"
	"github.com/signalbox-dev/signalbox/test/feed"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// earlier compares listen tasks whose event has arrived before them: as the only one of its type since the start of the
// run, or before many.
type earlier struct {
	inbox, behind int
	only, first   compare.Series
}

// answered are runs that wait at a first listen task, the gate, while the event of their second one arrives.
type answered struct {
	gate   *sleepers
	answer *feed.Feed
	behind int
}

// newAnswered publishes the workflow. behind is the number of events of the type that arrive after those of the runs.
func (s *environment) newAnswered(t platform.T, name string, most, behind int) *answered {
	kind, gate := "io.example.answer."+name, "io.example.gate."+name
	return &answered{
		answer: s.feed(kind), behind: behind,
		gate: &sleepers{
			s: s, feed: s.feed(gate), waiting: make(chan sleeper, most),
			workflow: s.server.Publish(t, platform.Document("answered-"+name, fmt.Sprintf(`  - gate:
      listen: {to: {one: {with: {type: %s}, correlate: {n: {from: .data.n, expect: '${ $workflow.input.n }'}}}}}
  - hear:
      listen: {to: {one: {with: {type: %s}, correlate: {n: {from: .data.n, expect: '${ $workflow.input.n }'}}}}}
`, gate, kind))),
		},
	}
}

// start starts runs, and publishes their events and those behind them once all wait at the gate.
func (a *answered) start(t platform.T, count int) {
	first := a.gate.next
	a.gate.start(t, count)
	must(t, send(t.Context(), a.answer, first, count))
	for n := 0; n < a.behind; n += batch {
		must(t, send(t.Context(), a.answer, nobody+first*a.behind+n, min(batch, a.behind-n)))
	}
}

// nobody is the first of the numbers that no run awaits.
const nobody = 1_000_000

// measureEarlier measures on a server with other waiting runs.
func (s *environment) measureEarlier(t platform.T, p Plan) earlier {
	e := earlier{inbox: p.Inbox, behind: p.Behind}
	must(t, s.publish(t.Context(), s.feed("io.example.unwanted.earlier"), p.Inbox))
	only, first := s.newAnswered(t, "only", p.Wakes, 0), s.newAnswered(t, "first", p.Wakes, p.Behind)
	series := compare.Measure(t, compare.Work{Rounds: p.Rounds, Runs: p.Wakes, Callers: 1},
		s.does(func(t platform.T) { only.start(t, p.Wakes) }, func(ctx context.Context) error { return only.gate.wake(ctx) }),
		s.does(func(t platform.T) {
			first.start(t, p.Wakes)
		}, func(ctx context.Context) error { return first.gate.wake(ctx) }))
	e.only, e.first = series[0], series[1]
	return e
}

func (e earlier) markdown(line func(format string, args ...any), waiting int) {
	line("")
	line("An event that has arrived before its `listen` task, on the same server, while the %d runs wait and the inbox "+
		"has %d events. A run waits for", waiting, e.inbox)
	line("one event, and then for another one, which is there already; the time is from sending the first event to the " +
		"run's end:")
	line("")
	line("| what | p50, p95, p99, longest | processor time: Signalbox + Temporal |")
	line("|---|---|---|")
	line("| it is the only one of its type since the run's start | %s | %s |", figure.Four(e.only.Times()), e.only.CPUs())
	line("| %d others of its type have arrived after it | %s | %s |", e.behind, figure.Four(e.first.Times()),
		e.first.CPUs())
}
