package runrow

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// basicFields are the columns of a step that every list has.
func basicFields(t *run.Step) sqlrow.Fields {
	return sqlrow.Row(
		"number", &t.Number, "path", sqlrow.MendedInto(&t.Path), "pointer", sqlrow.MendedInto(&t.Pointer),
		"task", sqlrow.MendedInto(&t.Task), "kind", &t.Kind, "status", &t.Status, "waiting_kind", &t.WaitingKind,
		"wait_until", sqlrow.TimeInto(&t.WaitUntil), "started_at", sqlrow.TimeInto(&t.StartedAt),
		"ended_at", sqlrow.TimeInto(&t.EndedAt), "sequence", &t.Sequence, "position", &t.Position,
		"error", sqlrow.JSONInto(&t.Error),
	)
}

// HeadFields are those of a step without the large ones, and those behind them in the row: SQLite reads a row from its
// beginning.
func HeadFields(t *run.Step) sqlrow.Fields {
	return append(basicFields(t), sqlrow.Col("attempts", sqlrow.JSONInto(&t.Attempts)))
}

// StepFields are the columns of table steps but for the run and the details of a wait.
func StepFields(t *run.Step) sqlrow.Fields {
	return append(HeadFields(t), sqlrow.Row(
		"input", sqlrow.MendedRawInto(&t.Input), "output", sqlrow.MendedRawInto(&t.Output), "kept", &t.Kept,
		"input_size", &t.InputSize, "output_size", &t.OutputSize, "redacted", &t.Redacted,
	)...)
}

// ListSteps returns a page of the steps of a run. It reads at most [run.MaxScan] steps to search for a text.
func ListSteps(ctx context.Context, c sqldb.Conn, d sqldb.Dialect, id string,
	f run.StepFilter) (page run.StepPage, err error) {
	w := sqlrow.Where{}
	w.Is("run_id", "=", id)
	beyond, upTo, order := ">", "<=", " ORDER BY number"
	if f.NewestFirst {
		beyond, upTo, order = "<", ">=", " ORDER BY number DESC"
	}
	if f.After > 0 {
		w.Is("number", beyond, f.After)
	}
	if f.Text != "" {
		ends, err := sqlrow.Collect(ctx, c,
			`SELECT number FROM steps`+w.String()+order+sqlrow.Limit(1)+` OFFSET `+w.Arg(run.MaxScan-1),
			w.Args, sqlrow.ScanNumber)
		if err != nil {
			return page, err
		}
		w.Args = w.Args[:len(w.Args)-1]
		if len(ends) > 0 {
			page.Last = ends[0]
			w.Is("number", upTo, page.Last)
		}
		w.Conditions = append(w.Conditions, containsText(&w, d, f.Text))
	}
	stepConditions(&w, f)
	if f.Caught != nil {
		if err := caughtCondition(ctx, c, &w, id, f, order); err != nil {
			return page, err
		}
	}
	fields := StepFields
	if f.Basic {
		fields = basicFields
	}
	page.Steps, err = sqlrow.Collect(ctx, c,
		`SELECT `+sqlrow.Columns(fields)+` FROM steps`+w.String()+order+sqlrow.Limit(f.Limit+1), w.Args, sqlrow.Scan(fields))
	if err != nil {
		return page, err
	}
	if len(page.Steps) > f.Limit {
		page.Steps = page.Steps[:f.Limit]
		page.Last = page.Steps[f.Limit-1].Number
	}
	if f.Text != "" {
		if page.Searched, err = countSearched(ctx, c, id, f, page.Last, beyond, upTo); err != nil {
			return page, err
		}
	}
	return page, MarkCaught(ctx, c, id, page.Steps)
}

// countSearched returns the number of listed steps between the position of a page and the end of what it searched; last
// is 0 on the last page.
func countSearched(ctx context.Context, c sqldb.Conn, id string, f run.StepFilter, last int64,
	beyond, upTo string) (int64, error) {
	w := sqlrow.Where{}
	w.Is("run_id", "=", id)
	if f.After > 0 {
		w.Is("number", beyond, f.After)
	}
	if last > 0 {
		w.Is("number", upTo, last)
	}
	found, err := sqlrow.Collect(ctx, c, `SELECT COUNT(*) FROM steps`+w.String(), w.Args, sqlrow.ScanNumber)
	if err != nil {
		return 0, err
	}
	return found[0], nil
}

func stepConditions(w *sqlrow.Where, f run.StepFilter) {
	w.IsText("pointer", f.Pointer)
	sqlrow.OneOf(w, "status", f.Statuses)
	if f.ParentPath != "" {
		childConditions(w, f.ParentPath)
	}
}

// childConditions selects the steps that a step contains directly. The path of such a step continues that of its parent
// by three to five segments, as in /do/0/a, /fork/branches/0/a and /for/7/do/0/a; the path of a step inside it has at
// least three more.
func childConditions(w *sqlrow.Where, parent string) {
	const least, most = 3, 5
	prefix := strings.TrimSuffix(parent, "/") + "/"
	segments := strings.Count(prefix, "/") - 1
	w.Conditions = append(w.Conditions,
		"substr(path, 1, "+w.Arg(utf8.RuneCountInString(prefix))+") = "+w.Arg(prefix),
		"length(path) - length(replace(path, '/', '')) BETWEEN "+w.Arg(segments+least)+" AND "+w.Arg(segments+most))
}

// containsText selects the steps with a text in the name of the task, the title or detail of the error, or the input or
// output.
func containsText(w *sqlrow.Where, d sqldb.Dialect, text string) string {
	like, member := "LIKE", func(name string) string { return `json_extract(error, '$.` + name + `')` }
	if d.Driver == sqldb.Postgres {
		like, member = "ILIKE", func(name string) string { return `(error::json ->> '` + name + `')` }
	}
	pattern := w.Arg(sqlrow.Contains(text))
	var parts []string
	for _, column := range []string{"task", member("title"), member("detail"), "input", "output"} {
		parts = append(parts, column+" "+like+" "+pattern+" ESCAPE '!'")
	}
	return "(" + strings.Join(parts, " OR ") + ")"
}

// stepGroup is the totals of the steps of one task with one status.
type stepGroup struct {
	run.TaskTotals

	status       string
	count, first int64
}

// SumSteps returns the totals of the steps of a run by task, in the order of the first step of each; tasks without rows
// come last.
func SumSteps(ctx context.Context, c sqldb.Conn, d sqldb.Dialect, id string) ([]run.TaskTotals, error) {
	attempts := `json_extract(attempts, '$[#-1].number')`
	if d.Driver == sqldb.Postgres {
		attempts = `(attempts::json -> -1 ->> 'number')::bigint`
	}
	groups, err := sqlrow.Collect(ctx, c,
		`SELECT pointer, task, kind, status, COUNT(*), MIN(number), MIN(started_at), MAX(ended_at),
COALESCE(SUM(`+attempts+`), 0), COALESCE(SUM(ended_at - started_at), 0), COALESCE(MAX(ended_at - started_at), 0)
FROM steps WHERE run_id = $1 GROUP BY pointer, task, kind, status ORDER BY MIN(number)`, []any{id}, scanGroup)
	if err != nil {
		return nil, err
	}
	var list []run.TaskTotals
	index := map[string]int{}
	at := func(pointer, task, kind string) *run.TaskTotals {
		i, known := index[pointer]
		if !known {
			i = len(list)
			index[pointer] = i
			list = append(list, run.TaskTotals{Pointer: pointer, Task: task, Kind: kind, Statuses: map[string]int64{}})
		}
		return &list[i]
	}
	for _, g := range groups {
		addGroup(at(g.Pointer, g.Task, g.Kind), g)
	}
	summary, err := ReadSummary(ctx, c, d, id, 0)
	if err != nil || summary == nil {
		return list, err
	}
	for _, t := range summary.Tasks {
		addSummarized(at(t.Pointer, t.Task, t.Kind), t)
	}
	return list, nil
}

func scanGroup(row sqlrow.Scanner) (g stepGroup, err error) {
	var total, longest int64
	err = row.Scan(&g.Pointer, &g.Task, &g.Kind, &g.status, &g.count, &g.first, sqlrow.TimeInto(&g.FirstStart),
		sqlrow.TimeInto(&g.LastEnd),
		&g.Attempts, &total, &longest)
	g.Total, g.Longest = micros(total), micros(longest)
	return g, err
}

func addGroup(t *run.TaskTotals, g stepGroup) {
	t.Statuses[g.status] += g.count
	if t.FirstStart.IsZero() || g.FirstStart.Before(t.FirstStart) {
		t.FirstStart = g.FirstStart
	}
	if g.LastEnd.After(t.LastEnd) {
		t.LastEnd = g.LastEnd
	}
	t.Attempts += g.Attempts
	t.Total += g.Total
	t.Longest = max(t.Longest, g.Longest)
	if g.status == string(run.Failed) {
		t.FirstFailed = g.first
	}
}

func addSummarized(t *run.TaskTotals, s run.TaskSummary) {
	for status, n := range map[string]int64{
		string(run.Completed): s.Completed, string(run.Failed): s.Failed, stepSkipped: s.Skipped,
		string(run.Canceled): s.Canceled,
	} {
		if n > 0 {
			t.Statuses[status] += n
		}
	}
	t.Summarized += s.Count
	t.Total += s.Total
	t.Longest = max(t.Longest, s.Longest)
}

const stepSkipped = "skipped"
