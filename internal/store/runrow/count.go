package runrow

import (
	"slices"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// ByStatus returns the query for the number of runs of each status. Open runs are all counted. Runs that have ended are
// counted only up to limit + 1 where an index of statuses is read, which bounds the part of it that is read.
func ByStatus(f run.Filter, s Spread, limit int) (string, []any) {
	var w sqlrow.Where
	if s.byLabel(f) {
		return `SELECT r.status, COUNT(*) FROM ` + countLabelled(&w, f, s.label) + ` GROUP BY 1`, w.Args
	}
	from := counted(&w, &f, s)
	if from != "" {
		return `SELECT runs.status, COUNT(*) FROM ` + from + w.String() + ` GROUP BY 1`, w.Args
	}
	return perStatus(f, w, func(status run.Status, rows string) string {
		if status.Terminal() {
			// In the order of the index, or the database might read the table instead.
			rows += ` ORDER BY runs.created_at, runs.id` + sqlrow.Limit(limit+1)
		}
		return `COUNT(*) FROM (SELECT 1` + rows + `) AS s`
	})
}

// ByBucket returns the query for the number of runs of each status and bucket; the first one, which begins at the
// filter's Since, has the number 0. Empty ones are omitted.
func ByBucket(f run.Filter, s Spread, length time.Duration) (string, []any) {
	var w sqlrow.Where
	if s.byLabel(f) {
		from := countLabelled(&w, f, s.label)
		return `SELECT r.status, ` + bucketNumber(&w, "r.created_at", f.Since, length) + `, COUNT(*) FROM ` + from +
			` GROUP BY 1, 2`, w.Args
	}
	from := counted(&w, &f, s)
	number := bucketNumber(&w, "runs.created_at", f.Since, length)
	if from != "" {
		return `SELECT runs.status, ` + number + `, COUNT(*) FROM ` + from + w.String() + ` GROUP BY 1, 2`, w.Args
	}
	return perStatus(f, w, func(_ run.Status, rows string) string { return number + `, COUNT(*)` + rows + ` GROUP BY 2` })
}

// bucketNumber returns the number of the bucket of a time.
func bucketNumber(w *sqlrow.Where, created string, since time.Time, length time.Duration) string {
	return `(` + created + ` - CAST(` + w.Arg(since.UnixMicro()) + ` AS BIGINT)) / CAST(` + w.Arg(length.Microseconds()) +
		` AS BIGINT)`
}

// byLabel reports whether runs are counted by the rows of a label: nothing else selects fewer.
func (s Spread) byLabel(f run.Filter) bool {
	return s.fewLabelled || s.label != "" && !s.fewOthers && !s.few && !s.fewEnded && f.FailureGroup == "" && !isLinked(f)
}

// counted adds the conditions of a count, and returns the tables to read if another one selects the runs.
func counted(w *sqlrow.Where, f *run.Filter, s Spread) string {
	from := source(w, f, s)
	conditions(w, *f, "runs.created_at", "runs.id")
	textCondition(w, *f)
	if from == "" {
		return ""
	}
	sqlrow.OneOf(w, "runs.status", f.Statuses)
	w.Conditions = append(w.Conditions, `runs.id = n.run_id`)
	return from + ` CROSS JOIN runs`
}

// perStatus returns a query that reads the range of each status of an index.
func perStatus(f run.Filter, w sqlrow.Where, part func(status run.Status, rows string) string) (string, []any) {
	statuses := f.Statuses
	if len(statuses) == 0 {
		statuses = run.Statuses()
	}
	statuses = slices.Compact(slices.Sorted(slices.Values(statuses)))
	parts := make([]string, len(statuses))
	for i, status := range statuses {
		where := sqlrow.Where{Conditions: append([]string{`runs.status = ` + quoted(status)}, w.Conditions...)}
		parts[i] = `SELECT ` + quoted(status) + ` AS status, ` + part(status, ` FROM runs`+where.String())
	}
	return strings.Join(parts, ` UNION ALL `), w.Args
}

// quoted returns a status as a constant: in the text of a query it has the type text, and selects a partial index.
func quoted(status run.Status) string {
	return `'` + strings.ReplaceAll(string(status), `'`, `''`) + `'`
}

// ByCode returns the query for the number of stuck runs of each code. Only open runs have a verdict of their sequence:
// the condition makes the database read the small index of these.
func ByCode(f run.Filter) (string, []any) {
	var w sqlrow.Where
	w.IsText("v.project", f.Project)
	if f.Workflow != "" {
		// rows of older binaries have no workflow
		w.Conditions = append(w.Conditions, `v.workflow IN (`+w.Arg(f.Workflow)+`, '')`)
	}
	codes(&w, f)
	rowConditions(&w, f)
	textCondition(&w, f)
	sqlrow.OneOf(&w, "runs.status", f.Statuses)
	w.Conditions = append(w.Conditions, `runs.status IN `+openStatuses)
	Period(&w, f, "v.created_at")
	return `SELECT v.code, COUNT(*) FROM run_verdicts v JOIN runs ON runs.id = v.run_id AND runs.sequence = v.sequence` +
		w.String() + ` GROUP BY v.code`, w.Args
}

// codes adds the conditions on the code and the cause of a verdict.
func codes(w *sqlrow.Where, f run.Filter) {
	w.IsText("v.cause", f.Cause)
	if len(f.Stuck) == 0 || f.AnyCode() {
		return
	}
	marks := make([]string, len(f.Stuck))
	for i, code := range f.Stuck {
		marks[i] = w.Arg(code)
	}
	w.Conditions = append(w.Conditions, `v.code IN (`+strings.Join(marks, `, `)+`)`)
}
