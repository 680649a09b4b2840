// Package batches stores batches and their selected runs in the store's database. It implements [batch.Store] and
// [sealed.BatchStore], whose comments define the behaviour; package store opens it:
//
//	s, err := store.Open(ctx, …)
//	b, created, err := s.Batches().StartBatch(ctx, b, ids, entry)
//
// The counts of a batch are columns of its row, written in the transactions that change its items, so that reading them
// is cheap however many runs the batch has. Each change of items locks that row, so that a pause is ordered before or
// after a claim.
//
// Package store supplies the query for the runs that a filter selects, and the changes of workflows. Times are the
// callers'.
package batches

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/sealed"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

// Runs builds the query for the runs that a filter selects, in its order, with these columns.
type Runs func(f run.Filter, columns string) (query string, args []any)

// Workflows changes workflows in transactions of the store.
type Workflows interface {
	// Lock reads a workflow and locks it until the transaction ends.
	Lock(ctx context.Context, c sqldb.Conn, project, name string) (workflow.Workflow, error)
	// SetPaused pauses or unpauses a locked workflow. It returns false, and writes no audit entry, when the workflow is in
	// that state already.
	SetPaused(ctx context.Context, c sqldb.Conn, w workflow.Workflow, paused bool, reason string,
		e audit.Entry) (workflow.Workflow, bool, error)
}

// Store stores batches. It is safe for concurrent use, also by several processes on one Postgres.
type Store struct {
	db        *sqldb.DB
	runs      Runs
	workflows Workflows
}

var (
	_ batch.Store       = (*Store)(nil)
	_ sealed.BatchStore = (*Store)(nil)
)

// New returns a store on an open database. Package store migrates its schema.
func New(db *sqldb.DB, runs Runs, workflows Workflows) *Store {
	return &Store{db: db, runs: runs, workflows: workflows}
}

// Exclusive implements [batch.WorkRows].
func (s *Store) Exclusive(ctx context.Context, name string, fn func(context.Context) error) (ran bool, err error) {
	return s.db.Exclusive(ctx, name, fn)
}

// row is a batch as it is stored.
type row struct {
	batch.Batch

	paused, selected bool
	// at and last are the creation time and ID of the last run that was selected from the filter.
	at   time.Time
	last string
}

func fields(r *row) sqlrow.Fields {
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

// allFields adds the outcomes, which a new row has by default.
func allFields(r *row) sqlrow.Fields {
	return append(fields(r), sqlrow.Col("outcomes", sqlrow.JSONInto(&r.Ended)))
}

func selectBatch() string { return `SELECT ` + sqlrow.Columns(allFields) + ` FROM batches` }

func scanBatch(from sqlrow.Scanner) (r row, err error) {
	err = from.Scan(allFields(&r).Into()...)
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
func (r row) open() bool { return r.EndedAt.IsZero() && !r.paused }

// lock reads a batch of any project and locks it until the transaction ends.
func (s *Store) lock(ctx context.Context, c sqldb.Conn, id string) (row, error) {
	return sqlrow.One(ctx, c, selectBatch()+` WHERE id = $1`+s.db.Dialect().LockRows, []any{id}, scanBatch, func() error {
		return noBatch(id)
	})
}

// find is lock for a batch of one project.
func (s *Store) find(ctx context.Context, c sqldb.Conn, project, id, lock string) (row, error) {
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
func (s *Store) GetBatch(ctx context.Context, project, id string) (batch.Batch, error) {
	var r row
	err := s.db.Read(ctx, "get batch", func(ctx context.Context, c sqldb.Conn) (err error) {
		r, err = s.find(ctx, c, project, id, "")
		return err
	})
	return r.Batch, err
}

// ListBatches implements [batch.Store]. IDs increase with time.
func (s *Store) ListBatches(ctx context.Context, f batch.ListFilter) ([]batch.Batch, error) {
	var w sqlrow.Where
	w.Is("project", "=", f.Project)
	if f.Before != "" {
		w.Is("id", "<", f.Before)
	}
	var statuses []string
	for _, status := range f.Statuses {
		statuses = append(statuses, withStatus(status))
	}
	if len(statuses) > 0 {
		w.Conditions = append(w.Conditions, `(`+strings.Join(statuses, ` OR `)+`)`)
	}
	var list []row
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

// withStatus returns the condition of a status, which [scanBatch] derives from the same columns.
func withStatus(status batch.Status) string {
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

func batchesOf(rows []row) []batch.Batch {
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
func (s *Store) PauseBatch(ctx context.Context, project, id string, paused bool, e audit.Entry) (batch.Batch, error) {
	var r row
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
