package listing

import (
	"strconv"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// ByStatus is the query for how many runs there are of each status, none included: the open ones all, those that have ended up to one
// more than limit, which bounds what is read of an index.
func ByStatus(f run.Filter, limit int) (string, []any) {
	var all sqlrow.Where
	all.IsText("runs.project", f.Project)
	all.IsText("runs.workflow", f.Workflow)
	Period(&all, f, "runs.created_at")
	parts := make([]string, len(run.Statuses()))
	for i, status := range run.Statuses() {
		// A status is one of ours, and in the text it has the type of text.
		name := `'` + string(status) + `'`
		where := sqlrow.Where{Conditions: append([]string{`runs.status = ` + name}, all.Conditions...)}
		rows := `SELECT 1 FROM runs` + where.String()
		if status.Terminal() {
			rows += ` ORDER BY runs.created_at, runs.id` + sqlrow.Limit(limit+1) // as the index has them, or the table might be read instead
		}
		parts[i] = `SELECT ` + name + ` AS status, COUNT(*) FROM (` + rows + `) AS s` + strconv.Itoa(i)
	}
	return strings.Join(parts, ` UNION ALL `), all.Args
}

// ByProblem is the query for how many runs are stuck for each reason.
func ByProblem(f run.Filter) (string, []any) {
	var w sqlrow.Where
	w.IsText("v.project", f.Project)
	if f.Workflow != "" {
		w.Conditions = append(w.Conditions, `v.workflow IN (`+w.Arg(f.Workflow)+`, '')`) // none, as a binary of before gives them
		w.IsText("runs.workflow", f.Workflow)
	}
	Period(&w, f, "v.created_at")
	return `SELECT v.code, COUNT(*) FROM run_verdicts v JOIN runs ON runs.id = v.run_id AND runs.sequence = v.sequence` + w.String() + ` GROUP BY v.code`, w.Args
}
