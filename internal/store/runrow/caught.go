package runrow

import (
	"context"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// kindTry is the kind of the steps that catch errors.
const kindTry = "try"

// entry is what a step's being caught depends on.
type entry struct {
	number       int64
	path, status string
}

func scanEntry(row sqlrow.Scanner) (e entry, err error) {
	err = row.Scan(&e.number, &e.path, &e.status)
	return e, err
}

// MarkCaught sets Caught of the failed steps in a list of steps of a run.
func MarkCaught(ctx context.Context, c sqldb.Conn, id string, steps []run.Step) error {
	last := int64(0)
	for i := range steps {
		if isFailed(&steps[i]) {
			last = max(last, steps[i].Number)
		}
	}
	if last == 0 {
		return nil
	}
	tries, err := triesBefore(ctx, c, id, last)
	for i := range steps {
		if isFailed(&steps[i]) {
			steps[i].Caught = run.Caught(steps[i].Path, tries)
		}
	}
	return err
}

func isFailed(t *run.Step) bool { return t.Status == string(run.Failed) }

// triesBefore returns the statuses of the tries of a run by path. What is inside of a try has a greater number.
func triesBefore(ctx context.Context, c sqldb.Conn, id string, number int64) (map[string]string, error) {
	found, err := sqlrow.Collect(ctx, c,
		`SELECT number, path, status FROM steps WHERE run_id = $1 AND kind = $2 AND number < $3`,
		[]any{id, kindTry, number}, scanEntry)
	statuses := make(map[string]string, len(found))
	for _, try := range found {
		statuses[try.path] = try.status
	}
	return statuses, err
}

// caughtCondition selects by number the first steps of those that the conditions select and whose error was caught, or
// was not.
func caughtCondition(ctx context.Context, c sqldb.Conn, w *sqlrow.Where, id string, f run.StepFilter,
	order string) error {
	w.Conditions = append(w.Conditions, "status = 'failed'") // a text, so that the index of failed steps is used
	candidates, err := sqlrow.Collect(ctx, c, `SELECT number, path, status FROM steps`+w.String()+order, w.Args, scanEntry)
	if err != nil || len(candidates) == 0 {
		return err
	}
	tries, err := triesBefore(ctx, c, id, max(candidates[0].number, candidates[len(candidates)-1].number))
	if err != nil {
		return err
	}
	marks := []string{"NULL"} // selects nothing
	for _, t := range candidates {
		if is := run.Caught(t.path, tries); is == nil || *is != *f.Caught {
			continue
		}
		marks = append(marks, w.Arg(t.number))
		if f.Limit--; f.Limit < 0 {
			break
		}
	}
	w.Conditions = append(w.Conditions, "number IN ("+strings.Join(marks, ", ")+")")
	return nil
}

// CompletedTry reports whether a step is a try that has completed.
func CompletedTry(t run.Step) bool {
	return t.Kind == kindTry && t.Status == string(run.Completed)
}

// CaughtSteps returns the numbers of the failed steps inside of those of the given steps that are completed tries.
func CaughtSteps(ctx context.Context, c sqldb.Conn, id string, steps []run.Step) ([]int64, error) {
	tries := map[string]bool{}
	first := int64(0)
	for _, t := range steps {
		if CompletedTry(t) {
			tries[t.Path] = true
			if first == 0 || t.Number < first {
				first = t.Number
			}
		}
	}
	found, err := sqlrow.Collect(ctx, c,
		`SELECT number, path, status FROM steps WHERE run_id = $1 AND status = 'failed' AND number > $2 ORDER BY number`,
		[]any{id, first}, scanEntry)
	var numbers []int64
	for _, t := range found {
		if slices.ContainsFunc(run.EnclosingTries(t.path), func(path string) bool { return tries[path] }) {
			numbers = append(numbers, t.number)
		}
	}
	return numbers, err
}
