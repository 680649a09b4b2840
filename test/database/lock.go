package database

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// LockPostgres locks every table of a database against reads and writes, as a migration that
// hangs does, and returns the function that releases the locks.
func LockPostgres(t platform.T, store platform.Store) (unlock func()) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	c := Connect(t, store.DSN)
	rows, err := c.Query(ctx, "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public'")
	if err != nil {
		t.Fatalf("list the tables: %v", err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("list the tables: %v", err)
	}
	platform.Eventually(t, startLimit, func() string {
		if err := lockAll(ctx, c.Conn, tables); err != nil {
			return err.Error()
		}
		return ""
	})
	return func() {
		if _, err := c.Exec(ctx, "ROLLBACK"); err != nil {
			t.Errorf("unlock the tables: %v", err)
		}
	}
}

// lockAll locks all tables or none: another transaction may hold one and wait for a second, which would be a deadlock.
func lockAll(ctx context.Context, c *pgx.Conn, tables []string) error {
	if _, err := c.Exec(ctx, "BEGIN"); err != nil {
		return err
	}
	for _, table := range tables {
		if _, err := c.Exec(ctx, "LOCK TABLE "+table+" IN ACCESS EXCLUSIVE MODE"); err != nil {
			_, _ = c.Exec(ctx, "ROLLBACK") // the first error is the one to return
			return err
		}
	}
	return nil
}
