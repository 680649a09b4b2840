package store

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/signalbox-dev/signalbox/internal/problem"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/runrow"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// StuckGroups implements [problem.Source]. A verdict on a run that has changed since is void.
func (s *Problems) StuckGroups(ctx context.Context, projects []string) (list []problem.StuckGroup, err error) {
	err = s.db.Read(ctx, "count stuck runs", func(ctx context.Context, c sqldb.Conn) error {
		list = nil
		return sqlrow.In(ctx, s.db.Dialect(), sqlrow.Distinct(projects), nil,
			func(ctx context.Context, marks string, args []any) error {
				newest := map[string]int{}
				_, err := sqlrow.Collect(ctx, c,
					`SELECT v.project, v.code, v.cause, COUNT(*), MIN(v.since), MAX(v.checked_at), MAX(v.run_id)
FROM run_verdicts v JOIN runs ON runs.id = v.run_id AND runs.sequence = v.sequence
WHERE runs.status IN `+openStatuses+` AND v.project IN `+marks+`
GROUP BY v.project, v.code, v.cause
ORDER BY v.project, v.code, v.cause`, args, func(row sqlrow.Scanner) (_ struct{}, err error) {
						var g problem.StuckGroup
						var cause, id string
						if err = row.Scan(&g.Project, &g.Code, &cause, &g.Count, sqlrow.TimeInto(&g.Since), sqlrow.TimeInto(&g.CheckedAt),
							&id); err == nil {
							list = addStuck(list, g, cause)
							newest[id] = len(list) - 1
						}
						return struct{}{}, err
					})
				if err != nil {
					return err
				}
				return s.describeStuck(ctx, c, list, newest)
			})
	})
	return list, err
}

// addStuck adds the runs with one cause, which follow those with the same code and another cause.
func addStuck(list []problem.StuckGroup, g problem.StuckGroup, cause string) []problem.StuckGroup {
	if last := len(list) - 1; last < 0 || list[last].Project != g.Project || list[last].Code != g.Code {
		list = append(list, g)
	} else {
		k := &list[last]
		k.Count += g.Count
		if g.Since.Before(k.Since) {
			k.Since = g.Since
		}
		if g.CheckedAt.After(k.CheckedAt) {
			k.CheckedAt = g.CheckedAt
		}
	}
	if k := &list[len(list)-1]; cause != "" {
		k.Causes = append(k.Causes, cause)
	}
	return list
}

// describeStuck sets the texts of groups from the verdicts on their newest runs.
func (s *Problems) describeStuck(ctx context.Context, c sqldb.Conn, list []problem.StuckGroup,
	newest map[string]int) error {
	ids := make([]string, 0, len(newest))
	for id := range newest {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return sqlrow.In(ctx, s.db.Dialect(), ids, nil, func(ctx context.Context, marks string, args []any) error {
		_, err := sqlrow.Collect(ctx, c,
			`SELECT run_id, detail, advice FROM run_verdicts WHERE run_id IN `+marks+` ORDER BY run_id`, args,
			func(row sqlrow.Scanner) (_ struct{}, err error) {
				var id, detail, advice string
				if err = row.Scan(&id, &detail, &advice); err == nil {
					g := &list[newest[id]]
					g.Detail, g.Advice = detail, advice
				}
				return struct{}{}, err
			})
		return err
	})
}

// RetryingGroups implements [problem.Source].
func (s *Problems) RetryingGroups(ctx context.Context, projects []string, attempts int,
	before time.Time) (list []problem.RetryingGroup, err error) {
	err = s.db.Read(ctx, "group retrying runs", func(ctx context.Context, c sqldb.Conn) error {
		list = nil
		return sqlrow.In(ctx, s.db.Dialect(), sqlrow.Distinct(projects), []any{attempts, before.UnixMicro()},
			func(ctx context.Context, marks string, args []any) error {
				var newest []string
				found, err := sqlrow.Collect(ctx, c,
					`SELECT * FROM (SELECT runs.project, runs.workflow, t.pointer, MAX(t.task), COUNT(DISTINCT runs.id),
MAX(t.retries) AS attempts, MIN(t.started_at) AS since, MAX(runs.id)
FROM steps t CROSS JOIN runs WHERE `+runrow.Retrying+` GROUP BY runs.project, runs.workflow, t.pointer) AS g
WHERE (attempts >= $1 OR since <= $2) AND project IN `+marks+` ORDER BY project, workflow, pointer`, args, func(row sqlrow.Scanner) (g problem.RetryingGroup, err error) {
						var id string
						err = row.Scan(&g.Project, &g.Workflow, &g.Pointer, &g.Task, &g.Count, &g.Attempts,
							sqlrow.TimeInto(&g.Since), &id)
						newest = append(newest, id)
						return g, err
					})
				for i := range found {
					if err != nil {
						break
					}
					found[i].Error, found[i].Last, err = lastRetried(ctx, c, newest[i], found[i].Pointer)
				}
				list = append(list, found...)
				return err
			})
	})
	return list, err
}

// lastRetried returns the error and the end of the last attempt of the newest step of a run that is attempted again.
func lastRetried(ctx context.Context, c sqldb.Conn, runID, pointer string) (*run.Error, time.Time, error) {
	steps, err := sqlrow.Collect(ctx, c, `SELECT attempts FROM steps
WHERE run_id = $1 AND pointer = $2 AND retries > 0 ORDER BY number DESC LIMIT 1`, []any{runID, pointer},
		func(row sqlrow.Scanner) (t run.Step, err error) { return t, row.Scan(sqlrow.JSONInto(&t.Attempts)) })
	if err != nil || len(steps) == 0 {
		return nil, time.Time{}, err
	}
	failed, at := steps[0].LastFailure()
	return failed, at, nil
}

// FailureGroups implements [problem.Source]. It reads the newest failures of each project from an index, and of each
// group the newest run.
func (s *Problems) FailureGroups(
	ctx context.Context, projects []string, since time.Time, limit int,
) (list []problem.FailureGroup, more map[string]bool, err error) {
	err = s.db.Read(ctx, "group failed runs", func(ctx context.Context, c sqldb.Conn) error {
		list, more = nil, map[string]bool{}
		return sqlrow.In(ctx, s.db.Dialect(), sqlrow.Distinct(projects), []any{since.UnixMicro()},
			func(ctx context.Context, marks string, args []any) error {
				failing, err := sqlrow.Collect(ctx, c, `SELECT name FROM projects WHERE EXISTS (SELECT 1 FROM runs
WHERE runs.project = projects.name AND runs.failure_group <> '' AND runs.ended_at >= $1) AND name IN `+marks+`
ORDER BY name`, args, sqlrow.ScanText)
				if err != nil {
					return err
				}
				for _, project := range failing {
					groups, total, err := failureGroups(ctx, c, project, since, limit)
					if err != nil {
						return err
					}
					more[project] = total > int64(limit)
					list = append(list, groups...)
				}
				return s.describeFailures(ctx, c, list)
			})
	})
	return list, more, err
}

// hour is the length of an hour in the unit of stored times.
const hour = int64(time.Hour / time.Microsecond)

func failureGroups(ctx context.Context, c sqldb.Conn, project string, since time.Time,
	limit int) (list []problem.FailureGroup, total int64, err error) {
	hours := `ended_at / ` + strconv.FormatInt(hour, 10)
	_, err = sqlrow.Collect(ctx, c,
		`SELECT failure_group, `+hours+`, version, COUNT(*), SUM(1 - replayed), MIN(ended_at), MAX(ended_at), MAX(id) FROM (
SELECT r.failure_group, r.ended_at, r.id, r.version,
COALESCE((SELECT 1 FROM run_links l WHERE l.replay_of = r.id AND l.replay_of <> '' LIMIT 1), 0) AS replayed
FROM runs r WHERE r.project = $1 AND r.failure_group <> '' AND r.ended_at >= $2
ORDER BY r.ended_at DESC, r.failure_group DESC, r.id DESC`+
			sqlrow.Limit(limit+1)+`) AS f GROUP BY failure_group, `+hours+`, version ORDER BY 1, 2, 3`,
		[]any{project, since.UnixMicro()}, func(row sqlrow.Scanner) (_ struct{}, err error) {
			g := problem.FailureGroup{Project: project, Hours: map[int64]int64{}, Versions: map[string]int64{}}
			var at int64
			var version string
			err = row.Scan(&g.Key, &at, &version, &g.Count, &g.NotReplayed, sqlrow.TimeInto(&g.First), sqlrow.TimeInto(&g.Last),
				&g.Newest.ID)
			if last := len(list) - 1; last < 0 || list[last].Key != g.Key {
				list = append(list, g)
			} else {
				k := &list[last]
				k.Count, k.NotReplayed = k.Count+g.Count, k.NotReplayed+g.NotReplayed
				if g.First.Before(k.First) {
					k.First = g.First
				}
				if g.Last.After(k.Last) {
					k.Last = g.Last
				}
				k.Newest.ID = max(k.Newest.ID, g.Newest.ID)
			}
			k := &list[len(list)-1]
			k.Hours[at] += g.Count
			k.Versions[version] += g.Count
			total += g.Count
			return struct{}{}, err
		})
	return list, total, err
}

// describeFailures reads the newest run of each group.
func (s *Problems) describeFailures(ctx context.Context, c sqldb.Conn, list []problem.FailureGroup) error {
	at, ids := map[string]*run.Run{}, make([]string, len(list))
	for i := range list {
		ids[i] = list[i].Newest.ID
		at[ids[i]] = &list[i].Newest
	}
	return sqlrow.In(ctx, s.db.Dialect(), ids, nil, func(ctx context.Context, marks string, args []any) error {
		_, err := sqlrow.Collect(ctx, c, `SELECT id, workflow, version, error FROM runs WHERE id IN `+marks, args,
			func(row sqlrow.Scanner) (_ struct{}, err error) {
				var r run.Run
				if err = row.Scan(&r.ID, &r.Workflow, &r.Version, sqlrow.JSONInto(&r.Error)); err == nil {
					*at[r.ID] = r
				}
				return struct{}{}, err
			})
		return err
	})
}

// DeadDeliveries implements [problem.Source].
func (s *Problems) DeadDeliveries(ctx context.Context, projects []string) (list []problem.DeadDeliveries, err error) {
	err = s.db.Read(ctx, "count dead deliveries", func(ctx context.Context, c sqldb.Conn) error {
		list = nil
		return sqlrow.In(ctx, s.db.Dialect(), sqlrow.Distinct(projects), nil,
			func(ctx context.Context, marks string, args []any) error {
				found, err := sqlrow.Collect(ctx, c, `SELECT project, COUNT(*), MIN(updated_at), MAX(updated_at) FROM deliveries
WHERE status = 'dead' AND project IN `+marks+` GROUP BY project
ORDER BY project`, args, func(row sqlrow.Scanner) (d problem.DeadDeliveries, err error) {
					return d, row.Scan(&d.Project, &d.Count, sqlrow.TimeInto(&d.First), sqlrow.TimeInto(&d.Last))
				})
				list = append(list, found...)
				return err
			})
	})
	return list, err
}

// FailingWebhooks implements [problem.Source]. Tests, whose deliveries have no position, are no failures.
func (s *Problems) FailingWebhooks(ctx context.Context, projects []string,
	since time.Time) (list []problem.FailingWebhook, err error) {
	err = s.db.Read(ctx, "find failing webhooks", func(ctx context.Context, c sqldb.Conn) error {
		list = nil
		return sqlrow.In(ctx, s.db.Dialect(), sqlrow.Distinct(projects), []any{since.UnixMicro()},
			func(ctx context.Context, marks string, args []any) error {
				found, err := sqlrow.Collect(ctx, c,
					`SELECT project, name, failing_since, last_error, paused_at, pause_reason, pending, dead, first_dead, last_dead
						FROM (
SELECT w.project, w.name, CASE WHEN w.failing_since <= $1 THEN w.failing_since END AS failing_since, w.last_error,
CASE WHEN w.disabled THEN w.paused_at END AS paused_at, w.pause_reason,
(SELECT COUNT(*) FROM webhook_deliveries d WHERE d.webhook = w.id AND d.status = 'pending') AS pending,
(SELECT COUNT(*) FROM webhook_deliveries d WHERE d.webhook = w.id AND d.status = 'dead' AND d.position > 0) AS dead,
(SELECT MIN(d.updated_at) FROM webhook_deliveries d WHERE d.webhook = w.id AND d.status = 'dead'
AND d.position > 0) AS first_dead,
(SELECT MAX(d.updated_at) FROM webhook_deliveries d WHERE d.webhook = w.id AND d.status = 'dead'
AND d.position > 0) AS last_dead
FROM webhooks w WHERE w.project IN `+marks+`) AS f
WHERE failing_since IS NOT NULL OR paused_at IS NOT NULL OR dead > 0
ORDER BY project, name`, args, func(row sqlrow.Scanner) (w problem.FailingWebhook, err error) {
						return w, row.Scan(&w.Project, &w.Name, sqlrow.TimeInto(&w.Since), &w.Error, sqlrow.TimeInto(&w.PausedAt),
							&w.PauseReason, &w.Pending, &w.Dead,
							sqlrow.TimeInto(&w.FirstDead), sqlrow.TimeInto(&w.LastDead))
					})
				list = append(list, found...)
				return err
			})
	})
	return list, err
}

// Runaways implements [problem.Source].
func (s *Problems) Runaways(ctx context.Context, projects []string, since time.Time,
	over int) (list []problem.Runaway, err error) {
	err = s.db.Read(ctx, "find workflows that start themselves", func(ctx context.Context, c sqldb.Conn) error {
		list = nil
		return sqlrow.In(ctx, s.db.Dialect(), sqlrow.Distinct(projects), []any{since.UnixMicro()},
			func(ctx context.Context, marks string, args []any) error {
				found, err := sqlrow.Collect(ctx, c,
					`SELECT r.project, r.workflow, COUNT(*), MIN(l.recurred_at), MAX(l.recurred_at)
FROM run_links l JOIN runs r ON r.id = l.run_id
WHERE l.recurred_at >= $1 AND r.project IN `+marks+`
GROUP BY r.project, r.workflow HAVING COUNT(*) > `+strconv.Itoa(over)+` ORDER BY r.project, r.workflow`, args,
					func(row sqlrow.Scanner) (w problem.Runaway, err error) {
						return w, row.Scan(&w.Project, &w.Workflow, &w.Count, sqlrow.TimeInto(&w.First), sqlrow.TimeInto(&w.Last))
					})
				list = append(list, found...)
				return err
			})
	})
	return list, err
}

// MissedSchedules implements [problem.Source].
func (s *Problems) MissedSchedules(ctx context.Context, projects []string) (list []problem.MissedSchedule, err error) {
	err = s.db.Read(ctx, "find schedules that did not fire", func(ctx context.Context, c sqldb.Conn) error {
		list = nil
		return sqlrow.In(ctx, s.db.Dialect(), sqlrow.Distinct(projects), nil,
			func(ctx context.Context, marks string, args []any) error {
				found, err := sqlrow.Collect(ctx, c, `SELECT t.project, t.workflow, t.missed_at
FROM triggers t JOIN workflows w ON w.project = t.project AND w.name = t.workflow AND w.latest_version = t.version
WHERE t.missed_at IS NOT NULL AND w.state <> 'paused' AND t.project IN `+marks+` ORDER BY t.project, t.workflow`, args,
					func(row sqlrow.Scanner) (m problem.MissedSchedule, err error) {
						return m, row.Scan(&m.Project, &m.Workflow, sqlrow.TimeInto(&m.At))
					})
				list = append(list, found...)
				return err
			})
	})
	return list, err
}

// OpenRuns implements [problem.Source].
func (s *Problems) OpenRuns(ctx context.Context, projects []string) (list []string, err error) {
	err = s.db.Read(ctx, "find projects with open runs", func(ctx context.Context, c sqldb.Conn) error {
		list = nil
		return sqlrow.In(ctx, s.db.Dialect(), sqlrow.Distinct(projects), nil,
			func(ctx context.Context, marks string, args []any) error {
				found, err := sqlrow.Collect(ctx, c,
					`SELECT name FROM projects WHERE name IN `+marks+` AND EXISTS (SELECT 1 FROM runs
WHERE runs.project = projects.name AND runs.status IN ('queued', 'running', 'waiting')
AND runs.trigger_kind <> 'import') ORDER BY name`, args, sqlrow.ScanText)
				list = append(list, found...)
				return err
			})
	})
	return list, err
}

// Samples implements [problem.Source].
func (s *Problems) Samples(ctx context.Context, f problem.Finding, limit int) (ids []string, err error) {
	query, value := `SELECT id FROM runs WHERE project = $1 AND failure_group = $2 AND failure_group <> ''
		ORDER BY created_at DESC, id DESC`, f.FailureGroup
	switch {
	case f.Code == problem.WorkflowRunaway:
		query, value = `SELECT r.id FROM run_links l JOIN runs r ON r.id = l.run_id
WHERE l.recurred_at IS NOT NULL AND r.project = $1 AND r.workflow = $2 ORDER BY l.recurred_at DESC, r.id DESC`, f.Workflow
	case f.Kind == problem.Retrying:
		query, value = `SELECT id FROM (SELECT DISTINCT runs.id, runs.created_at FROM steps t CROSS JOIN runs
WHERE `+runrow.Retrying+` AND runs.project = $1 AND t.pointer = $2) AS r ORDER BY created_at DESC, id DESC`, f.Pointer
	case f.Kind == problem.Stuck:
		query, value = `SELECT v.run_id FROM run_verdicts v JOIN runs ON runs.id = v.run_id AND runs.sequence = v.sequence
WHERE v.project = $1 AND v.code = $2 ORDER BY v.created_at DESC, v.run_id DESC`, string(f.Code)
	}
	err = s.db.Read(ctx, "list runs of a problem", func(ctx context.Context, c sqldb.Conn) error {
		ids, err = sqlrow.Collect(ctx, c, query+sqlrow.Limit(limit), []any{f.Project, value}, sqlrow.ScanText)
		return err
	})
	return ids, err
}

// ForeignRuns implements [problem.Source].
func (s *Problems) ForeignRuns(ctx context.Context) (list []run.ForeignRuns, err error) {
	err = s.db.Read(ctx, "read foreign runs", func(ctx context.Context, c sqldb.Conn) error {
		list = nil
		found, err := sqlrow.Collect(ctx, c, `SELECT foreign_runs FROM runs_cluster WHERE foreign_runs IS NOT NULL`, nil,
			func(row sqlrow.Scanner) (l []run.ForeignRuns, err error) {
				return l, row.Scan(sqlrow.JSONInto(&l))
			})
		if err == nil && len(found) > 0 {
			list = found[0]
		}
		return err
	})
	return list, err
}
