// Package events keeps events, what wants them and what is delivered, in the store's database. It implements [event.Rows]
// and [event.TimerStore], whose comments are the contract; package store opens it:
//
//	s, err := store.Open(ctx, …)
//	accepted, wake, err := s.Events().Publish(ctx, "default", list)
//
// # Two rows per project
//
// Whoever accepts events holds the project's row in inboxes until the commit: positions follow commits, without gaps. Whoever
// takes events out holds its row in dispatchers, which says who may: a claim and the look at its owner are one transaction. Those
// two never wait for each other but for the moment of parking, when both rows are held, in the order dispatchers, inboxes.
// Listeners and triggers are committed while the inbox's row is shared, so that each event is before or after them.
//
// # Rows that do not change
//
// An event is written once. How far it has come follows from the dispatcher's position and from routings, which has one row for a
// stretch of events with the same outcome. Ten thousand events that nobody wants thus cost ten thousand rows and no update.
//
// # Lanes
//
// The pending deliveries that wake one run are a lane, in the order of positions. Its first has a time at which it is due, those
// behind it have none: a run that cannot be woken for hours hides what waits behind, however much that is, from the search for what is due.
//
// # Parts
//
// Package intake has the events, interest what wants them, delivery what is made of both; this one puts them together and keeps
// the history of owners, which is told of by an event.
//
// # What it does not do
//
// It matches nothing and delivers nothing. Times are the database's own, so that no host's clock counts.
package events
