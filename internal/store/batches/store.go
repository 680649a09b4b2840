// Package batches keeps batches and the runs that they mean, in the store's database. It implements [batch.Store] and
// [vault.BatchStore], whose comments are the contract; package store opens it:
//
//	s, err := store.Open(ctx, …)
//	b, created, err := s.Batches().StartBatch(ctx, b, ids, entry)
//
// The counts of a batch are columns of its row, written in the transactions that change its items: reading them costs nothing
// however many runs are meant. Whoever changes items holds that row, so that a pause is before a claim or after it.
//
// Which runs a filter selects is for package store to say, which hands the query over. Times are the callers'.
package batches

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/vault"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// Runs is the query for the runs that a filter selects, in its order, with these columns.
type Runs func(f run.Filter, columns string) (query string, args []any)

// Store keeps batches. It is safe for concurrent use, also by several processes on one Postgres.
type Store struct {
	db   *sqldb.DB
	runs Runs
}

var (
	_ batch.Store      = (*Store)(nil)
	_ vault.BatchStore = (*Store)(nil)
)

// New returns a store on an open database, whose schema is for package store to bring up.
func New(db *sqldb.DB, runs Runs) *Store { return &Store{db: db, runs: runs} }

// Exclusive implements [batch.WorkRows].
func (s *Store) Exclusive(ctx context.Context, name string, fn func(context.Context) error) (ran bool, err error) {
	return s.db.Exclusive(ctx, name, fn)
}

const selectBatch = `SELECT id, project, action, reason, rate, version, total, succeeded, refused, failed, waiting, actor_kind, actor_name,
request_id, fingerprint, created_at, ended_at, filter, paused, selected, selected_at, selected_run FROM batches`

// row is a batch as it is kept.
type row struct {
	batch.Batch

	paused, selected bool
	// at and last are the run up to which the filter's runs are taken down.
	at   time.Time
	last string
}

func scanBatch(from sqlrow.Scanner) (r row, err error) {
	err = from.Scan(&r.ID, &r.Project, &r.Action, &r.Reason, &r.Rate, &r.Version, &r.Total, &r.Succeeded, &r.Refused, &r.Failed, &r.Waiting,
		&r.Actor.Kind, &r.Actor.Name, &r.RequestID, &r.Fingerprint, sqlrow.TimeInto(&r.CreatedAt), sqlrow.TimeInto(&r.EndedAt),
		sqlrow.JSONInto(&r.Filter), &r.paused, &r.selected, sqlrow.TimeInto(&r.at), &r.last)
	switch {
	case !r.EndedAt.IsZero():
		r.Status = batch.Completed
	case r.paused:
		r.Status = batch.Paused
	case !r.selected:
		r.Status = batch.Selecting
	default:
		r.Status = batch.Running
	}
	return r, err
}

// open tells whether items may be worked.
func (r row) open() bool { return r.EndedAt.IsZero() && !r.paused }

// lock reads a batch of any project and holds it until the transaction ends.
func (s *Store) lock(ctx context.Context, c sqldb.Conn, id string) (row, error) {
	return sqlrow.One(ctx, c, selectBatch+` WHERE id = $1`+s.db.Dialect().LockRows, []any{id}, scanBatch, func() error { return noBatch(id) })
}

// find is lock for one of a project.
func (s *Store) find(ctx context.Context, c sqldb.Conn, project, id, lock string) (row, error) {
	return sqlrow.One(ctx, c, selectBatch+` WHERE id = $1 AND project = $2`+lock, []any{id, project}, scanBatch, func() error {
		if err := ledger.NeedProject(ctx, c, project); err != nil {
			return err
		}
		return noBatch(id)
	})
}

func noBatch(id string) error {
	return fault.New(fault.NotFound, fault.BatchNotFound, "batch %q does not exist: `signalbox batch list` shows those that do", id)
}

// GetBatch implements [batch.Store].
func (s *Store) GetBatch(ctx context.Context, project, id string) (batch.Batch, error) {
	var r row
	err := s.db.Read(ctx, "get batch", func(ctx context.Context, c sqldb.Conn) (err error) {
		r, err = s.find(ctx, c, project, id, "")
		return err
	})
	return r.Batch, err
}

// ListBatches implements [batch.Store]. IDs grow with time.
func (s *Store) ListBatches(ctx context.Context, f batch.ListFilter) ([]batch.Batch, error) {
	var w sqlrow.Where
	w.Is("project", "=", f.Project)
	if f.Before != "" {
		w.Is("id", "<", f.Before)
	}
	var list []row
	err := s.db.Read(ctx, "list batches", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c, selectBatch+w.String()+` ORDER BY id DESC`+sqlrow.Limit(f.Limit), w.Args, scanBatch)
		if err == nil && len(list) == 0 {
			err = ledger.NeedProject(ctx, c, f.Project)
		}
		return err
	})
	return bare(list), err
}

func bare(rows []row) []batch.Batch {
	list := make([]batch.Batch, len(rows))
	for i, r := range rows {
		list[i] = r.Batch
	}
	return list
}

// ListBatchItems implements [batch.Store].
func (s *Store) ListBatchItems(ctx context.Context, f batch.ItemFilter) (list []batch.Item, err error) {
	var w sqlrow.Where
	w.Is("batch", "=", f.Batch)
	w.IsText("status", string(f.Status))
	w.Is("number", ">", f.After)
	err = s.db.Read(ctx, "list batch items", func(ctx context.Context, c sqldb.Conn) error {
		if _, err := s.find(ctx, c, f.Project, f.Batch, ""); err != nil {
			return err
		}
		list, err = sqlrow.Collect(ctx, c, selectItem+w.String()+` ORDER BY number`+sqlrow.Limit(f.Limit), w.Args, scanItem)
		return err
	})
	return list, err
}

const selectItem = `SELECT number, run_id, status, begun, ended_at, new_run_id, error FROM batch_items`

func scanItem(from sqlrow.Scanner) (i batch.Item, err error) {
	err = from.Scan(&i.Number, &i.RunID, &i.Status, &i.Begun, sqlrow.TimeInto(&i.EndedAt), &i.NewRunID, &i.Error)
	return i, err
}

// PauseBatch implements [batch.Store].
func (s *Store) PauseBatch(ctx context.Context, project, id string, paused bool, e audit.Entry) (batch.Batch, error) {
	var r row
	err := s.db.Write(ctx, "pause batch", func(ctx context.Context, c sqldb.Conn) (err error) {
		if r, err = s.find(ctx, c, project, id, s.db.Dialect().LockRows); err != nil || r.EndedAt.IsZero() && r.paused == paused {
			return err
		}
		if !r.EndedAt.IsZero() {
			return fault.New(fault.Refused, fault.BatchEnded, "batch %q has ended; there is nothing to pause or to go on with", id)
		}
		if _, err := c.ExecContext(ctx, `UPDATE batches SET paused = $2, waiting = '' WHERE id = $1`, id, paused); err != nil {
			return err
		}
		if r, err = s.find(ctx, c, project, id, ""); err != nil {
			return err
		}
		return ledger.Add(ctx, c, e)
	})
	return r.Batch, err
}

// RetryBatch implements [batch.Store].
func (s *Store) RetryBatch(ctx context.Context, project, id string, e audit.Entry) (batch.Batch, error) {
	var r row
	err := s.db.Write(ctx, "retry batch", func(ctx context.Context, c sqldb.Conn) (err error) {
		if r, err = s.find(ctx, c, project, id, s.db.Dialect().LockRows); err != nil {
			return err
		}
		// Items of a batch that has ended may have been deleted by its retention: those that are left count.
		res, err := c.ExecContext(ctx, `UPDATE batch_items SET status = 'pending', ended_at = NULL, error = ''
WHERE batch = $1 AND status = 'failed'`, id)
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.New(fault.Refused, fault.BatchNothingFailed, "no item of batch %q has failed; there is nothing to do again", id)
		}
		if _, err := c.ExecContext(ctx, `UPDATE batches SET failed = failed - $2, ended_at = NULL WHERE id = $1`, id, n); err != nil {
			return err
		}
		if r, err = s.find(ctx, c, project, id, ""); err != nil {
			return err
		}
		return ledger.Add(ctx, c, e)
	})
	return r.Batch, err
}
