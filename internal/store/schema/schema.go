package schema

import (
	"bytes"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/gofrs/flock"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

//go:embed migrations/*.sql
var releases embed.FS

// table is goose's table of applied migrations.
const table = "signalbox_schema"

const (
	// lockID is the advisory lock in Postgres: any number that nothing else uses in this database.
	lockID = 0x5167_6e61_6c62
	// lockSeconds is the maximum wait for another process's migration.
	lockSeconds = 300
	lockPoll    = 50 * time.Millisecond
)

// WrongSchema is the reason of the errors that refuse a database.
const WrongSchema = "STORE_SCHEMA"

// Migration is one step of the schema.
type Migration struct {
	Version int64
	Name    string
	// AppliedAt is zero for a migration that is not applied yet.
	AppliedAt time.Time
}

// differences is what the text of a migration names because the databases write it differently.
type differences struct {
	// Postgres is for statements that only one of the two has.
	Postgres bool
	// Key is the type of text that is compared byte by byte, as in keys and in the order of lists.
	Key string
	// Bytes is the type of binary values.
	Bytes string
	// WithoutRowID ends a table that is stored in the order of its key.
	WithoutRowID string
}

// steps is the folder of the migrations, with the texts for one database in the place of their templates.
type steps struct {
	fs.FS // the folder of the templates

	texts map[string][]byte // by file name
}

// Open implements [fs.FS].
func (s steps) Open(name string) (fs.File, error) {
	f, err := s.FS.Open(name)
	if text, ok := s.texts[name]; ok && err == nil {
		return step{f, bytes.NewReader(text)}, nil
	}
	return f, err
}

// step is a file of steps. Its size is that of the template.
type step struct {
	fs.File

	text *bytes.Reader
}

// Read implements [fs.File].
func (s step) Read(p []byte) (int, error) { return s.text.Read(p) }

// render returns the SQL of each migration in a folder for one database, by file name.
func render(folder fs.FS, driver sqldb.Driver) (map[string][]byte, error) {
	words := differences{Key: "TEXT", Bytes: "BLOB", WithoutRowID: " WITHOUT ROWID"}
	if driver == sqldb.Postgres {
		words = differences{Postgres: true, Key: `TEXT COLLATE "C"`, Bytes: "BYTEA"}
	}
	templates, err := template.ParseFS(folder, "*.sql")
	if err != nil {
		return nil, err
	}
	texts := map[string][]byte{}
	for _, t := range templates.Templates() {
		var text bytes.Buffer
		if err := t.Execute(&text, words); err != nil {
			return nil, err
		}
		texts[t.Name()] = text.Bytes()
	}
	return texts, nil
}

// Migrator applies the migrations of this binary to one database.
type Migrator struct {
	db         *sqldb.DB
	folder     fs.FS
	migrations []Migration
}

// New returns a migrator for an open database.
func New(db *sqldb.DB) (*Migrator, error) {
	folder, err := fs.Sub(releases, "migrations")
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	return newMigrator(db, folder)
}

// newMigrator returns a migrator with the migrations in a folder.
func newMigrator(db *sqldb.DB, folder fs.FS) (*Migrator, error) {
	entries, err := fs.ReadDir(folder, ".") // in order of their names
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	m := &Migrator{db: db, folder: folder}
	for _, e := range entries {
		number, name, _ := strings.Cut(strings.TrimSuffix(e.Name(), ".sql"), "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read migrations: %q has no number: %w", e.Name(), err)
		}
		m.migrations = append(m.migrations, Migration{Version: version, Name: name})
	}
	return m, nil
}

// Latest returns the version of the schema that this binary requires.
func (m *Migrator) Latest() int64 { return m.migrations[len(m.migrations)-1].Version }

// Version returns the version of the schema; 0 if there is none yet.
func (m *Migrator) Version(ctx context.Context) (int64, error) {
	s, err := m.state(ctx)
	return s.version, err
}

// Up applies the missing migrations and returns them. A schema that is newer than this binary supports is refused.
func (m *Migrator) Up(ctx context.Context) ([]Migration, error) { return m.UpTo(ctx, m.Latest()) }

// UpTo is Up to a version that is not the latest one.
func (m *Migrator) UpTo(ctx context.Context, version int64) ([]Migration, error) {
	state, err := m.state(ctx)
	if err != nil {
		return nil, err
	}
	if err := m.refuseNewer(state); err != nil {
		return nil, err
	}
	if state.version >= version {
		// Most starts: there is nothing to do, so do not wait for the lock.
		return nil, nil
	}
	unlock, err := m.lockFile(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	provider, err := m.provider()
	if err != nil {
		return nil, err
	}
	done, err := provider.UpTo(ctx, version)
	if why, missing := sqldb.MissingRight(err); missing {
		return nil, apperror.New(apperror.Refused, WrongSchema,
			"migrate store %s: %s: run `signalbox migrate up` as the owner of the tables, and set store.auto_migrate to false "+
				"for other users",
			m.db.Location(), why).WithCause(err)
	}
	if err != nil {
		return nil, m.db.Explain(ctx, "migrate store", cause(err))
	}
	applied := make([]Migration, 0, len(done))
	for _, r := range done {
		at := slices.IndexFunc(m.migrations, func(k Migration) bool { return k.Version == r.Source.Version })
		applied = append(applied, m.migrations[at])
	}
	return applied, nil
}

// cause removes goose's wrapping, which repeats each path and lists the successful migrations.
func cause(err error) error {
	var partial *goose.PartialError
	if errors.As(err, &partial) && partial.Failed != nil && partial.Err != nil {
		return fmt.Errorf("migration %d: %w", partial.Failed.Source.Version, partial.Err)
	}
	return err
}

func (m *Migrator) provider() (*goose.Provider, error) {
	dialect, opts := goose.DialectSQLite3, []goose.ProviderOption{
		goose.WithTableName(table), goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()),
	}
	if m.db.Dialect().Driver == sqldb.Postgres {
		session, err := lock.NewPostgresSessionLocker(lock.WithLockID(lockID), lock.WithLockTimeout(1, lockSeconds))
		if err != nil {
			return nil, fmt.Errorf("migrate store: %w", err)
		}
		dialect, opts = goose.DialectPostgres, append(opts, goose.WithSessionLocker(session))
	}
	texts, err := render(m.folder, m.db.Dialect().Driver)
	if err != nil {
		return nil, fmt.Errorf("migrate store: %w", err)
	}
	p, err := goose.NewProvider(dialect, m.db.Writer(), steps{m.folder, texts}, opts...)
	if err != nil {
		return nil, fmt.Errorf("migrate store: %w", err)
	}
	return p, nil
}

// lockFile excludes other processes' migrations in a database without a lock that outlives a transaction.
func (m *Migrator) lockFile(ctx context.Context) (func(), error) {
	if m.db.File() == "" {
		return func() {}, nil
	}
	l := flock.New(m.db.File()+".migrate", flock.SetPermissions(0o600))
	ctx, cancel := context.WithTimeout(ctx, lockSeconds*time.Second)
	defer cancel()
	if _, err := l.TryLockContext(ctx, lockPoll); err != nil {
		return nil, fmt.Errorf("migrate store: lock %q, which another process may hold: %w", l.Path(), err)
	}
	// Closing the file releases the lock even if this returns an error.
	return func() { _ = l.Unlock() }, nil
}

// Status lists this binary's migrations and whether they are applied.
func (m *Migrator) Status(ctx context.Context) ([]Migration, error) {
	s, err := m.state(ctx)
	if err != nil {
		return nil, err
	}
	list := slices.Clone(m.migrations)
	for i := range list {
		list[i].AppliedAt = s.applied[list[i].Version]
	}
	return list, nil
}

// Check returns an error if this binary cannot work on the database's current schema.
func (m *Migrator) Check(ctx context.Context) error {
	s, err := m.state(ctx)
	if err != nil {
		return err
	}
	if s.version < m.Latest() {
		have := fmt.Sprintf("has schema %d", s.version)
		if s.version == 0 {
			have = "has no schema yet"
		}
		return apperror.New(apperror.Refused, WrongSchema,
			"store %s %s and this binary needs %d: run `signalbox migrate up`, or set store.auto_migrate",
			m.db.Location(), have, m.Latest())
	}
	return m.refuseNewer(s)
}

func (m *Migrator) refuseNewer(s state) error {
	if s.version <= m.Latest() || (s.oldest > 0 && s.oldest <= m.Latest()) {
		return nil
	}
	return apperror.New(apperror.Refused, WrongSchema,
		"store %s has schema %d and this binary supports up to %d: it was migrated by a newer release, "+
			"use that one (or restore the backup from before the migration)",
		m.db.Location(), s.version, m.Latest())
}

// state is the database's record of its schema.
type state struct {
	// version is 0 if there is no schema.
	version int64
	// oldest is the compatibility that the newest migration declares; 0 if it declares none.
	oldest  int64
	applied map[int64]time.Time
}

func (m *Migrator) state(ctx context.Context) (state, error) {
	s := state{applied: map[int64]time.Time{}}
	err := m.db.Read(ctx, "read the store's schema", func(ctx context.Context, c sqldb.Conn) error {
		s = state{applied: map[int64]time.Time{}}
		exists, err := m.has(ctx, c, table)
		if err != nil || !exists {
			return err
		}
		if err := s.readApplied(ctx, c); err != nil || s.version == 0 {
			return err
		}
		if exists, err = m.has(ctx, c, "schema_compat"); err != nil || !exists {
			return err
		}
		err = c.QueryRowContext(ctx, `SELECT oldest FROM schema_compat WHERE version = $1`, s.version).Scan(&s.oldest)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return s, err
}

func (s *state) readApplied(ctx context.Context, c sqldb.Conn) (err error) {
	rows, err := c.QueryContext(ctx, `SELECT version_id, tstamp FROM `+table+` WHERE version_id > 0`)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var version int64
		var at time.Time
		if err := rows.Scan(&version, &at); err != nil {
			return err
		}
		s.applied[version] = at.UTC()
		s.version = max(s.version, version)
	}
	return rows.Err()
}

func (m *Migrator) has(ctx context.Context, c sqldb.Conn, name string) (bool, error) {
	var n int
	err := c.QueryRowContext(ctx, m.db.Dialect().TableExists, name).Scan(&n)
	return n > 0, err
}
