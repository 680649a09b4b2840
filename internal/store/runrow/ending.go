package runrow

import (
	"context"
	"slices"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/run/diagnose"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// ReserveEndings implements [diagnose.Rows]. The lock on the project's row makes requests for the same project wait for
// each other.
func (s *VerdictRows) ReserveEndings(ctx context.Context,
	r diagnose.EndingRequest) (answer diagnose.Endings, err error) {
	err = s.db.Write(ctx, "reserve endings of runs", func(ctx context.Context, c sqldb.Conn) error {
		answer = diagnose.Endings{}
		if _, err := texts(ctx, c, `SELECT name FROM projects WHERE name = $1`+s.db.Dialect().LockRows,
			r.Project); err != nil {
			return err
		}
		if _, err := c.ExecContext(ctx, `DELETE FROM poison_endings WHERE project = $1 AND at <= $2`, r.Project,
			r.Since.UnixMicro()); err != nil {
			return err
		}
		reserved, err := texts(ctx, c, `SELECT run_id FROM poison_endings WHERE project = $1`, r.Project)
		if err != nil {
			return err
		}
		var fresh []string
		for _, id := range r.RunIDs {
			if slices.Contains(reserved, id) {
				answer.Granted = append(answer.Granted, id)
			} else {
				fresh = append(fresh, id)
			}
		}
		limit, err := s.endingLimit(ctx, c, r)
		if err != nil {
			return err
		}
		if total := int64(len(reserved) + len(fresh)); len(fresh) > 0 && total > limit {
			answer.Exceeded = true
			_, answer.Wake, err = s.inbox.Add(ctx, c, r.Project, []event.Event{r.Exceeded(total, limit)})
			return err
		}
		answer.Granted = append(answer.Granted, fresh...)
		_, err = sqlrow.InsertMany(ctx, c, s.db.Dialect(), "poison_endings", "", fresh, func(id string) sqlrow.Fields {
			return sqlrow.Row("run_id", id, "project", r.Project, "at", r.At.UnixMicro())
		})
		return err
	})
	if err != nil {
		return diagnose.Endings{}, err
	}
	return answer, nil
}

func (s *VerdictRows) endingLimit(ctx context.Context, c sqldb.Conn, r diagnose.EndingRequest) (int64, error) {
	open, err := sqlrow.Count(ctx, c,
		`SELECT COUNT(*) FROM runs WHERE project = $1 AND status IN ('queued', 'running', 'waiting')`, r.Project)
	return r.Limit(open), err
}

func texts(ctx context.Context, c sqldb.Conn, query string, args ...any) ([]string, error) {
	return sqlrow.Collect(ctx, c, query, args, sqlrow.ScanText)
}
