package store_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// opener opens one database any number of times.
func opener(o store.Options) storetest.Opener {
	return func(t testing.TB) storetest.Store { return start(t, o) }
}

func start(t testing.TB, o store.Options) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), o)
	require.NoError(t, err)
	ctx := t.Context()
	t.Cleanup(func() { require.NoError(t, s.Stop(context.WithoutCancel(ctx))) })
	require.NoError(t, s.Start(ctx))
	return s
}

func sqlite(t testing.TB) store.Options {
	return store.Options{Driver: store.SQLite, DSN: filepath.Join(t.TempDir(), "signalbox.db"), AutoMigrate: true}
}

func postgres(t testing.TB) store.Options {
	return store.Options{Driver: store.Postgres, DSN: storetest.Postgres(t), AutoMigrate: true, MaxConns: 8}
}

func TestConformanceSQLite(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t testing.TB) storetest.Opener { return opener(sqlite(t)) })
}

func TestConformancePostgres(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t testing.TB) storetest.Opener { return opener(postgres(t)) })
}
