package store

import (
	"context"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

const (
	// mostReplays and mostChildren are the maximum number that a run shows.
	mostReplays  = 20
	mostChildren = 100
)

// related reads the origin of a run, and the runs that originate from it.
func related(ctx context.Context, c sqldb.Conn, r *run.Run) error {
	_, err := sqlrow.Collect(ctx, c, `SELECT replay_of, parent, path, depth FROM run_links WHERE run_id = $1`, []any{r.ID},
		func(row sqlrow.Scanner) (struct{}, error) {
			return struct{}{}, row.Scan(&r.ReplayOf, &r.Parent.RunID, &r.Parent.Path, &r.Parent.Depth)
		})
	if err != nil {
		return err
	}
	if r.Replays, err = linked(ctx, c, `replay_of = $1 AND replay_of <> ''`, r.ID, mostReplays); err != nil {
		return err
	}
	if r.Children, err = linked(ctx, c, `parent = $1 AND parent <> ''`, r.ID, mostChildren); err != nil || r.Trigger != run.TriggerImport {
		return err
	}
	_, err = sqlrow.Collect(ctx, c, `SELECT original FROM run_legacy WHERE run_id = $1`, []any{r.ID}, func(row sqlrow.Scanner) (struct{}, error) {
		return struct{}{}, row.Scan(sqlrow.RawInto(&r.Legacy))
	})
	return err
}

// failedStep returns the innermost step that failed with the error of its run: steps around it fail with the same error,
// and have lower numbers. It returns nil where no row has this error.
func failedStep(ctx context.Context, c sqldb.Conn, r run.Run) (*run.FailedStep, error) {
	if r.Status != run.Failed || r.Error == nil {
		return nil, nil
	}
	found, err := sqlrow.Collect(ctx, c, `SELECT number, pointer, path, task, attempts FROM steps
WHERE run_id = $1 AND status = 'failed' AND error = (SELECT error FROM runs WHERE id = $1) ORDER BY number DESC LIMIT 1`, []any{r.ID},
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
	return sqlrow.Collect(ctx, c, `SELECT run_id FROM run_links WHERE `+condition+` ORDER BY run_id DESC`+sqlrow.Limit(most), []any{id}, sqlrow.ScanText)
}
