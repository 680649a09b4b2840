package runrow

import (
	"strconv"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// ByStatus returns the query for the number of runs of each status, including zero. Open runs are all counted, runs
// that have ended only up to limit + 1, which bounds the part of an index that is read.
func ByStatus(f run.Filter, limit int) (string, []any) {
	var all sqlrow.Where
	all.IsText("runs.project", f.Project)
	workflow, statusIs := "runs.workflow", "runs.status = "
	if f.FailureGroup != "" {
		// Prevents the databases from choosing the indexes of these columns.
		workflow, statusIs = "COALESCE(runs.workflow, '')", "COALESCE(runs.status, '') = "
	}
	all.IsText(workflow, f.Workflow)
	inFailureGroup(&all, "runs.failure_group", f.FailureGroup)
	Period(&all, f, "runs.created_at")
	parts := make([]string, len(run.Statuses()))
	for i, status := range run.Statuses() {
		// The status is a constant, not user input, and in the text it has the type text.
		name := `'` + string(status) + `'`
		where := sqlrow.Where{Conditions: append([]string{statusIs + name}, all.Conditions...)}
		rows := `SELECT 1 FROM runs` + where.String()
		if status.Terminal() {
			rows += ` ORDER BY runs.created_at, runs.id` + sqlrow.Limit(limit+1) // in the order of the index, or the database might read the table instead
		}
		parts[i] = `SELECT ` + name + ` AS status, COUNT(*) FROM (` + rows + `) AS s` + strconv.Itoa(i)
	}
	return strings.Join(parts, ` UNION ALL `), all.Args
}

// ByProblem returns the query for the number of stuck runs for each reason.
func ByProblem(f run.Filter) (string, []any) {
	var w sqlrow.Where
	w.IsText("v.project", f.Project)
	if f.Workflow != "" {
		w.Conditions = append(w.Conditions, `v.workflow IN (`+w.Arg(f.Workflow)+`, '')`) // rows of older binaries have no workflow
		w.IsText("runs.workflow", f.Workflow)
	}
	inFailureGroup(&w, "runs.failure_group", f.FailureGroup) // none: stuck runs have not ended
	Period(&w, f, "v.created_at")
	return `SELECT v.code, COUNT(*) FROM run_verdicts v JOIN runs ON runs.id = v.run_id AND runs.sequence = v.sequence` + w.String() + ` GROUP BY v.code`, w.Args
}
