package runrow

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// Query returns the query for these columns of the runs that a filter selects, in its order.
//
// The runs that ended in a period are read from the index of ends, however many they are: the query is for the whole
// selection.
func Query(f run.Filter, columns string) (string, []any) {
	return Page(f, columns, Spread{fewEnded: f.EndsMatter()})
}

// Page reads each status from its own index range, already sorted and no further than the page, and merges them: with a
// plain IN the database would either sort all matches or scan past all other runs.
func Page(f run.Filter, columns string, s Spread) (string, []any) {
	order := ` ORDER BY created_at DESC, id DESC`
	if f.OldestFirst {
		order = ` ORDER BY created_at, id`
	}
	page := order + sqlrow.Limit(f.Limit)
	var hits []string
	var w sqlrow.Where
	switch {
	case len(f.IDs) > 0:
		return `SELECT ` + columns + ` FROM runs` + amongIDs(&w, f) + order, w.Args
	case len(f.Stuck) > 0:
		hits = stuck(&w, f, page)
	case s.fewLabelled:
		hits = []string{labelled(&w, f, s.label, page)}
	case f.FailureGroup != "":
		hits = []string{failed(&w, f, page)}
	case isLinked(f):
		from := source(&w, &f, s)
		hits = []string{narrow(&w, f, from, page)}
	case s.fewEnded:
		hits = []string{endedIn(&w, f, page)}
	case len(s.words) > 0:
		hits = found(&w, f, s, page)
	case s.few:
		hits = []string{sorted(&w, f, page, ``, `id`, `request_id`, endOfID)}
	case s.timed:
		near := f
		near.Since, near.Until = s.since, s.until
		if f.Since.After(s.since) {
			near.Since = f.Since
		}
		if !f.Until.IsZero() && f.Until.Before(s.until) {
			near.Until = f.Until
		}
		hits = append(indexScan(&w, near, page, true), sorted(&w, f, page, s.untimed, `id`),
			sorted(&w, f, page, ``, `request_id`, endOfID))
	case s.label != "" && !s.fewOthers:
		hits = []string{labelled(&w, f, s.label, page)}
	case f.Text == "" && len(f.Statuses) == 0 && f.Workflow == "" && f.Trigger == "" && f.ErrorType == "" &&
		f.Waiting == "" && !f.EndsMatter():
		conditions(&w, f, "created_at", "id")
		return `SELECT ` + columns + ` FROM runs` + w.String() + page, w.Args
	default:
		hits = indexScan(&w, f, page, false)
	}
	return `SELECT ` + columns + ` FROM runs WHERE id IN (` + strings.Join(hits, ` UNION ALL `) + `)` + page, w.Args
}

// amongIDs returns the conditions of a filter that names the runs: each is looked up by its key.
func amongIDs(w *sqlrow.Where, f run.Filter) string {
	sqlrow.OneOf(w, "runs.id", f.IDs)
	conditions(w, f, "runs.created_at", "runs.id")
	sqlrow.OneOf(w, "runs.status", f.Statuses)
	textCondition(w, f)
	if len(f.Stuck) > 0 {
		of := sqlrow.Where{Conditions: []string{`v.run_id = runs.id`, `v.sequence = runs.sequence`}, Args: w.Args}
		codes(&of, f)
		w.Args = of.Args
		w.Conditions = append(w.Conditions, `EXISTS (SELECT 1 FROM run_verdicts v`+of.String()+`)`)
	}
	return w.String()
}

// indexScan reads a page in index order, each status from its range. It adds arguments only to w, which all parts
// share.
func indexScan(w *sqlrow.Where, f run.Filter, page string, byID bool) []string {
	all := sqlrow.Where{Args: w.Args}
	conditions(&all, f, "created_at", "id")
	switch {
	case f.Text == "":
	case byID:
		all.Conditions = append(all.Conditions, begins(&all, "id", f.Text))
	default:
		textCondition(&all, f)
	}
	w.Args = all.Args
	statuses := f.Statuses
	switch {
	case len(statuses) > 0:
	case f.ErrorType != "":
		statuses = []run.Status{run.Failed, run.TimedOut, run.Canceled, run.Terminated} // no others have an error
	case f.EndsMatter():
		statuses = run.EndedStatuses()
	case f.Waiting != "":
		statuses = []run.Status{run.Waiting} // no others wait for something
	case f.Workflow != "" || f.Trigger != "":
		// In the indexes by workflow and by trigger the status precedes the time.
		statuses = run.Statuses()
	}
	if len(statuses) == 0 {
		return []string{pageIDs(all, page)}
	}
	parts := make([]string, len(statuses))
	for i, status := range statuses {
		part := sqlrow.Where{Conditions: slices.Clone(all.Conditions), Args: w.Args}
		part.Is("status", "=", status)
		w.Args = part.Args
		parts[i] = pageIDs(part, page)
	}
	return parts
}

// pageIDs returns the part of a list that selects the IDs of one page of the runs under conditions.
func pageIDs(w sqlrow.Where, page string) string {
	return `SELECT id AS hit FROM (SELECT id FROM runs` + w.String() + page + `) AS s`
}

// sorted reads all runs in which one of the columns begins with the text, or the ID ends with it, and sorts them. They are few; Postgres may
// estimate them as many, so the order by an expression and a limit that is never reached prevent it from scanning the
// index of the list's order instead.
func sorted(w *sqlrow.Where, f run.Filter, page, condition string, columns ...string) string {
	all := sqlrow.Where{Args: w.Args}
	conditions(&all, f, "created_at", "id")
	sqlrow.OneOf(&all, "runs.status", f.Statuses)
	if condition != "" {
		all.Conditions = append(all.Conditions, condition)
	}
	parts := make([]string, len(columns))
	for i, column := range columns {
		part := sqlrow.Where{Conditions: slices.Clone(all.Conditions), Args: all.Args}
		part.Conditions = append(part.Conditions, has(&part, column, f.Text))
		all.Args = part.Args
		parts[i] = `SELECT id, created_at FROM (SELECT id, created_at FROM runs` + part.String() +
			` ORDER BY ` + column + sqlrow.Limit(2*fewMatches) + `) AS c` + strconv.Itoa(i)
	}
	w.Args = all.Args
	return `SELECT id AS hit FROM (SELECT id FROM (` + strings.Join(parts, ` UNION `) + `) AS u` + page + `) AS s`
}

// stuck reads each code from its range of an index of verdicts, or all codes from that of their workflow. A verdict is
// ignored if the run has changed since. The run is looked up verdict by verdict, and only until the page is full:
// COALESCE prevents Postgres from estimating the match as rare, and from looking all of them up to sort them.
func stuck(w *sqlrow.Where, f run.Filter, page string) []string {
	of := sqlrow.Where{Conditions: []string{`runs.id = v.run_id`}, Args: w.Args}
	rowConditions(&of, f)
	sqlrow.OneOf(&of, "runs.status", f.Statuses)
	textCondition(&of, f)
	all := sqlrow.Where{Args: of.Args}
	all.IsText("v.project", f.Project)
	all.IsText("v.cause", f.Cause)
	orderConditions(&all, f, "v.created_at", "v.run_id")
	all.Conditions = append(all.Conditions,
		`COALESCE((SELECT runs.sequence FROM runs`+of.String()+`) = v.sequence, FALSE)`)
	w.Args = all.Args
	codes, workflows := f.Stuck, []string{f.Workflow}
	if f.AnyCode() {
		codes = []string{""}
	}
	if f.Workflow != "" {
		workflows = append(workflows, "") // rows of older binaries have no workflow
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

// failed reads the runs of a failure group from its range of an index. The other conditions are checked run by run,
// until the page is full: COALESCE prevents the databases from choosing the index of another column.
func failed(w *sqlrow.Where, f run.Filter, page string) string {
	group := f.FailureGroup
	f.FailureGroup = ""
	of := sqlrow.Where{Conditions: []string{`runs.id = g.id`}, Args: w.Args}
	rowConditions(&of, f)
	sqlrow.OneOf(&of, "runs.status", f.Statuses)
	textCondition(&of, f)
	all := sqlrow.Where{Args: of.Args}
	all.IsText("g.project", f.Project)
	inFailureGroup(&all, "g.failure_group", group)
	orderConditions(&all, f, "g.created_at", "g.id")
	all.Conditions = append(all.Conditions, `COALESCE((SELECT 1 FROM runs`+of.String()+`), 0) = 1`)
	w.Args = all.Args
	order := strings.NewReplacer("created_at", "g.created_at", ", id", ", g.id").Replace(page)
	return `SELECT id AS hit FROM (SELECT g.id FROM runs g` + all.String() + order + `) AS s`
}

// inFailureGroup adds the condition on the failure group, unless it is empty, in a form that allows the indexes of runs
// with one.
func inFailureGroup(w *sqlrow.Where, column, group string) {
	if group != "" {
		w.Is(column, "=", group)
		w.Conditions = append(w.Conditions, column+` <> ''`)
	}
}

// begins returns the condition that a column of runs begins with a text, as an index range.
func begins(w *sqlrow.Where, column, text string) string {
	return `runs.` + column + ` >= ` + w.Arg(text) + ` AND runs.` + column + ` < ` + w.Arg(upperBound(text))
}

// endOfID is the end of an ID as the index runs_id_end has it: the last [run.EndLength] of [run.IDLength] characters.
const endOfID = `substr(runs.id, 29)`

// has returns the condition that a column of runs begins with a text or, for endOfID, that the ID ends with it.
func has(w *sqlrow.Where, column, text string) string {
	if column == endOfID {
		return EndsWith(w, text)
	}
	return begins(w, column, text)
}

// EndsWith returns the condition of [run.EndsID].
func EndsWith(w *sqlrow.Where, text string) string {
	if len(text) < run.EndLength || len(text) > run.IDLength {
		return `1 = 0`
	}
	return endOfID + ` = ` + w.Arg(text[len(text)-run.EndLength:]) +
		` AND substr(runs.id, ` + strconv.Itoa(run.IDLength+1-len(text)) + `) = ` + w.Arg(text)
}

// textCondition adds the condition that the ID or the request ID begins with the filter's text, or the ID ends with it.
func textCondition(w *sqlrow.Where, f run.Filter) {
	if f.Text != "" {
		w.Conditions = append(w.Conditions, `(`+begins(w, "id", f.Text)+` OR `+begins(w, "request_id", f.Text)+
			` OR `+EndsWith(w, f.Text)+`)`)
	}
}

// conditions adds the conditions of every list of runs, except statuses, problems and text.
func conditions(w *sqlrow.Where, f run.Filter, created, id string) {
	rowConditions(w, f)
	orderConditions(w, f, created, id)
}

// rowConditions adds the conditions on the columns of a run and on what belongs to it, except status, text and time of
// creation.
func rowConditions(w *sqlrow.Where, f run.Filter) {
	w.IsText("runs.project", f.Project)
	w.IsText("runs.workflow", f.Workflow)
	w.IsText("runs.version", f.Version)
	w.IsText("runs.request_id", f.RequestID)
	w.IsText("runs.trigger_kind", f.Trigger)
	inFailureGroup(w, "runs.failure_group", f.FailureGroup)
	ended(w, f)
	failedWith(w, f.ErrorType)
	// The conditions below read an entry of an index for each run that the other conditions select. COALESCE prevents
	// Postgres from reading all links or items instead.
	for _, l := range links(&f) {
		if l.isGiven() {
			w.Conditions = append(w.Conditions, `COALESCE((SELECT 1 FROM `+l.entry+w.Arg(*l.id)+` LIMIT 1), 0) = 1`)
		}
	}
	hasLabels(w, f.Labels)
	hasTerms(w, f)
	if f.Waiting != "" {
		w.Is("runs.waiting_kind", "=", f.Waiting)
		w.Conditions = append(w.Conditions, `runs.waiting_kind <> ''`)
	}
	if f.Retrying != "" {
		w.Conditions = append(w.Conditions,
			`COALESCE((SELECT 1 FROM steps t WHERE `+retried(w, f.Retrying)+` LIMIT 1), 0) = 1`)
	}
	if f.NotReplayed {
		w.Conditions = append(w.Conditions,
			`COALESCE((SELECT 1 FROM run_links l WHERE l.replay_of = runs.id AND l.replay_of <> '' LIMIT 1), 0) = 0`)
	}
}

// orderConditions adds the conditions on the order: the filter's period, and the cursor. The columns are those of
// creation and ID.
func orderConditions(w *sqlrow.Where, f run.Filter, created, id string) {
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

// Period adds the filter's period as a condition on the creation column.
func Period(w *sqlrow.Where, f run.Filter, created string) {
	between(w, created, f.Since, f.Until)
}

// between adds the condition that a column is in a period, of which either bound may be zero.
func between(w *sqlrow.Where, column string, since, until time.Time) {
	if !since.IsZero() {
		w.Is(column, ">=", since.UnixMicro())
	}
	if !until.IsZero() {
		w.Is(column, "<", until.UnixMicro())
	}
}
