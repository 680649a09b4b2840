package store

import (
	"context"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/awaited"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

const (
	// mostReplays and mostChildren are how many a run shows.
	mostReplays  = 20
	mostChildren = 100
)

// link notes where a run came from.
func link(ctx context.Context, c sqldb.Conn, r run.Run) error {
	if r.ReplayOf == "" && r.Parent.RunID == "" {
		return nil
	}
	_, err := c.ExecContext(ctx, `INSERT INTO run_links (run_id, replay_of, parent, path, depth) VALUES ($1, $2, $3, $4, $5)`,
		r.ID, r.ReplayOf, r.Parent.RunID, r.Parent.Path, r.Parent.Depth)
	if err != nil {
		return err
	}
	return awaited.Add(ctx, c, r)
}

// unlink forgets where a run came from that is removed.
func unlink(ctx context.Context, c sqldb.Conn, id string) error {
	if _, err := c.ExecContext(ctx, `DELETE FROM run_links WHERE run_id = $1`, id); err != nil {
		return err
	}
	return awaited.Remove(ctx, c, id)
}

// related reads where a run came from, and what came from it.
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

// linked lists the newest runs that a run is the origin of. IDs of runs grow with time.
func linked(ctx context.Context, c sqldb.Conn, condition, id string, most int) ([]string, error) {
	return sqlrow.Collect(ctx, c, `SELECT run_id FROM run_links WHERE `+condition+` ORDER BY run_id DESC`+sqlrow.Limit(most), []any{id},
		func(row sqlrow.Scanner) (id string, err error) { return id, row.Scan(&id) })
}
