// Package plan has the decisions of owners and supervisors as pure functions. [Make] maps a snapshot of the leases, the
// inbox and Temporal to what the supervisor terminates, deletes and reports. [Decide] maps the state of a dispatcher to
// the action of its new owner.
//
// Three rules of the supervisor take precedence:
//
//   - A dispatcher with a held lease is left alone, whatever else was read: its owner decides about it.
//   - Missing data causes no action. A missing entry counts only if the store's data reaches back far enough (see
//     [Snapshot]), and only for
//     a dispatcher that the inbox has.
//   - A dispatcher with a worker is not terminated. A dispatcher that makes progress, or that answers, has a worker
//     whatever its lease
//     says; the worker that acquires the lease decides about it. The supervisor terminates dispatchers without a
//     worker, and those that an owned dispatcher has replaced.
//
// Times are ages by the clock of the store that has the data. No two clocks are compared, and there is no "now".
//
// The plan of a first snapshot is a suspicion. Executors read the affected dispatchers and entries again, ask those
// dispatchers for an answer, and act on the plan of the second snapshot.
package plan
