package sqldb

import "strconv"

// Dialect is what differs between the databases' SQL. Whatever is not here is the same text for both.
type Dialect struct {
	// Driver is the kind of database.
	Driver Driver
	// LockRows ends a SELECT whose rows the transaction is going to change. SQLite has one writer at a time, and needs
	// no such thing.
	LockRows string
	// ShareRows ends a SELECT of rows that must stay as they are until the transaction ends; others may do the same at once.
	ShareRows string
	// Mark is the n-th placeholder, from 1, of a statement that uses each once and in order. SQLite takes "$1" for a
	// name, which it looks up in a list: with the thousands of a bulk statement that is most of the work.
	Mark func(n int) string
	// TableExists takes a table's name as $1 and counts the tables of that name.
	TableExists string
	// Now is the database's own time in microseconds, which is one for all processes whatever their clocks say.
	Now string
}

func sqliteDialect() Dialect {
	return Dialect{
		Driver:      SQLite,
		Mark:        func(int) string { return "?" },
		TableExists: `SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = $1`,
		Now:         `CAST(unixepoch('now', 'subsec') * 1000000 AS INTEGER)`,
	}
}

func postgresDialect() Dialect {
	return Dialect{
		Driver:      Postgres,
		LockRows:    " FOR UPDATE",
		ShareRows:   " FOR SHARE",
		Mark:        func(n int) string { return "$" + strconv.Itoa(n) },
		TableExists: `SELECT COUNT(*) WHERE to_regclass($1) IS NOT NULL`,
		Now:         `CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)`,
	}
}
