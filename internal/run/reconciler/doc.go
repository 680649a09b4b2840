// Package reconciler makes the rows of runs and Temporal agree, both ways, whatever happened to either.
//
// In normal operation rows follow Temporal through the projection. A process that dies, a database or a Temporal that is
// restored, and people who terminate, reset or delete executions leave differences behind. Every 30 seconds, and at once
// when [Reconciler.Wake] says that Temporal is back, one process compares: open rows that Temporal does not list as open
// are looked up one by one, the others in turn; executions that have no row are adopted, or reported. Runs whose start
// has no known outcome are handed over again as soon as a start may have taken its time.
//
//	r := reconciler.New(store, engine, reconciler.Options{…})
//	err := r.Start(ctx)
//	report, err := r.Reconcile(ctx, true) // now, and without changing anything
//
// What to do is decided by a pure function of what both sides say, in package verdict; all else carries it out. Every
// correction is guarded by the store, so that a second reconciler at the same time does no harm; it is logged, counted
// and, unless a row was merely behind or nothing of ours was touched, written to the audit log.
//
// It ends no execution and starts none but those that were asked for. Runs that wait in a queue of our own are none of
// its business.
package reconciler
