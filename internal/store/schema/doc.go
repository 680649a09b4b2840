// Package schema migrates a database to the schema that this binary requires, and checks whether it has it.
//
// A migration is one SQL text for both databases, a template with a name for each difference between them. There are no
// down migrations. [Migrator.Up] takes a lock, so that any number of processes may start at once: one migrates and the
// others find the schema migrated. Each migration is one transaction.
//
// # Expand, then contract
//
// Processes of two consecutive releases share a database during a rolling deployment. A migration therefore adds what
// the new release needs in a way that keeps the older one working (new tables, columns with defaults, indices), and
// parts that only the older release needs are removed one release later. Each migration declares its compatibility in
// the table schema_compat: "oldest" is the number of the newest migration that a binary must contain to work on this
// schema. [Migrator.Check] accepts a newer schema as long as that holds, and refuses it from then on.
//
// The SQL of a released migration never changes; a test holds its digests.
package schema
