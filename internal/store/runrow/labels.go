package runrow

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// Label is a label of a run.
type Label struct {
	run  *run.Run
	name string
}

// Fields are the columns of a label.
func (l Label) Fields() sqlrow.Fields {
	return sqlrow.Row("run_id", l.run.ID, "name", l.name, "value", l.run.Labels[l.name], "project", l.run.Project,
		"created_at", l.run.CreatedAt.UnixMicro())
}

// LabelsOfRuns lists the labels of runs that were inserted.
func LabelsOfRuns(runs []*run.Run) (list []Label) {
	for _, r := range runs {
		for _, name := range slices.Sorted(maps.Keys(r.Labels)) {
			list = append(list, Label{r, name})
		}
	}
	return list
}

// RemoveLabels removes the labels of a run that is removed.
func RemoveLabels(ctx context.Context, c sqldb.Conn, id string) error {
	_, err := c.ExecContext(ctx, `DELETE FROM run_labels WHERE run_id = $1`, id)
	return err
}

// Attach reads what lists of runs show beside their rows: verdicts, labels, and whether the rows are behind.
func Attach(ctx context.Context, c sqldb.Conn, d sqldb.Dialect, runs []run.Run) error {
	for _, attach := range []func(context.Context, sqldb.Conn, sqldb.Dialect, []run.Run) error{
		AttachStuck, AttachLabels, AttachBehind} {
		if err := attach(ctx, c, d, runs); err != nil {
			return err
		}
	}
	return nil
}

// AttachLabels reads the labels of runs.
func AttachLabels(ctx context.Context, c sqldb.Conn, d sqldb.Dialect, runs []run.Run) error {
	at := make(map[string]*run.Run, len(runs))
	ids := make([]string, len(runs))
	for i := range runs {
		at[runs[i].ID], ids[i] = &runs[i], runs[i].ID
	}
	return sqlrow.In(ctx, d, ids, nil, func(ctx context.Context, marks string, args []any) error {
		_, err := sqlrow.Collect(ctx, c, `SELECT run_id, name, value FROM run_labels WHERE run_id IN `+marks, args,
			func(row sqlrow.Scanner) (struct{}, error) {
				var id, name, value string
				if err := row.Scan(&id, &name, &value); err != nil {
					return struct{}{}, err
				}
				r := at[id]
				if r.Labels == nil {
					r.Labels = map[string]string{}
				}
				r.Labels[name] = value
				return struct{}{}, nil
			})
		return err
	})
}

// LabelsOf returns the labels of a run; nil if it has none.
func LabelsOf(ctx context.Context, c sqldb.Conn, id string) (labels map[string]string, err error) {
	_, err = sqlrow.Collect(ctx, c, `SELECT name, value FROM run_labels WHERE run_id = $1`, []any{id},
		func(row sqlrow.Scanner) (struct{}, error) {
			var name, value string
			if err := row.Scan(&name, &value); err != nil {
				return struct{}{}, err
			}
			if labels == nil {
				labels = map[string]string{}
			}
			labels[name] = value
			return struct{}{}, nil
		})
	return labels, err
}

// hasLabels adds the condition that runs have the labels. Each reads an entry of an index for each run that the other
// conditions select: COALESCE prevents Postgres from reading all runs with the label instead.
func hasLabels(w *sqlrow.Where, labels map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		w.Conditions = append(w.Conditions,
			`COALESCE((SELECT 1 FROM run_labels b WHERE b.run_id = runs.id AND b.name = `+w.Arg(name)+
				` AND b.value = `+w.Arg(labels[name])+`), 0) = 1`)
	}
}

// takeLabel removes a label from the filter, and adds it as a condition on the table b of labels.
func takeLabel(w *sqlrow.Where, f *run.Filter, name string) {
	value := f.Labels[name]
	f.Labels = maps.Clone(f.Labels)
	delete(f.Labels, name)
	w.IsText("b.project", f.Project)
	w.Is("b.name", "=", name)
	w.Is("b.value", "=", value)
}

// labelled reads the runs with a label in the order of the list from its range of the index. The other conditions are
// checked run by run, until the page is full.
func labelled(w *sqlrow.Where, f run.Filter, name, page string) string {
	all, found := ofLabel(w, &f, name, `1`)
	orderConditions(&all, f, "b.created_at", "b.run_id")
	all.Conditions = append(all.Conditions, `COALESCE(`+found+`, 0) = 1`)
	w.Args = all.Args
	order := strings.NewReplacer("created_at", "b.created_at", ", id", ", b.run_id").Replace(page)
	return `SELECT run_id AS hit FROM (SELECT b.run_id FROM run_labels b` + all.String() + order + `) AS s`
}

// countLabelled returns the table r of the status and the time of creation of the runs with a label that match the
// filter. Each run is looked up by its ID: for a join, Postgres may read all labels for each run.
func countLabelled(w *sqlrow.Where, f run.Filter, name string) string {
	all, status := ofLabel(w, &f, name, `runs.status`)
	Period(&all, f, "b.created_at")
	w.Args = all.Args
	return `(SELECT status, created_at FROM (SELECT ` + status + ` AS status, b.created_at FROM run_labels b` +
		all.String() + `) AS s WHERE status IS NOT NULL) AS r`
}

// ofLabel returns the conditions on the rows b of a label, and the query for a column of the run of such a row, which
// has no result if the run does not match the rest of the filter.
func ofLabel(w *sqlrow.Where, f *run.Filter, name, column string) (rows sqlrow.Where, ofRun string) {
	rows = sqlrow.Where{Args: w.Args}
	takeLabel(&rows, f, name)
	of := sqlrow.Where{Conditions: []string{`runs.id = b.run_id`}, Args: rows.Args}
	rowConditions(&of, *f)
	sqlrow.OneOf(&of, "runs.status", f.Statuses)
	textCondition(&of, *f)
	rows.Args = of.Args
	return rows, `(SELECT ` + column + ` FROM runs` + of.String() + `)`
}

// labelSpread finds the label of the filter with the fewest runs.
func labelSpread(ctx context.Context, c sqldb.Conn, f run.Filter) (s Spread, err error) {
	fewest := int64(fewMatches + 2)
	for _, name := range slices.Sorted(maps.Keys(f.Labels)) {
		n, err := sqlrow.Count(ctx, c,
			`SELECT COUNT(*) FROM (SELECT 1 FROM run_labels WHERE project = $1 AND name = $2 AND value = $3`+
				sqlrow.Limit(fewMatches+1)+`) AS s`, f.Project, name, f.Labels[name])
		if err != nil {
			return s, err
		}
		if n < fewest {
			fewest, s.label = n, name
		}
	}
	s.fewLabelled = s.label != "" && fewest <= fewMatches
	if s.label == "" || s.fewLabelled || len(f.Statuses) == 0 && f.Workflow == "" && f.Trigger == "" {
		return s, nil
	}
	var w sqlrow.Where
	w.IsText("runs.project", f.Project)
	if w.IsText("runs.workflow", f.Workflow); f.Workflow == "" {
		w.IsText("runs.trigger_kind", f.Trigger)
	}
	sqlrow.OneOf(&w, "runs.status", f.Statuses)
	n, err := sqlrow.Count(ctx, c,
		`SELECT COUNT(*) FROM (SELECT 1 FROM runs`+w.String()+sqlrow.Limit(fewMatches+1)+`) AS s`, w.Args...)
	s.fewOthers = n <= fewMatches
	return s, err
}

// commonLabel is the number of runs with a label above which ended runs are counted in the order of another index until
// run.MaxCount have the label: this is then faster than to look up each run with the label.
const commonLabel = 30_000

// CountSpreadOf is SpreadOf for counts by status.
func CountSpreadOf(ctx context.Context, c sqldb.Conn, d sqldb.Dialect, f run.Filter) (s Spread, err error) {
	if s, err = SpreadOf(ctx, c, d, f); err != nil || s.fewLabelled || s.fewEnded {
		return s, err
	}
	if s.fewEnded, err = fewEnded(ctx, c, f, commonLabel); err != nil || s.fewEnded || s.label == "" {
		return s, err
	}
	var w sqlrow.Where
	takeLabel(&w, &f, s.label)
	Period(&w, f, "b.created_at")
	n, err := sqlrow.Count(ctx, c,
		`SELECT COUNT(*) FROM (SELECT 1 FROM run_labels b`+w.String()+sqlrow.Limit(commonLabel+1)+`) AS s`, w.Args...)
	s.fewOthers = s.fewOthers || n > commonLabel
	return s, err
}
