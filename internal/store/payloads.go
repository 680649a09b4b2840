package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/signalbox-dev/signalbox/internal/payload"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// unlessRunExists excludes values of runs that have a row.
const unlessRunExists = ` AND NOT EXISTS (SELECT 1 FROM runs WHERE id = $1)`

// Payloads stores large payloads in a table of a database: of Signalbox's own one, or of another Postgres. It is safe
// for concurrent use. In Signalbox's own database a value of a run that has a row is never deleted, whatever the caller
// believes.
type Payloads struct {
	db *sqldb.DB
	// guard is a condition of deletions of the payloads of run $1.
	guard string
	// ready is called before each operation.
	ready func(ctx context.Context) error
	name  string
}

var _ payload.Store = (*Payloads)(nil)

// String implements [payload.Store].
func (s *Payloads) String() string { return s.name }

// Put implements [payload.Store].
func (s *Payloads) Put(ctx context.Context, runID, digest string, value []byte) error {
	if err := payload.TooLarge(runID, value); err != nil {
		return err
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	return s.db.Exec(ctx, "keep a payload", func(ctx context.Context, c sqldb.Conn) error {
		_, err := c.ExecContext(ctx,
			`INSERT INTO payloads (run_id, digest, created_at, value) VALUES ($1, $2, `+s.db.Dialect().Now+`, $3)
ON CONFLICT (run_id, digest) DO NOTHING`, runID, digest, value)
		return err
	})
}

// Get implements [payload.Store].
func (s *Payloads) Get(ctx context.Context, runID, digest string) (value []byte, found bool, err error) {
	if err := s.ready(ctx); err != nil {
		return nil, false, err
	}
	err = s.db.Read(ctx, "read a payload", func(ctx context.Context, c sqldb.Conn) error {
		err := c.QueryRowContext(ctx, `SELECT value FROM payloads WHERE run_id = $1 AND digest = $2`, runID,
			digest).Scan(&value)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		found = err == nil
		return err
	})
	return value, found, err
}

// Writable implements [payload.Store]: it returns an error while the database is unavailable, read-only or locked. It
// writes nothing.
func (s *Payloads) Writable(ctx context.Context) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	return s.db.Exec(ctx, "ask whether payloads can be kept", func(ctx context.Context, c sqldb.Conn) error {
		// no run has this ID, and the statement takes a write lock
		_, err := c.ExecContext(ctx, `DELETE FROM payloads WHERE run_id = ''`)
		return err
	})
}

// Stale implements [payload.Store]. A position is the ID of a run.
func (s *Payloads) Stale(ctx context.Context, age time.Duration, after string,
	limit int) (runIDs []string, next string, err error) {
	if err := s.ready(ctx); err != nil {
		return nil, "", err
	}
	err = s.db.Read(ctx, "find old payloads", func(ctx context.Context, c sqldb.Conn) error {
		runIDs, next = nil, ""
		ids, err := sqlrow.Collect(ctx, c,
			`SELECT run_id FROM payloads WHERE run_id > $1 GROUP BY run_id ORDER BY run_id`+sqlrow.Limit(limit),
			[]any{after}, sqlrow.ScanText)
		if err != nil {
			return err
		}
		if len(ids) == limit {
			next = ids[len(ids)-1]
		}
		return sqlrow.In(ctx, s.db.Dialect(), ids, []any{age.Microseconds()},
			func(ctx context.Context, marks string, args []any) error {
				found, err := sqlrow.Collect(ctx, c,
					`SELECT DISTINCT run_id FROM payloads WHERE created_at < `+s.db.Dialect().Now+` - $1
AND run_id IN `+marks, args, sqlrow.ScanText)
				runIDs = append(runIDs, found...)
				return err
			})
	})
	return runIDs, next, err
}

// DeleteRun implements [payload.Store]. Each transaction deletes only a few values, as they may be large.
func (s *Payloads) DeleteRun(ctx context.Context, runID string) (deleted int64, err error) {
	if err := s.ready(ctx); err != nil {
		return 0, err
	}
	const few = 20
	for n := int64(few); n == few; deleted += n {
		err := s.db.Exec(ctx, "delete payloads without a run", func(ctx context.Context, c sqldb.Conn) error {
			res, err := c.ExecContext(ctx, `DELETE FROM payloads WHERE run_id = $1`+s.guard+`
AND digest IN (SELECT digest FROM payloads WHERE run_id = $1 ORDER BY digest`+sqlrow.Limit(few)+`)`, runID)
			if err != nil {
				return err
			}
			n, err = res.RowsAffected()
			return err
		})
		if err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}
