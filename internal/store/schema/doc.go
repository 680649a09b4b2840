// Package schema brings a database to the schema that this binary needs, and tells whether it has it.
//
// Migrations are plain SQL, one folder per database, numbered alike; they only go up. [Migrator.Up] takes a lock, so that any
// number of processes may start at once: one migrates and the others find the work done. Each migration is one
// transaction.
//
// # Expand, then contract
//
// Processes of two neighbouring releases share a database while a deployment rolls. So a migration adds what the new
// release needs in a way that leaves the older one working (new tables, columns with defaults, indices), and what only
// the older release needed goes one release later. Each migration says what it still allows in the table schema_compat:
// "oldest" is the newest migration that a binary has to know to work on this schema. [Migrator.Check] lets an older
// binary work on a newer schema exactly as long as that holds, and refuses it from then on.
//
// A migration that has been released never changes.
package schema
