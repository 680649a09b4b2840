// Package store stores the data of Signalbox itself: projects, workflow definitions, runs with their steps, and the
// audit log. It implements the Store interfaces of the domain packages, which define the behaviour; the suite
// in storetest tests both databases against it.
//
// # Use
//
//	s, err := store.Open(ctx, store.Options{Driver: store.SQLite, DSN: "/var/lib/signalbox/signalbox.db", AutoMigrate: true})
//	…
//	if err := s.Start(ctx); err != nil { … } // migrates, or returns an error with the command to run
//	defer s.Stop(ctx)
//
// SQLite serves one machine, Postgres any number of processes. The SQL is the same text for both; package sqldb
// contains the differences, and package schema the migrations.
//
// # Guarantees
//
// Each method is one transaction, which concurrent starts share: it is committed as a whole or not at all, and an audit
// entry is committed with its change. Each has a deadline: if the database is unavailable, the error is
// [apperror.Unavailable] with [apperror.StoreUnavailable], and the call never hangs. Times are stored to the
// microsecond, JSON as the text that was given.
//
// # Non-goals
//
// It makes no decisions: no permissions, no validation of documents, no clock. Of its calls it combines only starts
// ([Store.InsertRun]); a caller with many updates passes them to one [Store.ApplyUpdates].
package store
