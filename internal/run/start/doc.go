// Package start starts runs: it checks a request, inserts the row of the run, and hands the run over to Temporal.
//
//	s := start.New(store, engine, workflows, documents, changes, start.Options{…})
//	r, created, err := s.Start(ctx, start.Request{Project: "default", Workflow: "shop/order", Input: input})
//	err = s.Close(ctx) // waits for the hand-overs in progress
//
// A run that cannot be handed over now waits in the queue or for a slot of its project. [PlacementMonitor] refuses
// starts in another Temporal than the one that holds the runs.
//
// # Queue
//
// [Queue] starts the runs that were accepted while Temporal was unavailable or no live worker served their project, in
// order of acceptance, and fails those that have waited too long. It skips a run while its project has no worker. One
// elected process of all those on a store does this at a time.
//
//	q := start.NewQueue(service, store, changes, options)   // as given to the service
//	err := q.Start(ctx)
//	q.Wake()                                                    // Temporal is available again
//	err = q.Stop(ctx)
//
// Runs that are created once Temporal is available again do not wait behind the queue: the order holds among the queued
// runs. A run that left the queue or the admission is `queued: starting` until Temporal has it. After a crash or a lost
// answer the reconciler or the queue starts it again, which has no effect if it has started already.
//
// # Admission
//
// [Admission] starts the runs that wait for a slot of their project's concurrency limit, in order of acceptance.
//
//	a := start.NewAdmission(service, slots, rows, changes, options)   // as given to the service
//	store.OnAdmissible(a.Wake)
//	err := a.Start(ctx)
//	err = a.Stop(ctx)
//
// The store decides which run gets a slot, so any number of processes may do this. The process that is notified first
// of the end of a run starts the next run; each process polls every two seconds for missed notifications. While
// Temporal is unavailable no run is admitted: waiting runs keep their order, and slots stay free.
package start
