// Package supervisor cleans up after crashed processes: it terminates dispatchers that have neither an owner nor a
// worker, and deletes entries of dead owners.
//
// A cycle observes, plans, confirms and acts. Package plan makes the plan twice: from a snapshot of everything, and
// again after [Rules.Confirm], from a snapshot of only the dispatchers and entries of the first plan. What is not in
// both plans is dropped.
//
// Before it terminates a dispatcher, the supervisor acquires its lease in place of the entry that it read. So no
// process can adopt the dispatcher meanwhile, only one of several supervisors acts, and a supervisor that dies halfway
// leaves an entry like that of any crashed owner. Then it terminates the dispatcher by run ID, and deletes the entry
// last. If the termination fails, the entry stays and expires, and a later cycle finds it.
//
// Any number of processes may supervise at the same time. A failed read makes a failed cycle, never a stale dispatcher.
package supervisor
