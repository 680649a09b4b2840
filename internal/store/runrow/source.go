package runrow

import (
	"time"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// source returns the table n of the IDs, in the column run_id, of the runs that another table selects: few, compared
// with the runs of a project. It clears the condition of the filter that the table fulfils. It is empty for a filter
// without such a selection.
func source(w *sqlrow.Where, f *run.Filter, s Spread) string {
	var rows string
	switch {
	case len(f.Problems) > 0:
		v := sqlrow.Where{Conditions: []string{`v.sequence = (SELECT runs.sequence FROM runs WHERE runs.id = v.run_id)`}, Args: w.Args}
		v.IsText("v.project", f.Project)
		codes(&v, *f)
		w.Args, f.Problems = v.Args, nil
		rows = `SELECT v.run_id FROM run_verdicts v` + v.String()
	case f.ParentRunID != "":
		rows = `SELECT run_id FROM run_links WHERE parent = ` + w.Arg(f.ParentRunID) + ` AND parent <> ''`
		f.ParentRunID = ""
	case f.ReplayOf != "":
		rows = `SELECT run_id FROM run_links WHERE replay_of = ` + w.Arg(f.ReplayOf) + ` AND replay_of <> ''`
		f.ReplayOf = ""
	case f.BatchID != "":
		rows, f.BatchID = `SELECT run_id FROM batch_items WHERE batch = `+w.Arg(f.BatchID), ""
	case f.StartedByBatchID != "":
		rows, f.StartedByBatchID = `SELECT new_run_id AS run_id FROM batch_items WHERE batch = `+w.Arg(f.StartedByBatchID)+` AND new_run_id <> ''`, ""
	case f.FailureGroup != "":
		group := sqlrow.Where{Conditions: []string{`g.failure_group <> ''`}, Args: w.Args}
		group.IsText("g.project", f.Project)
		inFailureGroup(&group, "g.failure_group", f.FailureGroup)
		w.Args, f.FailureGroup = group.Args, ""
		rows = `SELECT g.id AS run_id FROM runs g` + group.String()
	case s.fewEnded:
		ends := sqlrow.Where{Args: w.Args}
		inEnds(&ends, *f)
		w.Args = ends.Args
		rows = `SELECT e.id AS run_id FROM runs e` + ends.String()
		f.EndedSince, f.EndedUntil = time.Time{}, time.Time{}
	case s.few:
		ofProject := sqlrow.Where{Args: w.Args}
		ofProject.IsText("runs.project", f.Project)
		ofProject.Conditions = append(ofProject.Conditions, begins(&ofProject, "request_id", f.Text))
		w.Args = ofProject.Args
		rows = `SELECT runs.id AS run_id FROM runs WHERE ` + begins(w, "id", f.Text) + ` UNION SELECT runs.id FROM runs` + ofProject.String()
		f.Text = ""
	default:
		return ``
	}
	return `(` + rows + `) AS n`
}

// narrow reads all runs that another table selects, and sorts them. The order is by expressions, which prevents Postgres
// from scanning the index of the list's order for the few runs instead.
func narrow(w *sqlrow.Where, f run.Filter, from, page string) string {
	all := sqlrow.Where{Args: w.Args}
	conditions(&all, f, "runs.created_at", "runs.id")
	sqlrow.OneOf(&all, "runs.status", f.Statuses)
	textCondition(&all, f)
	all.Conditions = append(all.Conditions, `runs.id = n.run_id`)
	w.Args = all.Args
	return `SELECT id AS hit FROM (SELECT id FROM (SELECT runs.id, runs.created_at + 0 AS created_at FROM ` + from + ` CROSS JOIN runs` + all.String() + `) AS u` + page + `) AS s`
}
