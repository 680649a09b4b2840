package storetest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/store"
)

// SQLite returns the path of a database of the newest schema, for t alone. It is a copy of one that the first test of
// the program created next to the test binary, where `go test` removes it.
func SQLite(t testing.TB) string {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	template := program + ".db"
	lock := flock.New(template + ".lock")
	require.NoError(t, lock.Lock())
	defer func() { require.NoError(t, lock.Unlock()) }()
	if _, err := os.Stat(template); errors.Is(err, fs.ErrNotExist) {
		createTemplate(t, template+".new")
		require.NoError(t, os.Rename(template+".new", template))
	}
	content, err := os.ReadFile(template)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "signalbox.db")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return path
}

// createTemplate creates a database with the schema.
func createTemplate(t testing.TB, path string) {
	t.Helper()
	s, err := store.Open(t.Context(),
		store.Options{Driver: store.SQLite, DSN: path, AutoMigrate: true, CallTimeout: time.Minute})
	require.NoError(t, err)
	startErr := s.Start(t.Context())
	require.NoError(t, s.Stop(context.WithoutCancel(t.Context())))
	require.NoError(t, startErr)
}
