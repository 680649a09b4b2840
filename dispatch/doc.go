// Package dispatch runs exactly one healthy dispatcher per project and task queue. A dispatcher is a Temporal workflow
// that delivers events from an inbox. Any worker of its task queue can execute it, and one process at a time owns it.
//
//	d, err := dispatch.New(dispatch.Options{
//		ServerID: "orders-7f3a", Namespace: "default",
//		Client: manager.Client,                     // called for each request
//		Leases: redislease.New(…), Inbox: inbox,    // lease.NewMemory and memory.New for one process
//	})
//	err = d.Start(ctx)                                // returns at once, with or without Temporal and Redis
//	d.Register(worker)                                // on the worker of the task queue
//	err = d.Serve(dispatch.Name{Project: "shop", TaskQueue: "orders"})
//	…
//	if wake := commit(event); wake { err = d.Ring(ctx, name) }
//	err = d.Stop(stopping)                            // resigns the ownerships; the dispatchers keep running. stopping has a timeout; it is not
//	                                                  // the context that an interrupt cancels
//
// # How it works
//
// The inbox stores events durably before it acknowledges them. The workflow has one long activity, which claims due
// deliveries, makes them and writes their outcomes. After a while without work, the workflow is parked: it has no
// timers and no activity, and waits for its doorbell signal.
//
// The owner is the process that holds the dispatcher's lease. Only the owner starts, adopts and replaces the
// dispatcher. Routing does not depend on the owner: it continues while any worker of the task queue is alive. A process
// that stops resigns its leases, and another process adopts the dispatcher in place, within milliseconds. After an
// owner has crashed, another process terminates that exact run once the lease has expired, and starts a new one.
//
// Each process also writes a heartbeat, registers with the dispatchers that it serves, and runs a supervisor. The
// supervisor finds and terminates dispatchers that have neither an owner nor a worker, under any workflow ID.
//
// # What is guaranteed
//
//   - The workflow ID is a pure function of project and task queue. Temporal has at most one open run of it.
//   - No delivery is claimed by two owners. The inbox numbers the owners (epochs) and rejects claims of all but the
//     last one. The workflow
//     compares epochs too, and a termination names one run: a late owner cannot change the dispatcher of a later one.
//   - An event that the inbox has accepted is delivered, whichever process crashes, for as long as the inbox keeps it.
//     With an inbox that
//     survives its process, terminating a dispatcher loses nothing. The in-memory inbox lives as long as its process.
//   - Deliveries of one lane are made one after another, in order. A delivery that fails, hangs or panics delays its
//     lane only.
//   - An idle dispatcher costs Temporal nothing. Its history does not grow.
//   - A worker is evicted after its heartbeat was missing in two checks, seconds apart, and never because a heartbeat
//     could not be read.
//     Workers that a parked dispatcher has not evicted are reported to it again.
//   - With [Options.Polls], only a process whose worker polls the task queue acquires a dispatcher.
//   - A workflow that has the ID of a dispatcher but whose memo names another project or task queue is left alone.
//
// # What is not guaranteed
//
//   - A lease alone does not stop an owner that freezes between its lease check and its request: it can resume after
//     another process has
//     acquired the lease. Epochs and run IDs make Temporal and the inbox reject its claims, adoptions and terminations.
//     They do not stop a delivery that it had begun, such as the start of a run. Deliveries must therefore be
//     idempotent, for example by IDs that are derived from the event.
//   - Attempts are not exactly-once, for the same reason, and because a process can die between a delivery and the
//     write of its outcome.
//   - Order holds within a lane, not between lanes.
//   - The journal is written after the fact. A failed write is retried until the process ends. Entries that are still
//     queued when a process
//     is killed are lost, except evictions, which another process writes.
//   - A lease store that loses its data makes processes compete for held leases: ownership moves, and nothing else
//     happens.
//   - In-memory leases are for one process. Two processes that cannot see each other's leases would keep replacing each
//     other's dispatcher.
package dispatch
