package runrow

import (
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// link is a condition of a filter whose runs another table lists under an ID.
type link struct {
	id *string
	// rows selects the IDs of all these runs, entry the entry of the run in the table runs. Both end with a comparison
	// with the ID.
	rows, entry string
}

func (l link) isGiven() bool { return *l.id != "" }

func links(f *run.Filter) []link {
	return []link{
		{&f.ParentRunID, `run_id FROM run_links WHERE parent <> '' AND parent = `,
			`run_links l WHERE l.run_id = runs.id AND l.parent = `},
		{&f.ReplayOf, `run_id FROM run_links WHERE replay_of <> '' AND replay_of = `,
			`run_links l WHERE l.run_id = runs.id AND l.replay_of = `},
		{&f.BatchID, `run_id FROM batch_items WHERE batch = `, `batch_items b WHERE b.run_id = runs.id AND b.batch = `},
		{&f.StartedByBatchID, `new_run_id AS run_id FROM batch_items WHERE new_run_id <> '' AND batch = `,
			`batch_items b WHERE b.new_run_id = runs.id AND b.new_run_id <> '' AND b.batch = `},
	}
}

// isLinked reports whether the filter has such a condition, or selects runs by their retries.
func isLinked(f run.Filter) bool {
	return f.Retrying != "" || slices.ContainsFunc(links(&f), link.isGiven)
}

// Retrying is the condition that a step t belongs to a run that attempts it again. A paused run attempts nothing.
const Retrying = `t.run_id = runs.id AND t.retries > 0 AND runs.status IN ` + openStatuses +
	` AND runs.waiting_kind <> '` + run.WaitingPaused + `'`

// retried returns [Retrying] for the task of a filter.
func retried(w *sqlrow.Where, task string) string {
	if task == run.AnyTask {
		return Retrying
	}
	name := w.Arg(task)
	return Retrying + ` AND (t.task = ` + name + ` OR t.pointer = ` + name + `)`
}

// source returns the table n of the IDs, in the column run_id, of the runs that another table selects: few, compared
// with the runs of a project. It clears the condition of the filter that the table fulfils. It is empty for a filter
// without such a selection.
func source(w *sqlrow.Where, f *run.Filter, s Spread) string {
	var rows string
	switch {
	case len(f.Stuck) > 0:
		v := sqlrow.Where{Conditions: []string{`v.sequence = (SELECT runs.sequence FROM runs WHERE runs.id = v.run_id)`},
			Args: w.Args}
		v.IsText("v.project", f.Project)
		codes(&v, *f)
		w.Args, f.Stuck = v.Args, nil
		rows = `SELECT v.run_id FROM run_verdicts v` + v.String()
	case f.Retrying != "":
		rows = `SELECT DISTINCT t.run_id FROM steps t CROSS JOIN runs WHERE ` + retried(w, f.Retrying)
		f.Retrying = ""
	case isLinked(*f):
		all := links(f)
		l := all[slices.IndexFunc(all, link.isGiven)]
		rows, *l.id = `SELECT `+l.rows+w.Arg(*l.id), ""
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
	case len(s.words) > 0 && !manyFound(s.words):
		rows = foundRows(w, *f, s.words)
	case s.few:
		rows = `SELECT runs.id AS run_id FROM runs WHERE ` + begins(w, "id", f.Text)
		for _, column := range []string{"request_id", endOfID} {
			ofProject := sqlrow.Where{Args: w.Args}
			ofProject.IsText("runs.project", f.Project)
			ofProject.Conditions = append(ofProject.Conditions, has(&ofProject, column, f.Text))
			w.Args = ofProject.Args
			rows += ` UNION SELECT runs.id FROM runs` + ofProject.String()
		}
		f.Text = ""
	default:
		return ``
	}
	return `(` + rows + `) AS n`
}

// narrow reads all runs that another table selects, and sorts them. The order is by expressions, which prevents
// Postgres from scanning the index of the list's order for the few runs instead.
func narrow(w *sqlrow.Where, f run.Filter, from, page string) string {
	all := sqlrow.Where{Args: w.Args}
	conditions(&all, f, "runs.created_at", "runs.id")
	sqlrow.OneOf(&all, "runs.status", f.Statuses)
	textCondition(&all, f)
	all.Conditions = append(all.Conditions, `runs.id = n.run_id`)
	w.Args = all.Args
	return `SELECT id AS hit FROM (SELECT id FROM (SELECT runs.id, runs.created_at + 0 AS created_at FROM ` + from +
		` CROSS JOIN runs` + all.String() + `) AS u` + page + `) AS s`
}
