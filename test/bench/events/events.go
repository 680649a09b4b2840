// Package events measures events: how many are accepted and routed per second, how many runs they start per second and
// how long each takes, how soon an event wakes a run that waits, and what it costs among many that wait. The bare SDK
// does the same with starts and signals on the same Temporal, as many at a time.
package events

import (
	"github.com/signalbox-dev/signalbox/test/bench/compare"
	"github.com/signalbox-dev/signalbox/test/bench/figure"
	"github.com/signalbox-dev/signalbox/test/feed"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// Plan sets the amount of measurement.
type Plan struct {
	Rounds int
	// Unwanted are events of a round that start nothing, Starting those that start a run each, Single those sent one at a
	// time, Paced those that are sent in an even stream, Wakes those that wake a run each, Collected those that one run
	// receives.
	Unwanted, Starting, Single, Paced, Wakes, Collected int
	// Waiting is the number of runs that wait, among which single ones are woken.
	Waiting int
	// Inbox is the number of events of other types in the inbox when listen tasks look for earlier events, Behind the
	// number of events of their type that arrive after the one that they take.
	Inbox, Behind int
}

// Full is the plan for the page.
func Full(rounds int) Plan {
	return Plan{Rounds: min(rounds, 3), Unwanted: 50_000, Starting: 1000, Single: 100, Paced: 200, Wakes: 100,
		Collected: 1000, Waiting: 10_000, Inbox: 1_000_000, Behind: 9000}
}

// Short is the plan for a quick check.
func Short() Plan {
	return Plan{Rounds: 1, Unwanted: 2000, Starting: 100, Single: 10, Paced: 20, Wakes: 5, Collected: 100, Waiting: 100,
		Inbox: 1000, Behind: 200}
}

// Report has all measurements.
type Report struct {
	plan   Plan
	stores []*rates
}

// Measure executes a plan. It calls progress with the name of each part that begins.
func Measure(t platform.T, p Plan, progress func(string)) Report {
	r := Report{plan: p}
	stores := []func(platform.T) platform.Store{platform.SQLite}
	if platform.HasPostgres() {
		stores = append(stores, platform.Postgres)
	}
	for _, store := range stores {
		scope := platform.NewScope(t.Context(), t.Name())
		s := newEnvironment(scope, store(scope))
		s.server.Publish(scope, feed.Starter("wanted", wanted))
		progress("events on " + s.rates.store)
		for range p.Rounds {
			s.unwanted(scope, p.Unwanted)
			s.single(scope, p.Single)
		}
		s.starting(scope, p)
		s.stream(scope, p)
		s.rates.wakes, s.rates.collected = s.wakes(scope, p), s.collected(scope, p)
		r.stores = append(r.stores, s.rates)
		scope.Close()
	}
	return r
}

// Aims are the figures with aims that this section measures.
func (r Report) Aims() []figure.Aim {
	var aims []figure.Aim
	for _, s := range r.stores {
		aims = append(aims, s.aim())
	}
	return aims
}

// Markdown writes the section's body, one line per call.
func (r Report) Markdown(line func(format string, args ...any)) {
	line("One server (API and worker) and Temporal on the same machine. Events are published by gRPC, %d per request by "+
		"%d callers for rates, one per request", batch, callers)
	line("at a time for latencies. The bare SDK starts the same number of one-step workflows eagerly, with as many "+
		"callers (%d) as a", inFlight)
	line("dispatcher has concurrent deliveries, and executes them; or sends a signal for each event. One run receives " +
		"events without a limit until")
	line("it has all of them. In the even stream, %d events per second are sent whatever becomes of them; the time is "+
		"from sending an event, or from", paceRate)
	line("the call that starts the workflow, to the close of the execution in Temporal. From start to close is by " +
		"Temporal's times alone.")
	line("")
	line("| what | store | Signalbox | bare SDK | compared (smallest to largest of the rounds) | aim | |")
	line("|---|---|---|---|---|---|---|")
	var compared []compare.Compared
	for _, s := range r.stores {
		s.markdown(line)
		compared = append(compared, s.compared()...)
	}
	line("")
	compare.Leads(line, compared)
	line("")
	line("%d rounds of %d events that start no run, %d that start a run each, %d in an even stream, %d single ones, %d "+
		"that wake a run each and %d to one run;",
		r.plan.Rounds, r.plan.Unwanted, r.plan.Starting, r.plan.Paced, r.plan.Single, r.plan.Wakes, r.plan.Collected)
	line("medians of rounds, percentiles of all.")
}
