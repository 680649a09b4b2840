// Package model is a small model of who owns a dispatcher, explored completely.
//
// It has the parts that matter, each as small as it can be: a store of leases whose entries run out and are lost, processes that
// win the lease and act on it, the inbox that hands out epochs and refuses late claims, Temporal with at most one open
// workflow per ID, and a supervisor. Every step is one request to one of them, and anybody may do the next step: a process that
// is frozen for an hour between two steps is one whose turn does not come. What the processes decide they do not decide here:
// they call the same pure functions as the product, [decide.What] and [plan.Make].
//
// [Explore] visits every state that can be reached, by breadth first, and returns the shortest way to the first one that
// breaks an invariant. Numbers that only grow (epochs, tokens, runs) are renamed after each step to the smallest that compare alike, so
// that there are finitely many states although crashes, losses and takeovers may go on for ever.
//
// [Defects] are mistakes that can be planted, to show that the model would find them.
//
// What it does not have: time (what may run out, may run out at any moment), the contents of events and deliveries, more than
// one dispatcher, older schemes of IDs, and failures inside of the store, the inbox or Temporal other than lost answers. One
// thing it excuses: a supervisor that is about to terminate while the store loses the lease that it took for that may hit a
// dispatcher that was adopted meanwhile; its owner notices and starts another.
package model
