package runrow

import (
	"context"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
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
	inEnds(&w, f)
	n, err := sqlrow.Count(ctx, c, `SELECT COUNT(*) FROM (SELECT 1 FROM runs e`+w.String()+sqlrow.Limit(limit+1)+`) AS s`,
		w.Args...)
	return n <= int64(limit), err
}

// inEnds adds the conditions that the runs e ended in the filter's period of ends, in a form that allows the index
// runs_ended: it has another time of a run that was taken over without its end.
func inEnds(w *sqlrow.Where, f run.Filter) {
	const end = `COALESCE(e.ended_at, e.status_at, e.created_at)`
	w.Conditions = append(w.Conditions, `e.ended_at IS NOT NULL`,
		`e.status IN ('completed', 'failed', 'canceled', 'terminated', 'timed_out')`)
	w.IsText("e.project", f.Project)
	// Without statistics of the expression, Postgres assumes that one bound selects a third of all runs, and reads the
	// table. It assumes that two select few.
	until := int64(math.MaxInt64)
	if !f.EndedUntil.IsZero() {
		until = f.EndedUntil.UnixMicro()
	}
	w.Is(end, ">=", max(f.EndedSince.UnixMicro(), 0))
	w.Is(end, "<", until)
}

// endedIn reads all runs that ended in the filter's period of ends, and sorts them by an expression, as [narrow] does.
// Each is looked up by its ID: for a join, Postgres may read all runs under the other conditions instead.
func endedIn(w *sqlrow.Where, f run.Filter, page string) string {
	others := f
	others.EndedSince, others.EndedUntil = time.Time{}, time.Time{}
	of := sqlrow.Where{Conditions: []string{`runs.id = e.id`}, Args: w.Args}
	rowConditions(&of, others)
	sqlrow.OneOf(&of, "runs.status", f.Statuses)
	textCondition(&of, f)
	all := sqlrow.Where{Args: of.Args}
	inEnds(&all, f)
	orderConditions(&all, f, "e.created_at", "e.id")
	all.Conditions = append(all.Conditions, `COALESCE((SELECT 1 FROM runs`+of.String()+`), 0) = 1`)
	w.Args = all.Args
	return `SELECT id AS hit FROM (SELECT id FROM (SELECT e.id, e.created_at + 0 AS created_at FROM runs e` +
		all.String() + `) AS u` + page + `) AS s`
}

// ended adds the condition on the end of runs.
func ended(w *sqlrow.Where, f run.Filter) {
	if f.EndsMatter() {
		w.Conditions = append(w.Conditions, `runs.ended_at IS NOT NULL`)
		between(w, "runs.ended_at", f.EndedSince, f.EndedUntil)
	}
}

// failedWith adds the condition on the type of the error of runs. It compares the beginning of the stored JSON, in
// which the type is the first member: both databases do so without parsing it.
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
	text, _ := json.Marshal(run.Error{Type: of}) //nolint:errchkjson // texts and numbers always encode
	begin, _, _ := strings.Cut(string(text), `,"status":`)
	return begin + `,`
}
