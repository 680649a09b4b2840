package runrow

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// fewEnded reports whether the filter has a period of ends in which limit runs of the project ended at most.
func fewEnded(ctx context.Context, c sqldb.Conn, f run.Filter, limit int) (bool, error) {
	if !f.EndsMatter() {
		return false, nil
	}
	var w sqlrow.Where
	rows := inEnds(&w, f)
	n, err := sqlrow.Count(ctx, c, `SELECT COUNT(*) FROM (`+rows+sqlrow.Limit(limit+1)+`) AS s`, w.Args...)
	return n <= int64(limit), err
}

// inEnds returns the query for the IDs of the runs that the index runs_ended has in the filter's period of ends. The index has
// another time of a run that was taken over without its end, so that the filter's own condition applies as well.
func inEnds(w *sqlrow.Where, f run.Filter) string {
	const end = `COALESCE(e.ended_at, e.status_at, e.created_at)`
	ends := sqlrow.Where{Conditions: []string{`e.status IN ('completed', 'failed', 'canceled', 'terminated', 'timed_out')`}, Args: w.Args}
	ends.IsText("e.project", f.Project)
	between(&ends, end, f.EndedSince, f.EndedUntil)
	w.Args = ends.Args
	return `SELECT e.id AS run_id FROM runs e` + ends.String()
}

// ended adds the condition on the end of runs.
func ended(w *sqlrow.Where, f run.Filter) {
	if f.EndsMatter() {
		w.Conditions = append(w.Conditions, `runs.ended_at IS NOT NULL`)
		between(w, "runs.ended_at", f.EndedSince, f.EndedUntil)
	}
}

// failedWith adds the condition on the type of the error of runs. It compares the beginning of the stored JSON, in which the type is
// the first member: both databases do so without parsing it.
func failedWith(w *sqlrow.Where, name string) {
	if name == "" {
		return
	}
	var types []string
	for _, of := range run.ErrorTypes(name) {
		begin := errorBegin(of)
		types = append(types, `substr(runs.error, 1, `+strconv.Itoa(utf8.RuneCountInString(begin))+`) = `+w.Arg(begin))
	}
	w.Conditions = append(w.Conditions, `(`+strings.Join(types, ` OR `)+`)`)
}

// errorBegin returns how the stored error of a type begins.
func errorBegin(of string) string {
	text, _ := json.Marshal(run.Problem{Type: of}) //nolint:errchkjson // texts and numbers always encode
	begin, _, _ := strings.Cut(string(text), `,"status":`)
	return begin + `,`
}
