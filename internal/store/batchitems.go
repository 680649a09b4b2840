package store

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/sealed"
	"github.com/signalbox-dev/signalbox/internal/store/events"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// ActiveBatches implements [batch.WorkRows].
func (s *Batches) ActiveBatches(ctx context.Context, limit int) ([]batch.Batch, error) {
	var list []batchRow
	err := s.db.Read(ctx, "list active batches", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c,
			selectBatch()+` WHERE ended_at IS NULL AND NOT paused ORDER BY id`+sqlrow.Limit(limit), nil, scanBatch)
		return err
	})
	return batchesOf(list), err
}

// ClaimItems implements [batch.WorkRows].
func (s *Batches) ClaimItems(ctx context.Context, id string, after int64,
	limit int) (list []batch.Item, active bool, err error) {
	err = s.db.Write(ctx, "claim items of a batch", func(ctx context.Context, c sqldb.Conn) error {
		r, err := s.lock(ctx, c, id)
		if err != nil {
			return err
		}
		list, active = nil, r.open() && r.selected
		if !active {
			return nil
		}
		list, err = sqlrow.Collect(ctx, c,
			selectItem()+` WHERE batch = $1 AND status = 'pending' AND number > $2 ORDER BY number`+sqlrow.Limit(limit),
			[]any{id, after}, scanItem)
		if err != nil || len(list) == 0 {
			return err
		}
		_, err = c.ExecContext(ctx,
			`UPDATE batch_items SET begun = TRUE WHERE batch = $1 AND status = 'pending' AND number > $2 AND number <= $3
				AND NOT begun`,
			id, after, list[len(list)-1].Number)
		return err
	})
	return list, active && err == nil, err
}

// CountNotTaken implements [batch.WorkRows].
func (s *Batches) CountNotTaken(ctx context.Context, runIDs []string) (n int64, err error) {
	err = s.db.Read(ctx, "count runs that no worker has taken", func(ctx context.Context, c sqldb.Conn) error {
		n = 0
		return sqlrow.In(ctx, s.db.Dialect(), runIDs, nil, func(ctx context.Context, marks string, args []any) error {
			some, err := sqlrow.Count(ctx, c,
				`SELECT COUNT(*) FROM runs WHERE status = 'queued' AND queued_reason IN ('starting', 'worker') AND id IN `+
					marks, args...)
			n += some
			return err
		})
	})
	return n, err
}

// WriteItems implements [sealed.BatchStore].
func (s *Batches) WriteItems(ctx context.Context, id string, sealedItems []sealed.Sealed[batch.Item],
	at time.Time) error {
	items := sealed.Values(sealedItems)
	return s.db.Write(ctx, "write items of a batch", func(ctx context.Context, c sqldb.Conn) error {
		r, err := s.lock(ctx, c, id)
		if err != nil {
			return err
		}
		open, err := s.pending(ctx, c, id, items)
		if err != nil {
			return err
		}
		err = sqlrow.UpdateMany(ctx, c, s.db.Dialect(), "batch_items", 2, open,
			func(i batch.Item) sqlrow.Fields { //nolint:mnd // the keys
				return sqlrow.Row(
					"batch", id, "number", i.Number, "status", i.Status, "error", sqlrow.Mended(i.Error),
					"new_run_id", i.NewRunID, "ended_at", at.UnixMicro(),
				)
			})
		if err != nil {
			return err
		}
		counts := map[batch.ItemStatus]int64{}
		for _, i := range open {
			counts[i.Status]++
		}
		r.Succeeded += counts[batch.Succeeded] + counts[batch.Started]
		r.Refused += counts[batch.Refused]
		r.Failed += counts[batch.Failed]
		if r.Pending() == 0 && r.selected {
			r.EndedAt = at
		}
		_, err = c.ExecContext(ctx,
			`UPDATE batches SET succeeded = $2, refused = $3, failed = $4, ended_at = $5, waiting = '' WHERE id = $1`,
			id, r.Succeeded, r.Refused, r.Failed, sqlrow.Micros(r.EndedAt))
		if err != nil {
			return err
		}
		return s.reportEnd(ctx, c, r)
	})
}

// pending returns the items without a result. The caller has locked the batch, so they stay pending.
func (s *Batches) pending(ctx context.Context, c sqldb.Conn, id string, items []batch.Item) ([]batch.Item, error) {
	still := map[int64]bool{}
	for part := range sqlrow.Chunks(items) {
		args := []any{id}
		for _, i := range part {
			args = append(args, i.Number)
		}
		_, err := sqlrow.Collect(ctx, c,
			`SELECT number FROM batch_items WHERE batch = $1 AND status = 'pending' AND number IN `+
				sqlrow.Tuples(s.db.Dialect(), 1, 1, len(part)), args, func(from sqlrow.Scanner) (n int64, err error) {
				err = from.Scan(&n)
				still[n] = true
				return n, err
			})
		if err != nil {
			return nil, err
		}
	}
	var open []batch.Item
	for _, i := range items {
		if still[i.Number] {
			open = append(open, i)
		}
	}
	return open, nil
}

// reportEnd writes the event that a batch has ended, where it did. A batch of replays ends later, with the runs that it
// started.
func (s *Batches) reportEnd(ctx context.Context, c sqldb.Conn, r batchRow) error {
	if r.EndedAt.IsZero() || r.Action == batch.Replay {
		return nil
	}
	return events.ReportBatch(ctx, c, s.db.Dialect(), r.Batch)
}

// SetWaitReason implements [sealed.BatchStore].
func (s *Batches) SetWaitReason(ctx context.Context, id string, why sealed.Sealed[string]) error {
	return s.db.Exec(ctx, "note why a batch waits", func(ctx context.Context, c sqldb.Conn) error {
		_, err := c.ExecContext(ctx,
			`UPDATE batches SET waiting = $2 WHERE id = $1 AND ended_at IS NULL AND NOT paused AND waiting <> $2`, id,
			sqlrow.Mended(why.Value()))
		return err
	})
}
