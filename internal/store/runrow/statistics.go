package runrow

import (
	"context"
	"encoding/json"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/statistics"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// Statistics reads the rows from which statistics of workflows are computed. It implements [statistics.Store]. It is
// safe for concurrent use.
//
// One statement reads a page of workflows. Each of its parts reads a range of an index that begins with the project,
// the workflow and the status, no further than its limit.
type Statistics struct{ db *sqldb.DB }

var _ statistics.Store = (*Statistics)(nil)

// NewStatistics returns a store on an open database.
func NewStatistics(db *sqldb.DB) *Statistics { return &Statistics{db} }

// ReadWorkflows implements [statistics.Store].
func (s *Statistics) ReadWorkflows(ctx context.Context, project string, names []string,
	w statistics.Window) (map[string]statistics.Rows, error) {
	var found map[string]statistics.Rows
	err := s.db.ReadList(ctx, "read statistics of workflows", func(ctx context.Context, c sqldb.Conn) error {
		found = map[string]statistics.Rows{}
		query, args := WorkflowStatistics(s.db.Dialect(), project, names, w)
		_, err := sqlrow.Collect(ctx, c, query, args, func(row sqlrow.Scanner) (none struct{}, err error) {
			name, rows, err := scanStatistics(row)
			found[name] = rows
			return none, err
		})
		return err
	})
	return found, err
}

// The parts of the query that concern one workflow, w.
const (
	inWindow = ` AND created_at >= $2 AND created_at < $3`
	newest   = ` ORDER BY created_at DESC, id DESC`
)

// WorkflowStatistics returns the query for the statistics of workflows: one row per workflow, each column a scalar.
func WorkflowStatistics(d sqldb.Dialect, project string, names []string, window statistics.Window) (string, []any) {
	w := sqlrow.Where{Args: []any{project, window.Since.UnixMicro(), window.Until.UnixMicro()}}
	var ended []run.Status
	columns := []string{"w.name"}
	for _, status := range run.Statuses() {
		columns = append(columns, countUpTo(runsOf(status)+inWindow))
		if status.Terminal() {
			ended = append(ended, status)
		} else {
			columns = append(columns, countUpTo(runsOf(status)))
		}
	}
	columns = append(columns,
		// Verdicts of older binaries have no workflow.
		countUpTo(`run_verdicts v JOIN runs r ON r.id = v.run_id AND r.sequence = v.sequence
WHERE v.project = $1 AND v.workflow IN (w.name, '') AND r.workflow = w.name`),
		`(SELECT `+d.JSONList+`(`+d.JSONRow+
			`(status, ended_at - started_at)) FROM (SELECT status, ended_at, started_at FROM runs WHERE id IN (`+
			newestOf(ended, inWindow, statistics.MaxSample)+`)) AS sampled)`,
		`(SELECT `+d.JSONList+`(`+d.JSONRow+
			`(status, ended_at - started_at, created_at, id)) FROM (SELECT status, ended_at, started_at, created_at, id FROM runs
				WHERE id IN (`+
			newestOf(run.Statuses(), "", statistics.MaxRecent)+`)`+newest+sqlrow.Limit(statistics.MaxRecent)+`) AS recent)`)
	marks := make([]string, 0, len(names))
	for _, name := range padded(names) {
		marks = append(marks, w.Arg(name))
	}
	return `SELECT ` + strings.Join(columns, ",\n") + ` FROM workflows w WHERE w.project = $1 AND w.name IN (` +
		strings.Join(marks, ", ") + `)`, w.Args
}

// padded repeats the last name up to a power of two, so that the statements for pages have few different texts.
func padded(names []string) []string {
	out := append(make([]string, 0, 2*len(names)), names...)
	for len(out) < 1<<bits.Len(uint(len(names)-1)) {
		out = append(out, names[len(names)-1])
	}
	return out
}

// runsOf returns the runs of w with a status. The status is a constant, not user input.
func runsOf(status run.Status) string {
	return `runs WHERE project = $1 AND workflow = w.name AND status = '` + string(status) + `'`
}

// countUpTo counts rows up to one more than the limit of counts.
func countUpTo(rows string) string {
	return `(SELECT COUNT(*) FROM (SELECT 1 FROM ` + rows + sqlrow.Limit(run.MaxCount+1) + `) AS counted)`
}

// newestOf selects the IDs of the newest runs of w with one of the statuses: each status from its index range, then the
// newest of all.
func newestOf(statuses []run.Status, condition string, limit int) string {
	parts := make([]string, len(statuses))
	for i, status := range statuses {
		parts[i] = `SELECT id, created_at FROM (SELECT id, created_at FROM ` +
			runsOf(status) + condition + newest + sqlrow.Limit(limit) + `) AS s` + strconv.Itoa(i)
	}
	return `SELECT id FROM (SELECT id FROM (` + strings.Join(parts, ` UNION ALL `) + `) AS u` +
		newest + sqlrow.Limit(limit) + `) AS hits`
}

func scanStatistics(row sqlrow.Scanner) (name string, r statistics.Rows, err error) {
	r.Statuses, r.Open = map[run.Status]int64{}, map[run.Status]int64{}
	var sample []endedRow
	var recent []recentRow
	into := []any{&name}
	counts := map[run.Status]*[2]int64{}
	for _, status := range run.Statuses() {
		counts[status] = new([2]int64)
		into = append(into, &counts[status][0])
		if !status.Terminal() {
			into = append(into, &counts[status][1])
		}
	}
	if err := row.Scan(append(into, &r.Stuck, sqlrow.JSONInto(&sample), sqlrow.JSONInto(&recent))...); err != nil {
		return name, r, err
	}
	for status, n := range counts {
		r.Statuses[status], r.Open[status] = n[0], n[1]
	}
	for _, e := range sample {
		r.Sample = append(r.Sample, statistics.Ended(e))
	}
	for _, e := range recent {
		r.Recent = append(r.Recent, statistics.Recent(e))
	}
	return name, r, nil
}

// endedRow and recentRow are read from JSON arrays of columns.
type (
	endedRow  statistics.Ended
	recentRow statistics.Recent
)

// UnmarshalJSON reads the columns status and duration.
func (r *endedRow) UnmarshalJSON(text []byte) error {
	var duration *int64
	err := columnsInto(text, &r.Status, &duration)
	r.Duration = durationOf(duration)
	return err
}

// UnmarshalJSON reads the columns status, duration, created_at and id.
func (r *recentRow) UnmarshalJSON(text []byte) error {
	var duration *int64
	var created int64
	err := columnsInto(text, &r.Status, &duration, &created, &r.ID)
	r.Duration, r.CreatedAt = durationOf(duration), time.UnixMicro(created).UTC()
	return err
}

// columnsInto reads a JSON array, one element into each pointer.
func columnsInto(text []byte, into ...any) error { return json.Unmarshal(text, &into) }

func durationOf(n *int64) *time.Duration {
	if n == nil {
		return nil
	}
	return new(micros(*n))
}

// The ranges of the steps of a run r that a grid covers: the first ones, and the last ones beyond these.
const (
	firstSteps = `s.number <= $2`
	lastSteps  = `s.number > CASE WHEN r.steps_total > $1 THEN r.steps_total - $2 ELSE $2 END`
)

// ReadCells implements [statistics.Store]. It reads two ranges of the primary key of steps per run.
func (s *Statistics) ReadCells(ctx context.Context, runIDs []string) (cells []statistics.TaskRows, err error) {
	err = s.db.ReadList(ctx, "read the tasks of runs", func(ctx context.Context, c sqldb.Conn) error {
		cells = nil
		if len(runIDs) == 0 {
			return nil
		}
		query, args := GridCells(s.db.Dialect(), runIDs)
		cells, err = sqlrow.Collect(ctx, c, query, args, scanCell)
		return err
	})
	return cells, err
}

// GridCells returns the query for the steps of runs, grouped by run, task and status.
func GridCells(d sqldb.Dialect, runIDs []string) (string, []any) {
	w := sqlrow.Where{Args: []any{2 * statistics.GridSteps, statistics.GridSteps}}
	marks := make([]string, 0, len(runIDs))
	for _, id := range padded(runIDs) {
		marks = append(marks, w.Arg(id))
	}
	steps := func(numbers string) string {
		return `SELECT s.run_id, s.pointer, s.task, s.kind, s.status, s.started_at, s.ended_at, ` +
			d.JSONLength("s.attempts") + ` AS tries
FROM runs r JOIN steps s ON s.run_id = r.id WHERE r.id IN (` + strings.Join(marks, ", ") + `) AND ` + numbers
	}
	return `SELECT run_id, pointer, MIN(task), MIN(kind), status, COUNT(*), COALESCE(SUM(tries), 0), MIN(started_at),
		MAX(ended_at), COUNT(ended_at) FROM (` +
		steps(firstSteps) + ` UNION ALL ` + steps(lastSteps) +
		`) AS g GROUP BY run_id, pointer, status ORDER BY run_id, pointer, status`, w.Args
}

func scanCell(row sqlrow.Scanner) (t statistics.TaskRows, err error) {
	var ended int64
	err = row.Scan(&t.RunID, &t.Pointer, &t.Task, &t.Kind, &t.Status, &t.Count, &t.Attempts, sqlrow.TimeInto(&t.StartedAt),
		sqlrow.TimeInto(&t.EndedAt), &ended)
	t.Open = ended < t.Count
	return t, err
}

// ReadLengths implements [statistics.Store].
func (s *Statistics) ReadLengths(ctx context.Context, f run.Filter) (list []statistics.Length, err error) {
	err = s.db.ReadList(ctx, "list lengths of runs", func(ctx context.Context, c sqldb.Conn) error {
		spread, err := SpreadOf(ctx, c, s.db.Dialect(), f)
		if err != nil {
			return err
		}
		query, args := Page(f, `id, started_at, ended_at`, spread)
		list, err = sqlrow.Collect(ctx, c, query, args, func(row sqlrow.Scanner) (l statistics.Length, err error) {
			return l, row.Scan(&l.ID, sqlrow.TimeInto(&l.StartedAt), sqlrow.TimeInto(&l.EndedAt))
		})
		return err
	})
	return list, err
}
