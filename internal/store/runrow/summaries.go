package runrow

import (
	"context"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// summaryRow is a summary with its run.
type summaryRow struct {
	run.StepSummary

	run string
}

func summaryFields(s *summaryRow) sqlrow.Fields {
	return sqlrow.Row(
		"run_id", &s.run, "from_number", &s.From, "to_number", &s.To, "open_steps", sqlrow.JSONInto(&s.Open),
		"position", &s.Position,
	)
}

// SummariesOf returns the summaries of runs, without their tasks; runs without one are omitted.
func SummariesOf(ctx context.Context, c sqldb.Conn, d sqldb.Dialect,
	ids []string) (map[string]*run.StepSummary, error) {
	found := map[string]*run.StepSummary{}
	err := sqlrow.In(ctx, d, ids, nil, func(ctx context.Context, marks string, args []any) error {
		list, err := sqlrow.Collect(ctx, c,
			`SELECT `+sqlrow.Columns(summaryFields)+` FROM step_summaries WHERE run_id IN `+
				marks, args, sqlrow.Scan(summaryFields))
		for _, s := range list {
			found[s.run] = &s.StepSummary
		}
		return err
	})
	return found, err
}

// ReadSummary returns the summary of a run with the tasks that changed after a sequence; nil if there are none.
func ReadSummary(ctx context.Context, c sqldb.Conn, d sqldb.Dialect, id string, after int64) (*run.StepSummary, error) {
	found, err := SummariesOf(ctx, c, d, []string{id})
	s := found[id]
	if err != nil || s == nil {
		return nil, err
	}
	s.Tasks, err = sqlrow.Collect(ctx, c,
		`SELECT `+sqlrow.Columns(taskFields)+` FROM task_summaries WHERE run_id = $1 AND sequence > $2 ORDER BY pointer`,
		[]any{id, after}, sqlrow.Scan(taskFields))
	if err != nil || len(s.Tasks) == 0 && after > 0 {
		return nil, err
	}
	return s, nil
}

func taskFields(t *run.TaskSummary) sqlrow.Fields {
	return sqlrow.Row(
		"pointer", sqlrow.MendedInto(&t.Pointer), "task", sqlrow.MendedInto(&t.Task), "kind", &t.Kind,
		"count", &t.Count, "completed", &t.Completed, "failed", &t.Failed, "skipped", &t.Skipped,
		"canceled", &t.Canceled, "shortest", sqlrow.DurationInto(&t.Shortest),
		"longest", sqlrow.DurationInto(&t.Longest), "total", sqlrow.DurationInto(&t.Total), "sequence", &t.Sequence,
	)
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// WriteSummary writes the parts of s that are newer than stored, the summary that the run has, and deletes the rows
// that s replaces. It reports whether anything changed.
//
// A summary never decreases: an older one that is written late changes nothing, nor does one that is written twice. The
// transaction has locked the rows of the run.
func WriteSummary(ctx context.Context, c sqldb.Conn, d sqldb.Dialect, id string, s, stored *run.StepSummary,
	sequence int64) (bool, error) {
	grown, err := sqlrow.InsertMany(ctx, c, d, "task_summaries",
		sqlrow.Replace("run_id, pointer", "count", "completed", "failed", "skipped", "canceled", "shortest", "longest",
			"total", "sequence")+
			` WHERE task_summaries.count < excluded.count`, s.Tasks, func(t run.TaskSummary) sqlrow.Fields {
			t.Sequence = sequence
			return append(taskFields(&t), sqlrow.Col("run_id", id))
		})
	if err != nil || !s.Newer(stored) {
		return grown > 0, err
	}
	all := summaryFields(&summaryRow{*s, id})
	if _, err = sqlrow.Insert(ctx, c, "step_summaries", all, all.ReplaceAll("run_id")); err != nil {
		return false, err
	}
	return true, deleteRows(ctx, c, d, id, s)
}

// deleteRows deletes the rows of the steps that a summary replaces, with their originals and logs.
func deleteRows(ctx context.Context, c sqldb.Conn, d sqldb.Dialect, id string, s *run.StepSummary) error {
	if _, err := c.ExecContext(ctx, `DELETE FROM steps WHERE run_id = $1 AND number >= $2 AND number <= $3 AND NOT kept`,
		id, s.From, s.To); err != nil {
		return err
	}
	kept, err := sqlrow.Collect(ctx, c, `SELECT number FROM steps
WHERE run_id = $1 AND number >= $2 AND number <= $3 AND ended_at IS NULL
ORDER BY number`, []any{id, s.From, s.To}, sqlrow.ScanNumber)
	if err != nil {
		return err
	}
	ended := slices.DeleteFunc(kept, func(n int64) bool { return !s.Replaces(&run.Step{Number: n, Kept: true}) })
	for part := range sqlrow.Chunks(ended) {
		args := []any{id}
		for _, n := range part {
			args = append(args, n)
		}
		if _, err := c.ExecContext(ctx,
			`DELETE FROM steps WHERE run_id = `+d.Mark(1)+` AND number IN `+
				sqlrow.Tuples(d, 1, 1, len(part)), args...); err != nil {
			return err
		}
	}
	if _, err = c.ExecContext(ctx, `DELETE FROM originals WHERE run_id = $1 AND what = $2 AND number >= $3 AND number <= $4
AND NOT EXISTS (SELECT 1 FROM steps WHERE steps.run_id = originals.run_id
AND steps.number = originals.number)`, id, run.OriginalStep, s.From, s.To); err != nil {
		return err
	}
	_, err = c.ExecContext(ctx, `DELETE FROM attempt_logs WHERE run_id = $1 AND step >= $2 AND step <= $3
AND NOT EXISTS (SELECT 1 FROM steps WHERE steps.run_id = attempt_logs.run_id AND steps.number = attempt_logs.step)`,
		id, s.From, s.To)
	return err
}

// RemoveSummary removes the summary of a run.
func RemoveSummary(ctx context.Context, c sqldb.Conn, id string) error {
	for _, table := range []string{"step_summaries", "task_summaries"} {
		if _, err := c.ExecContext(ctx, `DELETE FROM `+table+` WHERE run_id = $1`, id); err != nil {
			return err
		}
	}
	return nil
}
