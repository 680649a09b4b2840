package database

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// LockPostgres takes a lock on every table of a database that keeps all others from reading and writing, as a migration that
// hangs does, and returns how to let it go.
func LockPostgres(t platform.T, store platform.Store) (unlock func()) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	c, err := pgx.Connect(ctx, store.DSN)
	if err != nil {
		t.Fatalf("connect to Postgres: %v", err)
	}
	t.Cleanup(func() { _ = c.Close(ctx) }) // what it held is let go with it
	rows, err := c.Query(ctx, "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public'")
	if err != nil {
		t.Fatalf("list the tables: %v", err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("list the tables: %v", err)
	}
	platform.Eventually(t, startLimit, func() string {
		if err := lockAll(ctx, c, tables); err != nil {
			return err.Error()
		}
		return ""
	})
	return func() {
		if _, err := c.Exec(ctx, "ROLLBACK"); err != nil {
			t.Errorf("let the tables go: %v", err)
		}
	}
}

// lockAll locks the tables or none: another transaction may hold one, wait for a second, and so be in a deadlock with us.
func lockAll(ctx context.Context, c *pgx.Conn, tables []string) error {
	if _, err := c.Exec(ctx, "BEGIN"); err != nil {
		return err
	}
	for _, table := range tables {
		if _, err := c.Exec(ctx, "LOCK TABLE "+table+" IN ACCESS EXCLUSIVE MODE"); err != nil {
			_, _ = c.Exec(ctx, "ROLLBACK") // the first error is the one to tell
			return err
		}
	}
	return nil
}
