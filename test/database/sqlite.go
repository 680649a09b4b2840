package database

import (
	"context"
	"database/sql"

	_ "modernc.org/sqlite" // the driver, to lock a file from outside

	"github.com/signalbox-dev/signalbox/test/platform"
)

// LockSQLite takes the write lock of a SQLite file, as a backup or a forgotten shell would, and returns the function
// that releases it.
func LockSQLite(t platform.T, store platform.Store) (unlock func()) {
	t.Helper()
	db, err := sql.Open("sqlite", store.DSN)
	if err != nil {
		t.Fatalf("open %q: %v", store.DSN, err)
	}
	t.Cleanup(func() { _ = db.Close() }) // nothing was written
	db.SetMaxOpenConns(1)
	ctx := context.WithoutCancel(t.Context())
	platform.Eventually(t, startLimit, func() string {
		if _, err := db.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
			return err.Error()
		}
		return ""
	})
	return func() {
		if _, err := db.ExecContext(ctx, "ROLLBACK"); err != nil {
			t.Errorf("unlock %q: %v", store.DSN, err)
		}
	}
}
