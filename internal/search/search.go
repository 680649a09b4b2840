// Package search finds what a person looks for by a text: runs, events, workflows, tasks, problems, batches, deliveries of
// webhooks and projects.
//
//	s := search.NewService(store, time.Now)
//	groups, err := s.Search(ctx, search.Request{Project: "shop", Text: "order 4711"})
//
// A text is an ID, or its beginning or end, or words. An ID is looked up in all projects in which the actor has a role,
// everything else in one project. Of each kind the newest are found, and each hit shows what matched.
//
// The package searches only what lists show: rows with marks in place of sensitive values. A marked value is found by
// no caller, whatever its rights are.
package search

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/search/term"
)

// Kind is what was found.
type Kind string

// The kinds.
const (
	Run      Kind = "run"
	Problem  Kind = "problem"
	Workflow Kind = "workflow"
	Task     Kind = "task"
	Event    Kind = "event"
	Batch    Kind = "batch"
	Delivery Kind = "delivery"
	Project  Kind = "project"
)

// Kinds returns all kinds in the order of results.
func Kinds() []Kind { return []Kind{Run, Problem, Workflow, Task, Event, Batch, Delivery, Project} }

// Fields of hits; that of a label is LabelField with the key.
const (
	IDField        = "id"
	RequestIDField = "request_id"
	PositionField  = "position"
	NameField      = "name"
	TitleField     = "title"
	ErrorField     = "error"
	TaskField      = "task"
	WorkflowField  = "workflow"
	LabelField     = "label."
)

// Text is a text of something by which it may be found.
type Text struct {
	Field, Text string
	// ID is found by its beginning and by its end; other texts by the words in them.
	ID bool
}

// Hit is something that was found.
type Hit struct {
	Kind    Kind
	Project string
	// ID is that of a run, an event, a batch, a delivery or a problem, and the name of a workflow or a project; a task has
	// its pointer.
	ID string
	// Title names it in one line, Detail has the error of a run.
	Title, Detail, Status string
	// Workflow is that of a run, a task or a problem; Version that of a run.
	Workflow, Version string
	// Position is that of an event, Webhook the name of a delivery's.
	Position int64
	Webhook  string
	// At is when it was created, or last changed or seen.
	At time.Time
	// Texts are those by which it may be found, the most specific first. Field and Parts are the one that matched.
	Texts []Text
	Field string
	Parts []term.Part
}

// Group has the hits of one kind, the newest first.
type Group struct {
	Kind Kind
	Hits []Hit
	// More: there are more than the limit.
	More bool
}

// Scope is the projects that an actor sees: those of Names, or all.
type Scope struct {
	All   bool
	Names []string
}

// Query is a search for a store.
type Query struct {
	Project string
	Scope   Scope
	// Text is the text without spaces at its ends, Words its words.
	Text  string
	Words []string
	// Limit is the number of hits of each kind.
	Limit int
	// Now is the time of the search, on which the states of problems depend.
	Now time.Time
}

// Store finds things. It returns up to one hit more than the limit of each kind, in the order of groups.
type Store interface {
	Find(ctx context.Context, q Query) ([]Hit, error)
}

const (
	// DefaultLimit and MaxLimit are the number of hits of each kind.
	DefaultLimit = 10
	MaxLimit     = 50
	// shortest is the shortest text that is searched for, in characters.
	shortest = 2
)

// Service searches for callers.
type Service struct {
	store Store
	now   func() time.Time
}

// NewService returns the service.
func NewService(store Store, now func() time.Time) *Service { return &Service{store, now} }

// Request is a search of a caller. A limit of 0 is [DefaultLimit].
type Request struct {
	Project, Text string
	Limit         int
}

// Search returns the groups that have hits. The permission for the project is the caller's concern.
func (s *Service) Search(ctx context.Context, req Request) ([]Group, error) {
	q := Query{Project: req.Project, Scope: scopeOf(ctx), Text: strings.TrimSpace(req.Text), Limit: req.Limit,
		Now: s.now()}
	if q.Limit = cmp.Or(q.Limit, DefaultLimit); q.Limit < 0 || q.Limit > MaxLimit {
		return nil, apperror.New(apperror.Invalid, apperror.InvalidArgument, "limit %d: use 1 to %d", req.Limit, MaxLimit).
			WithField("limit", "must be 1 to %d", MaxLimit)
	}
	if utf8.RuneCountInString(q.Text) < shortest {
		return nil, apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"the text to search for, %q, is too short: at least %d characters are required", q.Text, shortest).
			WithField("text", "is too short")
	}
	if err := run.CheckWords("text", q.Text); err != nil {
		return nil, err
	}
	q.Words = term.Words(q.Text)
	hits, err := s.store.Find(ctx, q)
	if err != nil {
		return nil, err
	}
	return grouped(hits, q), nil
}

func scopeOf(ctx context.Context) Scope {
	actor, acts := auth.ActorFrom(ctx)
	names, all := actor.Visible()
	return Scope{All: all || !acts, Names: names}
}

func grouped(hits []Hit, q Query) (groups []Group) {
	for _, kind := range Kinds() {
		g := Group{Kind: kind}
		for _, h := range hits {
			if h.Kind == kind && !slices.ContainsFunc(g.Hits, func(other Hit) bool { return same(h, other) }) {
				g.Hits = append(g.Hits, matched(h, q))
			}
		}
		if len(g.Hits) > q.Limit {
			g.Hits, g.More = g.Hits[:q.Limit], true
		}
		if len(g.Hits) > 0 {
			groups = append(groups, g)
		}
	}
	return groups
}

func same(a, b Hit) bool {
	return a.Project == b.Project && a.ID == b.ID && a.Workflow == b.Workflow && a.Position == b.Position
}

// matched sets the text of a hit that matched best: the first that has most of the words.
func matched(h Hit, q Query) Hit {
	best := 0
	for _, t := range h.Texts {
		parts, n := t.match(q)
		if n > best {
			best, h.Field, h.Parts = n, t.Field, parts
		}
	}
	return h
}

// match returns a text divided by what matches, and the number of words that it has. An ID that the text begins or ends
// has all.
func (t Text) match(q Query) (parts []term.Part, words int) {
	if t.ID && len(q.Text) <= len(t.Text) {
		end := len(t.Text) - len(q.Text)
		switch {
		case strings.EqualFold(t.Text[:len(q.Text)], q.Text):
			return split(t.Text, 0, len(q.Text)), len(q.Words) + 1
		case strings.EqualFold(t.Text[end:], q.Text):
			return split(t.Text, end, len(t.Text)), len(q.Words) + 1
		}
	}
	inside := -1
	for i, word := range q.Words {
		if term.Match([]string{word}, t.Text) {
			words++
		} else if strings.Contains(strings.ToLower(t.Text), word) {
			words++
			inside = i
		}
	}
	if inside >= 0 && len(strings.ToLower(t.Text)) == len(t.Text) {
		at := strings.Index(strings.ToLower(t.Text), q.Words[inside])
		return split(t.Text, at, at+len(q.Words[inside])), words
	}
	return term.Highlight(t.Text, q.Words), words
}

// split divides a text into what matched, from start to end, and what is around it.
func split(text string, start, end int) (parts []term.Part) {
	for _, p := range []term.Part{{Text: text[:start]}, {Text: text[start:end], Match: true}, {Text: text[end:]}} {
		if p.Text != "" {
			parts = append(parts, p)
		}
	}
	return parts
}
