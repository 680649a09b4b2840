// Package store keeps everything that Signalbox itself remembers: projects, workflow definitions, runs with their steps, and the
// audit log. It implements the Store interfaces of the domain packages, whose comments are the contract; the suite in
// storetest holds both databases to it.
//
// # Use
//
//	s, err := store.Open(ctx, store.Options{Driver: store.SQLite, DSN: "/var/lib/signalbox/signalbox.db", AutoMigrate: true})
//	…
//	if err := s.Start(ctx); err != nil { … } // migrates, or says what to do
//	defer s.Stop(ctx)
//
// SQLite serves one machine, Postgres any number of processes. The SQL is the same text for both; what differs is in
// package sqldb, and how the schema changes from release to release in package schema.
//
// # What holds
//
// Each method is one transaction: it is done whole or not at all, and an audit entry is written exactly with its change.
// Each has a deadline: a database that is away is [fault.Unavailable] with [fault.StoreUnavailable], never a hang. Times are kept to
// the microsecond, JSON as the text that was given.
//
// # What it does not do
//
// It decides nothing: no permission, no validation of documents, no clock. It does not batch calls either; whoever has
// many updates at once gives them to [Store.ApplyUpdates] together.
package store
