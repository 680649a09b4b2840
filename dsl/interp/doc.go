// Package interp interprets one workflow document as a pure machine.
//
// A [Machine] holds the whole state of a run as an explicit tree of frames, never on a goroutine's stack. It does no
// I/O, reads no clock and draws no random numbers: the same calls always give the same effects and records. Whoever
// drives it performs its effects:
//
//	m := interp.New(doc, interp.Start{RunID: "r1", Input: input, At: now}, interp.DefaultLimits())
//	for {
//		for _, e := range m.Advance(now) { /* start or cancel timers and calls */ }
//		run, steps := m.TakeRecords() // for people who watch
//		if outcome, done := m.Done(); done { return outcome }
//		if m.Yielded() { continue } // more to compute: breathe first
//		/* wait; then for what happened: */ m.Fire(timer, now), m.Complete(call, result, now) or m.Deliver(listener, position, event, now)
//	}
//
// While no call is in flight ([Machine.InFlight]) the run can move: [Machine.Snapshot] gives its state without any
// code, and [Restore] goes on from it and starts the open timers again, whose deadlines are absolute. A branch that
// calls all the time gives such a moment between Complete and Advance; several branches do after [Machine.Hold],
// which keeps new calls from starting.
//
// # Order
//
// Frames that can run wait in one queue, first in, first out, and each makes one small step in its turn. Branches of a
// fork therefore take turns in the order of their declaration. Deadlines that pass at the same moment fire in the order
// of time, then of creation.
//
// # Choices where the specification is silent or contradicts itself
//
//   - `if` is evaluated first, on the raw input; a skipped task passes its raw input on, applies none of its other
//     properties (its `then` neither) and goes on with the next task.
//   - $context begins as the workflow's transformed input.
//   - `exit` ends the list of tasks it stands in: in a for's body the iteration, in a fork's branch the branch, in the
//     workflow's own list the run. `end` ends the run from anywhere, with the output of the task that says it.
//   - a for hands each iteration the output of the one before; its output is the last one's; `while` sees the same data.
//   - a competing fork goes to the first branch that completes; a branch that fails leaves the race, and the fork fails
//     with the first error when all have failed. Otherwise the first failing branch fails the fork.
//   - limit.attempt.count counts retries, not tries: "count: 5" means up to six tries. limit.attempt.duration ends each
//     single try with a timeout error, limit.duration forbids a retry that would begin later than that.
//   - an error whose retries are exhausted goes to `catch.do` or `catch.then`; where neither is given it is raised again.
//     Without a retry policy a caught error is handled even by an empty catch, and the try's input is its output.
//   - listen consumes events in the order of their positions, one at a time; its output is the array of what it consumed. An
//     event of until's own strategy is looked at first and is not part of it. until's condition is evaluated after each
//     event, on that array. The first event that brings a correlation key without an expectation fixes it for all filters.
//   - foreach works on the next event when it is done with the one before. Each item begins with the task's input and ends
//     with the output of its tasks (without any, the event); exit ends the item. What was delivered by then and is not
//     consumed when the task completes is consumed by nobody.
//   - what was delivered to a listener goes before deadlines that pass at the next Advance.
//   - emit's output is the event. What the document leaves out follows from the run.
//   - a paused run holds each branch before the next task that it would enter; what has begun ends, deadlines pass, and a run
//     with nothing left to enter completes. Steps that are granted are counted at the same place.
//   - run: workflow gives the child's output where stdout is to be returned; await: false gives the task's input. Each attempt of a
//     try starts another child. A child that is awaited no more is canceled; one that never was is left alone.
//   - a task's timeout covers the task as a whole: a try's own catch does not see it, the try around it does.
package interp
