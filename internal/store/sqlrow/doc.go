// Package sqlrow carries values between Go and the columns of tables, and rows between Go and statements, in one way for all
// tables of the store.
//
//   - Times are kept to the microsecond ([Micros], [TimeInto]), JSON as the text that was given ([Raw], [RawInto]) or made
//     of a value ([AsJSON], [JSONInto]), text as what both databases can keep ([Storable] refuses, [Mended] repairs).
//   - [Collect], [One], [Exists], [Count], [Affected] run a statement and scan what it gives; [Where] collects conditions.
//   - [Chunks], [Tuples], [InsertMany], [UpdateMany] are for statements over many rows at once.
//
// It knows no table and begins no transaction; that is for those who use it on a [sqldb.Conn].
package sqlrow
