package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// StopWorkflow implements [batch.Store]. The lock on the workflow orders stops of the same workflow.
func (s *Batches) StopWorkflow(ctx context.Context, b batch.Batch, page int,
	pause, start audit.Entry) (out batch.Stopped, err error) {
	if err := storableBatch(b, nil); err != nil {
		return out, err
	}
	err = s.db.Write(ctx, "stop workflow", func(ctx context.Context, c sqldb.Conn) (err error) {
		out = batch.Stopped{}
		if out.Workflow, err = getWorkflow(ctx, c, b.Project, b.Filter.Workflow, lockOf(s.db, "w")); err != nil {
			return err
		}
		earlier, err := sqlrow.Collect(ctx, c, selectBatch()+batchByRequest, []any{b.Project, b.RequestID}, scanBatch)
		if err != nil {
			return err
		}
		if len(earlier) > 0 {
			out.Batch = earlier[0].Batch
			return s.repeatedStop(ctx, c, b, &out)
		}
		out.Workflow, out.Paused, err = setPaused(ctx, c, out.Workflow, true, b.Reason, pause)
		if err != nil {
			return err
		}
		return s.startStop(ctx, c, b, page, start, &out)
	})
	return out, err
}

// repeatedStop completes the answer to a stop whose request ID was used before.
func (s *Batches) repeatedStop(ctx context.Context, c sqldb.Conn, b batch.Batch, out *batch.Stopped) error {
	if out.Batch.Fingerprint != b.Fingerprint {
		return batch.RequestIDReused(out.Batch)
	}
	states, err := s.selectedStates(ctx, c, b)
	out.Open = batch.CountByStatus(states)
	return err
}

// startStop adds the batch of a stop to a workflow that is paused.
func (s *Batches) startStop(ctx context.Context, c sqldb.Conn, b batch.Batch, page int, e audit.Entry,
	out *batch.Stopped) error {
	newest, err := newestOpen(ctx, c, b)
	if err != nil {
		return err
	}
	// A batch selects runs that are older than itself. Runs that were stored since this call began are older than the
	// pause, too.
	if !newest.Before(b.CreatedAt) {
		b.CreatedAt = newest.Add(time.Microsecond)
	}
	states, err := s.selectedStates(ctx, c, b)
	if err != nil {
		return err
	}
	out.Open = batch.CountByStatus(states)
	open := int64(0)
	for _, n := range out.Open {
		open += n
	}
	if b.Expected != nil && open > *b.Expected {
		return batch.MoreOpen(b.Filter.Workflow, *b.Expected, open)
	}
	out.Created, err = insertBatch(ctx, c, b)
	if err != nil {
		return err
	}
	if !out.Created {
		// Another kind of batch with this request ID was started at the same time: the transaction ends without a pause.
		return batch.RequestIDReused(b)
	}
	r, err := s.addRuns(ctx, c, b, nil, page)
	if err != nil {
		return err
	}
	out.Batch = r.Batch
	return ledger.Add(ctx, c, e)
}

// newestOpen returns the time of creation of the newest open run of the workflow; zero if none is open.
func newestOpen(ctx context.Context, c sqldb.Conn, b batch.Batch) (time.Time, error) {
	var newest sql.NullInt64
	err := c.QueryRowContext(ctx,
		`SELECT MAX(created_at) FROM runs WHERE project = $1 AND workflow = $2
			AND status IN ('queued', 'running', 'waiting')`,
		b.Project, b.Filter.Workflow).Scan(&newest)
	if err != nil || !newest.Valid {
		return time.Time{}, err
	}
	return time.UnixMicro(newest.Int64), nil
}
