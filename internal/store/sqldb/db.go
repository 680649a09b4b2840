package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
)

// Driver names a kind of database.
type Driver string

// The databases that there are.
const (
	SQLite   Driver = "sqlite"
	Postgres Driver = "postgres"
)

const (
	defaultCallTimeout = 5 * time.Second
	// listShare is the part of the connections, one in so many, that may read lists at a time.
	listShare   = 2
	openTimeout = 5 * time.Second
	maxAttempts = 6
)

// Options say which database to open.
type Options struct {
	// Driver is [SQLite] or [Postgres].
	Driver Driver
	// DSN is the path of SQLite's file, or a Postgres URL or keyword string. The folder of the file must exist.
	// A path may carry parameters of the driver after a "?", such as _pragma=cache_size(-65536).
	DSN string
	// MaxConns limits Postgres' connections and SQLite's readers; 0 means 16 and 4.
	MaxConns int
	// CallTimeout limits each call, waiting for a connection included; 0 means 5 s.
	CallTimeout time.Duration
}

// Conn runs statements, on its own or within a transaction.
type Conn interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Work is what is done with a connection. It may run more than once, so it starts from nothing each time.
type Work func(ctx context.Context, c Conn) error

// DB is an open database. It is safe for concurrent use.
type DB struct {
	dialect Dialect
	write   *sql.DB
	read    *sql.DB
	timeout time.Duration
	place   place
	// lists holds a token for each [DB.ReadList] in progress.
	lists chan struct{}
	// dial makes a connection of its own beside the pools, to hold locks with; nil where keys do.
	dial func(context.Context) (*pgx.Conn, error)
	keys keys
}

// Open connects. A database that does not answer is an error within 5 s, or within the time of a call when that is longer.
func Open(ctx context.Context, o Options) (*DB, error) {
	d := &DB{timeout: o.CallTimeout}
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
	ctx, cancel := context.WithTimeout(ctx, max(openTimeout, d.timeout))
	defer cancel()
	if err := d.firstContact(ctx); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// firstContact makes one connection of each pool, so that a wrong address, password or file shows now.
func (d *DB) firstContact(ctx context.Context) error {
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

// Close closes all connections, waiting for the calls that use them.
func (d *DB) Close() error {
	err := d.write.Close()
	if d.read != d.write {
		err = errors.Join(err, d.read.Close())
	}
	if err != nil {
		return fmt.Errorf("close store %s: %w", d.place, err)
	}
	return nil
}

// Dialect returns what differs between the databases' SQL.
func (d *DB) Dialect() Dialect { return d.dialect }

// Place names the database for people: the file, or host and database; never a password.
func (d *DB) Place() string { return d.place.String() }

// File is the path of SQLite's file; empty for Postgres.
func (d *DB) File() string { return d.place.file }

// Writer returns the pool that writes, for tools that need a [sql.DB].
func (d *DB) Writer() *sql.DB { return d.write }

// Ping tells whether the database answers.
func (d *DB) Ping(ctx context.Context) error {
	return d.call(ctx, "ping", func(ctx context.Context) error {
		var one int
		return d.read.QueryRowContext(ctx, "SELECT 1").Scan(&one)
	})
}

// Read runs queries, each seeing what was committed when it started. doing names the work in errors.
func (d *DB) Read(ctx context.Context, doing string, w Work) error {
	return d.call(ctx, doing, func(ctx context.Context) error { return w(ctx, d.read) })
}

// ReadList is Read for queries that return many rows or large ones. At most half of the connections do that at a time, so that those who
// export or watch keep no connection from those who start runs. Waiting for a turn does not count as time of the call: a
// caller that waits is slowed down, until its context ends, and does not fail.
func (d *DB) ReadList(ctx context.Context, doing string, w Work) error {
	select {
	case d.lists <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("%s: waiting for other lists to be read: %w", doing, context.Cause(ctx))
	}
	defer func() { <-d.lists }()
	return d.Read(ctx, doing, w)
}

// Exec runs one statement that writes, as its own transaction.
func (d *DB) Exec(ctx context.Context, doing string, w Work) error {
	return d.call(ctx, doing, func(ctx context.Context) error {
		return d.again(ctx, func() error { return w(ctx, d.write) })
	})
}

// Write runs w in a transaction, again from the start when the database gave it up to let another one through. Nothing
// is kept unless w returns nil.
func (d *DB) Write(ctx context.Context, doing string, w Work) error {
	return d.call(ctx, doing, func(ctx context.Context) error {
		return d.again(ctx, func() error { return d.transact(ctx, w) })
	})
}

func (d *DB) transact(ctx context.Context, w Work) error {
	tx, err := d.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := w(ctx, tx); err != nil {
		// The first error says what is wrong; a transaction that cannot be rolled back ends with its connection.
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}

// again repeats f while the database asks for that, with growing random pauses so that two rivals part.
func (d *DB) again(ctx context.Context, f func() error) error {
	for attempt := 1; ; attempt++ {
		err := f()
		if err == nil || attempt == maxAttempts || !retryable(err) {
			return err
		}
		//nolint:gosec // The pause needs no secrecy.
		pause := time.NewTimer(time.Duration(rand.Int64N(int64(5*time.Millisecond)<<attempt) + 1))
		select {
		case <-ctx.Done():
			pause.Stop()
			return err
		case <-pause.C:
		}
	}
}

func (d *DB) call(ctx context.Context, doing string, f func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	err := f(limited)
	if err == nil {
		return nil
	}
	return d.Explain(ctx, doing, err)
}
