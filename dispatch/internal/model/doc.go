// Package model is a small model of the ownership protocol of one dispatcher, for exhaustive exploration.
//
// It has the relevant parts, each as small as possible: a lease store whose entries expire and are lost, processes that
// acquire the lease and act, an inbox that allocates epochs and rejects outdated claims, Temporal with at most one open
// workflow per ID, and a supervisor. Each step is one request to one of them, and any part may take the next step: a
// process that is frozen for an hour between two steps is one that takes none meanwhile. The decisions are not
// modelled: the model calls the product's pure functions, [plan.Decide] and [plan.Make].
//
// [Explore] visits every reachable state, breadth first, and returns a shortest trace to the first state that violates
// an invariant. Numbers that only grow (epochs, tokens, runs) are renamed after each step to the smallest ones with the
// same order, so that the number of states is finite although crashes, losses and takeovers can repeat without limit.
//
// [Defects] are mistakes that can be planted, to show that the model detects them.
//
// The model does not have: time (what may expire, may expire at any moment), the contents of events and deliveries,
// more than one dispatcher, older schemes of IDs, and failures inside the store, the inbox or Temporal other than lost
// answers. It excuses one case: if the store loses the lease that a supervisor acquired, while the supervisor is about
// to terminate, the termination may hit a dispatcher that was adopted meanwhile; its owner notices and starts another.
package model
