// Package dispatcher is the platform's view of its dispatchers and workers, with the two operations of an operator:
// hand a dispatcher over to another worker, and reconcile all of them. It also records the changes of dispatchers, and
// has their inbox, [Router].
//
//	service := dispatcher.NewService(dispatcher.Options{…})
//	all, err := service.List(ctx)                    // sources that cannot be read are reported in the result
//	owner, err := service.HandOver(ctx, "shop", why) // audited
//	report, err := service.Reconcile(ctx, dryRun)    // audited, except dry runs
//
// The service holds no state and runs no loop: package dispatch reads, owns and supervises dispatchers. What it reports
// is in package dispatchtype; the types of this package add what only the platform has.
package dispatcher

import (
	"strconv"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
)

// Dispatcher is a dispatcher with what the platform adds.
type Dispatcher struct {
	dispatchtype.Dispatcher

	// Detail is the reason for the status, where there is more to it.
	Detail string
	// Owners are the last owners, newest first; not set in lists.
	Owners []dispatchtype.OwnerChange
	// Unread describes what could not be read, one line each, without secrets or host names.
	Unread []string
}

// Workers is the result of [Service.Workers].
type Workers struct {
	Workers []dispatchtype.Worker
	// Unread describes what could not be read, one line each, without secrets or host names.
	Unread []string
}

// Facts are what a worker of the platform adds to its heartbeat.
type Facts struct {
	// Interpreter is the version of the workflow interpreter, Contract the fingerprint of the names in Temporal.
	Interpreter int
	Contract    string
	// LastPoll is when the worker last polled a task queue; zero if it has not.
	LastPoll time.Time
	// BusySince is since when all its slots for tasks of one of its task queues are in use, so that it does not poll; zero
	// while it polls.
	BusySince time.Time
}

// Keys of the facts in a heartbeat.
const (
	interpreterFact = "interpreter"
	contractFact    = "contract"
	lastPollFact    = "lastPoll"
	busyFact        = "busySince"
)

// Encode returns the facts as a heartbeat holds them.
func (f Facts) Encode() map[string]string {
	facts := map[string]string{interpreterFact: strconv.Itoa(f.Interpreter), contractFact: f.Contract}
	if !f.LastPoll.IsZero() {
		facts[lastPollFact] = f.LastPoll.UTC().Format(time.RFC3339)
	}
	if !f.BusySince.IsZero() {
		facts[busyFact] = f.BusySince.UTC().Format(time.RFC3339)
	}
	return facts
}

// FactsOf returns the facts in a worker's heartbeat. A fact that is absent or cannot be decoded is zero.
func FactsOf(w dispatchtype.Worker) Facts {
	facts := w.Heartbeat.Facts
	f := Facts{Contract: facts[contractFact]}
	f.Interpreter, _ = strconv.Atoi(facts[interpreterFact])
	f.LastPoll, _ = time.Parse(time.RFC3339, facts[lastPollFact])
	f.BusySince, _ = time.Parse(time.RFC3339, facts[busyFact])
	return f
}
