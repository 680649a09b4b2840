package store

import (
	"context"
	"slices"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/runrow"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// ListSteps implements [run.Store].
func (s *Store) ListSteps(ctx context.Context, project, id string, f run.StepFilter) (page run.StepPage, err error) {
	err = s.db.ReadList(ctx, "list steps", func(ctx context.Context, c sqldb.Conn) (err error) {
		if err := needRunOf(ctx, c, project, id); err != nil {
			return err
		}
		page, err = runrow.ListSteps(ctx, c, s.db.Dialect(), id, f)
		return err
	})
	return page, err
}

// ListLogs implements [run.LogStore].
func (s *Store) ListLogs(ctx context.Context, project, id string, f run.LogFilter) (list []run.AttemptLog, err error) {
	err = s.db.ReadList(ctx, "list logs", func(ctx context.Context, c sqldb.Conn) (err error) {
		if err := needRunOf(ctx, c, project, id); err != nil {
			return err
		}
		list, err = runrow.ListLogs(ctx, c, id, f)
		return err
	})
	return list, err
}

// writeLogs writes the logs of updates of runs that have a row.
func (s *Store) writeLogs(ctx context.Context, c sqldb.Conn, groups []runUpdates, rows map[string]runRow) error {
	var logs []runrow.LogRow
	for _, g := range groups {
		if _, known := rows[g.id]; !known {
			continue
		}
		for _, u := range g.updates {
			for _, l := range u.Logs {
				logs = append(logs, runrow.LogRow{RunID: g.id, AttemptLog: l})
			}
		}
	}
	return runrow.WriteLogs(ctx, c, s.db.Dialect(), logs)
}

// SumSteps implements [run.Store].
func (s *Store) SumSteps(ctx context.Context, project, id string) (list []run.TaskTotals, err error) {
	err = s.db.ReadList(ctx, "sum up steps", func(ctx context.Context, c sqldb.Conn) (err error) {
		if err := needRunOf(ctx, c, project, id); err != nil {
			return err
		}
		list, err = runrow.SumSteps(ctx, c, s.db.Dialect(), id)
		return err
	})
	return list, err
}

func needRunOf(ctx context.Context, c sqldb.Conn, project, id string) error {
	ours, err := sqlrow.Exists(ctx, c, `SELECT 1 FROM runs WHERE id = $1 AND project = $2`, id, project)
	if err != nil || ours {
		return err
	}
	if err := ledger.NeedProject(ctx, c, project); err != nil {
		return err
	}
	return noRun(id)
}

// StepSummary implements [run.Store].
func (s *Store) StepSummary(ctx context.Context, project, id string,
	after int64) (summary *run.StepSummary, err error) {
	err = s.db.Read(ctx, "read the summary of steps", func(ctx context.Context, c sqldb.Conn) (err error) {
		if err := needRunOf(ctx, c, project, id); err != nil {
			return err
		}
		summary, err = runrow.ReadSummary(ctx, c, s.db.Dialect(), id, after)
		return err
	})
	return summary, err
}

// summarize reads the summaries of runs before their steps are written, and removes the steps that a summary
// replaces.
func (s *Store) summarize(ctx context.Context, c sqldb.Conn, groups []runUpdates, rows map[string]runRow) error {
	var ids []string
	for i := range groups {
		g := &groups[i]
		for _, u := range g.updates {
			g.summary = g.summary.Merge(u.Summary)
		}
		if _, known := rows[g.id]; known && (len(g.steps) > 0 || g.summary != nil) {
			ids = append(ids, g.id)
		}
	}
	stored, err := runrow.SummariesOf(ctx, c, s.db.Dialect(), ids)
	if err != nil {
		return err
	}
	for i := range groups {
		g := &groups[i]
		g.stored = stored[g.id]
		newest := g.stored.Merge(g.summary)
		g.steps = slices.DeleteFunc(g.steps, func(t run.Step) bool { return newest.Replaces(&t) })
	}
	return nil
}

// writeSummaries writes the summaries of updates, and adds the runs with changed summaries to touched.
func (s *Store) writeSummaries(ctx context.Context, c sqldb.Conn, groups []runUpdates, rows map[string]runRow,
	touched map[string]bool) error {
	for _, g := range groups {
		row, known := rows[g.id]
		if !known || g.summary == nil {
			continue
		}
		changed, err := runrow.WriteSummary(ctx, c, s.db.Dialect(), g.id, g.summary, g.stored, row.sequence+1)
		if err != nil {
			return err
		}
		touched[g.id] = touched[g.id] || changed
	}
	return nil
}

// ChangedSteps implements [run.Store].
func (s *Store) ChangedSteps(
	ctx context.Context, id string, f run.ChangedFilter,
) (list []run.Step, err error) {
	fields := runrow.StepFields
	if f.Heads {
		fields = runrow.HeadFields
	}
	err = s.db.ReadList(ctx, "list changed steps", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c, `SELECT `+sqlrow.Columns(fields)+
			` FROM steps WHERE run_id = $1 AND (sequence, number) > ($2, $3) AND sequence <= $4 ORDER BY sequence, number`+
			sqlrow.Limit(f.Limit),
			[]any{id, f.After.Sequence, f.After.Number, f.UpTo}, sqlrow.Scan(fields))
		if err == nil && len(list) == 0 {
			return needRun(ctx, c, id)
		}
		if err == nil {
			err = runrow.MarkCaught(ctx, c, id, list)
		}
		return err
	})
	return list, err
}

// CaughtSteps implements [run.Store].
func (s *Store) CaughtSteps(ctx context.Context, id string, steps []run.Step) (numbers []int64, err error) {
	if !slices.ContainsFunc(steps, runrow.CompletedTry) {
		return nil, nil
	}
	err = s.db.ReadList(ctx, "list caught steps", func(ctx context.Context, c sqldb.Conn) (err error) {
		numbers, err = runrow.CaughtSteps(ctx, c, id, steps)
		return err
	})
	return numbers, err
}
