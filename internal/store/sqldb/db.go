package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/backoff"
	"github.com/signalbox-dev/signalbox/internal/loop"
)

// Driver is a kind of database.
type Driver string

// The supported databases.
const (
	SQLite   Driver = "sqlite"
	Postgres Driver = "postgres"
)

const (
	defaultCallTimeout = 5 * time.Second
	// listShare is the part of the connections, one in listShare, that may read lists at the same time.
	listShare   = 2
	openTimeout = 5 * time.Second
	// A transaction is repeated after a random part of firstRetry, doubled up to longestRetry, maxAttempts times in all.
	firstRetry, longestRetry = 10 * time.Millisecond, 160 * time.Millisecond
	maxAttempts              = 6
)

// Options configure a database.
type Options struct {
	// Driver is [SQLite] or [Postgres].
	Driver Driver
	// DSN is the path of SQLite's file, or a Postgres URL or keyword string. The folder of the file must exist.
	// A path may carry parameters of the driver after a "?", such as _pragma=cache_size(-65536).
	DSN string
	// MaxConns limits Postgres' connections and SQLite's readers; 0 means 16 and 4.
	MaxConns int
	// CallTimeout limits each call, including the wait for a connection; 0 means 5 s.
	CallTimeout time.Duration
	// Unchecked opens no connection before the first call, for a database that may be unavailable.
	Unchecked bool
	// Called is called at the end of each call, for metrics; may be nil.
	Called func(ctx context.Context, operation Operation, failure Failure, took time.Duration)
}

// Operation is a kind of call.
type Operation string

// The kinds of calls. OpList is a [DB.ReadList], without its wait for other lists.
const (
	OpPing  Operation = "ping"
	OpRead  Operation = "read"
	OpList  Operation = "list"
	OpExec  Operation = "exec"
	OpWrite Operation = "write"
	OpLock  Operation = "lock"
)

// Operations lists the kinds of calls.
func Operations() []Operation { return []Operation{OpPing, OpRead, OpList, OpExec, OpWrite, OpLock} }

// Failure is why a call failed, for metrics; empty if the database did its part, whatever the result means to the
// caller.
type Failure string

// The failures.
const (
	FailedUnavailable Failure = "unavailable"
	FailedCanceled    Failure = "canceled"
	FailedOther       Failure = "other"
)

// Conn runs statements, on its own or within a transaction.
type Conn interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Work uses a connection. It may run more than once, so it must not keep state between runs.
type Work func(ctx context.Context, c Conn) error

// DB is an open database. It is safe for concurrent use.
type DB struct {
	dialect  Dialect
	write    *sql.DB
	read     *sql.DB
	timeout  time.Duration
	called   func(ctx context.Context, operation Operation, failure Failure, took time.Duration)
	location location
	// lists holds a token for each [DB.ReadList] in progress.
	lists chan struct{}
	// dial opens a connection outside the pools, to hold locks with; nil if held has them.
	dial func(context.Context) (*pgx.Conn, error)
	// spare is room for one connection that holds no lock.
	spare chan lockConn
	held  sync.Map // names of the locks that work in this process holds
}

// Open connects, unless Unchecked is set. If the database does not answer within 5 s, or CallTimeout if that is longer,
// it returns an error.
func Open(ctx context.Context, o Options) (*DB, error) {
	d := &DB{timeout: o.CallTimeout, called: o.Called}
	if d.timeout <= 0 {
		d.timeout = defaultCallTimeout
	}
	var err error
	switch o.Driver {
	case SQLite:
		err = d.openSQLite(o)
	case Postgres:
		err = d.openPostgres(o)
	default:
		err = fmt.Errorf("open store: unknown driver %q: use %q or %q", o.Driver, SQLite, Postgres)
	}
	if err != nil {
		return nil, err
	}
	d.lists = make(chan struct{}, max(1, d.read.Stats().MaxOpenConnections/listShare))
	if o.Unchecked {
		return d, nil
	}
	ctx, cancel := context.WithTimeout(ctx, max(openTimeout, d.timeout))
	defer cancel()
	if err := d.checkConnections(ctx); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// checkConnections opens one connection of each pool, so that a wrong address, password or file is reported at once.
func (d *DB) checkConnections(ctx context.Context) error {
	pools := []*sql.DB{d.write}
	if d.read != d.write {
		pools = append(pools, d.read)
	}
	for _, p := range pools {
		if err := p.PingContext(ctx); err != nil {
			return d.explainOpen(err)
		}
	}
	return nil
}

// Close closes all connections after the calls that use them have ended.
func (d *DB) Close() error {
	d.closeSpare()
	err := d.write.Close()
	if d.read != d.write {
		err = errors.Join(err, d.read.Close())
	}
	if err != nil {
		return fmt.Errorf("close store %s: %w", d.location, err)
	}
	return nil
}

// Dialect returns the differences between the databases' SQL.
func (d *DB) Dialect() Dialect { return d.dialect }

// Location returns the location of the database for messages, with names in quotes: the file, or host and database;
// never a password.
func (d *DB) Location() string { return d.location.String() }

// PlainLocation returns the location without quotes, to show it by itself.
func (d *DB) PlainLocation() string { return d.location.plain() }

// File returns the path of SQLite's file; empty for Postgres.
func (d *DB) File() string { return d.location.file }

// Writer returns the pool that writes, for tools that need a [sql.DB].
func (d *DB) Writer() *sql.DB { return d.write }

// Ping returns an error if the database does not answer.
func (d *DB) Ping(ctx context.Context) error {
	return d.call(ctx, OpPing, "ping", func(ctx context.Context) error {
		var one int
		return d.read.QueryRowContext(ctx, "SELECT 1").Scan(&one)
	})
}

// Read runs queries; each reads the data that was committed when it started. doing describes the work in errors.
func (d *DB) Read(ctx context.Context, doing string, w Work) error {
	return d.call(ctx, OpRead, doing, func(ctx context.Context) error { return w(ctx, d.read) })
}

// ReadList is Read for queries that return many rows or large ones. They may use at most half of the connections at a
// time, so that exports and watches leave connections for starts of runs. The wait for a connection is not part of the
// call's timeout: a caller that waits is slowed down, until its context ends, and does not fail.
func (d *DB) ReadList(ctx context.Context, doing string, w Work) error {
	select {
	case d.lists <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("%s: waiting for other lists to be read: %w", doing, context.Cause(ctx))
	}
	defer func() { <-d.lists }()
	return d.call(ctx, OpList, doing, func(ctx context.Context) error { return w(ctx, d.read) })
}

// Exec runs one statement that writes, as its own transaction.
func (d *DB) Exec(ctx context.Context, doing string, w Work) error {
	return d.call(ctx, OpExec, doing, func(ctx context.Context) error {
		return d.retry(ctx, func() error { return w(ctx, d.write) })
	})
}

// Write runs w in a transaction, and again from the start if the database aborted it in favour of another one. Nothing
// is committed unless w returns nil.
func (d *DB) Write(ctx context.Context, doing string, w Work) error {
	return d.call(ctx, OpWrite, doing, func(ctx context.Context) error {
		return d.retry(ctx, func() error { return d.transact(ctx, w) })
	})
}

func (d *DB) transact(ctx context.Context, w Work) error {
	tx, err := d.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := w(ctx, tx); err != nil {
		// The first error is the cause; a transaction that cannot be rolled back ends with its connection.
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}

// retry repeats f while the database requests that, with increasing random delays so that two conflicting transactions
// separate.
func (d *DB) retry(ctx context.Context, f func() error) error {
	for attempt := 1; ; attempt++ {
		err := f()
		if err == nil || attempt == maxAttempts || !retryable(err) {
			return err
		}
		if !loop.Sleep(ctx, rand.N( //nolint:gosec // spreads load, guards nothing
			backoff.Delay(firstRetry, longestRetry, attempt))) {
			return err
		}
	}
}

func (d *DB) call(ctx context.Context, operation Operation, doing string, f func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	begun := time.Now()
	err := f(limited)
	if err != nil {
		err = d.Explain(ctx, doing, err)
	}
	if d.called != nil {
		d.called(ctx, operation, failure(ctx, err), time.Since(begun))
	}
	return err
}

// failure classifies the explained error of a call.
func failure(caller context.Context, err error) Failure {
	failure, explained := apperror.From(err)
	switch {
	case err == nil:
		return ""
	case explained && failure.Class == apperror.Unavailable:
		return FailedUnavailable
	case explained:
		return "" // the work's own result, such as a row that does not exist
	case caller.Err() != nil:
		return FailedCanceled
	}
	return FailedOther
}

// Pools returns the statistics of the pools of connections by name. It does not block.
func (d *DB) Pools() map[string]sql.DBStats {
	if d.read == d.write {
		return map[string]sql.DBStats{"all": d.write.Stats()}
	}
	return map[string]sql.DBStats{"read": d.read.Stats(), "write": d.write.Stats()}
}
