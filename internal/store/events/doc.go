// Package events stores events, their subscriptions and their deliveries in the store's database. It implements
// [event.Rows] and [event.TimerStore], which define the behaviour; package store opens it:
//
//	s, err := store.Open(ctx, …)
//	accepted, wake, err := s.Events().Publish(ctx, "default", list)
//
// # Two rows per project
//
// A process that accepts events locks the project's row in inboxes until the commit: positions follow commits, without
// gaps. A process that claims deliveries locks its row in dispatchers, which names the owner: a claim and the check of
// its owner are one transaction. The two wait for each other only while a dispatcher parks: then both rows are locked,
// in the order dispatchers, inboxes. Listeners and triggers are committed under a shared lock of the inbox's row, so
// that each event is ordered before or after them.
//
// # Immutable rows
//
// An event is written once. Its progress follows from the dispatcher's position and from routings, which has one row
// for a range of events with the same outcome. Ten thousand events that match no subscription thus cost ten thousand
// rows and no update.
//
// # Lanes
//
// The pending deliveries that wake one run are a lane, in the order of positions. The first one has a time at which it
// is due, the others have none: if a run cannot be woken for hours, the search for due deliveries does not read the
// others, however many there are.
//
// # Parts
//
// [Intake] stores the events, [Interests] the subscriptions, [Deliveries] the deliveries; [Store] combines them and
// stores the history of owners, each change of which is reported by an event.
//
// # Non-goals
//
// It matches nothing and delivers nothing. Times are the database's own, so that the clocks of hosts do not matter.
//
// # Intake
//
// [Intake] stores incoming events: it assigns their positions, stores them and reads them.
//
// [Intake.Publish], [Intake.GetEvent] and [Intake.ListEvents] are those of sealed.EventStore. The other methods run in
// a transaction of their caller. [Intake.Lock] locks a project's inbox: with the dialect's LockRows to accept events or
// to park, with its ShareRows to order a commit between two events.
//
// It handles neither subscriptions nor deliveries; of the dispatchers it reads the position up to which they have
// routed.
//
// # Subscriptions
//
// [Interests] stores subscriptions to events: listeners of runs, triggers of workflows with the sets of events
// that they have collected, and timers.
//
// [Deliveries.Listen], [Interests.Unlisten], [Interests.GetListener] and [Interests.ListTimers] are those of
// sealed.EventStore and event.TimerStore. The other methods, and [EndListeners], run in a transaction of their caller:
// subscriptions change with the publication of their workflow and the end of their run.
//
// Triggers are found by the event types that they can match, so that subscriptions to other types add no cost to an
// event. Listeners are found by the shapes of their filters and the values that these expect: [Interests.Waiting] reads
// the shapes for a type, and [Interests.FindListeners] the listeners for the values of an event. It evaluates no
// filter.
//
// # Deliveries
//
// [Deliveries] stores the outgoing part of events: the results of matching, the deliveries with their claims, and
// the dispatchers that may claim them.
//
// All of its methods are those of sealed.EventStore. Each method that changes the state of a dispatcher checks its
// owner in the same transaction, with the dispatcher's row locked. If it also locks the project's inbox, it does so
// second.
//
// It matches nothing and delivers nothing.
package events
