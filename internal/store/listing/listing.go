// Package listing writes the queries for lists of runs, so that each reads no more of an index than its page, whatever it filters by.
//
//	spread, err := listing.SpreadOf(ctx, c, dialect, filter)
//	query, args := listing.Page(filter, columns, spread)
package listing

import (
	"slices"
	"strconv"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// Query is the query for these columns of the runs that a filter selects, in its order.
func Query(f run.Filter, columns string) (string, []any) { return Page(f, columns, Spread{}) }

// Page reads each status from its own stretch of an index, already in order and no further than the page, and
// merges them: a plain IN would make the database choose between sorting all matches and walking past all others.
func Page(f run.Filter, columns string, s Spread) (string, []any) {
	order := ` ORDER BY created_at DESC, id DESC`
	if f.OldestFirst {
		order = ` ORDER BY created_at, id`
	}
	page := order + sqlrow.Limit(f.Limit)
	var hits []string
	var w sqlrow.Where
	switch {
	case len(f.Problems) > 0:
		hits = stuck(&w, f, page)
	case s.few:
		hits = []string{sorted(&w, f, page, ``, `id`, `request_id`)}
	case s.timed:
		near := f
		near.Since, near.Until = s.since, s.until
		if f.Since.After(s.since) {
			near.Since = f.Since
		}
		if !f.Until.IsZero() && f.Until.Before(s.until) {
			near.Until = f.Until
		}
		hits = append(walked(&w, near, page, true), sorted(&w, f, page, s.untimed, `id`), sorted(&w, f, page, ``, `request_id`))
	case f.Text == "" && len(f.Statuses) == 0 && f.Workflow == "" && f.Trigger == "":
		conditions(&w, f, "created_at", "id")
		return `SELECT ` + columns + ` FROM runs` + w.String() + page, w.Args
	default:
		hits = walked(&w, f, page, false)
	}
	return `SELECT ` + columns + ` FROM runs WHERE id IN (` + strings.Join(hits, ` UNION ALL `) + `)` + page, w.Args
}

// walked reads a page in the order of an index, each status from its stretch. It adds to the arguments of w alone, which all parts share.
func walked(w *sqlrow.Where, f run.Filter, page string, byID bool) []string {
	all := sqlrow.Where{Args: w.Args}
	conditions(&all, f, "created_at", "id")
	switch {
	case f.Text == "":
	case byID:
		all.Conditions = append(all.Conditions, begins(&all, "id", f.Text))
	default:
		all.Conditions = append(all.Conditions, `(`+begins(&all, "id", f.Text)+` OR `+begins(&all, "request_id", f.Text)+`)`)
	}
	w.Args = all.Args
	statuses := f.Statuses
	if (f.Workflow != "" || f.Trigger != "") && len(statuses) == 0 {
		// The indexes by workflow and by trigger have the status before the time.
		statuses = run.Statuses()
	}
	if len(statuses) == 0 {
		return []string{hit(all, page)}
	}
	parts := make([]string, len(statuses))
	for i, status := range statuses {
		part := sqlrow.Where{Conditions: slices.Clone(all.Conditions), Args: w.Args}
		part.Is("status", "=", status)
		w.Args = part.Args
		parts[i] = hit(part, page)
	}
	return parts
}

// hit is the part of a list that has the IDs of one page of the runs under conditions.
func hit(w sqlrow.Where, page string) string {
	return `SELECT id AS hit FROM (SELECT id FROM runs` + w.String() + page + `) AS s`
}

// sorted reads all runs of which one of the columns begins with the text, and sorts them. They are few: the order of the column and a
// limit that is out of reach keep Postgres, which may take them for many, from walking the order of the list instead.
func sorted(w *sqlrow.Where, f run.Filter, page, condition string, columns ...string) string {
	all := sqlrow.Where{Args: w.Args}
	conditions(&all, f, "created_at", "id")
	within(&all, "status", f.Statuses)
	if condition != "" {
		all.Conditions = append(all.Conditions, condition)
	}
	parts := make([]string, len(columns))
	for i, column := range columns {
		part := sqlrow.Where{Conditions: slices.Clone(all.Conditions), Args: all.Args}
		part.Conditions = append(part.Conditions, begins(&part, column, f.Text))
		all.Args = part.Args
		parts[i] = `SELECT id, created_at FROM (SELECT id, created_at FROM runs` + part.String() +
			` ORDER BY ` + column + sqlrow.Limit(2*fewMatches) + `) AS c` + strconv.Itoa(i)
	}
	w.Args = all.Args
	return `SELECT id AS hit FROM (SELECT id FROM (` + strings.Join(parts, ` UNION `) + `) AS u` + page + `) AS s`
}

// stuck reads each code from its stretch of an index of verdicts, or all codes from that of their workflow. A verdict of a run that has
// moved since counts no more. The run is looked up verdict by verdict, and only until the page is full: COALESCE keeps Postgres from
// taking the match for a rare one, and from looking all of them up to sort them.
func stuck(w *sqlrow.Where, f run.Filter, page string) []string {
	of := sqlrow.Where{Conditions: []string{`runs.id = v.run_id`}, Args: w.Args}
	own(&of, f)
	within(&of, "status", f.Statuses)
	if f.Text != "" {
		of.Conditions = append(of.Conditions, `(`+begins(&of, "id", f.Text)+` OR `+begins(&of, "request_id", f.Text)+`)`)
	}
	all := sqlrow.Where{Args: of.Args}
	all.IsText("v.project", f.Project)
	span(&all, f, "v.created_at", "v.run_id")
	all.Conditions = append(all.Conditions, `COALESCE((SELECT runs.sequence FROM runs`+of.String()+`) = v.sequence, FALSE)`)
	w.Args = all.Args
	codes, workflows := f.Problems, []string{f.Workflow}
	if f.AnyProblem() {
		codes = []string{""}
	}
	if f.Workflow != "" {
		workflows = append(workflows, "") // as a binary of before gives them
	}
	order := strings.NewReplacer("created_at", "v.created_at", ", id", ", v.run_id").Replace(page)
	var parts []string
	for _, workflow := range workflows {
		for _, code := range codes {
			part := sqlrow.Where{Conditions: slices.Clone(all.Conditions), Args: w.Args}
			part.IsText("v.code", code)
			if f.Workflow != "" {
				part.Is("v.workflow", "=", workflow)
			}
			w.Args = part.Args
			parts = append(parts, `SELECT run_id AS hit FROM (SELECT v.run_id FROM run_verdicts v`+part.String()+order+`) AS s`)
		}
	}
	return parts
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

// conditions are those of every list of runs but for the statuses, the problems and the text.
func conditions(w *sqlrow.Where, f run.Filter, created, id string) {
	own(w, f)
	span(w, f, created, id)
}

// own are the conditions on what a run has from its beginning.
func own(w *sqlrow.Where, f run.Filter) {
	w.IsText("runs.project", f.Project)
	w.IsText("runs.workflow", f.Workflow)
	w.IsText("runs.version", f.Version)
	w.IsText("runs.request_id", f.RequestID)
	w.IsText("runs.trigger_kind", f.Trigger)
	if f.NotReplayed {
		// By the index of links, for each run that the other conditions select. COALESCE keeps Postgres from reading all links instead.
		w.Conditions = append(w.Conditions, `COALESCE((SELECT 1 FROM run_links l WHERE l.replay_of = runs.id AND l.replay_of <> '' LIMIT 1), 0) = 0`)
	}
}

// span are the conditions on the order: the filter's time, and what comes after its cursor. The columns are those of creation and ID.
func span(w *sqlrow.Where, f run.Filter, created, id string) {
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
