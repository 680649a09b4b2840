package main

import "strings"

// meaning is what a promise says, in one sentence each.
type meaning struct{ code, text string }

// promised lists the codes under which tests record figures. Those with a hyphen are the product's own promises; the
// others are requirements that it was built to meet.
func promised() []meaning {
	return []meaning{
		{"C7", "A server stops gracefully within its budget, also with open streams and during an outage."},
		{"C8", "Runs that are started during an outage of Temporal are queued in order, and each surface reports the state " +
			"of the connection."},
		{"C9", "Server first, Temporal later, a run, Temporal restarted, another run: each works without a restart of the " +
			"server."},
		{"E3", "Each control that is offered works: a cancel that loses against the end of the run does not change its " +
			"result."},
		{"E5", "A replay uses the original input, and a batch replays each run once, whichever server is killed."},
		{"E7", "A run that waits for a worker is shown as stuck after 60 s with its cause, and no longer once a worker " +
			"runs it."},
		{"E11", "Runs of an older engine are imported and stay readable."},
		{"P-C1", "A server that is started before Temporal connects within 1 s of Temporal accepting connections (p95); " +
			"workers poll within 2 s."},
		{"P-C2", "When Temporal restarts, no process restarts and no run is lost; workers poll within 1 s of its return, " +
			"and a task in flight is delayed by at most 10 s."},
		{"P-C3", "Frozen Temporal, half-open connections, missing namespaces, wrong credentials and flapping: the state is " +
			"right within 10 s of each change, nothing leaks, and a blip stops no worker."},
		{"P-C4", "`Client()` of the connection manager costs less than 20 ns and never blocks."},
		{"P-C5", "While Temporal is known to be away, a start is refused in less than 100 ms and leaves no row; before " +
			"that is known, it is answered within 2 s."},
		{"P-D1", "The ID of a dispatcher depends on project and task queue only."},
		{"P-D2", "A stale dispatcher is replaced within one attempt; the history shows its termination before the new " +
			"start."},
		{"P-D3", "There are never two open dispatchers of one project and task queue, and no delivery is claimed by two " +
			"epochs, over 500 restarts and crashes under load."},
		{"P-D4", "No event is lost and none takes effect twice, under the same faults."},
		{"P-D5", "A planned hand-over takes less than 250 ms (p95). After a crash another worker owns the dispatcher " +
			"within 10 s (p95), or within 3 s of the start of the next worker once the lease has expired; routing pauses for " +
			"less than 10 s (p95)."},
		{"P-D6", "A stale dispatcher is cleaned up within 30 s (p95)."},
		{"P-D7", "Each crashed worker is evicted once, and no worker that is late for less than the threshold."},
		{"P-D8", "The metrics of dispatchers exist under their fixed names."},
		{"P-D9", "A cycle of the supervisor reads 10,000 dispatchers, 300 of them active, in less than 2 s."},
		{"P-D10", "The history of an idle dispatcher does not grow."},
		{"P-R1", "An accepted run is executed once and a refused one not at all; rows agree with Temporal."},
		{"R12", "Each fault of the platform raises its alert, which arrives at the receiver and is resolved after the " +
			"repair; symptoms are silent."},
		{"R14", "Takeover within 30 s (p95), clean-up within 2 minutes (p95), no duplicates in rolling restarts, less than " +
			"1 % of the supervisor's cycles fail."},
		{"bounded", "Workloads that are as large or as hostile as can be keep memory below its limit and do not slow other " +
			"projects beyond theirs."},
		{"soak", "Under a steady mix of everything that runs do, no run is lost, doubled or stuck, timers fire within a " +
			"second (p99), and no process grows."},
		{"programs", "A task whose process is killed in the middle ends as documented, and so do canceled ones and those that time " +
			"out; no process, container, file or control group is left."},
		{"quotas", "A limit of steps holds across restarts, and loses none."},
	}
}

// meanings lists the promises.
func meanings() string {
	var b strings.Builder
	b.WriteString("\n## What each promise says\n\n| code | promise |\n|---|---|\n")
	for _, m := range promised() {
		b.WriteString(row(m.code, m.text))
	}
	return b.String()
}
