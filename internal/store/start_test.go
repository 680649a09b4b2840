package store_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// TestStartsShareTransactions starts 50 runs while another process keeps the rows locked that starts read or write:
// the first start waits for them, and the others for the first.
func TestStartsShareTransactions(t *testing.T) {
	t.Parallel()
	for name, options := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t)
			other := database(t, o)
			var writes atomic.Int64
			o.Called = func(_ context.Context, operation sqldb.Operation, _ sqldb.Failure, _ time.Duration) {
				if operation == sqldb.OpWrite || operation == sqldb.OpExec {
					writes.Add(1)
				}
			}
			o.RecordEvery = time.Hour
			s := start(t, o)
			require.NoError(t, s.Activity().Record(t.Context(), project.Default))
			writes.Store(0)
			const starts = 50
			var callers sync.WaitGroup
			insert := func(i int) {
				r := benchRun(i)
				r.Labels = map[string]string{"order": r.ID}
				_, made, err := s.InsertRun(t.Context(), r,
					audit.Entry{Time: r.CreatedAt, Action: audit.RunStart, Project: r.Project, Subject: r.ID})
				if err != nil || !made {
					t.Errorf("insert %s: %t, %v", r.ID, made, err)
				}
			}
			require.NoError(t, other.Write(t.Context(), "test", func(ctx context.Context, c sqldb.Conn) error {
				lock := `UPDATE projects SET description = 'locked'`
				if o.Driver == store.Postgres {
					lock = `LOCK TABLE runs IN EXCLUSIVE MODE`
				}
				if _, err := c.ExecContext(ctx, lock); err != nil {
					return err
				}
				for i := range starts {
					callers.Go(func() { insert(i) })
				}
				require.Eventually(t, func() bool { return s.Starting() == starts }, patience, time.Millisecond)
				return nil
			}))
			callers.Wait()
			require.LessOrEqual(t, writes.Load(), int64(2), "one for the first start, one for all that arrived during it")
			runs, err := s.ListRuns(t.Context(), run.Filter{Project: project.Default, Limit: 2 * starts})
			require.NoError(t, err)
			require.Len(t, runs, starts)
			for _, r := range runs {
				require.Equal(t, map[string]string{"order": r.ID}, r.Labels)
			}
			entries, err := s.ListAudit(t.Context(), audit.Filter{Action: audit.RunStart, Limit: 2 * starts})
			require.NoError(t, err)
			require.Len(t, entries, starts)
		})
	}
}

// TestFirstUpdatesShareStatements marks 50 runs as handed over, and one that does not exist, while another process keeps
// the rows locked.
func TestFirstUpdatesShareStatements(t *testing.T) {
	t.Parallel()
	for name, options := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t)
			other := database(t, o)
			var writes atomic.Int64
			o.Called = func(_ context.Context, operation sqldb.Operation, _ sqldb.Failure, _ time.Duration) {
				if operation == sqldb.OpExec {
					writes.Add(1)
				}
			}
			s := start(t, o)
			const runs = 50
			var first run.Run
			for i := range runs {
				r := benchRun(i)
				if i == 0 {
					first = r
				}
				_, made, err := s.InsertRun(t.Context(), r,
					audit.Entry{Time: r.CreatedAt, Action: audit.RunStart, Project: r.Project})
				require.NoError(t, err)
				require.True(t, made)
			}
			writes.Store(0)
			var callers sync.WaitGroup
			require.NoError(t, other.Write(t.Context(), "test", func(ctx context.Context, c sqldb.Conn) error {
				if _, err := c.ExecContext(ctx, `UPDATE runs SET written_at = 1`); err != nil {
					return err
				}
				for i := range runs + 1 {
					callers.Go(func() {
						id := benchRun(i).ID
						err := s.MarkHandedOver(t.Context(), id, "execution-"+id, first.CreatedAt)
						if missing := i == runs; missing != apperror.Is(err, apperror.RunNotFound) || !missing && err != nil {
							t.Errorf("mark %s: %v", id, err)
						}
					})
				}
				require.Eventually(t, func() bool { return s.HandingOver() == runs+1 }, patience, time.Millisecond)
				return nil
			}))
			callers.Wait()
			require.LessOrEqual(t, writes.Load(), int64(2), "one for the first run, one for all that arrived during it")
			found, err := s.ListRuns(t.Context(), run.Filter{Project: project.Default, Limit: 2 * runs})
			require.NoError(t, err)
			require.Len(t, found, runs)
			for _, r := range found {
				require.Equal(t, []any{run.Queued, run.QueuedWorker, "execution-" + r.ID},
					[]any{r.Status, r.QueuedReason, r.ExecutionID})
			}
		})
	}
}
