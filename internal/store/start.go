package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/groupcommit"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/sealed"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/runrow"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// maxStarts is the maximum number of runs that one transaction starts.
const maxStarts = 64

// start is a run to insert, with its audit entry and its outcome.
type start struct {
	run       run.Run
	entry     audit.Entry
	originals []runrow.OriginalRow
	// admission is the run's number in the queue for slots; none if the run has a slot or needs none.
	admission sql.NullInt64
	condition startCondition
	// made reports whether the run was inserted. Otherwise, run is the one that an earlier call with its request ID made,
	// or err is why there is none.
	made bool
	err  error
}

// startCondition is when a row of a statement that starts runs is inserted.
type startCondition int64

const (
	// ifUnlimited inserts the run in a project without a limit of runs.
	ifUnlimited startCondition = iota
	// always inserts it: it needs no slot, or its slot is decided.
	always
	// never is that of rows that fill a statement up to its number of rows.
	never
)

// InsertRun implements [sealed.Store]. Calls that arrive during a transaction of their project share the next one.
func (s *Store) InsertRun(ctx context.Context, given sealed.Sealed[run.Run],
	e audit.Entry) (stored run.Run, made bool, err error) {
	one, err := newStart(given.Value(), e)
	if err != nil {
		return stored, false, err
	}
	if err := s.activity.Record(ctx, one.run.Project); err != nil {
		return stored, false, err
	}
	_, err = s.starts.Do(ctx, one.run.Project, one)
	switch {
	case errors.Is(err, groupcommit.ErrClosed):
		return stored, false, apperror.New(apperror.Unavailable, apperror.StoreUnavailable,
			"insert run: the store is closed")
	case err != nil:
		return stored, false, s.db.Explain(ctx, "insert run", err)
	case one.err != nil:
		return stored, false, one.err
	}
	return one.run, one.made, nil
}

func newStart(r run.Run, e audit.Entry) (*start, error) {
	for _, field := range [][2]string{{"input", string(r.Input)}, {"request_id", r.RequestID}, {"reason", e.Reason}} {
		if err := sqlrow.Storable(field[0], field[1]); err != nil {
			return nil, err
		}
	}
	one := &start{
		run: r, entry: e, originals: runrow.OriginalRows(r.ID, r.Originals...), condition: ifUnlimited}
	if exempt(r) {
		one.condition = always
	}
	one.run.Sequence = max(r.Sequence, 1)
	one.run.Redacted = len(r.Originals) > 0
	one.run.InputRedacted = slices.ContainsFunc(r.Originals, func(o run.Original) bool {
		return o.What == run.OriginalInput
	})
	one.run.Originals, one.run.MissingLabels = nil, nil
	one.admission = admissionNumber(r)
	return one, nil
}

// plain reports whether one statement inserts everything that belongs to the run.
func (one *start) plain() bool {
	r := &one.run
	return r.Parent.RunID == "" && r.ReplayOf == "" && !r.AfterFailure && r.Lineage.IsZero() &&
		len(r.Warnings)+len(one.originals) == 0
}

// commitStarts inserts runs of a project, each with its own outcome. In Postgres, plain ones are one statement, which
// is one round trip.
func (s *Store) commitStarts(ctx context.Context, project string, list []*start) ([]*start, error) {
	rest := list
	if s.db.Dialect().WritesInQueries {
		rest = s.commitPlain(ctx, list)
	}
	if len(rest) > 0 {
		s.commitTogether(ctx, project, rest)
	}
	for _, one := range list {
		s.notifyQueued(one.run, one.made)
	}
	return list, nil
}

// commitPlain inserts the plain runs of projects without a limit of runs. It returns the starts without an outcome.
func (s *Store) commitPlain(ctx context.Context, list []*start) (rest []*start) {
	var plain []*start
	for _, one := range list {
		if one.plain() {
			plain = append(plain, one)
		}
	}
	if len(plain) == 0 {
		return list
	}
	err := s.db.Exec(ctx, "insert run", func(ctx context.Context, c sqldb.Conn) error {
		return s.insertStarts(ctx, c, plain)
	})
	for _, one := range list {
		if unavailable(err) && one.plain() {
			one.err = err
		} else if !one.made {
			rest = append(rest, one)
		}
	}
	return rest
}

func unavailable(err error) bool {
	f, ok := apperror.From(err)
	return ok && f.Class == apperror.Unavailable
}

// commitTogether inserts runs of a project in one transaction. If that fails although the database is available, each
// is tried alone, so that one that cannot be stored does not fail the others.
func (s *Store) commitTogether(ctx context.Context, project string, list []*start) {
	before := make([]start, len(list))
	for i, one := range list {
		before[i] = *one
	}
	err := s.db.Write(ctx, "insert run", func(ctx context.Context, c sqldb.Conn) error {
		for i, one := range list {
			*one = before[i]
		}
		return s.startRuns(ctx, c, project, list)
	})
	if err == nil {
		return
	}
	for i, one := range list {
		if *one = before[i]; len(list) == 1 || unavailable(err) {
			one.err = err
		} else {
			s.commitTogether(ctx, project, []*start{one})
		}
	}
}

// startRuns inserts runs of a project, or finds the ones that earlier calls with their request IDs made. Without a
// limit of runs, one statement inserts them; with one, it inserts only those that need no slot, and
// [Store.admitStarts] the others.
func (s *Store) startRuns(ctx context.Context, c sqldb.Conn, project string, list []*start) error {
	rest, err := s.refuseChildren(ctx, c, project, list)
	if err != nil {
		return err
	}
	if err := s.insertStarts(ctx, c, rest); err != nil {
		return err
	}
	rest = unmade(rest)
	for repeated := false; len(rest) > 0; repeated = true {
		// A slot is for a run that is inserted, so duplicates among several runs are found first.
		if repeated || len(rest) > 1 {
			if rest, err = s.findEarlier(ctx, c, project, rest); err != nil {
				return err
			}
		}
		if repeated && len(rest) > 0 {
			if err := ledger.NeedProject(ctx, c, project); err != nil {
				if unavailable(err) || !apperror.Is(err, apperror.ProjectNotFound) {
					return err
				}
				for _, one := range rest {
					one.err = err
				}
				break
			}
		}
		if err := s.admitStarts(ctx, c, project, rest); err != nil {
			return err
		}
		// A request ID is free again if its run was removed between two statements.
		rest = unmade(rest)
	}
	return s.writeParts(ctx, c, slices.DeleteFunc(slices.Clone(list), func(one *start) bool { return !one.made }))
}

// unmade returns the starts whose runs are not inserted.
func unmade(list []*start) []*start {
	return slices.DeleteFunc(slices.Clone(list), func(one *start) bool { return one.made })
}

// refuseChildren returns the runs that may be inserted: not the children of runs that must start none.
func (s *Store) refuseChildren(ctx context.Context, c sqldb.Conn, project string, list []*start) ([]*start, error) {
	var open, refused []*start
	refusals := map[string]error{"": nil}
	for _, one := range list {
		parent := one.run.Parent.RunID
		refusal, known := refusals[parent]
		if !known {
			refusal = runrow.NeedOpenAncestors(ctx, c, one.run)
			if refusal != nil && !errors.Is(refusal, run.ErrAncestorCanceled) {
				return nil, refusal
			}
			refusals[parent] = refusal
		}
		if refusal == nil {
			open = append(open, one)
		} else {
			refused = append(refused, one)
		}
	}
	refused, err := s.findEarlier(ctx, c, project, refused)
	for _, one := range refused {
		one.err = s.db.Explain(ctx, "insert run", run.ErrAncestorCanceled)
	}
	return open, err
}

// findEarlier finds the runs that were made with the request IDs. It returns the starts for which there is none.
func (s *Store) findEarlier(ctx context.Context, c sqldb.Conn, project string, list []*start) ([]*start, error) {
	var ids []string
	for _, one := range list {
		if one.run.RequestID != "" {
			ids = append(ids, one.run.RequestID)
		}
	}
	earlier := map[string]run.Run{}
	err := sqlrow.In(ctx, s.db.Dialect(), sqlrow.Distinct(ids), []any{project},
		func(ctx context.Context, marks string, args []any) error {
			found, err := sqlrow.Collect(ctx, c, `SELECT `+s.texts.run+` FROM runs WHERE project = `+s.db.Dialect().Mark(1)+
				` AND request_id IN `+marks, args, sqlrow.Scan(runFields))
			for _, r := range found {
				earlier[r.RequestID] = r
			}
			return err
		})
	return slices.DeleteFunc(slices.Clone(list), func(one *start) bool {
		r, found := earlier[one.run.RequestID]
		if found {
			one.run = r
		}
		return found
	}), err
}

// admitStarts inserts runs of a project that has, or had, a limit of runs: the first of them with the free slots, the
// others in the queue for one. It leaves a run with a taken request ID as it was.
func (s *Store) admitStarts(ctx context.Context, c sqldb.Conn, project string, list []*start) error {
	if len(list) == 0 {
		return nil
	}
	a, err := acceptRuns(ctx, c, project, len(list))
	if err != nil {
		return err
	}
	before := make([]start, len(list))
	for i, one := range list {
		before[i] = *one
		switch {
		case one.condition == always:
		case a.slots > 0:
			a.slots--
		default:
			one.run.QueuedReason, one.run.ExpiresAt = run.QueuedAdmission, time.Time{}
			one.admission = sql.NullInt64{Int64: a.first + int64(i), Valid: true}
		}
		one.condition = always
	}
	if err := s.insertStarts(ctx, c, list); err != nil {
		return err
	}
	position := int64(0)
	for i, one := range list {
		if !one.made {
			*one = before[i]
			continue
		}
		if one.run.QueuedReason != run.QueuedAdmission {
			continue
		}
		if position == 0 {
			if position, err = admissionPosition(ctx, c, project, one.run.ID); err != nil {
				return err
			}
		}
		one.run.QueuePosition = position
		position++
	}
	return nil
}

// insertStarts adds runs with one statement: those with a free request ID whose condition is met. Of runs with the same
// ID, only the first one is tried.
func (s *Store) insertStarts(ctx context.Context, c sqldb.Conn, list []*start) error {
	byID := make(map[string]*start, len(list))
	rows := make([]*start, 0, 2*len(list))
	for _, one := range list {
		if byID[one.run.ID] == nil {
			byID[one.run.ID] = one
			rows = append(rows, one)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	filler := *rows[0]
	filler.condition = never
	for len(rows)&(len(rows)-1) != 0 {
		rows = append(rows, &filler)
	}
	type inserted struct {
		id      string
		metered bool
	}
	made, err := sqlrow.Returning(ctx, c, s.texts.starts, rows, func(row sqlrow.Scanner) (i inserted, err error) {
		return i, row.Scan(&i.id, &i.metered)
	})
	for _, i := range made {
		one := byID[i.id]
		r := &one.run
		r.CreatedAt, r.StatusAt, r.ExpiresAt = sqlrow.Kept(r.CreatedAt), sqlrow.Kept(r.StatusAt), sqlrow.Kept(r.ExpiresAt)
		r.Metered, one.made = i.metered, true
	}
	return err
}

// startFields are the columns of a new run. A run that waits for a slot counts as disclosed to its caller.
func startFields(one *start) sqlrow.Fields {
	r := one.run
	r.WaitingKind, r.CancelReason, r.StartedAt, r.EndedAt = "", "", time.Time{}, time.Time{}
	r.StepsTotal, r.StepsDone, r.Position = 0, 0, 0
	return append(insertedFields(&r), sqlrow.Row(
		"state_position", 0, "input", sqlrow.RawInto(&r.Input), "expires_at", sqlrow.TimeInto(&r.ExpiresAt),
		"disclosed", r.QueuedReason == run.QueuedAdmission, "admission", one.admission, "request_digest", r.RequestDigest,
	)...)
}

// startsStatement returns the statement that inserts runs of one project and returns their IDs and whether they are
// metered. Where the database has queries that write, it also inserts their labels, terms and audit entries.
func startsStatement(d sqldb.Dialect) *sqlrow.Statement[*start] {
	columns := startFields(&start{}).Names("")
	entry := ledger.Fields(&audit.Entry{}).Names("")
	entryColumns := ledger.Fields(&audit.Entry{}).Names("entry_")
	row := func(one *start) sqlrow.Fields {
		fields := append(startFields(one), sqlrow.Col("condition", int64(one.condition)))
		if !d.WritesInQueries {
			return fields
		}
		for _, f := range ledger.Fields(&one.entry) {
			fields = append(fields, sqlrow.Col("entry_"+f.Name, f.Value))
		}
		words := run.StartWords(one.run)
		return append(fields, sqlrow.Col("labels", sqlrow.JSONInto(&one.run.Labels)),
			sqlrow.Col("words", sqlrow.JSONInto(&words)))
	}
	return sqlrow.NewStatement(row, func(given sqlrow.Fields, rows int) (string, error) {
		values, err := sqlrow.Values(d, given, rows)
		if err != nil {
			return "", err
		}
		with := `WITH v (` + given.Names("") + `) AS (` + values + `), p (metered, head, unlimited) AS MATERIALIZED (
SELECT ` + metered + `, COALESCE((SELECT head FROM inboxes i WHERE i.project = projects.name), 0), ` + unlimited + `
FROM projects WHERE name = (SELECT project FROM v LIMIT 1))`
		insert := `INSERT INTO runs (` + columns + `, metered, events_after) SELECT ` + columns + `, p.metered, p.head FROM v, p
WHERE v.condition = 1 OR v.condition = 0 AND p.unlimited
ON CONFLICT (project, request_id) DO NOTHING RETURNING id, metered`
		if !d.WritesInQueries {
			return with + ` ` + insert, nil
		}
		return with + `, made AS (` + insert + `), entries AS (INSERT INTO audit (` + entry + `)
SELECT ` + entryColumns + ` FROM v JOIN made ON made.id = v.id WHERE v.condition < 2),
labels AS (INSERT INTO run_labels (run_id, name, value, project, created_at)
SELECT v.id, l.key, l.value, v.project, v.created_at FROM v JOIN made ON made.id = v.id,
json_each_text(CAST(NULLIF(v.labels, 'null') AS JSON)) l WHERE v.condition < 2),
terms AS (INSERT INTO run_terms (run_id, term, kinds, project, created_at)
SELECT v.id, t.value, 1, v.project, v.created_at FROM v JOIN made ON made.id = v.id,
json_array_elements_text(CAST(NULLIF(v.words, 'null') AS JSON)) t (value) WHERE v.condition < 2
ON CONFLICT (run_id, term) DO NOTHING) SELECT id, metered FROM made`, nil
	})
}

// writeParts writes what belongs to inserted runs beside their rows.
func (s *Store) writeParts(ctx context.Context, c sqldb.Conn, made []*start) error {
	d := s.db.Dialect()
	runs := make([]*run.Run, len(made))
	var originals []runrow.OriginalRow
	for i, one := range made {
		runs[i] = &one.run
		originals = append(originals, one.originals...)
		if err := runrow.Link(ctx, c, one.run); err != nil {
			return err
		}
	}
	if !d.WritesInQueries {
		if _, err := s.texts.labels.Exec(ctx, c, runrow.LabelsOfRuns(runs)); err != nil {
			return err
		}
		if _, err := s.texts.terms.Exec(ctx, c, runrow.TermsOfStarts(runs)); err != nil {
			return err
		}
		if _, err := s.texts.entries.Exec(ctx, c, made); err != nil {
			return err
		}
	}
	return errors.Join(runrow.AddWarnings(ctx, c, d, runs), runrow.WriteOriginals(ctx, c, d, originals))
}

// notifyQueued reports a run that waits for a slot to OnAdmissible: one may have become free while the store decided
// that there was none.
func (s *Store) notifyQueued(r run.Run, made bool) {
	if made && r.QueuedReason == run.QueuedAdmission {
		s.notifyAdmissible(r.Project)
	}
}
