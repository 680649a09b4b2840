package store_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is the timeout of calls on busy machines: the suite tests results, not times.
const patience = time.Minute

func start(t testing.TB, o store.Options) *storetest.Plain {
	t.Helper()
	s, err := storetest.Open(t.Context(), t, o)
	require.NoError(t, err)
	ctx := t.Context()
	t.Cleanup(func() { require.NoError(t, s.Stop(context.WithoutCancel(ctx))) })
	require.NoError(t, s.Start(ctx))
	return s
}

// database starts a store and returns a connection of its own to its database, for what the store has no method for.
func database(t *testing.T, o store.Options) *sqldb.DB {
	t.Helper()
	start(t, o)
	db, err := sqldb.Open(t.Context(), sqldb.Options{Driver: o.Driver, DSN: o.DSN, MaxConns: 1, CallTimeout: patience})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func sqlite(t testing.TB) store.Options {
	return store.Options{Driver: store.SQLite, DSN: storetest.SQLite(t), AutoMigrate: true, CallTimeout: patience}
}

func postgres(t testing.TB) store.Options {
	return store.Options{Driver: store.Postgres, DSN: storetest.Postgres(t), AutoMigrate: true, MaxConns: 8,
		CallTimeout: patience}
}

func TestConformanceSQLite(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t testing.TB) storetest.Opener {
		// A SQLite file belongs to one process: all callers get the same store.
		s := start(t, sqlite(t))
		return func(testing.TB) storetest.Store { return s }
	})
}

func TestConformancePostgres(t *testing.T) {
	t.Parallel()
	template := postgres(t)
	s, err := storetest.Open(t.Context(), t, template)
	require.NoError(t, err)
	require.NoError(t, errors.Join(s.Start(t.Context()), s.Stop(t.Context())))
	storetest.Run(t, func(t testing.TB) storetest.Opener {
		o := template
		o.DSN = storetest.PostgresLike(t, template.DSN)
		return func(t testing.TB) storetest.Store { return start(t, o) }
	})
}

func TestLifecycle(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	options := store.Options{Driver: store.SQLite, DSN: filepath.Join(t.TempDir(), "signalbox.db"), CallTimeout: patience}
	s, err := storetest.Open(ctx, t, options)
	require.NoError(t, err)
	require.NoError(t, s.Ping(ctx))
	require.Contains(t, s.Location(), options.DSN)

	require.ErrorContains(t, s.Start(ctx), "signalbox migrate up")
	pending, err := s.Status(ctx)
	require.NoError(t, err)
	applied, err := s.Migrate(ctx)
	require.NoError(t, err)
	require.Equal(t, pending, applied)
	require.NoError(t, s.Start(ctx))
	applied, err = s.Migrate(ctx)
	require.NoError(t, err)
	require.Empty(t, applied)

	// Its data exists after a restart.
	p, err := s.GetProject(ctx, project.Default)
	require.NoError(t, err)
	require.WithinRange(t, p.CreatedAt, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	require.NoError(t, s.Stop(ctx))
	_, err = s.GetProject(ctx, project.Default)
	require.Error(t, err, "a stopped store answers no calls")
	again, err := start(t, options).GetProject(ctx, project.Default)
	require.NoError(t, err)
	require.Equal(t, p, again)
}

func TestOpenErrorsStateTheCause(t *testing.T) {
	t.Parallel()
	_, err := storetest.Open(t.Context(), t, store.Options{Driver: "mysql", DSN: "x"})
	require.ErrorContains(t, err, `"mysql"`)
	_, err = storetest.Open(t.Context(), t, store.Options{Driver: store.Postgres, DSN: "postgres://127.0.0.1:1/runs"})
	require.True(t, apperror.Is(err, apperror.StoreUnavailable), "%v", err)
}

// TestFullDisk fills the disk while runs start: acknowledged runs are stored completely, others not at all.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	options := sqlite(t)
	options.DSN += "?_pragma=max_page_count(300)"
	s := start(t, options)
	var err error
	made := 0
	for made < 10_000 {
		r := benchRun(made)
		if _, _, err = s.InsertRun(t.Context(), r,
			audit.Entry{Time: r.CreatedAt, Action: audit.RunStart, Subject: r.ID}); err != nil {
			break
		}
		made++
	}
	require.True(t, apperror.Is(err, apperror.StoreUnavailable), "%v", err)
	require.ErrorContains(t, err, "disk is full")
	problem, _ := apperror.From(err)
	require.NotContains(t, problem.Message, ".db")
	require.Contains(t, problem.Detail, ".db", "the log does")
	require.Positive(t, made)
	runs, err := s.ListRuns(t.Context(), run.Filter{Project: project.Default, Limit: 20_000})
	require.NoError(t, err)
	entries, err := s.ListAudit(t.Context(), audit.Filter{Limit: 20_000})
	require.NoError(t, err)
	require.Len(t, runs, made)
	require.Len(t, entries, made)
}
