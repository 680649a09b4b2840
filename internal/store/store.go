package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/groupcommit"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/retention"
	"github.com/signalbox-dev/signalbox/internal/sealed"
	"github.com/signalbox-dev/signalbox/internal/store/activity"
	"github.com/signalbox-dev/signalbox/internal/store/events"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/runrow"
	"github.com/signalbox-dev/signalbox/internal/store/schema"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
	"github.com/signalbox-dev/signalbox/internal/worker"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

// The supported drivers.
const (
	SQLite   = sqldb.SQLite
	Postgres = sqldb.Postgres
)

// Options configure a store.
type Options struct {
	// Driver is [SQLite] or [Postgres].
	Driver sqldb.Driver
	// DSN is SQLite's file, in a folder that exists, or a Postgres URL.
	DSN string
	// MaxConns limits Postgres' connections and SQLite's readers; 0 means 16 and 4.
	MaxConns int
	// CallTimeout limits each call; 0 means 5 s.
	CallTimeout time.Duration
	// AutoMigrate allows Start to migrate the schema; without it Start refuses an older schema.
	AutoMigrate bool
	// RecordEvery is the interval at which the activity of a project is recorded; 0 means that of [project.RecordEvery].
	RecordEvery time.Duration
	// Called is called at the end of each call to the database, for metrics; may be nil.
	Called func(ctx context.Context, operation sqldb.Operation, failure sqldb.Failure, took time.Duration)
}

// Store is an open store. It is safe for concurrent use, also by several processes on one Postgres.
type Store struct {
	*runrow.Repairs
	*retentionRows

	activity    *activity.Projects
	db          *sqldb.DB
	migrator    *schema.Migrator
	autoMigrate bool
	events      *events.Store
	verdicts    *runrow.VerdictRows
	starts      *groupcommit.Committer[string, *start, *start]
	handOvers   *groupcommit.Committer[struct{}, *handOver, *handOver]
	texts       *texts
	// onAdmissible is called with projects where a run may be admitted; may be nil.
	onAdmissible func(project string)
}

var (
	_ sealed.Store    = (*Store)(nil)
	_ workflow.Store  = (*Store)(nil)
	_ worker.Store    = (*Store)(nil)
	_ project.Store   = (*Store)(nil)
	_ audit.Store     = (*Store)(nil)
	_ retention.Store = (*Store)(nil)
)

// Open connects to the database and does not change its schema. If the database does not answer, it returns an error
// within seconds.
func Open(ctx context.Context, o Options) (*Store, error) {
	db, err := sqldb.Open(ctx, sqldb.Options{
		Driver: o.Driver, DSN: o.DSN, MaxConns: o.MaxConns, CallTimeout: o.CallTimeout, Called: o.Called,
	})
	if err != nil {
		return nil, err
	}
	m, err := schema.New(db)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	active := activity.New(db, cmp.Or(o.RecordEvery, project.RecordEvery(0)))
	inbox := events.New(db, active.Record)
	s := &Store{
		Repairs: runrow.NewRepairs(db), retentionRows: &retentionRows{db}, db: db, migrator: m, autoMigrate: o.AutoMigrate,
		activity: active, events: inbox, verdicts: runrow.NewVerdictRows(db, inbox), texts: newTexts(db.Dialect()),
	}
	s.starts = groupcommit.New(s.commitStarts, groupcommit.Options[string, *start]{MaxGroup: maxStarts})
	s.handOvers = groupcommit.New(s.commitHandOvers, groupcommit.Options[struct{}, *handOver]{MaxGroup: maxHandOvers})
	return s, nil
}

// texts are statements whose texts are built once.
type texts struct {
	// run is the columns of a run.
	run    string
	starts *sqlrow.Statement[*start]
	// handOvers marks runs as handed over.
	handOvers *sqlrow.Statement[*handOver]
	// labels, terms and entries write the labels, terms and audit entries of new runs where starts does not.
	labels  *sqlrow.Statement[runrow.Label]
	terms   *sqlrow.Statement[runrow.Term]
	entries *sqlrow.Statement[*start]
	// steps writes the steps that are newer than the stored ones, states and moved the rows of runs with and without a
	// new state.
	steps         *sqlrow.Statement[newStep]
	states, moved *sqlrow.Statement[outcome]
}

func newTexts(d sqldb.Dialect) *texts {
	nothing := func(sqlrow.Fields) string { return "" }
	return &texts{
		run: sqlrow.Columns(runFields), starts: startsStatement(d), handOvers: handOversStatement(d),
		labels: sqlrow.InsertStatement(d, "run_labels", runrow.Label.Fields, nothing),
		terms: sqlrow.InsertStatement(d, "run_terms", runrow.Term.Fields, func(sqlrow.Fields) string {
			return " ON CONFLICT (run_id, term) DO NOTHING" // those of a lost row that was adopted again are there
		}),
		entries: sqlrow.InsertStatement(d, "audit", func(one *start) sqlrow.Fields { return ledger.Fields(&one.entry) },
			nothing),
		steps: sqlrow.InsertStatement(d, "steps", newStep.fields, func(columns sqlrow.Fields) string {
			return columns.ReplaceAll("run_id, number") +
				` WHERE steps.position < excluded.position RETURNING run_id, number`
		}),
		states: sqlrow.UpdateStatement(d, "runs", 1, outcome.stateFields),
		moved:  sqlrow.UpdateStatement(d, "runs", 1, outcome.movedFields),
	}
}

// Start ensures that the schema is the one this binary needs: it migrates if that is allowed, and otherwise returns an
// error with the command to run. Several processes may start at once.
func (s *Store) Start(ctx context.Context) error {
	if s.autoMigrate {
		if _, err := s.migrator.Up(ctx); err != nil {
			return err
		}
	}
	return s.migrator.Check(ctx)
}

// Stop closes all connections once the calls that use them have ended. If ctx ends first, it returns without waiting;
// each call ends by its own deadline.
func (s *Store) Stop(ctx context.Context) error {
	closed := make(chan error, 1)
	go func() {
		s.starts.Close()
		s.handOvers.Close()
		closed <- s.db.Close()
	}()
	select {
	case err := <-closed:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Pools returns the statistics of the pools of connections by name. It does not block.
func (s *Store) Pools() map[string]sql.DBStats { return s.db.Pools() }

// Activity returns the part of the store for the activity of projects.
func (s *Store) Activity() *activity.Projects { return s.activity }

// Events returns the part of the store for events and deliveries.
func (s *Store) Events() *events.Store { return s.events }

// Tokens returns the part of the store for API tokens.
func (s *Store) Tokens() *Tokens { return &Tokens{s.db} }

// Sessions returns the part of the store for sessions of browsers.
func (s *Store) Sessions() *Sessions { return &Sessions{s.db} }

// DeleteSessions implements [retention.Store].
func (s *Store) DeleteSessions(ctx context.Context, before time.Time, limit int) (int64, error) {
	return s.Sessions().DeleteSessions(ctx, before, limit)
}

// Annotations returns the part of the store for outages and other annotations of charts.
func (s *Store) Annotations() *Annotations { return &Annotations{s.db} }

// DeleteOutages implements [retention.Store].
func (s *Store) DeleteOutages(ctx context.Context, before time.Time, limit int) (int64, error) {
	return s.Annotations().DeleteOutages(ctx, before, limit)
}

// Batches returns the part of the store for operations on many runs.
func (s *Store) Batches() *Batches { return &Batches{s.db} }

// Payloads returns the table of large payloads in this database.
func (s *Store) Payloads() *Payloads {
	return &Payloads{db: s.db, guard: unlessRunExists, name: "the database",
		ready: func(context.Context) error { return nil }}
}

// Originals returns the part of the store for the original values of placeholders in runs.
func (s *Store) Originals() *runrow.Originals { return runrow.NewOriginals(s.db) }

// RunsWithoutRow implements [retention.Store].
func (s *Store) RunsWithoutRow(ctx context.Context, ids []string) (without []string, err error) {
	err = s.db.Read(ctx, "find runs without a row", func(ctx context.Context, c sqldb.Conn) error {
		rows := map[string]bool{}
		err := sqlrow.In(ctx, s.db.Dialect(), ids, nil, func(ctx context.Context, marks string, args []any) error {
			found, err := sqlrow.Collect(ctx, c, `SELECT id FROM runs WHERE id IN `+marks, args, sqlrow.ScanText)
			for _, id := range found {
				rows[id] = true
			}
			return err
		})
		without = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return rows[id] })
		return err
	})
	return without, err
}

// Quotas returns the part of the store that stores quotas and grants runs and steps.
func (s *Store) Quotas() *Quotas { return &Quotas{s.db} }

// OnAdmissible sets a callback that is called with each project in which a run may be admitted: a run has ended or was
// removed, or has begun to wait for a slot. It is called after the commit, in the process that wrote it, and must not
// block. It must be set once, before Start.
func (s *Store) OnAdmissible(f func(project string)) { s.onAdmissible = f }

// notifyAdmissible calls the callback of OnAdmissible.
func (s *Store) notifyAdmissible(project string) {
	if s.onAdmissible != nil {
		s.onAdmissible(project)
	}
}

// Database returns the database, for a package that writes rows which no part of the store writes.
func (s *Store) Database() *sqldb.DB { return s.db }

// Verdicts returns the part of the store for the reasons why runs are stuck.
func (s *Store) Verdicts() *runrow.VerdictRows { return s.verdicts }

// Views returns the part of the store for saved views.
func (s *Store) Views() *Views { return &Views{s.db} }

// Webhooks returns the part of the store for webhooks and their deliveries.
func (s *Store) Webhooks() *Webhooks { return &Webhooks{s.db, s.events} }

// Outbox returns the part of the store for events that are committed with what they report.
func (s *Store) Outbox() *events.Outbox { return s.events.Outbox() }

// DeleteWebhookDeliveries implements [retention.Store].
func (s *Store) DeleteWebhookDeliveries(ctx context.Context, before time.Time, limit int) (int64, error) {
	return s.Webhooks().DeleteDeliveries(ctx, before, limit)
}

// Problems returns the part of the store that finds and stores problems.
func (s *Store) Problems() *Problems { return &Problems{s.db} }

// Awaited returns the part of the store for the runs that other runs wait for.
func (s *Store) Awaited() *runrow.Awaited { return runrow.NewAwaited(s.db) }

// Waits returns the part of the store that reads what runs wait for.
func (s *Store) Waits() *runrow.Waits { return runrow.NewWaits(s.db) }

// Search returns the part of the store that finds things by texts.
func (s *Store) Search() *Search { return &Search{s.db} }

// Statistics returns the part of the store that reads the recent runs of workflows.
func (s *Store) Statistics() *runrow.Statistics { return runrow.NewStatistics(s.db) }

// Location returns the location of the database for messages: the file, or host and database; never a password.
func (s *Store) Location() string { return s.db.Location() }

// Ping returns an error if the database does not answer.
func (s *Store) Ping(ctx context.Context) error { return s.db.Ping(ctx) }

// Exclusive runs fn while no other process or goroutine runs work of the same name on this database; if one does, it
// returns false at once. fn's context ends when the lock is lost with its connection. Behind a pooler that shares
// sessions between transactions (PgBouncer's transaction mode) there is no exclusion: use session mode.
func (s *Store) Exclusive(ctx context.Context, name string, fn func(context.Context) error) (ran bool, err error) {
	return s.db.Exclusive(ctx, name, fn)
}

// Migrate applies the missing migrations and returns them.
func (s *Store) Migrate(ctx context.Context) ([]schema.Migration, error) { return s.migrator.Up(ctx) }

// Status lists the migrations of this binary and when each was applied to the database.
func (s *Store) Status(ctx context.Context) ([]schema.Migration, error) {
	return s.migrator.Status(ctx)
}
