package database

import (
	"context"
	"database/sql"
	"os/exec"
	"path/filepath"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of Postgres, to read and change rows from outside

	"github.com/signalbox-dev/signalbox/test/platform"
)

// HasBackup reports whether the program that backs up a database of this kind is installed.
func HasBackup(driver string) bool {
	if driver != "postgres" {
		return true // SQLite copies itself
	}
	_, err := exec.LookPath("pg_dump")
	return err == nil
}

// BackUp backs up a database as it is at one moment, while servers use it, and returns the file.
func BackUp(t platform.T, store platform.Store) string {
	t.Helper()
	if store.Driver == "sqlite" {
		return CopySQLite(t, store.DSN)
	}
	file := filepath.Join(t.TempDir(), "signalbox.dump")
	out, err := exec.CommandContext(t.Context(), "pg_dump", "--format=custom", "--file="+file, store.DSN).CombinedOutput()
	if err != nil {
		t.Fatalf("pg_dump: %v\n%s", err, out)
	}
	return file
}

// Restore restores a backup of BackUp into a new database.
func Restore(t platform.T, driver, file string) platform.Store {
	t.Helper()
	if driver == "sqlite" {
		return platform.Store{Driver: driver, DSN: CopySQLite(t, file)}
	}
	store := platform.Postgres(t)
	out, err := exec.CommandContext(t.Context(), "pg_restore", "--exit-on-error", "--no-owner", "--dbname="+store.DSN,
		file).CombinedOutput()
	if err != nil {
		t.Fatalf("pg_restore: %v\n%s", err, out)
	}
	return store
}

// CopySQLite copies a SQLite database, of Signalbox or of Temporal, as it is at one moment, and returns the new file.
func CopySQLite(t platform.T, from string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "copy.db")
	Open(t, platform.Store{Driver: "sqlite", DSN: "file:" + from + "?_pragma=busy_timeout(10000)"},
		func(ctx context.Context, db *sql.DB) error {
			_, err := db.ExecContext(ctx, "VACUUM INTO '"+file+"'")
			return err
		})
	return file
}

// Open calls use with a single connection to a database.
func Open(t platform.T, store platform.Store, use func(context.Context, *sql.DB) error) {
	t.Helper()
	db, err := sql.Open(map[string]string{"sqlite": "sqlite", "postgres": "pgx"}[store.Driver], store.DSN)
	if err != nil {
		t.Fatalf("open %q: %v", store.DSN, err)
	}
	db.SetMaxOpenConns(1)
	err = use(t.Context(), db)
	if closing := db.Close(); err == nil {
		err = closing
	}
	if err != nil {
		t.Fatalf("%q: %v", store.DSN, err)
	}
}
