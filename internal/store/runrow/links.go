package runrow

import (
	"context"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// Link stores the origin of a run. What follows from a failure does so with its children and its replays.
func Link(ctx context.Context, c sqldb.Conn, r run.Run) error {
	if r.ReplayOf == "" && r.Parent.RunID == "" && !r.AfterFailure && r.Lineage.IsZero() {
		return nil
	}
	var recurred any
	if r.Lineage.Descends(r.Workflow) {
		recurred = sqlrow.Micros(r.CreatedAt)
	}
	_, err := c.ExecContext(ctx, `INSERT INTO run_links
(run_id, replay_of, parent, path, depth, generation, ancestors, recurred_at, after_failure)
VALUES ($1, $2, $3, $4, $5, $7, $8, $9,
$6 OR EXISTS (SELECT 1 FROM run_links o WHERE o.run_id IN ($2, $3) AND o.after_failure))`,
		r.ID, r.ReplayOf, r.Parent.RunID, r.Parent.Path, r.Parent.Depth, r.AfterFailure, r.Lineage.Generation,
		strings.Join(r.Lineage.Workflows, "\n"), recurred)
	if err != nil {
		return err
	}
	return AddAwaited(ctx, c, r)
}

// canceledAncestor reads a run that keeps a run from starting children: the run itself or one that awaits it, directly
// or through others. A run that is not awaited is independent of the runs above it. What an ended run awaited is
// canceled, so it starts none either.
const canceledAncestor = `WITH RECURSIVE line (id, height) AS (
SELECT id, 0 FROM runs WHERE id = $1
UNION ALL SELECT a.parent, line.height + 1 FROM line JOIN run_awaited a ON a.run_id = line.id)
SELECT r.id FROM line JOIN runs r ON r.id = line.id
WHERE r.cancel_requested OR r.status IN ('canceled', 'terminated')
OR (line.height > 0 AND r.status NOT IN ` + openStatuses + `)
LIMIT 1`

// NeedOpenAncestors returns [run.ErrAncestorCanceled] for a child that must not be started.
//
// A child that is accepted while the cancellation is committed is not refused: it is canceled as the child of a
// canceled parent.
func NeedOpenAncestors(ctx context.Context, c sqldb.Conn, r run.Run) error {
	if r.Parent.RunID == "" {
		return nil
	}
	canceled, err := ancestorCanceled(ctx, c, r.Parent.RunID)
	if err == nil && canceled {
		err = run.ErrAncestorCanceled
	}
	return err
}

// ancestorCanceled reports whether a run must start no children.
func ancestorCanceled(ctx context.Context, c sqldb.Conn, id string) (bool, error) {
	found, err := sqlrow.Collect(ctx, c, canceledAncestor, []any{id}, sqlrow.ScanText)
	return len(found) > 0, err
}

// Unlink removes the links of a run that is removed.
func Unlink(ctx context.Context, c sqldb.Conn, id string) error {
	if _, err := c.ExecContext(ctx, `DELETE FROM run_links WHERE run_id = $1`, id); err != nil {
		return err
	}
	return RemoveAwaited(ctx, c, id)
}
