// Package connection measures the costs and benefits of the connection manager: the cost of requesting the client, the
// time to the first completed work after an outage compared with an unmanaged client and worker of the SDK, the length
// of outage from which rebuilding client and workers pays, the load of many reconnecting clients on Temporal, and the
// cost of comparing all runs with Temporal.
//
// All kinds of a table have the same outages. "Accepting" is the first TCP connection that succeeds; a workflow is
// started as soon as Temporal accepts one, by a client that the outage did not affect, so that only pollers are
// measured.
package connection

import (
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/conn/conntest"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

// Plan sets the amount of measurement.
type Plan struct {
	Rounds int
	// Kills are the lengths of outages by a killed Temporal, Cuts those by a closed port.
	Kills, Cuts []time.Duration
	// Copies is the number of members of each kind that have an outage together.
	Copies int
	// OpenRuns is the number of runs that the reconciler compares.
	OpenRuns int
	// Benchtime is the time of each benchmark in a round, as for go test.
	Benchtime string
}

// Full is the plan for the page, under six minutes: copies take less time than rounds.
func Full(rounds int) Plan {
	return Plan{
		Rounds: min(rounds, 3), Copies: 3, OpenRuns: 10_000, Benchtime: "100ms",
		Kills: seconds(0.5, 1, 2, 3, 5, 10), Cuts: seconds(0.3, 0.6, 1, 1.5, 2, 3, 5, 10),
	}
}

// Short is the plan for a quick check.
func Short() Plan {
	return Plan{Rounds: 1, Copies: 2, OpenRuns: 500, Benchtime: "50ms", Kills: seconds(1, 3, 10),
		Cuts: seconds(0.3, 1.5, 5)}
}

func seconds(values ...float64) []time.Duration {
	out := make([]time.Duration, len(values))
	for i, v := range values {
		out[i] = time.Duration(v * float64(time.Second))
	}
	return out
}

// Report has all measurements.
type Report struct {
	plan            Plan
	costs           costs
	killed          *recoveries
	cut             *recoveries
	managers, plain reconnections
	passes          []*passes
}

// Measure executes a plan. It calls progress with the name of each part that begins.
func Measure(t platform.T, p Plan, progress func(string)) Report {
	r := Report{plan: p}
	progress("what asking for the client costs")
	r.costs = measureCosts(t, min(p.Rounds, 2), p.Benchtime)
	progress("recovery of a killed Temporal's clients")
	within(t, func(t platform.T) { r.killed = kills(t, p) })
	progress("where making workers anew pays")
	within(t, func(t platform.T) { r.cut = cuts(t, p) })
	progress("many clients at once")
	within(t, func(t platform.T) { r.managers, r.plain = measureReconnections(t, min(p.Rounds, 2)) })
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

// within stops the processes of one part before the next one begins.
func within(t platform.T, part func(platform.T)) {
	scope := platform.NewScope(t.Context(), t.Name())
	defer scope.Close()
	part(scope)
}

// outageGroup is a set of members with outages of one length, in parallel with the groups of other lengths.
type outageGroup struct {
	length  time.Duration
	away    outage
	members []*member
	// temporal is the address where workflows are started.
	temporal string
}

// kills measures managers and SDK clients over outages of real Temporals that are killed and restarted.
func kills(t platform.T, p Plan) *recoveries {
	var groups []outageGroup
	for _, length := range p.Kills {
		temporal := platform.StartTemporal(t)
		at := outageGroup{length: length, away: killed(t, temporal), temporal: temporal.Address}
		for i := range p.Copies {
			for _, k := range []kind{rebuildByDefault(), sdkAlone()} {
				at.members = append(at.members, newMember(t, k, temporal.Address, fmt.Sprintf("killed-%s-%d", k.name, i)))
			}
		}
		groups = append(groups, at)
	}
	return rounds(t, groups, p.Rounds, false)
}

// cuts measures managers with different rebuild times over outages of the connection to Temporal, with an activity in
// progress at each.
func cuts(t platform.T, p Plan) *recoveries {
	temporal := platform.StartTemporal(t)
	var groups []outageGroup
	for _, length := range p.Cuts {
		frontend := conntest.Run(t, conntest.Options{Upstream: temporal.Address})
		at := outageGroup{length: length, away: unreachable(t, frontend), temporal: temporal.Address}
		for i := range p.Copies {
			for _, k := range []kind{rebuildNever(), rebuildByDefault(), rebuildAlways()} {
				at.members = append(at.members, newMember(t, k, frontend.Addr(), fmt.Sprintf("cut-%s-%s-%d", k.name, length, i)))
			}
		}
		groups = append(groups, at)
	}
	return rounds(t, groups, p.Rounds, true)
}

// rounds makes an outage of every length in each round.
func rounds(t platform.T, groups []outageGroup, n int, held bool) *recoveries {
	out := newRecoveries()
	err := all(groups, func(_ int, at outageGroup) error { return waitForReady(t.Context(), at.members, at.temporal) })
	for range n {
		if err == nil {
			err = all(groups, func(_ int, at outageGroup) error { return out.run(t.Context(), at, held) })
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
	p("From the first accepted connection of a killed and restarted Temporal to the end of the first workflow:")
	p("")
	p("| outage | manager: p50, p95, longest | SDK alone: p50, p95, longest | compared, of p50 and longest |")
	p("|---|---|---|---|")
	var managed, plain promise.Times
	for _, length := range r.plan.Kills {
		m, s := r.killed.of(rebuildByDefault().name, length).first, r.killed.of(sdkAlone().name, length).first
		managed, plain = append(managed, m...), append(plain, s...)
		p("| %s | %s | %s | %s |", length, three(m), three(s), compared(m, s))
	}
	p("| all | %s | %s | %s |", three(managed), three(plain), compared(managed, plain))
	p("")
	p("Temporal itself accepted a start after p50 %s, longest %s.", promise.Round(r.killed.taking.At(.5)),
		promise.Round(r.killed.taking.Worst()))
	p("")
	p("The same after the port was closed (Temporal kept running), by the outage after which a manager rebuilds client " +
		"and workers (RebuildAfter); and the")
	p("activities that were in progress until %s after the recovery: the longest delay of their end, and how many ran "+
		"again.", heldAfter)
	p("")
	p("| outage | never: p50, longest | default | always | activities: never | default | always |")
	p("|---|---|---|---|---|---|---|")
	for _, length := range r.plan.Cuts {
		n, d, a := r.cut.of(rebuildNever().name, length), r.cut.of(rebuildByDefault().name, length),
			r.cut.of(rebuildAlways().name, length)
		p("| %s | %s | %s | %s | %s | %s | %s |", length, two(n.first), two(d.first), two(a.first), n.activities(),
			d.activities(), a.activities())
	}
	p("")
	markdownOfReconnections(p, r.managers, r.plain)
	for _, passes := range r.passes {
		p("")
		passes.markdown(p)
	}
	p("")
	p("%d rounds of outages, all lengths in parallel; of each kind %d went through every outage. The rest was measured "+
		"in at most 2 rounds.",
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
