// Package connection measures what keeping up the connection to Temporal costs and gains: what asking for the client costs,
// how soon work goes on after an outage beside a client and worker of the SDK that are left alone, from which length of
// outage on it pays to make client and workers anew, what many clients do to a Temporal that comes back, and what the
// comparison of all runs with Temporal costs.
//
// All kinds of a table suffer the same outages. "Accepting" is the first TCP connection that succeeds; a workflow is started
// as soon as Temporal takes one, by a client that had nothing to do with the outage, so that only pollers are measured.
package connection

import (
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/conn/conntest"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

// Plan says how much is measured.
type Plan struct {
	Rounds int
	// Kills are the lengths of outages by a killed Temporal, Cuts those by a closed port.
	Kills, Cuts []time.Duration
	// Copies is how many of each kind suffer an outage together.
	Copies int
	// OpenRuns are those that the reconciler goes through.
	OpenRuns int
	// Benchtime is what each benchmark of a call takes in a round, as for go test.
	Benchtime string
}

// Full is the plan for the page, below six minutes: copies cost less time than rounds.
func Full(rounds int) Plan {
	return Plan{
		Rounds: min(rounds, 3), Copies: 3, OpenRuns: 10_000, Benchtime: "100ms",
		Kills: seconds(0.5, 1, 2, 3, 5, 10), Cuts: seconds(0.3, 0.6, 1, 1.5, 2, 3, 5, 10),
	}
}

// Short is the plan to see that everything works.
func Short() Plan {
	return Plan{Rounds: 1, Copies: 2, OpenRuns: 500, Benchtime: "50ms", Kills: seconds(1, 3, 10), Cuts: seconds(0.3, 1.5, 5)}
}

func seconds(values ...float64) []time.Duration {
	out := make([]time.Duration, len(values))
	for i, v := range values {
		out[i] = time.Duration(v * float64(time.Second))
	}
	return out
}

// Report is everything measured.
type Report struct {
	plan            Plan
	costs           costs
	killed          *recoveries
	cut             *recoveries
	managers, plain stampede
	passes          []*passes
}

// Measure carries out a plan. progress is told what begins.
func Measure(t platform.T, p Plan, progress func(string)) Report {
	r := Report{plan: p}
	progress("what asking for the client costs")
	r.costs = measureCosts(t, min(p.Rounds, 2), p.Benchtime)
	progress("recovery of a killed Temporal's clients")
	within(t, func(t platform.T) { r.killed = kills(t, p) })
	progress("where making workers anew pays")
	within(t, func(t platform.T) { r.cut = cuts(t, p) })
	progress("many clients at once")
	within(t, func(t platform.T) { r.managers, r.plain = stampedes(t, min(p.Rounds, 2)) })
	progress("reconciler")
	stores := []func(platform.T) platform.Store{platform.SQLite}
	if platform.HasPostgres() {
		stores = append(stores, platform.Postgres)
	}
	for _, store := range stores {
		within(t, func(t platform.T) {
			r.passes = append(r.passes, reconciliations(t, platform.StartTemporal(t), store(t), p.OpenRuns, min(p.Rounds, 2)))
		})
	}
	return r
}

// within ends what one part has started before the next one begins.
func within(t platform.T, part func(platform.T)) {
	scope := platform.NewScope(t.Context(), t.Name())
	defer scope.Close()
	part(scope)
}

// place is where members suffer outages of one length, side by side with the places of the other lengths.
type place struct {
	length  time.Duration
	away    outage
	members []*member
	// temporal is where workflows are started.
	temporal string
}

// kills has managers and SDK clients suffer outages of real Temporals that are killed and started again.
func kills(t platform.T, p Plan) *recoveries {
	var places []place
	for _, length := range p.Kills {
		temporal := platform.StartTemporal(t)
		at := place{length: length, away: killed(t, temporal), temporal: temporal.Address}
		for i := range p.Copies {
			for _, k := range []kind{theDefault(), bare()} {
				at.members = append(at.members, joined(t, k, temporal.Address, fmt.Sprintf("killed-%s-%d", k.name, i)))
			}
		}
		places = append(places, at)
	}
	return rounds(t, places, p.Rounds, false)
}

// cuts has managers of different patience suffer outages of the way to a Temporal, with an activity under way at each.
func cuts(t platform.T, p Plan) *recoveries {
	temporal := platform.StartTemporal(t)
	var places []place
	for _, length := range p.Cuts {
		frontend := conntest.Run(t, conntest.Options{Upstream: temporal.Address})
		at := place{length: length, away: unreachable(t, frontend), temporal: temporal.Address}
		for i := range p.Copies {
			for _, k := range []kind{never(), theDefault(), always()} {
				at.members = append(at.members, joined(t, k, frontend.Addr(), fmt.Sprintf("cut-%s-%s-%d", k.name, length, i)))
			}
		}
		places = append(places, at)
	}
	return rounds(t, places, p.Rounds, true)
}

// rounds has an outage of every length in each round.
func rounds(t platform.T, places []place, n int, held bool) *recoveries {
	out := newRecoveries()
	err := all(places, func(_ int, at place) error { return ready(t.Context(), at.members, at.temporal) })
	for range n {
		if err == nil {
			err = all(places, func(_ int, at place) error { return out.suffer(t.Context(), at, held) })
		}
	}
	if err != nil {
		t.Fatalf("%v", err)
	}
	return out
}

// printer writes a line.
type printer func(format string, args ...any)

// Markdown writes the section's body, one line per call.
func (r Report) Markdown(line func(format string, args ...any)) {
	p := printer(line)
	r.costs.markdown(p)
	p("")
	p("From Temporal accepting connections again, after it was killed, to the end of the first workflow:")
	p("")
	p("| away for | manager: p50, p95, longest | SDK alone: p50, p95, longest | compared, of p50 and longest |")
	p("|---|---|---|---|")
	var managed, plain promise.Times
	for _, length := range r.plan.Kills {
		m, s := r.killed.of(theDefault().name, length).first, r.killed.of(bare().name, length).first
		managed, plain = append(managed, m...), append(plain, s...)
		p("| %s | %s | %s | %s |", length, three(m), three(s), compared(m, s))
	}
	p("| all | %s | %s | %s |", three(managed), three(plain), compared(managed, plain))
	p("")
	p("Temporal itself took a start after p50 %s, longest %s.", promise.Round(r.killed.taking.At(.5)), promise.Round(r.killed.taking.Worst()))
	p("")
	p("The same after the port was closed (Temporal went on), by when a manager makes client and workers anew (RebuildAfter); and what")
	p("became of activities that were under way until %s after the return: how late they ended, longest, and how many ran again.", heldAfter)
	p("")
	p("| away for | never: p50, longest | default | always | activities: never | default | always |")
	p("|---|---|---|---|---|---|---|")
	for _, length := range r.plan.Cuts {
		n, d, a := r.cut.of(never().name, length), r.cut.of(theDefault().name, length), r.cut.of(always().name, length)
		p("| %s | %s | %s | %s | %s | %s | %s |", length, two(n.first), two(d.first), two(a.first), n.activities(), d.activities(), a.activities())
	}
	p("")
	markdownOfCrowds(p, r.managers, r.plain)
	for _, passes := range r.passes {
		p("")
		passes.markdown(p)
	}
	p("")
	p("%d rounds of outages, all lengths side by side; of each kind %d suffered every outage. The rest was measured in at most 2 rounds.",
		r.plan.Rounds, r.plan.Copies)
}

func three(d promise.Times) string {
	return fmt.Sprintf("%s, %s, %s", promise.Round(d.At(.5)), promise.Round(d.At(.95)), promise.Round(d.Worst()))
}

func two(d promise.Times) string {
	return fmt.Sprintf("%s, %s", promise.Round(d.At(.5)), promise.Round(d.Worst()))
}

func compared(a, b promise.Times) string {
	return fmt.Sprintf("%.2f ×, %.2f ×", ratio(a.At(.5), b.At(.5)), ratio(a.Worst(), b.Worst()))
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

func (r *recovery) activities() string {
	return fmt.Sprintf("%s, %d of %d", promise.Round(r.late.Worst()), r.again, len(r.late))
}
