// Package sqldb is one handle on two kinds of database: SQLite in a file, and Postgres. It hides what differs between
// them (pools, locks, deadlines, error codes), so that the store has one SQL text for both.
//
// [Open] connects, or says in one error why it cannot. Work runs through [DB.Read], [DB.Exec] and [DB.Write]: each has a
// deadline, so a database that has gone away or hangs is an error and never a hang; [DB.Write] is a transaction that is
// tried again when the database gave it up in favour of another one.
//
// [DB.Exclusive] is for work that one process at a time does, such as looking after what others left behind.
//
// Placeholders are $1, $2 … in both. Errors that come out are either a [fault.Fault] (the database is away, full or
// read-only: what and where is in the message), the end of the caller's context, or internal.
//
// It knows no table, and makes none.
package sqldb
