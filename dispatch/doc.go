// Package dispatch keeps exactly one healthy dispatcher per project and task queue: a Temporal workflow that takes events from an
// inbox to where they go, works on any worker of its task queue, and is owned by one process at a time.
//
//	d, err := dispatch.New(dispatch.Options{
//		ServerID: "orders-7f3a", Namespace: "default",
//		Client: manager.Client,                     // asked for each request
//		Leases: redislease.New(…), Inbox: inbox,    // lease.NewMemory and memory.New for one process
//	})
//	err = d.Start(ctx)                                // at once, with or without Temporal and Redis
//	d.Register(worker)                                // on the worker of the task queue
//	err = d.Serve(dispatch.Name{Project: "shop", TaskQueue: "orders"})
//	…
//	if wake := commit(event); wake { err = d.Ring(ctx, name) }
//	err = d.Stop(ctx)                                 // hands over what it owns; the dispatchers run on
//
// # How it works
//
// Events are durable in the inbox before they are acknowledged. The workflow has one long activity, which claims what is due,
// delivers it and writes what became of it. When there was nothing to do for a while, the workflow is parked, without
// timers, until its doorbell rings.
//
// The owner is the process that holds the lease of that name. It alone starts, adopts and replaces the dispatcher. Whether it
// lives or not, routing goes on while any worker of the task queue does. A process that stops resigns, and another adopts the dispatcher in
// place, within milliseconds. When the owner crashed, another terminates that very run and starts a new one, once the lease has run out.
//
// Each process also gives signs of life, registers with the dispatchers that it serves, and supervises: what nobody owns any more, under
// whatever ID, is found and ended.
//
// # What is guaranteed
//
//   - The workflow ID is a pure function of project and task queue. Temporal has at most one open run of it.
//   - No delivery is claimed by two owners: the inbox numbers them, and refuses all but the last. Nor does a late owner change the dispatcher
//     of a later one: the workflow compares the numbers too, and terminations name one run.
//   - What the inbox accepted is delivered, whoever crashes, as long as the inbox keeps it. With one that survives its process, nothing is
//     lost by terminating a dispatcher; the one in memory lives as long as its process.
//   - Deliveries of one lane are made one after another, in their order. One that fails, hangs or panics holds up its lane alone.
//   - An idle dispatcher costs Temporal nothing. Its history does not grow.
//   - Workers are evicted after their heartbeat was missing twice, seconds apart, and never because it could not be read. Whom a parked
//     dispatcher did not get round to evicting, it is told of again.
//   - With [Options.Polls], a process that does not work for a dispatcher does not come to own it.
//   - A workflow that has the ID but says in its memo that it belongs to somebody else is left alone.
//
// # What is not
//
//   - A lease without fencing would miss this: an owner that is frozen between looking at its lease and acting, wakes when somebody else
//     has it, and acts. Here its claims, adoptions and terminations are refused. A start of something else that it had begun, like a
//     run, is not: deliveries must have the same effect when they are made twice, for example by IDs that are derived from the event.
//   - Attempts are not exactly once, for the same reason and because a process can die between delivering and saying so.
//   - Order holds within a lane, not among lanes.
//   - The journal is written after the fact. It is asked again until the process ends, and what waits when a process is killed is not told;
//     only evictions are told by another process then.
//   - A store of leases that loses its memory makes processes compete for what is held: ownership moves, nothing else happens.
//   - Leases in memory are for one process. Two that cannot see each other's leases would take turns in replacing each other.
package dispatch
