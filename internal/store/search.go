package store

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/search"
	"github.com/signalbox-dev/signalbox/internal/search/term"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/runrow"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// Search finds things by texts. Each query reads a range of an index, or a table with a row for each workflow, task,
// batch or problem of a project.
type Search struct{ db *sqldb.DB }

var _ search.Store = (*Search)(nil)

const (
	// scanned is the maximum number of IDs with the same beginning, and of problems, that are read.
	scanned = 500
	// maxScope is the maximum number of projects of an actor without a role in all projects in which IDs are looked up.
	maxScope = 500
	// shortestID is the shortest beginning of an ID that is looked up.
	shortestID = 4
)

// finder is one search, on one connection.
type finder struct {
	search.Query

	c sqldb.Conn
	d sqldb.Dialect
}

// Find implements [search.Store].
func (s *Search) Find(ctx context.Context, q search.Query) (hits []search.Hit, err error) {
	err = s.db.ReadList(ctx, "search", func(ctx context.Context, c sqldb.Conn) error {
		hits = nil
		f := finder{q, c, s.db.Dialect()}
		if len(q.Words) == 0 {
			return ledger.NeedProject(ctx, c, q.Project)
		}
		for _, find := range []func(context.Context) ([]search.Hit, error){
			f.runs, f.problems, f.workflows, f.tasks, f.events, f.batches, f.deliveries, f.projects,
		} {
			found, err := find(ctx)
			if err != nil {
				return err
			}
			hits = append(hits, found...)
		}
		if len(hits) == 0 {
			return ledger.NeedProject(ctx, c, q.Project)
		}
		return nil
	})
	return hits, err
}

// inScope adds the condition that a project is one that the actor sees.
func (f finder) inScope(w *sqlrow.Where, column string) {
	switch names := f.Scope.Names; {
	case f.Scope.All:
		w.Conditions = append(w.Conditions, column+` IN (SELECT name FROM projects)`)
	case len(names) == 0:
		w.Conditions = append(w.Conditions, `1 = 0`)
	default:
		sqlrow.OneOf(w, column, names[:min(len(names), maxScope)])
	}
}

// id returns the text where it may be an ID: one word, without control characters.
func (f finder) id() (string, bool) {
	clean := !strings.ContainsFunc(f.Text, func(c rune) bool { return c <= ' ' || c > '~' })
	return f.Text, clean && len(f.Text) >= shortestID
}

// hex returns the text where it may be a part of a UUID.
func (f finder) hex() (string, bool) {
	text := strings.ToLower(f.Text)
	return text, len(text) >= shortestID && len(text) <= run.IDLength && strings.Trim(text, "0123456789abcdef-") == ""
}

func (f finder) runs(ctx context.Context) ([]search.Hit, error) {
	ids, err := f.runIDs(ctx)
	if err != nil {
		return nil, err
	}
	byWords, err := f.runsByWords(ctx)
	if err != nil {
		return nil, err
	}
	for _, id := range byWords {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	query, args := runrow.Page(run.Filter{IDs: ids}, sqlrow.Columns(headFields), runrow.Spread{})
	list, err := sqlrow.Collect(ctx, f.c, query, args, scanHead)
	if err != nil {
		return nil, err
	}
	if err := runrow.AttachLabels(ctx, f.c, f.d, list); err != nil {
		return nil, err
	}
	hits := make([]search.Hit, len(list))
	for i, r := range list {
		hits[i] = runHit(r)
	}
	return hits, nil
}

// runsByWords returns the IDs of the newest runs of the project with the words of the text.
func (f finder) runsByWords(ctx context.Context) ([]string, error) {
	words := run.Filter{Project: f.Project, Words: f.Text, Limit: f.Limit + 1}
	spread, err := runrow.SpreadOf(ctx, f.c, f.d, words)
	if err != nil {
		return nil, err
	}
	query, args := runrow.Page(words, `id`, spread)
	return sqlrow.Collect(ctx, f.c, query, args, sqlrow.ScanText)
}

// runIDs returns the IDs of the runs whose ID begins or ends with the text, or that have it as their request ID: of all
// projects in the scope.
func (f finder) runIDs(ctx context.Context) ([]string, error) {
	var ids []string
	add := func(query string, args []any) error {
		found, err := sqlrow.Collect(ctx, f.c, query+sqlrow.Limit(f.Limit+1), args, sqlrow.ScanText)
		for _, id := range found {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		return err
	}
	if text, ok := f.hex(); ok {
		var w sqlrow.Where
		begun := `(SELECT id, project FROM runs WHERE id >= ` + w.Arg(text) + ` AND id < ` + w.Arg(text+"~") +
			` ORDER BY id DESC` + sqlrow.Limit(scanned) + `) AS r`
		f.inScope(&w, "r.project")
		if err := add(`SELECT r.id FROM `+begun+w.String()+` ORDER BY r.id DESC`, w.Args); err != nil {
			return nil, err
		}
		if len(text) >= run.EndLength {
			w = sqlrow.Where{}
			f.inScope(&w, "runs.project")
			w.Conditions = append(w.Conditions, runrow.EndsWith(&w, text))
			if err := add(`SELECT runs.id FROM runs`+w.String()+` ORDER BY runs.id DESC`, w.Args); err != nil {
				return nil, err
			}
		}
	}
	text, ok := f.id()
	if !ok {
		return ids, nil
	}
	var w sqlrow.Where
	f.inScope(&w, "runs.project")
	w.Is("runs.request_id", "=", text)
	if err := add(`SELECT runs.id FROM runs`+w.String()+` ORDER BY runs.id DESC`, w.Args); err != nil {
		return nil, err
	}
	w = sqlrow.Where{}
	w.Is("project", "=", f.Project)
	w.Is("request_id", ">=", text)
	w.Is("request_id", "<", text+"~")
	begun := `(SELECT id, created_at FROM runs` + w.String() + ` ORDER BY request_id` + sqlrow.Limit(scanned) + `) AS r`
	return ids, add(`SELECT r.id FROM `+begun+` ORDER BY r.created_at DESC, r.id DESC`, w.Args)
}

func runHit(r run.Run) search.Hit {
	h := search.Hit{
		Kind: search.Run, Project: r.Project, ID: r.ID, Title: r.Workflow, Workflow: r.Workflow, Version: r.Version,
		Status: string(r.Status), At: r.CreatedAt,
		Texts: []search.Text{{Field: search.IDField, Text: r.ID, ID: true}, {Field: search.RequestIDField, Text: r.RequestID, ID: true}},
	}
	for _, key := range slices.Sorted(maps.Keys(r.Labels)) {
		h.Texts = append(h.Texts, search.Text{Field: search.LabelField + key, Text: r.Labels[key]})
	}
	if e := r.Error; e != nil {
		h.Detail = e.Title
		if e.Title == "" {
			h.Detail = e.Type
		}
		title := h.Detail
		if e.Detail != "" {
			title += ": " + e.Detail
		}
		h.Texts = append(h.Texts, search.Text{Field: search.ErrorField, Text: title},
			search.Text{Field: search.TaskField, Text: run.FailedTask(e)})
	}
	h.Texts = append(h.Texts, search.Text{Field: search.WorkflowField, Text: r.Workflow})
	for _, key := range slices.Sorted(maps.Keys(r.Labels)) {
		h.Texts = append(h.Texts, search.Text{Field: search.LabelField + key, Text: key + "=" + r.Labels[key]})
	}
	return h
}

// problems reads the problems of the project that exist, those that were seen last first.
func (f finder) problems(ctx context.Context) (hits []search.Hit, err error) {
	list, err := sqlrow.Collect(ctx, f.c, `SELECT `+sqlrow.Columns(problemFields)+` FROM problems
WHERE project = $1 AND resolved_at IS NULL ORDER BY last_seen DESC, id`+sqlrow.Limit(scanned), []any{f.Project},
		sqlrow.Scan(problemFields))
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		texts := []search.Text{
			{Field: search.TitleField, Text: p.Title}, {Field: search.TaskField, Text: p.Task},
			{Field: search.WorkflowField, Text: p.Workflow}, {Field: search.ErrorField, Text: p.Detail},
			{Field: search.NameField, Text: string(p.Code)},
		}
		if !matchAny(f.Words, texts) || len(hits) > f.Limit {
			continue
		}
		hits = append(hits, search.Hit{
			Kind: search.Problem, Project: p.Project, ID: p.ID, Title: p.Title, Workflow: p.Workflow,
			Status: string(p.StateAt(f.Now)), At: p.LastSeen, Texts: texts,
		})
	}
	return hits, nil
}

// matchAny reports whether each of the words begins a word of one of the texts.
func matchAny(words []string, texts []search.Text) bool {
	plain := make([]string, len(texts))
	for i, t := range texts {
		plain[i] = t.Text
	}
	return term.Match(words, plain...)
}

// contain adds the conditions that one of the columns contains each word.
func (f finder) contain(w *sqlrow.Where, columns ...string) {
	for _, word := range f.Words {
		pattern := w.Arg(sqlrow.Contains(word))
		parts := make([]string, len(columns))
		for i, column := range columns {
			parts[i] = `lower(` + column + `) LIKE ` + pattern + ` ESCAPE '!'`
		}
		w.Conditions = append(w.Conditions, `(`+strings.Join(parts, ` OR `)+`)`)
	}
}

func (f finder) workflows(ctx context.Context) ([]search.Hit, error) {
	var w sqlrow.Where
	w.Is("project", "=", f.Project)
	f.contain(&w, "name", "title")
	return sqlrow.Collect(ctx, f.c, `SELECT project, name, title, state, updated_at FROM workflows`+w.String()+
		` ORDER BY updated_at DESC, name`+sqlrow.Limit(f.Limit+1), w.Args, func(row sqlrow.Scanner) (search.Hit, error) {
		h := search.Hit{Kind: search.Workflow}
		err := row.Scan(&h.Project, &h.ID, &h.Title, &h.Status, sqlrow.TimeInto(&h.At))
		h.Texts = []search.Text{{Field: search.NameField, Text: h.ID}, {Field: search.TitleField, Text: h.Title}}
		return h, err
	})
}

func (f finder) tasks(ctx context.Context) ([]search.Hit, error) {
	var w sqlrow.Where
	w.Is("project", "=", f.Project)
	f.contain(&w, "name")
	return sqlrow.Collect(ctx, f.c, `SELECT project, workflow, pointer, name FROM workflow_tasks`+w.String()+
		` ORDER BY name, workflow, pointer`+sqlrow.Limit(f.Limit+1), w.Args, func(row sqlrow.Scanner) (search.Hit, error) {
		h := search.Hit{Kind: search.Task}
		err := row.Scan(&h.Project, &h.Workflow, &h.ID, &h.Title)
		h.Texts = []search.Text{{Field: search.NameField, Text: h.Title}}
		return h, err
	})
}

// events finds events by their IDs, and by their positions in the project.
func (f finder) events(ctx context.Context) (hits []search.Hit, err error) {
	text, ok := f.id()
	read := func(where string, args []any) error {
		found, err := sqlrow.Collect(ctx, f.c, `SELECT project, position, id, type, received_at FROM events`+where, args,
			func(row sqlrow.Scanner) (search.Hit, error) {
				h := search.Hit{Kind: search.Event}
				err := row.Scan(&h.Project, &h.Position, &h.ID, &h.Title, sqlrow.TimeInto(&h.At))
				h.Texts = []search.Text{{Field: search.IDField, Text: h.ID, ID: true},
					{Field: search.PositionField, Text: strconv.FormatInt(h.Position, 10), ID: true}}
				return h, err
			})
		hits = append(hits, found...)
		return err
	}
	if position, err := strconv.ParseInt(f.Text, 10, 64); err == nil {
		if err := read(` WHERE project = $1 AND position = $2`, []any{f.Project, position}); err != nil {
			return nil, err
		}
	}
	if !ok {
		return hits, nil
	}
	var w sqlrow.Where
	f.inScope(&w, "project")
	w.Is("id", "=", text)
	if err := read(w.String()+` ORDER BY received_at DESC`+sqlrow.Limit(f.Limit+1), w.Args); err != nil {
		return nil, err
	}
	w = sqlrow.Where{}
	w.Is("project", "=", f.Project)
	w.Is("id", ">", text)
	w.Is("id", "<", text+"~")
	if err := read(w.String()+` ORDER BY id`+sqlrow.Limit(scanned), w.Args); err != nil {
		return nil, err
	}
	slices.SortStableFunc(hits, func(a, b search.Hit) int { return b.At.Compare(a.At) })
	return hits[:min(len(hits), f.Limit+1)], nil
}

func (f finder) batches(ctx context.Context) ([]search.Hit, error) {
	text, ok := f.hex()
	if !ok {
		return nil, nil
	}
	var w sqlrow.Where
	w.Is("project", "=", f.Project)
	begins := `(id >= ` + w.Arg(text) + ` AND id < ` + w.Arg(text+"~") + `)`
	if len(text) >= run.EndLength {
		begins = `(` + begins + ` OR substr(id, ` + strconv.Itoa(run.IDLength+1-len(text)) + `) = ` + w.Arg(text) + `)`
	}
	w.Conditions = append(w.Conditions, begins)
	return sqlrow.Collect(ctx, f.c, selectBatch()+w.String()+` ORDER BY id DESC`+sqlrow.Limit(f.Limit+1), w.Args,
		func(row sqlrow.Scanner) (search.Hit, error) {
			b, err := scanBatch(row)
			return search.Hit{
				Kind: search.Batch, Project: b.Project, ID: b.ID, Title: string(b.Action), Status: string(b.Status), At: b.CreatedAt,
				Texts: []search.Text{{Field: search.IDField, Text: b.ID, ID: true}},
			}, err
		})
}

// deliveries finds a delivery of a webhook by its ID.
func (f finder) deliveries(ctx context.Context) ([]search.Hit, error) {
	text, ok := f.id()
	if !ok || !strings.HasPrefix(text, "msg_") {
		return nil, nil
	}
	var w sqlrow.Where
	w.Conditions = []string{`h.id = d.webhook`}
	f.inScope(&w, "d.project")
	w.Is("d.id", "=", text)
	return sqlrow.Collect(ctx, f.c, `SELECT d.project, d.id, d.event_type, d.status, d.created_at, h.name
FROM webhook_deliveries d, webhooks h`+w.String(), w.Args, func(row sqlrow.Scanner) (search.Hit, error) {
		h := search.Hit{Kind: search.Delivery}
		err := row.Scan(&h.Project, &h.ID, &h.Title, &h.Status, sqlrow.TimeInto(&h.At), &h.Webhook)
		h.Texts = []search.Text{{Field: search.IDField, Text: h.ID, ID: true}}
		return h, err
	})
}

func (f finder) projects(ctx context.Context) ([]search.Hit, error) {
	var w sqlrow.Where
	if !f.Scope.All {
		f.inScope(&w, "name")
	}
	f.contain(&w, "name")
	return sqlrow.Collect(ctx, f.c, `SELECT name, description, created_at FROM projects`+w.String()+` ORDER BY name`+
		sqlrow.Limit(f.Limit+1), w.Args, func(row sqlrow.Scanner) (search.Hit, error) {
		h := search.Hit{Kind: search.Project}
		err := row.Scan(&h.Project, &h.Title, sqlrow.TimeInto(&h.At))
		h.ID = h.Project
		h.Texts = []search.Text{{Field: search.NameField, Text: h.ID}}
		return h, err
	})
}
