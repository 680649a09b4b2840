package problems

import (
	"context"
	"strconv"

	"github.com/signalbox-dev/signalbox/internal/problem"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/failuregroup"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// ungrouped is the condition of the index of failed runs whose group is to be computed: an earlier release ended them, which computed
// none, or one of another kind.
var ungrouped = `status IN ('failed', 'timed_out') AND length(failure_group) <> ` + strconv.Itoa(failuregroup.KeyLength) + ` AND trigger_kind <> 'import'`

// GroupFailures implements [problem.RecorderStore].
func (s *Store) GroupFailures(ctx context.Context, limit int) (n int, err error) {
	err = s.db.Write(ctx, "group failed runs", func(ctx context.Context, c sqldb.Conn) error {
		moved := map[[2]string]string{}
		list, err := sqlrow.Collect(ctx, c, `SELECT id, project, workflow, status, trigger_kind, error, failure_group FROM runs
WHERE `+ungrouped+` ORDER BY ended_at DESC, id DESC`+sqlrow.Limit(limit), nil, func(row sqlrow.Scanner) (r run.Run, err error) {
			var earlier string
			err = row.Scan(&r.ID, &r.Project, &r.Workflow, &r.Status, &r.Trigger, sqlrow.JSONInto(&r.Error), &earlier)
			if earlier != "" {
				moved[[2]string{r.Project, earlier}] = run.FailureGroup(r)
			}
			return r, err
		})
		if n = len(list); err != nil {
			return err
		}
		err = sqlrow.UpdateMany(ctx, c, s.db.Dialect(), "runs", 1,
			[]sqlrow.Column{{Name: "id", Kind: sqlrow.Text}, {Name: "failure_group", Kind: sqlrow.Text}}, list, func(r run.Run) ([]any, error) {
				return []any{r.ID, run.FailureGroup(r)}, nil
			})
		if err != nil {
			return err
		}
		for of, key := range moved {
			if err := moveRecord(ctx, c, problem.FailureID(of[0], of[1]), problem.FailureID(of[0], key)); err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}

// moveRecord gives the record of a problem another ID. If both IDs have a record, the one that an operator has handled stays.
func moveRecord(ctx context.Context, c sqldb.Conn, from, to string) error {
	records, err := sqlrow.Collect(ctx, c, `SELECT `+columns+` FROM problems WHERE id IN ($1, $2)`, []any{from, to}, scan)
	if err != nil {
		return err
	}
	var old, present *problem.Record
	for i := range records {
		if records[i].ID == from {
			old = &records[i]
		} else {
			present = &records[i]
		}
	}
	if old == nil {
		return nil
	}
	gone := to
	if present != nil && (present.Handling != problem.Handling{} || old.Handling == problem.Handling{}) {
		gone = from
	}
	if _, err := c.ExecContext(ctx, `DELETE FROM problems WHERE id = $1`, gone); err != nil || gone == from {
		return err
	}
	// The content has the earlier key until the recorder's pass that follows.
	_, err = c.ExecContext(ctx, `UPDATE problems SET id = $2 WHERE id = $1`, from, to)
	return err
}
