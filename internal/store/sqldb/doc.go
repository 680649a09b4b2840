// Package sqldb is a common interface to two databases: SQLite in a file, and Postgres. It hides their differences
// (pools, locks, deadlines, error codes), so that the store has one SQL text for both.
//
// [Open] connects, or returns an error that states why it cannot. Work runs through [DB.Read], [DB.Exec] and
// [DB.Write]. Each has a deadline, so that a database that is unavailable or hangs causes an error and never a hang;
// [DB.Write] is a transaction that is retried if the database aborted it in favour of another one.
//
// [DB.Exclusive] is for work that only one process may do at a time, such as periodic clean-up.
//
// Placeholders are $1, $2 … in both. Returned errors are a [apperror.Error] (the database is unavailable, full or
// read-only: the message has the location and the cause), the end of the caller's context, or internal errors.
//
// It contains no tables.
package sqldb
