package store

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/sealed"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// Batches stores batches and their selected runs. It implements [batch.Store] and [sealed.BatchStore], and is safe for
// concurrent use.
//
// The counts of a batch are columns of its row, written in the transactions that change its items, so that reading them
// is cheap however many runs the batch has. Each change of items locks that row, so that a pause is ordered before or
// after a claim. Times are the callers'.
type Batches struct{ db *sqldb.DB }

var (
	_ batch.Store       = (*Batches)(nil)
	_ sealed.BatchStore = (*Batches)(nil)
)

// Exclusive implements [batch.WorkRows].
func (s *Batches) Exclusive(ctx context.Context, name string, fn func(context.Context) error) (ran bool, err error) {
	return s.db.Exclusive(ctx, name, fn)
}

// batchRow is a batch as it is stored.
type batchRow struct {
	batch.Batch

	paused, selected bool
	// at and last are the creation time and ID of the last run that was selected from the filter.
	at   time.Time
	last string
}

func batchFields(r *batchRow) sqlrow.Fields {
	return sqlrow.Row(
		"id", &r.ID, "project", &r.Project, "action", &r.Action, "reason", &r.Reason, "rate", &r.Rate,
		"version", &r.Version, "total", &r.Total, "succeeded", &r.Succeeded, "refused", &r.Refused, "failed", &r.Failed,
		"waiting", &r.Waiting, "actor_kind", &r.Actor.Kind, "actor_name", &r.Actor.Name, "request_id", &r.RequestID,
		"fingerprint", &r.Fingerprint, "created_at", sqlrow.TimeInto(&r.CreatedAt),
		"ended_at", sqlrow.TimeInto(&r.EndedAt), "filter", sqlrow.JSONInto(&r.Filter), "paused", &r.paused,
		"selected", &r.selected, "selected_at", sqlrow.TimeInto(&r.at), "selected_run", &r.last,
		"runs_ended_at", sqlrow.TimeInto(&r.RunsEndedAt),
	)
}

// allBatchFields adds the outcomes, which a new row has by default.
func allBatchFields(r *batchRow) sqlrow.Fields {
	return append(batchFields(r), sqlrow.Col("outcomes", sqlrow.JSONInto(&r.Ended)))
}

func selectBatch() string { return `SELECT ` + sqlrow.Columns(allBatchFields) + ` FROM batches` }

func scanBatch(from sqlrow.Scanner) (r batchRow, err error) {
	err = from.Scan(allBatchFields(&r).Into()...)
	if len(r.Ended) == 0 {
		r.Ended = nil
	}
	switch {
	case !r.EndedAt.IsZero() && r.Action == batch.Replay && r.RunsEndedAt.IsZero():
		r.Status = batch.RunsOpen
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

// open reports whether items may be processed.
func (r batchRow) open() bool { return r.EndedAt.IsZero() && !r.paused }

// lock reads a batch of any project and locks it until the transaction ends.
func (s *Batches) lock(ctx context.Context, c sqldb.Conn, id string) (batchRow, error) {
	return sqlrow.One(ctx, c, selectBatch()+` WHERE id = $1`+s.db.Dialect().LockRows, []any{id}, scanBatch, func() error {
		return noBatch(id)
	})
}

// find is lock for a batch of one project.
func (s *Batches) find(ctx context.Context, c sqldb.Conn, project, id, lock string) (batchRow, error) {
	return sqlrow.One(ctx, c, selectBatch()+` WHERE id = $1 AND project = $2`+lock, []any{id, project}, scanBatch,
		func() error {
			if err := ledger.NeedProject(ctx, c, project); err != nil {
				return err
			}
			return noBatch(id)
		})
}

func noBatch(id string) error {
	return apperror.New(apperror.NotFound, apperror.BatchNotFound,
		"batch %q does not exist: `signalbox batch list` shows those that do", id)
}

// GetBatch implements [batch.Store].
func (s *Batches) GetBatch(ctx context.Context, project, id string) (batch.Batch, error) {
	var r batchRow
	err := s.db.Read(ctx, "get batch", func(ctx context.Context, c sqldb.Conn) (err error) {
		r, err = s.find(ctx, c, project, id, "")
		return err
	})
	return r.Batch, err
}

// ListBatches implements [batch.Store]. IDs increase with time.
func (s *Batches) ListBatches(ctx context.Context, f batch.ListFilter) ([]batch.Batch, error) {
	var w sqlrow.Where
	w.Is("project", "=", f.Project)
	if f.Before != "" {
		w.Is("id", "<", f.Before)
	}
	var statuses []string
	for _, status := range f.Statuses {
		statuses = append(statuses, batchesWithStatus(status))
	}
	if len(statuses) > 0 {
		w.Conditions = append(w.Conditions, `(`+strings.Join(statuses, ` OR `)+`)`)
	}
	var list []batchRow
	err := s.db.Read(ctx, "list batches", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c, selectBatch()+w.String()+` ORDER BY id DESC`+sqlrow.Limit(f.Limit), w.Args,
			scanBatch)
		if err == nil && len(list) == 0 {
			err = ledger.NeedProject(ctx, c, f.Project)
		}
		return err
	})
	return batchesOf(list), err
}

// batchesWithStatus returns the condition of a status, which [scanBatch] derives from the same columns.
func batchesWithStatus(status batch.Status) string {
	switch status {
	case batch.Completed:
		return `ended_at IS NOT NULL AND (action <> 'replay' OR runs_ended_at IS NOT NULL)`
	case batch.RunsOpen:
		return `ended_at IS NOT NULL AND action = 'replay' AND runs_ended_at IS NULL`
	case batch.Paused:
		return `ended_at IS NULL AND paused`
	case batch.Selecting:
		return `ended_at IS NULL AND NOT paused AND NOT selected`
	case batch.Running:
		return `ended_at IS NULL AND NOT paused AND selected`
	}
	return `FALSE`
}

func batchesOf(rows []batchRow) []batch.Batch {
	list := make([]batch.Batch, len(rows))
	for i, r := range rows {
		list[i] = r.Batch
	}
	return list
}

// ListBatchItems implements [batch.Store].
func (s *Batches) ListBatchItems(ctx context.Context, f batch.ItemFilter) (list []batch.Item, err error) {
	var w sqlrow.Where
	w.Is("batch", "=", f.Batch)
	w.IsText("status", string(f.Status))
	switch f.Outcome {
	case "":
	case batch.RunOpen:
		w.Conditions = append(w.Conditions, `status = 'started' AND outcome = ''`)
	default:
		w.Is("outcome", "=", f.Outcome)
	}
	w.Is("number", ">", f.After)
	err = s.db.Read(ctx, "list batch items", func(ctx context.Context, c sqldb.Conn) error {
		if _, err := s.find(ctx, c, f.Project, f.Batch, ""); err != nil {
			return err
		}
		list, err = sqlrow.Collect(ctx, c, selectItem()+w.String()+` ORDER BY number`+sqlrow.Limit(f.Limit), w.Args, scanItem)
		return err
	})
	return list, err
}

func itemFields(i *batch.Item) sqlrow.Fields {
	return sqlrow.Row(
		"number", &i.Number, "run_id", &i.RunID, "status", &i.Status, "begun", &i.Begun,
		"ended_at", sqlrow.TimeInto(&i.EndedAt), "new_run_id", &i.NewRunID, "error", &i.Error, "outcome", &i.Outcome,
	)
}

func selectItem() string { return `SELECT ` + sqlrow.Columns(itemFields) + ` FROM batch_items` }

func scanItem(from sqlrow.Scanner) (i batch.Item, err error) {
	err = from.Scan(itemFields(&i).Into()...)
	if i.Status == batch.Started {
		i.Outcome = cmp.Or(i.Outcome, batch.RunOpen)
	}
	return i, err
}

// PauseBatch implements [batch.Store].
func (s *Batches) PauseBatch(ctx context.Context, project, id string, paused bool, e audit.Entry) (batch.Batch, error) {
	var r batchRow
	err := s.db.Write(ctx, "pause batch", func(ctx context.Context, c sqldb.Conn) (err error) {
		if r, err = s.find(ctx, c, project, id, s.db.Dialect().LockRows); err != nil || r.EndedAt.IsZero() &&
			r.paused == paused {
			return err
		}
		if !r.EndedAt.IsZero() {
			return apperror.New(apperror.Refused, apperror.BatchEnded, "batch %q has ended; there is nothing to pause or resume",
				id)
		}
		if _, err := c.ExecContext(ctx, `UPDATE batches SET paused = $2, waiting = '' WHERE id = $1`, id,
			paused); err != nil {
			return err
		}
		if r, err = s.find(ctx, c, project, id, ""); err != nil {
			return err
		}
		return ledger.Add(ctx, c, e)
	})
	return r.Batch, err
}
