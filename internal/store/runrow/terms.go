package runrow

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/search/term"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// Kinds of terms, as bits: one word may be of several.
const (
	startTerm = 1 << iota
	errorTerm
	taskTerm
	anyTerm = startTerm | errorTerm | taskTerm
)

// Term is a word by which a run is found.
type Term struct {
	runID, term, project string
	kinds                int64
	createdAt            time.Time
}

// Fields are the columns of a term.
func (t Term) Fields() sqlrow.Fields {
	return sqlrow.Row("run_id", t.runID, "term", t.term, "kinds", t.kinds, "project", t.project,
		"created_at", t.createdAt.UnixMicro())
}

// TermsOfStarts lists the terms of runs that were inserted.
func TermsOfStarts(runs []*run.Run) (list []Term) {
	for _, r := range runs {
		for _, word := range run.StartWords(*r) {
			list = append(list, Term{r.ID, word, r.Project, startTerm, r.CreatedAt})
		}
	}
	return list
}

// AddErrorTerms adds the terms of the errors of runs that have ended.
func AddErrorTerms(ctx context.Context, c sqldb.Conn, d sqldb.Dialect, ended []run.Run) error {
	var list []Term
	for _, r := range ended {
		words := run.ErrorWords(r.Error)
		for _, word := range words {
			list = append(list, Term{r.ID, word, r.Project, errorTerm, r.CreatedAt})
		}
		task := term.Normal(run.FailedTask(r.Error))
		if at := slices.Index(words, task); at >= 0 {
			list[len(list)-len(words)+at].kinds |= taskTerm
		} else if task != "" {
			list = append(list, Term{r.ID, task, r.Project, taskTerm, r.CreatedAt})
		}
	}
	_, err := sqlrow.InsertMany(ctx, c, d, "run_terms",
		` ON CONFLICT (run_id, term) DO UPDATE SET kinds = run_terms.kinds | excluded.kinds`, list, Term.Fields)
	return err
}

// RemoveTerms removes the terms of a run that is removed.
func RemoveTerms(ctx context.Context, c sqldb.Conn, id string) error {
	_, err := c.ExecContext(ctx, `DELETE FROM run_terms WHERE run_id = $1`, id)
	return err
}

// wanted is a term that a run must have: one of some kinds that begins with a word, or is the word.
type wanted struct {
	word  string
	exact bool
	kinds int64
	// elsewhere: the name of the workflow or the key of a label may contain the word instead.
	elsewhere bool
}

// wantedTerms returns the conditions of a filter on terms.
func wantedTerms(f run.Filter) (list []wanted) {
	if f.FailedTask != "" {
		list = append(list, wanted{word: term.Normal(f.FailedTask), exact: true, kinds: taskTerm})
	}
	for _, word := range term.Words(f.ErrorText) {
		list = append(list, wanted{word: word, kinds: errorTerm})
	}
	for _, word := range term.Words(f.Words) {
		list = append(list, wanted{word: word, kinds: startTerm | errorTerm, elsewhere: true})
	}
	return list
}

// rows returns the condition that a row x of run_terms is such a term.
func (t wanted) rows(w *sqlrow.Where) string {
	var condition string
	if t.exact {
		condition = `x.term = ` + w.Arg(t.word)
	} else {
		condition = `x.term >= ` + w.Arg(t.word) + ` AND x.term < ` + w.Arg(upperBound(t.word))
	}
	if t.kinds != anyTerm {
		condition += ` AND (x.kinds & ` + w.Arg(t.kinds) + `) <> 0`
	}
	return condition
}

// hasTerms adds the conditions of a filter on terms. Each reads some entries of an index for each run that the other
// conditions select: COALESCE prevents Postgres from reading all runs with the term instead.
func hasTerms(w *sqlrow.Where, f run.Filter) {
	var some []string // of the words that may be elsewhere, one must be a term
	list := wantedTerms(f)
	for _, t := range list {
		has := `COALESCE((SELECT 1 FROM run_terms x WHERE x.run_id = runs.id AND ` + t.rows(w) + ` LIMIT 1), 0) = 1`
		if !t.elsewhere {
			w.Conditions = append(w.Conditions, has)
			continue
		}
		some = append(some, has)
		pattern := w.Arg(sqlrow.Contains(t.word))
		w.Conditions = append(w.Conditions, `(`+has+` OR lower(runs.workflow) LIKE `+pattern+` ESCAPE '!'
OR COALESCE((SELECT 1 FROM run_labels k WHERE k.run_id = runs.id AND lower(k.name) LIKE `+pattern+` ESCAPE '!' LIMIT 1), 0) = 1)`)
	}
	if len(some) > 1 {
		w.Conditions = append(w.Conditions, `(`+strings.Join(some, ` OR `)+`)`)
	} else {
		w.Conditions = append(w.Conditions, some...)
	}
}

const (
	// fewFound is the maximum number of terms whose runs are read and sorted.
	fewFound = 5000
	// fewTerms is the maximum number of different terms whose runs are read in the order of the list, each from its range
	// of the index.
	fewTerms = 20
)

// foundBy is where the runs with a wanted term are found.
type foundBy struct {
	wanted

	// count is the number of rows with the term, up to one more than fewFound.
	count int64
	// terms are the different ones; nil if these are many, or the rows few.
	terms []string
}

// few reports whether the runs are so few that they can be sorted.
func (b foundBy) few() bool { return b.count <= fewFound }

// wordSpread returns what the runs of a filter are found by: the wanted term that the fewest runs have, or, of words
// that may be elsewhere, each that is a term of a run. It is empty for a filter without such a condition. No run matches
// if nothing has one of the terms.
func wordSpread(ctx context.Context, c sqldb.Conn, f run.Filter) ([]foundBy, error) {
	var required, others []foundBy
	for _, t := range wantedTerms(f) {
		var w sqlrow.Where
		w.Is("x.project", "=", f.Project)
		w.Conditions = append(w.Conditions, t.rows(&w))
		n, err := sqlrow.Count(ctx, c,
			`SELECT COUNT(*) FROM (SELECT 1 FROM run_terms x`+w.String()+sqlrow.Limit(fewFound+1)+`) AS s`, w.Args...)
		if err != nil {
			return nil, err
		}
		if t.elsewhere {
			others = append(others, foundBy{wanted: t, count: n})
		} else {
			required = append(required, foundBy{wanted: t, count: n})
		}
	}
	found := others
	switch {
	case len(required) > 0:
		found = []foundBy{slices.MinFunc(required, func(a, b foundBy) int { return cmp.Compare(a.count, b.count) })}
	case slices.ContainsFunc(others, func(b foundBy) bool { return b.count > 0 }):
		found = slices.DeleteFunc(others, func(b foundBy) bool { return b.count == 0 })
	case len(others) > 0:
		found = others[:1] // none has any
	}
	for i := range found {
		if !found[i].few() {
			var err error
			if found[i].terms, err = termsIn(ctx, c, f.Project, found[i].wanted); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// termsIn returns the different terms that begin with a word; nil if they are many.
func termsIn(ctx context.Context, c sqldb.Conn, project string, t wanted) ([]string, error) {
	if t.exact {
		return []string{t.word}, nil
	}
	var terms []string
	for last := ""; len(terms) <= fewTerms; {
		next, err := sqlrow.Collect(ctx, c, `SELECT term FROM run_terms
WHERE project = $1 AND term >= $2 AND term < $3 AND term > $4 ORDER BY term LIMIT 1`,
			[]any{project, t.word, upperBound(t.word), last}, sqlrow.ScanText)
		if err != nil || len(next) == 0 {
			return terms, err
		}
		terms, last = append(terms, next[0]), next[0]
	}
	return nil, nil
}

func manyFound(words []foundBy) bool {
	return slices.ContainsFunc(words, func(b foundBy) bool { return !b.few() })
}

// foundRows selects the IDs of the runs with one of a few terms.
func foundRows(w *sqlrow.Where, f run.Filter, words []foundBy) string {
	parts := make([]string, len(words))
	for i, b := range words {
		rows := sqlrow.Where{Args: w.Args}
		rows.Is("x.project", "=", f.Project)
		rows.Conditions = append(rows.Conditions, b.rows(&rows))
		w.Args = rows.Args
		parts[i] = `SELECT x.run_id FROM run_terms x` + rows.String()
	}
	return strings.Join(parts, ` UNION `)
}

// found reads the runs with one of the terms: few are sorted, those of a few different terms are read in the order of
// the list from the range of each, and others are found in the order of the list.
func found(w *sqlrow.Where, f run.Filter, s Spread, page string) (hits []string) {
	sort := func(words []foundBy) string {
		return narrow(w, f, `(SELECT DISTINCT run_id FROM (`+foundRows(w, f, words)+`) AS m) AS n`, page)
	}
	if !manyFound(s.words) {
		return []string{sort(s.words)}
	}
	for _, b := range s.words {
		switch {
		case b.few():
			hits = append(hits, sort([]foundBy{b}))
		case b.terms == nil:
			return append(hits, indexScan(w, f, page, false)...)
		default:
			for _, one := range b.terms {
				hits = append(hits, ofTerm(w, f, wanted{word: one, exact: true, kinds: b.kinds}, page))
			}
		}
	}
	return hits
}

// ofTerm reads the runs with a term in the order of the list. The other conditions are checked run by run, until the
// page is full.
func ofTerm(w *sqlrow.Where, f run.Filter, t wanted, page string) string {
	all := sqlrow.Where{Args: w.Args}
	all.Is("x.project", "=", f.Project)
	all.Conditions = append(all.Conditions, t.rows(&all))
	of := sqlrow.Where{Conditions: []string{`runs.id = x.run_id`}, Args: all.Args}
	rowConditions(&of, f)
	sqlrow.OneOf(&of, "runs.status", f.Statuses)
	textCondition(&of, f)
	all.Args = of.Args
	orderConditions(&all, f, "x.created_at", "x.run_id")
	all.Conditions = append(all.Conditions, `COALESCE((SELECT 1 FROM runs`+of.String()+`), 0) = 1`)
	w.Args = all.Args
	order := strings.NewReplacer("created_at", "x.created_at", ", id", ", x.run_id").Replace(page)
	return `SELECT run_id AS hit FROM (SELECT x.run_id FROM run_terms x` + all.String() + order + `) AS s`
}
