package store

import (
	"context"
	"errors"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/cutover"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/retention"
	"github.com/signalbox-dev/signalbox/internal/run/vault"
	"github.com/signalbox-dev/signalbox/internal/store/awaited"
	"github.com/signalbox-dev/signalbox/internal/store/batches"
	"github.com/signalbox-dev/signalbox/internal/store/events"
	"github.com/signalbox-dev/signalbox/internal/store/listing"
	"github.com/signalbox-dev/signalbox/internal/store/originals"
	"github.com/signalbox-dev/signalbox/internal/store/payloads"
	"github.com/signalbox-dev/signalbox/internal/store/quotas"
	"github.com/signalbox-dev/signalbox/internal/store/repairs"
	keeping "github.com/signalbox-dev/signalbox/internal/store/retention"
	"github.com/signalbox-dev/signalbox/internal/store/schema"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/tokens"
	"github.com/signalbox-dev/signalbox/internal/store/verdicts"
	"github.com/signalbox-dev/signalbox/internal/store/waits"
	"github.com/signalbox-dev/signalbox/internal/worker"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

// The drivers that there are.
const (
	SQLite   = sqldb.SQLite
	Postgres = sqldb.Postgres
)

// Options say where the store is.
type Options struct {
	// Driver is [SQLite] or [Postgres].
	Driver sqldb.Driver
	// DSN is SQLite's file, in a folder that exists, or a Postgres URL.
	DSN string
	// MaxConns limits Postgres' connections and SQLite's readers; 0 means 16 and 4.
	MaxConns int
	// CallTimeout limits each call; 0 means 5 s.
	CallTimeout time.Duration
	// AutoMigrate lets Start bring the schema up; without it Start refuses an older schema.
	AutoMigrate bool
}

// Store is an open store. It is safe for concurrent use, also by several processes on one Postgres.
type Store struct {
	*repairs.Store

	db          *sqldb.DB
	migrator    *schema.Migrator
	autoMigrate bool
	events      *events.Store
	tokens      *tokens.Store
	batches     *batches.Store
	retention   *keeping.Store
	verdicts    *verdicts.Store
	quotas      *quotas.Store
	// placed is told of projects where a run may be admitted; may be nil.
	placed func(project string)
}

var (
	_ vault.Store     = (*Store)(nil)
	_ cutover.Rows    = (*Store)(nil)
	_ workflow.Store  = (*Store)(nil)
	_ worker.Store    = (*Store)(nil)
	_ project.Store   = (*Store)(nil)
	_ audit.Store     = (*Store)(nil)
	_ retention.Store = (*Store)(nil)
)

// Open connects to the database and leaves its schema as it is. A database that does not answer is one error within
// seconds.
func Open(ctx context.Context, o Options) (*Store, error) {
	db, err := sqldb.Open(ctx, sqldb.Options{
		Driver: o.Driver, DSN: o.DSN, MaxConns: o.MaxConns, CallTimeout: o.CallTimeout,
	})
	if err != nil {
		return nil, err
	}
	m, err := schema.New(db)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	inbox := events.New(db)
	return &Store{
		Store: repairs.New(db), db: db, migrator: m, autoMigrate: o.AutoMigrate, events: inbox, tokens: tokens.New(db), batches: batches.New(db, listing.Query), retention: keeping.New(db),
		quotas: quotas.New(db), verdicts: verdicts.New(db, inbox),
	}, nil
}

// Start makes sure that the schema is the one this binary needs: it migrates when that is allowed, and otherwise says
// what to do. Several processes may start at once.
func (s *Store) Start(ctx context.Context) error {
	if s.autoMigrate {
		if _, err := s.migrator.Up(ctx); err != nil {
			return err
		}
	}
	return s.migrator.Check(ctx)
}

// Stop closes all connections when the calls that use them have ended, or leaves them behind when ctx ends first; each
// call ends by its own deadline.
func (s *Store) Stop(ctx context.Context) error {
	closed := make(chan error, 1)
	go func() { closed <- s.db.Close() }()
	select {
	case err := <-closed:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Events is the part of the store that keeps events and what becomes of them.
func (s *Store) Events() *events.Store { return s.events }

// Tokens is the part of the store that keeps the tokens of the API.
func (s *Store) Tokens() *tokens.Store { return s.tokens }

// Batches is the part of the store that keeps what is done to many runs at once.
func (s *Store) Batches() *batches.Store { return s.batches }

// Payloads returns the part of the store that keeps large payloads of Temporal.
func (s *Store) Payloads() *payloads.Store { return payloads.New(s.db) }

// Originals returns what marks in runs stand for.
func (s *Store) Originals() *originals.Store { return originals.New(s.db) }

// DeleteOrphans implements [retention.Store].
func (s *Store) DeleteOrphans(ctx context.Context, age time.Duration, after string, limit int) (int64, string, error) {
	return s.Payloads().DeleteOrphans(ctx, age, after, limit)
}

// DeletePage implements [retention.Store].
func (s *Store) DeletePage(ctx context.Context, kind retention.Kind, cut retention.Cut, after string, limit int) (retention.Page, error) {
	return s.retention.DeletePage(ctx, kind, cut, after, limit)
}

// Quotas is the part of the store that keeps quotas, and gives out what they allow.
func (s *Store) Quotas() *quotas.Store { return s.quotas }

// OnPlaces has f told of each project in which a run may be admitted: one has ended or was taken away, or has begun to wait for a
// place. It is told after the commit, in the process that wrote it, and must not block. It is set once, before Start.
func (s *Store) OnPlaces(f func(project string)) { s.placed = f }

// place tells of a project where a run may be admitted.
func (s *Store) place(project string) {
	if s.placed != nil {
		s.placed(project)
	}
}

// Verdicts is the part of the store that keeps why runs are stuck.
func (s *Store) Verdicts() *verdicts.Store { return s.verdicts }

// Awaited is the part of the store that keeps which runs other runs wait for.
func (s *Store) Awaited() *awaited.Store { return awaited.New(s.db) }

// Waits is the part of the store that reads what runs wait for.
func (s *Store) Waits() *waits.Store { return waits.New(s.db) }

// Place names the database for people: the file, or host and database; never a password.
func (s *Store) Place() string { return s.db.Place() }

// Ping tells whether the database answers.
func (s *Store) Ping(ctx context.Context) error { return s.db.Ping(ctx) }

// Exclusive runs fn while no other process, and no one else in this one, runs work of the same name on this database; it
// returns false at once when somebody does. fn's context ends when the lock is lost with its connection. Behind
// a pooler that shares sessions between transactions (PgBouncer's transaction mode) it holds nothing: use session mode.
func (s *Store) Exclusive(ctx context.Context, name string, fn func(context.Context) error) (ran bool, err error) {
	return s.db.Exclusive(ctx, name, fn)
}

// Migrate brings the schema up and returns the migrations that were applied.
func (s *Store) Migrate(ctx context.Context) ([]schema.Migration, error) { return s.migrator.Up(ctx) }

// Status lists the migrations that this binary knows and when the database got them.
func (s *Store) Status(ctx context.Context) ([]schema.Migration, error) {
	return s.migrator.Status(ctx)
}
