// Package reconcile makes the rows of runs and Temporal agree, in both directions, after any failure of either.
//
// In normal operation rows follow Temporal through the projection. Differences remain when a process dies, when a
// database or a Temporal is restored, and when people terminate, reset or delete executions in Temporal. Every 30
// seconds, and at once when [Reconciler.Wake] reports that Temporal is available again, one elected process compares.
// Open rows that Temporal does not list as open are compared one by one, the others in turn. Executions without a row
// are adopted or reported. Runs without a known start outcome are started again once the start has timed out.
//
//	r := reconcile.New(store, engine, service, reconcile.Options{…})
//	err := r.Start(ctx)
//	report, err := r.Reconcile(ctx, true) // now, and without changing anything
//
// A pure function of the state on both sides, [Decide], determines what to do; the rest carries it out. The store
// guards each correction, so that a second reconciler at the same time does no harm. Each correction is logged, counted
// and written to the audit log, except where a row was merely behind or nothing of Signalbox was changed.
//
// The reconciler ends no execution, and starts only runs that were requested. It ignores runs in Signalbox's own
// queues. The other part of the package is [Repairer].
//
// # Verdict
//
// [Decide] determines what to do about one run from its row and its execution in Temporal. It performs no I/O, so tests
// cover all combinations of both.
//
//	switch reconcile.Decide(reconcile.Facts{Now: now, StartTimeout: limit, Row: &row, Listed: listed}) {
//	case reconcile.Compare: // query Temporal, and decide again with its answer
//	}
//
// Facts come in stages, and each stage may change the verdict. Whether a run that Temporal does not have is lost
// depends on whether this is the Temporal that holds the runs, see [run.ComparePlacement].
//
// # Repairs
//
// [Repairer] updates rows that are behind Temporal: a process crashed between Temporal's acceptance and its write, or a
// database was unavailable for so long that updates were dropped.
//
//	repairs := reconcile.NewRepairer(rows, engine, reconcile.RepairerOptions{…})
//	err := repairs.Start(ctx)   // in processes with the worker role
//	repairs.Wake()              // a repair was requested in this process
//
// Requests are rows (see [run.RepairStore]): the process that finds a run behind adds one and continues. Each worker of
// a repairer claims one request at a time, compares the run with Temporal, and rebuilds its rows only when they are
// behind. Each attempt has a deadline; its writes stay, and the next attempt continues after the last completely
// written execution. Failed attempts are repeated with increasing delays, so that a run that cannot be rebuilt does not
// delay others.
package reconcile
