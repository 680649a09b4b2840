package schema_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/store/schema"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is the timeout of calls on busy machines: the tests check schemas, not times.
const patience = time.Minute

// onBoth runs a test on an empty database of each kind.
func onBoth(t *testing.T, test func(t *testing.T, o sqldb.Options)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, sqldb.Options{Driver: sqldb.SQLite, DSN: filepath.Join(t.TempDir(), "store.db"), CallTimeout: patience})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, sqldb.Options{Driver: sqldb.Postgres, DSN: storetest.Postgres(t), MaxConns: 2, CallTimeout: patience})
	})
}

func open(t *testing.T, o sqldb.Options) (*sqldb.DB, *schema.Migrator) {
	t.Helper()
	db, err := sqldb.Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	m, err := schema.New(db)
	require.NoError(t, err)
	return db, m
}

// openSteps opens a database with three small migrations in the place of those of this binary.
func openSteps(t *testing.T, o sqldb.Options) (*sqldb.DB, *schema.Migrator) {
	t.Helper()
	db, _ := open(t, o)
	m, err := schema.NewFrom(db, fstest.MapFS{
		"0001_projects.sql": step(1, "CREATE TABLE schema_compat (version BIGINT NOT NULL PRIMARY KEY, oldest BIGINT NOT "+
			"NULL);\nCREATE TABLE projects (name {{.Key}} NOT NULL PRIMARY KEY);"),
		"0002_runs.sql": step(2,
			"CREATE TABLE runs (id {{.Key}} NOT NULL PRIMARY KEY);\nCREATE TABLE steps (run_id {{.Key}} NOT NULL);"),
		"0004_labels.sql": step(4, "ALTER TABLE runs ADD COLUMN label TEXT NOT NULL DEFAULT '';"),
	})
	require.NoError(t, err)
	return db, m
}

// step is the file of a migration.
func step(version int, statements string) *fstest.MapFile {
	return &fstest.MapFile{Data: fmt.Appendf(nil,
		"-- +goose Up\n%s\nINSERT INTO schema_compat (version, oldest) VALUES (%d, 1);\n", statements, version)}
}

func exec(t *testing.T, db *sqldb.DB, query string) {
	t.Helper()
	require.NoError(t, db.Write(t.Context(), "test", func(ctx context.Context, c sqldb.Conn) error {
		_, err := c.ExecContext(ctx, query)
		return err
	}), query)
}

// text reads one value as text.
func text(t *testing.T, db *sqldb.DB, query string) (v string) {
	t.Helper()
	require.NoError(t, db.Read(t.Context(), "test", func(ctx context.Context, c sqldb.Conn) error {
		return c.QueryRowContext(ctx, query).Scan(&v)
	}), query)
	return v
}

func TestViewsOfRemovedProjectsAreDeleted(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o sqldb.Options) {
		db, m := open(t, o)
		_, err := m.Up(t.Context())
		require.NoError(t, err)
		for _, query := range []string{
			`INSERT INTO projects (name, description, created_at) VALUES ('shop', '', 1)`,
			`INSERT INTO views (id, project, owner_kind, owner_name, updater_kind, updater_name, name, query, shared, revision, updated_at)
			VALUES ('v', 'shop', 'local', 'ada', 'local', 'ada', 'mine', '{}', FALSE, 1, 1)`,
		} {
			exec(t, db, query)
		}
		require.Equal(t, "1", text(t, db, `SELECT COUNT(*) FROM views`))
		exec(t, db, `DELETE FROM projects WHERE name = 'shop'`)
		require.Equal(t, "0", text(t, db, `SELECT COUNT(*) FROM views`))
	})
}

// TestUpgrade migrates from each earlier schema, with data in it, to the newest.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o sqldb.Options) {
		_, m := open(t, o)
		for _, from := range versions(t, m) {
			t.Run(fmt.Sprintf("from %d", from), func(t *testing.T) {
				own := o
				if own.Driver == sqldb.SQLite {
					own.DSN = filepath.Join(t.TempDir(), "store.db")
				} else {
					own.DSN = storetest.Postgres(t)
				}
				upgrade(t, own, from)
			})
		}
	})
}

// versions lists the migrations of this binary.
func versions(t *testing.T, m *schema.Migrator) (all []int64) {
	t.Helper()
	list, err := m.Status(t.Context())
	require.NoError(t, err)
	for _, k := range list {
		all = append(all, k.Version)
	}
	return all
}

func upgrade(t *testing.T, o sqldb.Options, from int64) {
	db, m := open(t, o)
	applied, err := m.UpTo(t.Context(), from)
	require.NoError(t, err)
	done := slices.DeleteFunc(versions(t, m), func(v int64) bool { return v > from })
	require.Len(t, applied, len(done))
	for _, v := range done {
		require.NotEmpty(t, fixtures()[v].insert, "migration %d has no data to upgrade: add a fixture", v)
		for _, statement := range fixtures()[v].insert {
			exec(t, db, statement)
		}
	}
	applied, err = m.Up(t.Context())
	require.NoError(t, err)
	require.Len(t, applied, len(versions(t, m))-len(done))
	require.NoError(t, m.Check(t.Context()))
	for _, v := range done {
		for query, want := range fixtures()[v].want {
			require.Equal(t, want, text(t, db, query), query)
		}
	}
	require.Equal(t, "default", text(t, db, `SELECT name FROM projects WHERE name = 'default'`))
}

func TestStatus(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o sqldb.Options) {
		_, m := openSteps(t, o)
		list, err := m.Status(t.Context())
		require.NoError(t, err)
		require.Equal(t, m.Latest(), list[len(list)-1].Version)
		before := int64(0)
		for _, k := range list {
			require.Greater(t, k.Version, before, "numbers grow")
			before = k.Version
			require.NotEmpty(t, k.Name)
			require.Zero(t, k.AppliedAt)
		}
		begin := time.Now().Add(-2 * time.Second)
		applied, err := m.UpTo(t.Context(), 2)
		require.NoError(t, err)
		require.Equal(t, list[:2], applied)
		list, err = m.Status(t.Context())
		require.NoError(t, err)
		require.WithinRange(t, list[1].AppliedAt, begin, time.Now().Add(2*time.Second))
		require.Equal(t, time.UTC, list[1].AppliedAt.Location())
		require.Zero(t, list[2].AppliedAt)
	})
}

func TestCheckRefusesOlder(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o sqldb.Options) {
		db, m := openSteps(t, o)
		requireRefused(t, m.Check(t.Context()), db.Location(), "no schema yet", "signalbox migrate up")
		_, err := m.UpTo(t.Context(), 2)
		require.NoError(t, err)
		requireRefused(t, m.Check(t.Context()), "schema 2", fmt.Sprint(m.Latest()), "signalbox migrate up", "auto_migrate")
		_, err = m.Up(t.Context())
		require.NoError(t, err)
		require.NoError(t, m.Check(t.Context()))
	})
}

// TestNewer has a database that a later release has migrated: that release declares whether this one may use it.
func TestNewer(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o sqldb.Options) {
		db, m := open(t, o)
		_, err := m.Up(t.Context())
		require.NoError(t, err)
		exec(t, db, `INSERT INTO signalbox_schema (version_id, is_applied) VALUES (99, TRUE)`)
		refused := func() {
			t.Helper()
			requireRefused(t, m.Check(t.Context()), db.Location(), "schema 99", fmt.Sprintf("up to %d", m.Latest()),
				"newer release")
			_, err := m.Up(t.Context())
			requireRefused(t, err, "schema 99")
		}
		refused()
		exec(t, db, fmt.Sprintf(`INSERT INTO schema_compat (version, oldest) VALUES (99, %d)`, m.Latest()+1))
		refused()
		exec(t, db, fmt.Sprintf(`UPDATE schema_compat SET oldest = %d WHERE version = 99`, m.Latest()))
		require.NoError(t, m.Check(t.Context()))
		applied, err := m.Up(t.Context())
		require.NoError(t, err)
		require.Empty(t, applied)
	})
}

func requireRefused(t *testing.T, err error, parts ...string) {
	t.Helper()
	f, ok := apperror.From(err)
	require.True(t, ok, "not a fault: %v", err)
	require.Equal(t, apperror.Refused, f.Class)
	require.Equal(t, schema.WrongSchema, f.Reason)
	for _, part := range parts {
		require.Contains(t, f.Message, part)
	}
}

// TestManyAtOnce migrates one empty database from many connections at once, as processes that start together do.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o sqldb.Options) {
		const rivals = 5
		var wg sync.WaitGroup
		errs := make([]error, rivals)
		applied := make([][]schema.Migration, rivals)
		db, m := openSteps(t, o)
		for i := range rivals {
			_, own := openSteps(t, o)
			wg.Go(func() { applied[i], errs[i] = own.Up(t.Context()) })
		}
		wg.Wait()
		total := 0
		for i := range rivals {
			require.NoError(t, errs[i])
			total += len(applied[i])
		}
		require.Equal(t, len(versions(t, m)), total, "each migration was applied once")
		require.Equal(t, fmt.Sprint(total), text(t, db, `SELECT COUNT(*) FROM schema_compat`), "each says what it allows")
	})
}

func TestFailedMigrationIsRolledBack(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o sqldb.Options) {
		db, m := openSteps(t, o)
		exec(t, db, `CREATE TABLE steps (someone_elses INTEGER)`)
		_, err := m.Up(t.Context())
		require.ErrorContains(t, err, "migration 2")
		require.ErrorContains(t, err, "steps")
		requireRefused(t, m.Check(t.Context()), "schema 1")
		for name, want := range map[string]string{"projects": "1", "runs": "0"} {
			require.NoError(t, db.Read(t.Context(), "test", func(ctx context.Context, c sqldb.Conn) error {
				var n string
				err := c.QueryRowContext(ctx, db.Dialect().TableExists, name).Scan(&n)
				require.Equal(t, want, n, name)
				return err
			}))
		}
		// After a correction, it continues from there.
		exec(t, db, `DROP TABLE steps`)
		applied, err := m.Up(t.Context())
		require.NoError(t, err)
		require.Len(t, applied, len(versions(t, m))-1)
	})
}

func TestAuditIsUnchanged(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o sqldb.Options) {
		db, m := open(t, o)
		_, err := m.Up(t.Context())
		require.NoError(t, err)
		exec(t, db, `INSERT INTO audit (at, actor_kind, actor_name, action, project, subject, reason) VALUES (6, 'local', 'ada', 'run.start', 'shop', 'r1', 'because')`)
		err = db.Write(t.Context(), "forge", func(ctx context.Context, c sqldb.Conn) error {
			_, err := c.ExecContext(ctx, `UPDATE audit SET reason = 'another'`)
			return err
		})
		require.ErrorContains(t, err, "audit entries cannot be changed")
		require.Equal(t, "because", text(t, db, `SELECT reason FROM audit WHERE subject = 'r1'`))
	})
}
