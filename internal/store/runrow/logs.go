package runrow

import (
	"context"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// LogRow is a log with its run.
type LogRow struct {
	RunID string
	run.AttemptLog
}

func logFields(l *run.AttemptLog) sqlrow.Fields {
	return sqlrow.Row(
		"step", &l.Step, "attempt", &l.Attempt, "task", sqlrow.MendedInto(&l.Task),
		"stdout", sqlrow.MendedInto(&l.Stdout.Text), "stdout_bytes", &l.Stdout.SkippedBytes,
		"stdout_lines", &l.Stdout.SkippedLines,
		"stderr", sqlrow.MendedInto(&l.Stderr.Text), "stderr_bytes", &l.Stderr.SkippedBytes,
		"stderr_lines", &l.Stderr.SkippedLines,
	)
}

// WriteLogs adds logs, or replaces those of the same attempts.
func WriteLogs(ctx context.Context, c sqldb.Conn, d sqldb.Dialect, rows []LogRow) error {
	if len(rows) == 0 {
		return nil
	}
	type key struct {
		id string
		run.LogCursor
	}
	last := make(map[key]int, len(rows)) // one statement must not write a row twice
	for i, r := range rows {
		last[key{r.RunID, r.Position()}] = i
	}
	var once []LogRow
	for i, r := range rows {
		if last[key{r.RunID, r.Position()}] == i {
			once = append(once, r)
		}
	}
	fields := func(r LogRow) sqlrow.Fields { return append(logFields(&r.AttemptLog), sqlrow.Col("run_id", r.RunID)) }
	_, err := sqlrow.InsertMany(ctx, c, d, "attempt_logs", fields(once[0]).ReplaceAll("run_id, step, attempt"), once,
		fields)
	return err
}

// ListLogs lists logs of a run.
func ListLogs(ctx context.Context, c sqldb.Conn, id string, f run.LogFilter) ([]run.AttemptLog, error) {
	var w sqlrow.Where
	w.Is("run_id", "=", id)
	if f.Step != 0 {
		w.Is("step", "=", f.Step)
	}
	if f.After != nil {
		w.Conditions = append(w.Conditions,
			"(step, attempt) > ("+w.Arg(f.After.Step)+", "+w.Arg(f.After.Attempt)+")")
	}
	return sqlrow.Collect(ctx, c, `SELECT `+sqlrow.Columns(logFields)+` FROM attempt_logs`+w.String()+
		` ORDER BY step, attempt`+sqlrow.Limit(f.Limit), w.Args, sqlrow.Scan(logFields))
}

// RemoveLogs removes the logs of a run.
func RemoveLogs(ctx context.Context, c sqldb.Conn, id string) error {
	_, err := c.ExecContext(ctx, `DELETE FROM attempt_logs WHERE run_id = $1`, id)
	return err
}
