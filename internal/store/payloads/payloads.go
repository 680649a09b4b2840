// Package payloads stores the large payloads that Temporal's histories refer to.
//
//	err := store.Put(ctx, runID, digest, value)
//	value, found, err := store.Get(ctx, runID, digest)
//
// Each value belongs to the run with the history that refers to it, and is identified there by its digest: putting it again
// changes nothing. It is kept as long as its run has a row. [Store.DeleteOrphans] deletes values of runs without a row,
// once they are old enough, because the row of a run may be written after its first value.
//
// The package neither seals values nor compares digests; its callers do.
package payloads

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// MaxBytes is the maximum size of a value: a value of a run at its limit of 16 MiB with its request, or a state that is
// carried over to the next execution in base64, both sealed.
const MaxBytes = 24 << 20

// Store stores payloads. It is safe for concurrent use.
type Store struct{ db *sqldb.DB }

// New returns a store over a database.
func New(db *sqldb.DB) *Store { return &Store{db: db} }

// Put stores a value of a run. A value over [MaxBytes] is refused.
func (s *Store) Put(ctx context.Context, runID, digest string, value []byte) error {
	if len(value) > MaxBytes {
		return fmt.Errorf("keep a payload of run %q: it has %d bytes, more than the limit of %d", runID, len(value), MaxBytes)
	}
	return s.db.Exec(ctx, "keep a payload", func(ctx context.Context, c sqldb.Conn) error {
		_, err := c.ExecContext(ctx, `INSERT INTO payloads (run_id, digest, created_at, value) VALUES ($1, $2, `+s.db.Dialect().Now+`, $3)
ON CONFLICT (run_id, digest) DO NOTHING`, runID, digest, value)
		return err
	})
}

// Get returns a value of a run, and whether there is one.
func (s *Store) Get(ctx context.Context, runID, digest string) (value []byte, found bool, err error) {
	err = s.db.Read(ctx, "read a payload", func(ctx context.Context, c sqldb.Conn) error {
		err := c.QueryRowContext(ctx, `SELECT value FROM payloads WHERE run_id = $1 AND digest = $2`, runID, digest).Scan(&value)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		found = err == nil
		return err
	})
	return value, found, err
}

// Writable returns an error while the database does not accept values: it is unavailable, read-only or locked. It
// writes nothing.
func (s *Store) Writable(ctx context.Context) error {
	return s.db.Exec(ctx, "ask whether payloads can be kept", func(ctx context.Context, c sqldb.Conn) error {
		_, err := c.ExecContext(ctx, `DELETE FROM payloads WHERE run_id = ''`) // no run has this ID, and the statement takes a write lock
		return err
	})
}

// DeleteOrphans checks the payloads of the next limit runs after an ID, and deletes those of runs that have no row and
// a payload older than age. It returns how many it deleted, and the ID to continue after: empty when there are no more.
// Each transaction deletes only a few values, as they may be large.
func (s *Store) DeleteOrphans(ctx context.Context, age time.Duration, after string, limit int) (deleted int64, next string, err error) {
	var orphans []string
	err = s.db.Read(ctx, "find payloads without a run", func(ctx context.Context, c sqldb.Conn) error {
		orphans, next = nil, ""
		ids, err := sqlrow.Collect(ctx, c, `SELECT run_id FROM payloads WHERE run_id > $1 GROUP BY run_id ORDER BY run_id`+sqlrow.Limit(limit),
			[]any{after}, sqlrow.ScanText)
		if err != nil {
			return err
		}
		if len(ids) == limit {
			next = ids[len(ids)-1]
		}
		return sqlrow.In(ctx, s.db.Dialect(), ids, []any{age.Microseconds()}, func(ctx context.Context, marks string, args []any) error {
			found, err := sqlrow.Collect(ctx, c, `SELECT DISTINCT p.run_id FROM payloads p WHERE p.created_at < `+s.db.Dialect().Now+` - $1
AND p.run_id IN `+marks+` AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = p.run_id)`, args, sqlrow.ScanText)
			orphans = append(orphans, found...)
			return err
		})
	})
	if err != nil {
		return 0, "", err
	}
	for _, id := range orphans {
		n, err := s.deleteOrphan(ctx, id)
		if deleted += n; err != nil {
			return deleted, "", err
		}
	}
	return deleted, next, nil
}

// deleteOrphan deletes the payloads of a run while it has no row.
func (s *Store) deleteOrphan(ctx context.Context, runID string) (deleted int64, err error) {
	const few = 20
	for n := int64(few); n == few; deleted += n {
		err := s.db.Exec(ctx, "delete payloads without a run", func(ctx context.Context, c sqldb.Conn) error {
			res, err := c.ExecContext(ctx, `DELETE FROM payloads WHERE run_id = $1 AND NOT EXISTS (SELECT 1 FROM runs WHERE id = $1)
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
