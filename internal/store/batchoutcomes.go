package store

import (
	"context"
	"maps"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/events"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// OpenBatches implements [batch.OutcomeStore]. The conditions equal those of the index.
func (s *Batches) OpenBatches(ctx context.Context, after string, limit int) ([]batch.Batch, error) {
	var list []batchRow
	err := s.db.Read(ctx, "list batches with open runs", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c,
			selectBatch()+` WHERE action = 'replay' AND runs_ended_at IS NULL AND id > $1 ORDER BY id`+sqlrow.Limit(limit),
			[]any{after}, scanBatch)
		return err
	})
	return batchesOf(list), err
}

// openBatchRuns is the condition of the items whose runs are open, as far as is stored.
const openBatchRuns = `batch = $1 AND new_run_id <> '' AND outcome = '' AND status = 'started'`

// NoteOutcomes implements [batch.OutcomeStore]. It writes only where a run has ended, after reading the same page again
// under the lock.
func (s *Batches) NoteOutcomes(ctx context.Context, id string, after int64, limit int) (noted batch.Noted, err error) {
	var ended map[int64]batch.Outcome
	err = s.db.Read(ctx, "read runs that a batch started", func(ctx context.Context, c sqldb.Conn) (err error) {
		ended, noted.Last, err = s.ended(ctx, c, id, after, limit)
		return err
	})
	if err != nil || len(ended) == 0 {
		return noted, err
	}
	err = s.db.Write(ctx, "write what became of runs", func(ctx context.Context, c sqldb.Conn) error {
		r, err := s.lock(ctx, c, id)
		if err != nil {
			return err
		}
		noted.Ended = batch.Outcomes{}
		if ended, noted.Last, err = s.ended(ctx, c, id, after, limit); err != nil {
			return err
		}
		numbers := make([]int64, 0, len(ended))
		counts := batch.Outcomes{}
		maps.Copy(counts, r.Ended)
		for number, outcome := range ended {
			numbers = append(numbers, number)
			noted.Ended[outcome]++
			counts[outcome]++
		}
		err = sqlrow.UpdateMany(ctx, c, s.db.Dialect(), "batch_items", 2, numbers,
			func(n int64) sqlrow.Fields { //nolint:mnd // the keys
				return sqlrow.Row("batch", id, "number", n, "outcome", ended[n])
			})
		if err != nil {
			return err
		}
		return setOutcomes(ctx, c, id, counts)
	})
	return noted, err
}

func setOutcomes(ctx context.Context, c sqldb.Conn, id string, counts batch.Outcomes) error {
	text, err := sqlrow.AsJSON(counts, false)
	if err != nil {
		return err
	}
	_, err = c.ExecContext(ctx, `UPDATE batches SET outcomes = $2 WHERE id = $1`, id, text)
	return err
}

// endedItem is one that started a run.
type endedItem struct {
	batch.StartedRun

	run, selected string
}

// ended returns the outcomes of the runs of a page that have ended, by the number of their item. The runs are looked up
// by their keys: with a join, a planner that estimates them as many would scan all runs.
func (s *Batches) ended(ctx context.Context, c sqldb.Conn, id string, after int64,
	limit int) (map[int64]batch.Outcome, int64, error) {
	items, err := sqlrow.Collect(ctx, c,
		`SELECT number, new_run_id, run_id FROM batch_items WHERE `+openBatchRuns+` AND number > $2 ORDER BY number`+
			sqlrow.Limit(limit),
		[]any{id, after}, func(row sqlrow.Scanner) (i endedItem, err error) {
			return i, row.Scan(&i.Number, &i.run, &i.selected)
		})
	if err != nil || len(items) == 0 {
		return nil, 0, err
	}
	ids := make([]string, 0, 2*len(items)) //nolint:mnd // both runs
	for _, i := range items {
		ids = append(ids, i.run, i.selected)
	}
	type found struct {
		id, group string
		status    run.Status
	}
	runs := map[string]found{}
	err = sqlrow.In(ctx, s.db.Dialect(), sqlrow.Distinct(ids), nil,
		func(ctx context.Context, marks string, args []any) error {
			_, err := sqlrow.Collect(ctx, c, `SELECT id, status, failure_group FROM runs WHERE id IN `+marks, args,
				func(row sqlrow.Scanner) (f found, err error) {
					err = row.Scan(&f.id, &f.status, &f.group)
					runs[f.id] = f
					return f, err
				})
			return err
		})
	if err != nil {
		return nil, 0, err
	}
	ended := map[int64]batch.Outcome{}
	for _, i := range items {
		i.Status, i.FailureGroup = runs[i.run].status, runs[i.run].group
		i.SelectedGroup = runs[i.selected].group
		if outcome := i.Outcome(); outcome != batch.RunOpen {
			ended[i.Number] = outcome
		}
	}
	last := int64(0)
	if len(items) == limit {
		last = items[limit-1].Number
	}
	return ended, last, nil
}

// CloseRuns implements [batch.OutcomeStore].
func (s *Batches) CloseRuns(ctx context.Context, id string) error {
	open := `SELECT COUNT(*) FROM (SELECT 1 FROM batch_items WHERE ` + openBatchRuns + ` LIMIT 1) AS s`
	var left int64
	err := s.db.Read(ctx, "count open runs of a batch", func(ctx context.Context, c sqldb.Conn) (err error) {
		left, err = sqlrow.Count(ctx, c, open, id)
		return err
	})
	if err != nil || left > 0 {
		return err
	}
	return s.db.Write(ctx, "close the runs of a batch", func(ctx context.Context, c sqldb.Conn) error {
		r, err := s.lock(ctx, c, id)
		if err != nil || r.EndedAt.IsZero() || !r.RunsEndedAt.IsZero() {
			return err
		}
		if left, err := sqlrow.Count(ctx, c, open, id); err != nil || left > 0 {
			return err
		}
		if _, err := c.ExecContext(ctx, `UPDATE batches SET runs_ended_at = `+s.db.Dialect().Now+` WHERE id = $1`,
			id); err != nil {
			return err
		}
		if r, err = s.lock(ctx, c, id); err != nil {
			return err
		}
		return events.ReportBatch(ctx, c, s.db.Dialect(), r.Batch)
	})
}

// RetryBatch implements [batch.Store].
func (s *Batches) RetryBatch(ctx context.Context, project, id string, e audit.Entry) (batch.Batch, error) {
	var r batchRow
	err := s.db.Write(ctx, "retry batch", func(ctx context.Context, c sqldb.Conn) (err error) {
		if r, err = s.find(ctx, c, project, id, s.db.Dialect().LockRows); err != nil {
			return err
		}
		// Retention may have deleted items of a batch that has ended: only the remaining ones count.
		failed, err := reopenItems(ctx, c, id, `status = 'failed'`)
		if err != nil {
			return err
		}
		counts, again := batch.Outcomes{}, int64(0)
		maps.Copy(counts, r.Ended)
		for _, outcome := range batch.FailedOutcomes() {
			n, err := reopenItems(ctx, c, id, `status = 'started' AND outcome = '`+string(outcome)+`'`)
			if err != nil {
				return err
			}
			counts[outcome] -= n
			again += n
		}
		if failed+again == 0 {
			return apperror.New(apperror.Refused, apperror.BatchNothingFailed,
				"no item of batch %q has failed; there is nothing to retry", id)
		}
		if err := setOutcomes(ctx, c, id, counts); err != nil {
			return err
		}
		_, err = c.ExecContext(ctx,
			`UPDATE batches SET failed = failed - $2, succeeded = succeeded - $3, ended_at = NULL, runs_ended_at = NULL
				WHERE id = $1`, id, failed, again)
		if err != nil {
			return err
		}
		if r, err = s.find(ctx, c, project, id, ""); err != nil {
			return err
		}
		return ledger.Add(ctx, c, e)
	})
	return r.Batch, err
}

// reopenItems makes the items of a batch pending that a condition selects, and returns their number. The new run of an
// item stays: it is the one to replay.
func reopenItems(ctx context.Context, c sqldb.Conn, id, condition string) (int64, error) {
	res, err := c.ExecContext(ctx,
		`UPDATE batch_items SET status = 'pending', ended_at = NULL, error = '', outcome = '' WHERE batch = $1 AND `+
			condition, id)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}
