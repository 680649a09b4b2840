// Package sqlrow converts values between Go and table columns, and rows between Go and statements, in the same way for
// all tables of the store.
//
//   - Times are stored to the microsecond ([Micros], [TimeInto]), JSON as the text that was given ([Raw], [RawInto]) or
//     made
//     of a value ([AsJSON], [JSONInto]), text as both databases can store it ([Storable] refuses, [Mended] repairs).
//   - [Fields] describe the columns of a row once: for lists of columns, scans, and inserts.
//   - [Collect], [One], [Exists], [Count], [Affected] run a statement and scan what it gives; [Where] collects
//     conditions.
//   - [Chunks], [Tuples], [InsertMany], [UpdateMany] build statements for many rows.
//
// It contains no tables and begins no transaction; its callers use it on a [sqldb.Conn].
package sqlrow
