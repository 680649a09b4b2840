// Package listing writes the queries for lists of runs, so that each reads no more of an index than its page, whatever it filters by.
//
//	few, err := listing.Few(ctx, c, filter) // only where the filter has a text
//	query, args := listing.Page(filter, columns, few)
package listing

import (
	"context"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// fewMatches is up to how many runs whose ID or request ID begins with a text are read and sorted; where there are more, the list is
// walked in its order instead, as the next match is not far.
const fewMatches = 2000

// Few tells whether so few runs begin with the filter's text that they can be sorted.
func Few(ctx context.Context, c sqldb.Conn, f run.Filter) (bool, error) {
	if f.Text == "" {
		return false, nil
	}
	limit := sqlrow.Limit(fewMatches + 1)
	n, err := sqlrow.Count(ctx, c, `SELECT (SELECT COUNT(*) FROM (SELECT 1 FROM runs WHERE id >= $2 AND id < $3`+limit+`) AS i) +
(SELECT COUNT(*) FROM (SELECT 1 FROM runs WHERE project = $1 AND request_id >= $2 AND request_id < $3`+limit+`) AS q)`, f.Project, f.Text, behind(f.Text))
	return n <= fewMatches, err
}

// behind is a text that comes after all that begin with the given one.
func behind(text string) string { return text + "\U0010FFFF" }

// Query is the query for these columns of the runs that a filter selects, in its order.
func Query(f run.Filter, columns string) (string, []any) { return Page(f, columns, false) }

// Page reads each status from its own stretch of an index, already in order and no further than the page, and
// merges them: a plain IN would make the database choose between sorting all matches and walking past all others.
func Page(f run.Filter, columns string, few bool) (string, []any) {
	order := ` ORDER BY created_at DESC, id DESC`
	if f.OldestFirst {
		order = ` ORDER BY created_at, id`
	}
	page := order + sqlrow.Limit(f.Limit)
	var w sqlrow.Where
	if len(f.Problems) > 0 {
		return stuckQuery(f, columns, page)
	}
	conditions(&w, f, "created_at", "id")
	statuses := f.Statuses
	switch {
	case few:
		within(&w, "status", statuses)
		var requests sqlrow.Where
		requests.Args = w.Args
		requests.IsText("runs.project", f.Project)
		requests.Conditions = append(requests.Conditions, begins(&requests, "request_id", f.Text))
		w.Args = requests.Args
		w.Conditions = append(w.Conditions, `id IN (SELECT id FROM runs WHERE `+begins(&w, "id", f.Text)+` UNION SELECT id FROM runs`+requests.String()+`)`)
		return `SELECT ` + columns + ` FROM runs` + w.String() + page, w.Args
	case f.Text != "":
		w.Conditions = append(w.Conditions, `(`+begins(&w, "id", f.Text)+` OR `+begins(&w, "request_id", f.Text)+`)`)
	}
	if (f.Workflow != "" || f.Trigger != "") && len(statuses) == 0 {
		// The indexes by workflow and by trigger have the status before the time.
		statuses = run.Statuses()
	}
	switch {
	case len(statuses) > 0:
	case f.Text == "":
		return `SELECT ` + columns + ` FROM runs` + w.String() + page, w.Args
	default: // the text is read from the index
		return `SELECT ` + columns + ` FROM runs WHERE id IN (SELECT id FROM (SELECT id FROM runs` + w.String() + page + `) AS s)` + page, w.Args
	}
	parts := make([]string, len(statuses))
	for i, status := range statuses {
		// Parameters are shared by the parts.
		part := sqlrow.Where{Conditions: append([]string{}, w.Conditions...), Args: w.Args}
		part.Is("status", "=", status)
		w.Args = part.Args
		parts[i] = `SELECT id AS hit FROM (SELECT id FROM runs` + part.String() + page + `) AS s`
	}
	return `SELECT ` + columns + ` FROM runs WHERE id IN (` + strings.Join(parts, ` UNION ALL `) + `)` + page, w.Args
}

// stuckQuery reads each code from its stretch of the index of verdicts. One of a run that has moved since counts no more.
func stuckQuery(f run.Filter, columns, page string) (string, []any) {
	var w sqlrow.Where
	conditions(&w, f, "v.created_at", "v.run_id")
	w.IsText("v.project", f.Project)
	within(&w, "status", f.Statuses)
	if f.Text != "" {
		w.Conditions = append(w.Conditions, `(`+begins(&w, "id", f.Text)+` OR `+begins(&w, "request_id", f.Text)+`)`)
	}
	order := strings.NewReplacer("created_at", "v.created_at", ", id", ", v.run_id").Replace(page)
	codes := f.Problems
	if f.AnyProblem() {
		codes = []string{""}
	}
	parts := make([]string, len(codes))
	for i, code := range codes {
		part := sqlrow.Where{Conditions: append([]string{}, w.Conditions...), Args: w.Args}
		part.IsText("v.code", code)
		w.Args = part.Args
		parts[i] = `SELECT run_id AS hit FROM (SELECT v.run_id FROM run_verdicts v JOIN runs ON runs.id = v.run_id AND runs.sequence = v.sequence` +
			part.String() + order + `) AS s`
	}
	return `SELECT ` + columns + ` FROM runs WHERE id IN (` + strings.Join(parts, ` UNION ALL `) + `)` + page, w.Args
}

// begins is the condition that a column of runs begins with a text, as a stretch of an index.
func begins(w *sqlrow.Where, column, text string) string {
	return `runs.` + column + ` >= ` + w.Arg(text) + ` AND runs.` + column + ` < ` + w.Arg(behind(text))
}

// within adds that a column of runs is one of the values, unless there are none.
func within(w *sqlrow.Where, column string, values []run.Status) {
	if len(values) == 0 {
		return
	}
	marks := make([]string, len(values))
	for i, v := range values {
		marks[i] = w.Arg(v)
	}
	w.Conditions = append(w.Conditions, `runs.`+column+` IN (`+strings.Join(marks, `, `)+`)`)
}

// conditions are those of every list; created and id name the columns that it is in the order of.
func conditions(w *sqlrow.Where, f run.Filter, created, id string) {
	w.IsText("runs.project", f.Project)
	w.IsText("runs.workflow", f.Workflow)
	w.IsText("runs.version", f.Version)
	w.IsText("runs.request_id", f.RequestID)
	w.IsText("runs.trigger_kind", f.Trigger)
	Period(w, f, created)
	if f.After == nil {
		return
	}
	op := "<"
	if f.OldestFirst {
		op = ">"
	}
	w.Conditions = append(w.Conditions,
		"("+created+", "+id+") "+op+" ("+w.Arg(f.After.CreatedAt.UnixMicro())+", "+w.Arg(f.After.ID)+")")
}

// Period adds the filter's time to conditions on the column that has the creation.
func Period(w *sqlrow.Where, f run.Filter, created string) {
	if !f.Since.IsZero() {
		w.Is(created, ">=", f.Since.UnixMicro())
	}
	if !f.Until.IsZero() {
		w.Is(created, "<", f.Until.UnixMicro())
	}
}
