package runrow

import (
	"context"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// Link stores the origin of a run. What follows from a failure does so with its children and its replays.
func Link(ctx context.Context, c sqldb.Conn, r run.Run) error {
	if r.ReplayOf == "" && r.Parent.RunID == "" && !r.AfterFailure {
		return nil
	}
	_, err := c.ExecContext(ctx, `INSERT INTO run_links (run_id, replay_of, parent, path, depth, after_failure)
VALUES ($1, $2, $3, $4, $5, $6 OR EXISTS (SELECT 1 FROM run_links o WHERE o.run_id IN ($2, $3) AND o.after_failure))`,
		r.ID, r.ReplayOf, r.Parent.RunID, r.Parent.Path, r.Parent.Depth, r.AfterFailure)
	if err != nil {
		return err
	}
	return AddAwaited(ctx, c, r)
}

// Unlink removes the links of a run that is removed.
func Unlink(ctx context.Context, c sqldb.Conn, id string) error {
	if _, err := c.ExecContext(ctx, `DELETE FROM run_links WHERE run_id = $1`, id); err != nil {
		return err
	}
	return RemoveAwaited(ctx, c, id)
}
