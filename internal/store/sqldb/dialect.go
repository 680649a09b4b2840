package sqldb

import "strconv"

// Dialect is the differences between the databases' SQL. All other text is the same for both.
type Dialect struct {
	// Driver is the kind of database.
	Driver Driver
	// LockRows ends a SELECT of rows that the transaction is going to change. SQLite has one writer at a time, and does
	// not need it.
	LockRows string
	// ShareRows ends a SELECT of rows that must not change until the transaction ends; other transactions may do the
	// same concurrently.
	ShareRows string
	// WritesInQueries reports whether a WITH clause may contain statements that write.
	WritesInQueries bool
	// Mark returns the n-th placeholder, from 1, of a statement that uses each once and in order. SQLite treats "$1" as
	// a name, which it looks up in a list: with the thousands of placeholders of a bulk statement that is most of the
	// work.
	Mark func(n int) string
	// TableExists takes a table's name as $1 and counts the tables of that name.
	TableExists string
	// JSONRow is the function that makes a JSON array of its arguments, JSONList the aggregate that makes one of all rows:
	// NULL or empty without rows.
	JSONRow, JSONList string
	// JSONLength returns the number of elements of the JSON array in a text column; NULL for NULL.
	JSONLength func(column string) string
	// Version returns the version of the database program, Size the size of the database in bytes.
	Version, Size string
	// Now is the database's own time in microseconds, the same for all processes whatever their clocks are.
	Now string
}

func sqliteDialect() Dialect {
	return Dialect{
		Driver:      SQLite,
		Mark:        func(int) string { return "?" },
		TableExists: `SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = $1`,
		JSONRow:     `json_array`,
		JSONList:    `json_group_array`,
		JSONLength:  func(column string) string { return `json_array_length(` + column + `)` },
		Version:     `SELECT sqlite_version()`,
		Size:        `SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()`,
		Now:         `CAST(unixepoch('now', 'subsec') * 1000000 AS INTEGER)`,
	}
}

func postgresDialect() Dialect {
	return Dialect{
		Driver: Postgres, WritesInQueries: true,
		LockRows:    " FOR UPDATE",
		ShareRows:   " FOR SHARE",
		Mark:        func(n int) string { return "$" + strconv.Itoa(n) },
		TableExists: `SELECT COUNT(*) WHERE to_regclass($1) IS NOT NULL`,
		JSONRow:     `json_build_array`,
		JSONList:    `json_agg`,
		JSONLength:  func(column string) string { return `json_array_length(CAST(` + column + ` AS JSON))` },
		Version:     `SHOW server_version`,
		Size:        `SELECT pg_database_size(current_database())`,
		Now:         `CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)`,
	}
}
