package storage

import (
	"context"
	"database/sql"
	"fmt"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of Postgres
	_ "modernc.org/sqlite"             // the driver of SQLite

	"github.com/signalbox-dev/signalbox/test/platform"
)

// Bytes by table. Postgres: with indexes and TOAST. SQLite: the pages of the table and of its indexes.
const (
	postgresBytes = `SELECT relname, pg_total_relation_size(oid) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace`
	sqliteBytes   = `SELECT m.tbl_name, SUM(d.pgsize) FROM dbstat d JOIN sqlite_master m ON m.name = d.name GROUP BY m.tbl_name`
)

// sizeOf reads the size of a database.
func sizeOf(t platform.T, store platform.Store) size {
	t.Helper()
	db := open(t, store)
	defer func() { _ = db.Close() }() // read only
	query := sqliteBytes
	if store.Driver == "postgres" {
		query = postgresBytes
	}
	s, err := read(t.Context(), db, query)
	if err != nil {
		t.Fatalf("read the size of the database: %v", err)
	}
	return s
}

func open(t platform.T, store platform.Store) *sql.DB {
	t.Helper()
	driver, dsn := "sqlite", "file:"+store.DSN+"?_pragma=busy_timeout(10000)"
	if store.Driver == "postgres" {
		driver, dsn = "pgx", store.DSN
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatalf("open the database: %v", err)
	}
	return db
}

func read(ctx context.Context, db *sql.DB, query string) (size, error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err has its error
	s := size{}
	for rows.Next() {
		var name string
		var one table
		if err := rows.Scan(&name, &one.bytes); err != nil {
			return nil, err
		}
		s[name] = one
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	for name, one := range s {
		if err := db.QueryRowContext(ctx, fmt.Sprintf(`SELECT count(*) FROM %q`, name)).Scan(&one.rows); err != nil {
			return nil, fmt.Errorf("count %s: %w", name, err)
		}
		s[name] = one
	}
	return s, nil
}
