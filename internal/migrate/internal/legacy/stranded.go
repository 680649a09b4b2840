package legacy

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// stranding selects the imported runs that are open on an engine that no longer exists, whatever their state was when
// they were read.
const stranding = `trigger_kind = 'import' AND status IN ('queued', 'running', 'waiting')
AND NOT EXISTS (SELECT 1 FROM run_legacy l WHERE l.run_id = runs.id AND l.engine = 'temporal')`

// Rows are the imported runs in our own tables. They implement [run.ImportedRows].
type Rows struct{ *store.Store }

var _ run.ImportedRows = Rows{}

// EndImports ends those of the imported runs that are open on an engine that no longer exists, as an import does: the
// runs are canceled, their steps closed, their waits resolved, in a few statements. It returns those that it ended, and
// writes an audit entry for each.
func (r Rows) EndImports(ctx context.Context, list []run.Run, at time.Time) (ended []string, err error) {
	db := r.Database()
	type group struct {
		engine string
		status run.Status
	}
	groups := map[group][]string{}
	projects := make(map[string]string, len(list))
	for _, r := range list {
		g := group{r.LegacyEngine, r.Status}
		groups[g] = append(groups[g], r.ID)
		projects[r.ID] = r.Project
	}
	err = db.Write(ctx, "end imported runs", func(ctx context.Context, c sqldb.Conn) error {
		ended = nil
		for g, ids := range groups {
			runError, err := sqlrow.AsJSON(run.EngineGone(g.engine, g.status), false)
			if err != nil {
				return err
			}
			err = sqlrow.In(ctx, db.Dialect(), ids, []any{at.UnixMicro(), runError},
				func(ctx context.Context, marks string, args []any) error {
					done, err := sqlrow.Collect(ctx, c,
						`UPDATE runs SET status = 'canceled', status_at = $1, ended_at = $1, queued_reason = '', waiting_kind = '',
error = $2, steps_done = steps_total, sequence = sequence + 1 WHERE `+stranding+` AND id IN `+marks+`
RETURNING id`, args, sqlrow.ScanText)
					ended = append(ended, done...)
					return err
				})
			if err != nil {
				return err
			}
		}
		slices.Sort(ended)
		if err := closeParts(ctx, c, db.Dialect(), ended, at); err != nil {
			return err
		}
		for _, id := range ended {
			if err := ledger.Add(ctx, c,
				audit.NewEntry(ctx, at, audit.RunEngineGone, projects[id], id, "open on an engine that is gone")); err != nil {
				return err
			}
		}
		return nil
	})
	return ended, err
}

// closeParts closes the open steps and waits of runs that have just been ended.
func closeParts(ctx context.Context, c sqldb.Conn, d sqldb.Dialect, ids []string, at time.Time) error {
	err := sqlrow.In(ctx, d, ids, []any{at.UnixMicro()}, func(ctx context.Context, marks string, args []any) error {
		_, err := c.ExecContext(ctx, `UPDATE steps SET status = 'canceled', ended_at = $1, waiting_kind = '',
sequence = (SELECT r.sequence FROM runs r WHERE r.id = steps.run_id) WHERE status IN ('running', 'waiting')
AND run_id IN `+marks, args...)
		return err
	})
	if err != nil {
		return err
	}
	type original struct {
		id   string
		text json.RawMessage
	}
	return sqlrow.In(ctx, d, ids, nil, func(ctx context.Context, marks string, args []any) error {
		list, err := sqlrow.Collect(ctx, c, `SELECT run_id, original FROM run_legacy WHERE run_id IN `+marks, args,
			func(row sqlrow.Scanner) (o original, err error) { return o, row.Scan(&o.id, sqlrow.RawInto(&o.text)) })
		if err != nil {
			return err
		}
		for _, o := range list {
			resolved, err := resolve(o.text, at)
			if err != nil {
				return fmt.Errorf("resolve the waits of the run %q: %w", o.id, err)
			}
			if _, err := c.ExecContext(ctx,
				`UPDATE run_legacy SET settled_at = COALESCE(settled_at, $2), original = $3 WHERE run_id = $1`,
				o.id, at.UnixMicro(), sqlrow.Raw(resolved)); err != nil {
				return err
			}
		}
		return nil
	})
}

// resolve resolves the open waits in the stored data of a source.
func resolve(original json.RawMessage, at time.Time) (json.RawMessage, error) {
	var kept map[string]json.RawMessage
	if err := json.Unmarshal(original, &kept); err != nil {
		return nil, err
	}
	var waits []map[string]json.RawMessage
	if err := json.Unmarshal(kept["waits"], &waits); err != nil || len(waits) == 0 {
		return original, err
	}
	for _, w := range waits {
		var status, resolvedAt any
		if json.Unmarshal(w["status"], &status) != nil || json.Unmarshal(w["resolved_at"], &resolvedAt) != nil ||
			!OpenWait(Record{"status": status, "resolved_at": resolvedAt}) {
			continue
		}
		w["status"], w["resolved_at"] = json.RawMessage(`"canceled"`),
			json.RawMessage(`"`+at.UTC().Format(time.RFC3339Nano)+`"`)
	}
	var err error
	if kept["waits"], err = json.Marshal(waits); err != nil {
		return nil, err
	}
	return json.Marshal(kept)
}
