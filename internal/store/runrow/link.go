package runrow

import (
	"context"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

const (
	// mostReplays and mostChildren are the maximum number that a run shows.
	mostReplays  = 20
	mostChildren = 100
)

// Relations reports which rows there are beside that of a run.
type Relations struct{ Verdict, Repair, Labels, Summary, warnings, origin, replays, children bool }

// RelationColumns are the columns of [Relations].
const RelationColumns = `,
EXISTS (SELECT 1 FROM run_verdicts x WHERE x.run_id = runs.id),
EXISTS (SELECT 1 FROM run_repairs x WHERE x.run_id = runs.id),
EXISTS (SELECT 1 FROM run_labels x WHERE x.run_id = runs.id),
EXISTS (SELECT 1 FROM step_summaries x WHERE x.run_id = runs.id),
EXISTS (SELECT 1 FROM run_warnings x WHERE x.run_id = runs.id),
EXISTS (SELECT 1 FROM run_links x WHERE x.run_id = runs.id),
EXISTS (SELECT 1 FROM run_links x WHERE x.replay_of = runs.id AND x.replay_of <> ''),
EXISTS (SELECT 1 FROM run_links x WHERE x.parent = runs.id AND x.parent <> '')`

// Into returns the destinations of the columns.
func (h *Relations) Into() []any {
	return []any{&h.Verdict, &h.Repair, &h.Labels, &h.Summary, &h.warnings, &h.origin, &h.replays, &h.children}
}

// Related reads the origin of a run, the runs that originate from it, and its warnings.
func Related(ctx context.Context, c sqldb.Conn, r *run.Run, has Relations) (err error) {
	if has.warnings {
		r.Warnings, err = sqlrow.Collect(ctx, c,
			`SELECT `+sqlrow.Columns(warningFields)+` FROM run_warnings WHERE run_id = $1 ORDER BY code`, []any{r.ID},
			sqlrow.Scan(warningFields))
		if err != nil {
			return err
		}
	}
	if has.origin {
		_, err = sqlrow.Collect(ctx, c,
			`SELECT l.replay_of, l.parent, l.path, l.depth, l.after_failure, l.generation, l.ancestors, COALESCE(a.call_key, ''), a.run_id IS NOT NULL
FROM run_links l LEFT JOIN run_awaited a ON a.run_id = l.run_id WHERE l.run_id = $1`, []any{r.ID},
			func(row sqlrow.Scanner) (struct{}, error) {
				var ancestors string
				err := row.Scan(&r.ReplayOf, &r.Parent.RunID, &r.Parent.Path, &r.Parent.Depth, &r.AfterFailure,
					&r.Lineage.Generation, &ancestors, &r.Parent.Key, &r.Parent.Awaited)
				if ancestors != "" {
					r.Lineage.Workflows = strings.Split(ancestors, "\n")
				}
				return struct{}{}, err
			})
		if err != nil {
			return err
		}
	}
	if has.replays {
		if r.Replays, err = linked(ctx, c, `replay_of = $1 AND replay_of <> ''`, r.ID, mostReplays); err != nil {
			return err
		}
	}
	if has.children {
		if r.Children, err = linked(ctx, c, `parent = $1 AND parent <> ''`, r.ID, mostChildren); err != nil {
			return err
		}
	}
	if r.Trigger != run.TriggerImport {
		return nil
	}
	_, err = sqlrow.Collect(ctx, c, `SELECT original FROM run_legacy WHERE run_id = $1`, []any{r.ID},
		func(row sqlrow.Scanner) (struct{}, error) {
			return struct{}{}, row.Scan(sqlrow.RawInto(&r.Legacy))
		})
	return err
}

// FailedStep returns the innermost step that failed with the error of its run: steps around it fail with the same
// error, and have lower numbers. It returns nil where no row has this error.
func FailedStep(ctx context.Context, c sqldb.Conn, r run.Run) (*run.FailedStep, error) {
	if r.Status != run.Failed || r.Error == nil {
		return nil, nil
	}
	found, err := sqlrow.Collect(ctx, c, `SELECT number, pointer, path, task, attempts FROM steps
WHERE run_id = $1 AND status = 'failed' AND error = (SELECT error FROM runs WHERE id = $1) ORDER BY number DESC
LIMIT 1`, []any{r.ID},
		func(row sqlrow.Scanner) (*run.FailedStep, error) {
			var f run.FailedStep
			var attempts []run.Attempt
			err := row.Scan(&f.Number, &f.Pointer, &f.Path, &f.Task, sqlrow.JSONInto(&attempts))
			f.Attempts = len(attempts)
			return &f, err
		})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

// linked lists the newest runs that originate from a run. IDs of runs increase with time.
func linked(ctx context.Context, c sqldb.Conn, condition, id string, most int) ([]string, error) {
	return sqlrow.Collect(ctx, c,
		`SELECT run_id FROM run_links WHERE `+condition+` ORDER BY run_id DESC`+
			sqlrow.Limit(most), []any{id}, sqlrow.ScanText)
}

func warningFields(w *run.Warning) sqlrow.Fields {
	return sqlrow.Row("code", &w.Code, "detail", &w.Detail, "at", sqlrow.TimeInto(&w.At))
}

// warning is a warning of a run.
type warning struct {
	runID string
	run.Warning
}

// AddWarnings writes the warnings of runs that were inserted.
func AddWarnings(ctx context.Context, c sqldb.Conn, d sqldb.Dialect, runs []*run.Run) error {
	var list []warning
	for _, r := range runs {
		for _, w := range r.Warnings {
			list = append(list, warning{r.ID, w})
		}
	}
	_, err := sqlrow.InsertMany(ctx, c, d, "run_warnings", "", list, func(w warning) sqlrow.Fields {
		return append(warningFields(&w.Warning), sqlrow.Col("run_id", w.runID))
	})
	return err
}

// RemoveWarnings removes the warnings of a run that is removed.
func RemoveWarnings(ctx context.Context, c sqldb.Conn, id string) error {
	_, err := c.ExecContext(ctx, `DELETE FROM run_warnings WHERE run_id = $1`, id)
	return err
}
