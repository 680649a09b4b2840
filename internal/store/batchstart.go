package store

import (
	"context"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/control"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/runrow"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// StartBatch implements [batch.Store].
func (s *Batches) StartBatch(ctx context.Context, b batch.Batch, ids []string, page int,
	e audit.Entry) (batch.Batch, bool, error) {
	if err := storableBatch(b, ids); err != nil {
		return batch.Batch{}, false, err
	}
	var r batchRow
	var made bool
	err := s.db.Write(ctx, "start batch", func(ctx context.Context, c sqldb.Conn) (err error) {
		if err := ledger.NeedProject(ctx, c, b.Project); err != nil {
			return err
		}
		if made, err = insertBatch(ctx, c, b); err != nil {
			return err
		}
		if !made {
			r, err = sqlrow.One(ctx, c, selectBatch()+batchByRequest, []any{b.Project, b.RequestID}, scanBatch, func() error {
				return noBatch(b.RequestID)
			})
			return err
		}
		if err := s.needTotal(ctx, c, b); err != nil {
			return err
		}
		if r, err = s.addRuns(ctx, c, b, ids, page); err != nil {
			return err
		}
		return ledger.Add(ctx, c, e)
	})
	return r.Batch, made && err == nil, err
}

const batchByRequest = ` WHERE project = $1 AND request_id = $2`

// insertBatch adds the row of a batch without runs. It returns false if the project has a batch with the same request
// ID.
func insertBatch(ctx context.Context, c sqldb.Conn, b batch.Batch) (bool, error) {
	r := batchRow{Batch: batch.Batch{
		ID: b.ID, Project: b.Project, RequestID: b.RequestID, Fingerprint: b.Fingerprint, Action: b.Action,
		Version: b.Version, Reason: b.Reason, Rate: b.Rate,
		Actor: b.Actor, CreatedAt: b.CreatedAt, Filter: b.Filter,
	}, selected: b.Filter == nil}
	return sqlrow.Insert(ctx, c, "batches", batchFields(&r), ` ON CONFLICT (project, request_id) DO NOTHING`)
}

// addRuns adds the selected runs to a batch that was inserted, up to page of those that its filter selects.
func (s *Batches) addRuns(ctx context.Context, c sqldb.Conn, b batch.Batch, ids []string, page int) (batchRow, error) {
	r, err := s.lock(ctx, c, b.ID)
	if err != nil {
		return r, err
	}
	if b.Filter == nil {
		err = s.name(ctx, c, &r, ids)
	} else {
		err = s.selectPage(ctx, c, &r, page)
	}
	return r, err
}

func storableBatch(b batch.Batch, ids []string) error {
	if err := sqlrow.Storable("requestId", b.RequestID); err != nil {
		return err
	}
	if err := sqlrow.Storable("version", b.Version); err != nil {
		return err
	}
	if b.Filter != nil {
		for field, value := range reflect.ValueOf(*b.Filter).Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if text, is := reflect.TypeAssert[string](value); is {
				if err := sqlrow.Storable("filter."+name, text); err != nil {
					return err
				}
			}
		}
	}
	for _, id := range ids {
		if err := sqlrow.Storable("runIds", id); err != nil {
			return err
		}
	}
	return sqlrow.Storable("reason", b.Reason)
}

// name adds the runs that were selected by ID.
func (s *Batches) name(ctx context.Context, c sqldb.Conn, r *batchRow, ids []string) error {
	number := int64(0)
	_, err := sqlrow.InsertMany(ctx, c, s.db.Dialect(), "batch_items", "", ids, func(id string) sqlrow.Fields {
		number++
		return append(itemFields(&batch.Item{Number: number, RunID: id, Status: batch.Pending}), sqlrow.Col("batch", r.ID))
	})
	if err != nil {
		return err
	}
	r.Total = number
	return s.saveSelection(ctx, c, r)
}

// selectPage adds the next page of the runs that the filter selects. A page that is not full is the last one.
func (s *Batches) selectPage(ctx context.Context, c sqldb.Conn, r *batchRow, page int) error {
	f := r.Runs()
	f.Limit = page
	if r.last != "" {
		f.After = &run.Cursor{CreatedAt: r.at, ID: r.last}
	}
	query, args := runrow.Query(f, "id, created_at")
	w := sqlrow.Where{Args: args}
	res, err := c.ExecContext(ctx, `INSERT INTO batch_items (batch, number, run_id, status, begun, new_run_id, error)
SELECT CAST(`+w.Arg(r.ID)+` AS TEXT),
CAST(`+w.Arg(r.Total)+` AS BIGINT) + ROW_NUMBER() OVER (ORDER BY s.created_at, s.id), s.id, 'pending', FALSE, '', ''
FROM (`+query+`) AS s`, w.Args...)
	if err != nil {
		return err
	}
	added, err := res.RowsAffected()
	if err != nil {
		return err
	}
	r.Total += added
	r.selected = added < int64(page)
	if r.selected {
		return s.saveSelection(ctx, c, r)
	}
	err = c.QueryRowContext(ctx,
		`SELECT r.created_at, r.id FROM batch_items i JOIN runs r ON r.id = i.run_id WHERE i.batch = $1 AND i.number = $2`,
		r.ID, r.Total).Scan(sqlrow.TimeInto(&r.at), &r.last)
	if err != nil {
		return err
	}
	return s.saveSelection(ctx, c, r)
}

// saveSelection writes the selected runs. A batch of no runs has ended.
func (s *Batches) saveSelection(ctx context.Context, c sqldb.Conn, r *batchRow) error {
	if r.selected && r.Pending() == 0 {
		r.EndedAt = r.CreatedAt
	}
	_, err := c.ExecContext(ctx,
		`UPDATE batches SET total = $2, selected = $3, selected_at = $4, selected_run = $5, ended_at = $6 WHERE id = $1`,
		r.ID, r.Total, r.selected, sqlrow.Micros(r.at), r.last, sqlrow.Micros(r.EndedAt))
	if err != nil {
		return err
	}
	if *r, err = s.lock(ctx, c, r.ID); err != nil {
		return err
	}
	return s.reportEnd(ctx, c, *r)
}

// SelectMore implements [batch.WorkRows].
func (s *Batches) SelectMore(ctx context.Context, id string, page int) (more bool, err error) {
	err = s.db.Write(ctx, "select runs of a batch", func(ctx context.Context, c sqldb.Conn) error {
		r, err := s.lock(ctx, c, id)
		if err != nil {
			return err
		}
		if r.open() && !r.selected {
			if err := s.selectPage(ctx, c, &r, page); err != nil {
				return err
			}
		}
		more = r.open() && !r.selected
		return nil
	})
	return more && err == nil, err
}

// RunStates implements [batch.Store].
func (s *Batches) RunStates(ctx context.Context, b batch.Batch, ids []string) (states []batch.StateCount, err error) {
	if err := storableBatch(b, ids); err != nil {
		return nil, err
	}
	err = s.db.Read(ctx, "count runs by state", func(ctx context.Context, c sqldb.Conn) error {
		states = nil
		if err := ledger.NeedProject(ctx, c, b.Project); err != nil {
			return err
		}
		if b.Filter != nil {
			states, err = s.selectedStates(ctx, c, b)
			return err
		}
		return sqlrow.In(ctx, s.db.Dialect(), ids, []any{b.Project},
			func(ctx context.Context, marks string, args []any) error {
				part, err := sqlrow.Collect(ctx, c,
					byState+`runs WHERE project = `+s.db.Dialect().Mark(1)+` AND id IN `+marks+stateGroups, args, scanStateCount)
				states = append(states, part...)
				return err
			})
	})
	return states, err
}

// The columns of runs that determine the effect of controls.
const (
	stateColumns = `id, status, queued_reason, waiting_kind, cancel_requested, trigger_kind, interpreter`
	stateGroups  = ` GROUP BY status, queued_reason, waiting_kind, cancel_requested, trigger_kind, interpreter
		ORDER BY 1, 2, 3, 4, 5, 6`
	byState = `SELECT status, queued_reason, waiting_kind, cancel_requested, trigger_kind, interpreter, COUNT(*),
		MIN(id), MAX(id) FROM `
)

func scanStateCount(row sqlrow.Scanner) (s batch.StateCount, err error) {
	var r run.Run
	var first, last string
	err = row.Scan(&r.Status, &r.QueuedReason, &r.WaitingKind, &r.CancelRequested, &r.Trigger, &r.Interpreter, &s.Count,
		&first, &last)
	s.State, s.Sample = control.StateOf(r), slices.Compact([]string{first, last})
	return s, err
}

// selectedStates counts the runs that the filter of a batch selects by state.
func (s *Batches) selectedStates(ctx context.Context, c sqldb.Conn, b batch.Batch) ([]batch.StateCount, error) {
	query, args := s.selected(b, stateColumns)
	return sqlrow.Collect(ctx, c, byState+`(`+query+`) AS s`+stateGroups, args, scanStateCount)
}

// selected returns the query for all runs that the filter of a batch selects.
func (s *Batches) selected(b batch.Batch, columns string) (string, []any) {
	f := b.Runs()
	f.Limit = math.MaxInt
	return runrow.Query(f, columns)
}

// needTotal returns an error if the filter of a batch selects another number of runs than expected.
func (s *Batches) needTotal(ctx context.Context, c sqldb.Conn, b batch.Batch) error {
	if b.Expected == nil {
		return nil
	}
	query, args := s.selected(b, "id")
	total, err := sqlrow.Count(ctx, c, `SELECT COUNT(*) FROM (`+query+`) AS s`, args...)
	if err != nil || total == *b.Expected {
		return err
	}
	return batch.TotalChanged(*b.Expected, total)
}
