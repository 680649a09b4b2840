package events

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

// Triggers reads those that can match events of these types, in order of workflow. If a release without triggers
// publishes a workflow, its trigger is temporarily that of an older version, which is ignored.
func (s *Interests) Triggers(ctx context.Context, c sqldb.Conn, project string,
	types []string) ([]event.Trigger, error) {
	byName := map[string]event.Trigger{}
	err := sqlrow.In(ctx, s.db.Dialect(), types, []any{project},
		func(ctx context.Context, marks string, args []any) error {
			found, err := sqlrow.Collect(ctx, c,
				`SELECT t.project, t.workflow, t.version, t.hash, w.state = 'paused', t.since, t.spec
FROM triggers t JOIN workflows w ON w.project = t.project AND w.name = t.workflow AND w.latest_version = t.version
WHERE t.project = $1 AND t.spec IS NOT NULL
AND t.workflow IN (SELECT workflow FROM trigger_types WHERE project = $1 AND type IN `+marks+`)`,
				args, scanTrigger)
			for _, t := range found {
				byName[t.Workflow] = t
			}
			return err
		})
	return sortedValues(byName), err
}

func scanTrigger(row sqlrow.Scanner) (t event.Trigger, err error) {
	err = row.Scan(&t.Project, &t.Workflow, &t.Version, &t.DocumentHash, &t.Paused, &t.Since, sqlrow.JSONInto(&t.Spec))
	return t, err
}

// PublishTrigger replaces the trigger of a workflow by that of its newest version, in the transaction of its
// publication. A workflow that had a trigger before keeps its starting position, so that events that are not matched
// yet are not lost.
func (s *Interests) PublishTrigger(ctx context.Context, c sqldb.Conn, v workflow.Version) error {
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
	since, err := s.events.Position(ctx, c, v.Project)
	if err != nil {
		return err
	}
	var before json.RawMessage
	var earlier int64
	known, err := found(c.QueryRowContext(ctx, `SELECT since, spec FROM triggers WHERE project = $1 AND workflow = $2`,
		v.Project, v.Workflow),
		&earlier, sqlrow.RawInto(&before))
	if err != nil {
		return err
	}
	if known && before != nil {
		since = earlier
	}
	if string(before) != string(v.Trigger) {
		// The collected events were for filters that no longer exist.
		if _, err := c.ExecContext(ctx, `DELETE FROM partials WHERE project = $1 AND workflow = $2`, v.Project,
			v.Workflow); err != nil {
			return err
		}
	}
	all := sqlrow.Row(
		"project", v.Project, "workflow", v.Workflow, "version", v.Version, "hash", v.Hash, "since", since,
		"published_at", sqlrow.TimeInto(&v.PublishedAt), "spec", sqlrow.RawInto(&v.Trigger),
		"timer", sqlrow.RawInto(&v.Timer),
	)
	_, err = sqlrow.Insert(ctx, c, "triggers", all, all.ReplaceAll("project, workflow"))
	if err != nil {
		return err
	}
	return s.writeTriggerTypes(ctx, c, v, spec)
}

func (s *Interests) writeTriggerTypes(ctx context.Context, c sqldb.Conn, v workflow.Version, spec event.Spec) error {
	if _, err := c.ExecContext(ctx, `DELETE FROM trigger_types WHERE project = $1 AND workflow = $2`, v.Project,
		v.Workflow); err != nil {
		return err
	}
	if v.Trigger == nil {
		return nil
	}
	_, err := sqlrow.InsertMany(ctx, c, s.db.Dialect(), "trigger_types", "", typesOf(spec),
		func(name string) sqlrow.Fields {
			return sqlrow.Row("project", v.Project, "type", name, "workflow", v.Workflow)
		})
	return err
}

// ListTimers implements [event.TimerStore].
func (s *Interests) ListTimers(ctx context.Context, after event.TimerCursor,
	limit int) (list []event.Timer, err error) {
	err = s.db.Read(ctx, "list timers", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c, selectTimers+`
AND (t.project, t.workflow) > ($1, $2)
ORDER BY t.project, t.workflow`+sqlrow.Limit(limit), []any{after.Project, after.Workflow}, scanTimer)
		return err
	})
	return list, err
}

// GetTimer implements [event.TimerStore].
func (s *Interests) GetTimer(ctx context.Context, project, workflow string) (t event.Timer, found bool, err error) {
	err = s.db.Read(ctx, "read a timer", func(ctx context.Context, c sqldb.Conn) error {
		list, err := sqlrow.Collect(ctx, c, selectTimers+` AND t.project = $1 AND t.workflow = $2`, []any{project, workflow},
			scanTimer)
		if found = len(list) > 0; found {
			t = list[0]
		}
		return err
	})
	return t, found, err
}

// SetMissed implements [event.TimerStore].
func (s *Interests) SetMissed(ctx context.Context, project, workflow string, at time.Time) error {
	return s.db.Write(ctx, "record a missed time", func(ctx context.Context, c sqldb.Conn) error {
		_, err := c.ExecContext(ctx, `UPDATE triggers SET missed_at = $3 WHERE project = $1 AND workflow = $2`, project,
			workflow, sqlrow.Micros(at))
		return err
	})
}

const selectTimers = `SELECT t.project, t.workflow, t.version, w.state = 'paused', t.published_at, w.updated_at, t.timer,
w.schedule, t.missed_at
FROM triggers t JOIN workflows w ON w.project = t.project AND w.name = t.workflow AND w.latest_version = t.version
WHERE t.timer IS NOT NULL`

func scanTimer(row sqlrow.Scanner) (t event.Timer, err error) {
	err = row.Scan(&t.Project, &t.Workflow, &t.Version, &t.Paused, sqlrow.TimeInto(&t.Since), sqlrow.TimeInto(&t.ChangedAt),
		sqlrow.JSONInto(&t.Spec), sqlrow.JSONInto(&t.Override), sqlrow.TimeInto(&t.MissedAt))
	return t, err
}

// typesOf returns the types that a spec can match; the empty one stands for any.
func typesOf(spec event.Spec) []string {
	types := spec.Types()
	if types == nil {
		return []string{""}
	}
	for i := range types {
		types[i] = sqlrow.Mended(types[i])
	}
	return sqlrow.Distinct(types)
}
