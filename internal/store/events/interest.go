package events

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

// Listen implements [event.Store]. The run's row is shared meanwhile, so that its end, which removes its listeners, is either
// seen here or sees this one.
func (s *Store) Listen(ctx context.Context, l event.Listener) error {
	spec, err := json.Marshal(l.Spec)
	if err != nil {
		return fmt.Errorf("encode the listener %q: %w", l.ID, err)
	}
	if err := sqlrow.Storable("listen", string(spec)); err != nil {
		return err
	}
	return s.db.Write(ctx, "listen for events", func(ctx context.Context, c sqldb.Conn) error {
		var status run.Status
		known, err := found(c.QueryRowContext(ctx, `SELECT status FROM runs WHERE id = $1 AND project = $2`+s.db.Dialect().ShareRows,
			l.RunID, l.Project), &status)
		if err != nil {
			return err
		}
		if known && status.Terminal() {
			return fault.New(fault.Refused, fault.RunEnded, "run %q has ended (%s), so it listens for nothing", l.RunID, status)
		}
		since, err := s.position(ctx, c, l.Project)
		if err != nil {
			return err
		}
		made, err := sqlrow.Affected(ctx, c, `INSERT INTO listeners (project, id, run_id, since, spec) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (project, id) DO NOTHING`, l.Project, l.ID, l.RunID, since, string(spec))
		if err != nil || !made {
			return err
		}
		_, err = sqlrow.InsertMany(ctx, c, s.db.Dialect(), "listener_types", "project, type, listener", "", typesOf(l.Spec),
			func(name string) ([]any, error) { return []any{l.Project, name, l.ID}, nil })
		return err
	})
}

// typesOf are the types that a spec can match; the empty one stands for any.
func typesOf(spec event.Spec) []string {
	types := spec.Types()
	if types == nil {
		return []string{""}
	}
	for i := range types {
		types[i] = sqlrow.Mended(types[i])
	}
	return distinct(types)
}

// Unlisten implements [event.Store].
func (s *Store) Unlisten(ctx context.Context, project, id string) error {
	return s.db.Exec(ctx, "stop listening", func(ctx context.Context, c sqldb.Conn) error {
		_, err := c.ExecContext(ctx, `DELETE FROM listeners WHERE project = $1 AND id = $2`, project, id)
		return err
	})
}

// EndListeners removes the listeners of runs that end in this transaction.
func EndListeners(ctx context.Context, c sqldb.Conn, d sqldb.Dialect, runs []string) error {
	return sqlrow.In(ctx, d, runs, nil, func(ctx context.Context, marks string, args []any) error {
		_, err := c.ExecContext(ctx, `DELETE FROM listeners WHERE run_id IN `+marks, args...)
		return err
	})
}

// GetListener implements [event.Store].
func (s *Store) GetListener(ctx context.Context, project, id string) (l event.Listener, there bool, err error) {
	err = s.db.Read(ctx, "get listener", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err := sqlrow.Collect(ctx, c, selectListener+` WHERE project = $1 AND id = $2`, []any{project, id}, scanListener)
		if there = len(list) > 0; there {
			l = list[0]
		}
		return err
	})
	return l, there && err == nil, err
}

const selectListener = `SELECT project, id, run_id, since, spec FROM listeners`

func scanListener(row sqlrow.Scanner) (l event.Listener, err error) {
	err = row.Scan(&l.Project, &l.ID, &l.RunID, &l.Since, sqlrow.JSONInto(&l.Spec))
	return l, err
}

// listeners reads those that may want events of these types, in order of ID.
func (s *Store) listeners(ctx context.Context, c sqldb.Conn, project string, types []string) ([]event.Listener, error) {
	byID := map[string]event.Listener{}
	err := sqlrow.In(ctx, s.db.Dialect(), types, []any{project}, func(ctx context.Context, marks string, args []any) error {
		found, err := sqlrow.Collect(ctx, c, selectListener+` WHERE project = $1 AND id IN (
SELECT listener FROM listener_types WHERE project = $1 AND type IN `+marks+`)`, args, scanListener)
		for _, l := range found {
			byID[l.ID] = l
		}
		return err
	})
	return inOrder(byID), err
}

func inOrder[T any](byName map[string]T) []T {
	var list []T
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		list = append(list, byName[name])
	}
	return list
}

// triggers reads those that may want events of these types, in order of workflow. A workflow that is being published by a release
// that knows no triggers has that of an older version for a moment, which does not count.
func (s *Store) triggers(ctx context.Context, c sqldb.Conn, project string, types []string) ([]event.Trigger, error) {
	byName := map[string]event.Trigger{}
	err := sqlrow.In(ctx, s.db.Dialect(), types, []any{project}, func(ctx context.Context, marks string, args []any) error {
		found, err := sqlrow.Collect(ctx, c, `SELECT t.project, t.workflow, t.version, t.hash, w.state = 'paused', t.since, t.spec
FROM triggers t JOIN workflows w ON w.project = t.project AND w.name = t.workflow AND w.latest_version = t.version
WHERE t.project = $1 AND t.spec IS NOT NULL AND t.workflow IN (SELECT workflow FROM trigger_types WHERE project = $1 AND type IN `+marks+`)`,
			args, scanTrigger)
		for _, t := range found {
			byName[t.Workflow] = t
		}
		return err
	})
	return inOrder(byName), err
}

func scanTrigger(row sqlrow.Scanner) (t event.Trigger, err error) {
	err = row.Scan(&t.Project, &t.Workflow, &t.Version, &t.DocumentHash, &t.Paused, &t.Since, sqlrow.JSONInto(&t.Spec))
	return t, err
}

// PublishTrigger makes what the newest version of a workflow brings with it what starts the workflow, in the transaction of its
// publication. A workflow that wanted events before goes on from where it began, so that those that are not matched yet are not lost.
func (s *Store) PublishTrigger(ctx context.Context, c sqldb.Conn, v workflow.Version) error {
	var spec event.Spec
	if v.Trigger != nil {
		if err := json.Unmarshal(v.Trigger, &spec); err != nil {
			return fmt.Errorf("decode the trigger of workflow %q: %w", v.Workflow, err)
		}
	}
	if v.Trigger == nil && v.Timer == nil {
		_, err := c.ExecContext(ctx, `DELETE FROM triggers WHERE project = $1 AND workflow = $2`, v.Project, v.Workflow)
		return err
	}
	since, err := s.position(ctx, c, v.Project)
	if err != nil {
		return err
	}
	var before json.RawMessage
	var earlier int64
	known, err := found(c.QueryRowContext(ctx, `SELECT since, spec FROM triggers WHERE project = $1 AND workflow = $2`, v.Project, v.Workflow),
		&earlier, sqlrow.RawInto(&before))
	if err != nil {
		return err
	}
	if known && before != nil {
		since = earlier
	}
	if string(before) != string(v.Trigger) {
		// What was collected was for filters that are no longer there.
		if _, err := c.ExecContext(ctx, `DELETE FROM partials WHERE project = $1 AND workflow = $2`, v.Project, v.Workflow); err != nil {
			return err
		}
	}
	_, err = c.ExecContext(ctx, `INSERT INTO triggers (project, workflow, version, hash, since, published_at, spec, timer)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (project, workflow) DO UPDATE SET version = excluded.version, hash = excluded.hash, since = excluded.since,
published_at = excluded.published_at, spec = excluded.spec, timer = excluded.timer`,
		v.Project, v.Workflow, v.Version, v.Hash, since, v.PublishedAt.UnixMicro(), sqlrow.Raw(v.Trigger), sqlrow.Raw(v.Timer))
	if err != nil {
		return err
	}
	return s.writeTriggerTypes(ctx, c, v, spec)
}

func (s *Store) writeTriggerTypes(ctx context.Context, c sqldb.Conn, v workflow.Version, spec event.Spec) error {
	if _, err := c.ExecContext(ctx, `DELETE FROM trigger_types WHERE project = $1 AND workflow = $2`, v.Project, v.Workflow); err != nil {
		return err
	}
	if v.Trigger == nil {
		return nil
	}
	_, err := sqlrow.InsertMany(ctx, c, s.db.Dialect(), "trigger_types", "project, type, workflow", "", typesOf(spec),
		func(name string) ([]any, error) { return []any{v.Project, name, v.Workflow}, nil })
	return err
}

// ListTimers implements [event.TimerStore].
func (s *Store) ListTimers(ctx context.Context, after event.TimerCursor, limit int) (list []event.Timer, err error) {
	err = s.db.Read(ctx, "list timers", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c, `SELECT t.project, t.workflow, t.version, w.state = 'paused', t.published_at, t.timer
FROM triggers t JOIN workflows w ON w.project = t.project AND w.name = t.workflow AND w.latest_version = t.version
WHERE t.timer IS NOT NULL AND (t.project, t.workflow) > ($1, $2) ORDER BY t.project, t.workflow`+sqlrow.Limit(limit),
			[]any{after.Project, after.Workflow}, func(row sqlrow.Scanner) (t event.Timer, err error) {
				err = row.Scan(&t.Project, &t.Workflow, &t.Version, &t.Paused, sqlrow.TimeInto(&t.Since), sqlrow.JSONInto(&t.Spec))
				return t, err
			})
		return err
	})
	return list, err
}
