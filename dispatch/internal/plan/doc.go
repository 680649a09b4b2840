// Package plan decides what the supervisor does: a pure function from what was read of the leases, the inbox and Temporal to
// what to terminate, what to delete and whom to tell.
//
// Three rules are above all others:
//
//   - Whoever holds the lease is left alone, whatever the rest looks like: its owner judges its dispatcher, not we.
//   - Nothing is done for lack of data. That an entry is missing counts only when the store remembers long enough to say so (see
//     [Reading]), and only for a dispatcher that the inbox knows.
//   - What somebody works for is not ended. A dispatcher that moves, or that answers, has a worker whatever its lease says; the
//     worker that wins the lease will judge it. Ended is what nobody works for, and what an owned dispatcher has replaced.
//
// Times are ages by the clock of whoever keeps the thing; no two clocks are compared, and there is no "now" here.
//
// The plan of a first reading is a suspicion. Executors read again what it would act upon, ask those dispatchers for an
// answer, and act on the plan of the second reading.
package plan
