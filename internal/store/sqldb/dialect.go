package sqldb

// Dialect is what differs between the databases' SQL. Whatever is not here is the same text for both.
type Dialect struct {
	// Driver is the kind of database.
	Driver Driver
	// LockRows ends a SELECT whose rows the transaction is going to change. SQLite has one writer at a time, and needs
	// no such thing.
	LockRows string
	// TableExists takes a table's name as $1 and counts the tables of that name.
	TableExists string
}

func sqliteDialect() Dialect {
	return Dialect{
		Driver:      SQLite,
		TableExists: `SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = $1`,
	}
}

func postgresDialect() Dialect {
	return Dialect{
		Driver:      Postgres,
		LockRows:    " FOR UPDATE",
		TableExists: `SELECT COUNT(*) WHERE to_regclass($1) IS NOT NULL`,
	}
}
