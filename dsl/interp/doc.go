// Package interp interprets one workflow document as a deterministic state machine.
//
// A [Machine] holds the whole state of a run as an explicit tree of frames, never on a goroutine's stack. It does no
// I/O, reads no clock and draws no random numbers: the same calls always return the same effects and records. Its
// driver performs the effects:
//
//	m := interp.New(doc, interp.Start{RunID: "r1", Input: input, At: now}, interp.DefaultLimits())
//	for {
//		for _, e := range m.Advance(now) { /* start or cancel timers and calls */ }
//		run, steps := m.TakeRecords() // for observers
//		if outcome, done := m.Done(); done { return outcome }
//		if m.Yielded() { continue } // more to compute: let other goroutines run first
//		/* wait; then for what happened: */ m.Fire(timer, now), m.Complete(call, result, now) or m.Deliver(listener, position, event, now)
//	}
//
// While no call is in flight ([Machine.InFlight]) the run can continue in another machine: [Machine.Snapshot] returns
// its state without any code, and [Restore] continues from it and starts the open timers again, whose deadlines are
// absolute. A branch that calls all the time reaches such a state between Complete and Advance; several branches reach
// it after [Machine.Hold], which prevents new calls from starting.
//
// # Order
//
// Frames that can run wait in one FIFO queue, and each runs one small step per turn. Branches of a fork therefore take
// turns in the order of their declaration. Deadlines that pass between two Advances fire in the order of time, then of
// creation.
//
// # Choices where the specification is silent or contradicts itself
//
//   - `if` is evaluated first, on the raw input; a skipped task passes its raw input on, applies none of its other
//     properties (its `then` neither) and continues with the next task.
//   - $context begins as the workflow's transformed input.
//   - `exit` ends the list of tasks that contains it: in a for's body the iteration, in a fork's branch the branch, in
//     the
//     workflow's own list the run. `end` ends the run from anywhere, with the output of the task that has the
//     directive.
//   - each iteration of a for receives the output of the previous one; its output is the last one's; `while` sees the
//     same data.
//   - a competing fork has the output of the first branch that completes; a failed branch does not end it, and the fork
//     fails
//     with the first error when all have failed. Otherwise the first failing branch fails the fork.
//   - limit.attempt.count counts retries, not tries: "count: 5" means up to six tries. limit.attempt.duration ends each
//     single try with a timeout error, limit.duration forbids a retry that would begin later than that.
//   - an error with exhausted retries is handled by `catch.do` or `catch.then`; without either it is raised again.
//     Without a retry policy a caught error is handled even by an empty catch, and the try's input is its output.
//   - listen consumes events in the order of their positions, one at a time; its output is the array of the consumed
//     events. An
//     event of until's own strategy is matched first and is not part of it. until's condition is evaluated after each
//     event, on that array. The first event with a correlation key that has no expectation sets it for all filters.
//   - foreach processes one event after another. Each item begins with the task's input and ends
//     with the output of its tasks (without any, the event); exit ends the item. Events that were delivered by then and
//     not consumed when the task completes are discarded.
//   - events that were delivered are processed before deadlines that pass at the next Advance.
//   - emit's output is the event. Attributes that the document omits are derived from the run.
//   - a paused run stops each branch before the next task that it would enter; open tasks continue, deadlines pass, and
//     a run
//     with nothing left to enter completes. Granted steps are counted at the same point.
//   - the output of run: workflow is the child's output if it returns stdout; with await: false it is the task's input.
//     Each attempt of a
//     try starts another child. A child that is no longer awaited is canceled; one with await: false is not.
//   - a program that ends with another exit code than 0 fails its task, unless the task returns the code. Its standard
//     output is a text, as it was printed. With await: false the task's output is its input, once the program has
//     started.
//   - a task's timeout covers the task as a whole: a try's own catch does not catch it, the try around it does.
package interp
