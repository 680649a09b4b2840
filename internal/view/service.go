package view

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// Filters validates filters of runs.
type Filters interface {
	// Checked returns the filter with the full name of its workflow, or why it cannot select anything.
	Checked(ctx context.Context, f run.Filter) (run.Filter, error)
}

// Service lists and changes views.
type Service struct {
	store   Store
	filters Filters
	now     func() time.Time
}

// NewService returns the service.
func NewService(store Store, filters Filters, now func() time.Time) *Service {
	return &Service{store: store, filters: filters, now: now}
}

// List returns the views that the actor of ctx sees in a project, by name.
func (s *Service) List(ctx context.Context, project string) ([]View, error) {
	actor, _ := auth.ActorFrom(ctx)
	return s.store.ListViews(ctx, project, personOf(actor))
}

// Save creates a view without an ID, and replaces one with an ID. The revision is the one that the caller has read.
func (s *Service) Save(ctx context.Context, v View) (View, error) {
	v, err := s.checked(ctx, v)
	if err != nil {
		return v, err
	}
	create := v.ID == ""
	if create {
		id, err := uuid.NewV7()
		if err != nil {
			return v, fmt.Errorf("make the ID of a view: %w", err)
		}
		v.ID = id.String()
	}
	actor, _ := auth.ActorFrom(ctx)
	given := v.Revision
	v.Owner, v.Updater, v.Revision, v.UpdatedAt = personOf(actor), personOf(actor), 1, s.now().Truncate(time.Microsecond)
	err = s.store.ChangeView(ctx, v.Project, v.ID, v.Owner, func(views []View) (Change, error) {
		audited := v.Shared
		if !create {
			now := find(views, v.ID)
			if err := changeable(actor, now, v.Project, v.ID, given); err != nil {
				return Change{}, err
			}
			if now.Shared && !v.Shared && !now.OwnedBy(actor) {
				return Change{}, apperror.New(apperror.Denied, apperror.PermissionDenied,
					"view %q belongs to %s: only its owner stops sharing it; an admin can delete it", now.Name,
					now.Owner.Name).WithField("shared", "must be true")
			}
			v.Owner, v.Revision, audited = now.Owner, now.Revision+1, v.Shared || now.Shared
		}
		if err := fits(views, v, create); err != nil {
			return Change{}, err
		}
		return Change{To: &v, Entry: s.entry(ctx, audit.ViewSave, v, audited)}, nil
	})
	return v, err
}

// Delete deletes a view. The revision is the one that the caller has read.
func (s *Service) Delete(ctx context.Context, project, id string, revision int64) error {
	actor, _ := auth.ActorFrom(ctx)
	return s.store.ChangeView(ctx, project, id, personOf(actor), func(views []View) (Change, error) {
		now := find(views, id)
		if err := changeable(actor, now, project, id, revision); err != nil {
			return Change{}, err
		}
		return Change{Entry: s.entry(ctx, audit.ViewDelete, *now, now.Shared)}, nil
	})
}

// changeable returns why an actor cannot change the view that has the ID now, based on a revision.
func changeable(actor auth.Actor, now *View, project, id string, revision int64) error {
	switch {
	case now == nil || !now.Shared && !now.OwnedBy(actor):
		return apperror.New(apperror.NotFound, apperror.ViewNotFound,
			"view %q does not exist in project %q: `signalbox view list` shows those that do", id, project)
	case !now.OwnedBy(actor) && !actor.May(project, auth.Admin):
		return apperror.New(apperror.Denied, apperror.PermissionDenied,
			"view %q belongs to %s: only its owner and admins of project %q change or delete it; save a copy under another "+
				"name", now.Name, now.Owner.Name, project).
			WithFact("role", string(auth.Admin)).WithFact("project", project)
	case now.Revision != revision:
		return apperror.New(apperror.Refused, apperror.ViewChanged,
			"%s changed view %q at %s: it has revision %d, not %d; read it again",
			now.Updater.Name, now.Name, now.UpdatedAt.UTC().Format(time.RFC3339), now.Revision, revision).
			WithField("revision", "is %d", now.Revision).
			WithFact("updater", now.Updater.Name).WithFact("updateTime", now.UpdatedAt.UTC().Format(time.RFC3339Nano))
	}
	return nil
}

// fits returns why a view cannot be stored beside others.
func fits(views []View, v View, create bool) error {
	owned, shared := 0, 0
	for _, other := range views {
		if other.ID == v.ID {
			continue
		}
		if other.Owner == v.Owner {
			owned++
		}
		if other.Shared {
			shared++
		}
		if other.Name != v.Name || other.Owner != v.Owner && (!other.Shared || !v.Shared) {
			continue
		}
		violation := fmt.Sprintf("%s has a view %q in project %q already", other.Owner.Name, v.Name, v.Project)
		if other.Owner != v.Owner {
			violation = fmt.Sprintf("%s shares a view %q in project %q already", other.Owner.Name, v.Name, v.Project)
		}
		return apperror.New(apperror.Exists, apperror.ViewExists, "%s: choose another name, or change that view",
			violation).WithField("name", "is taken")
	}
	if create && owned >= MaxOwned {
		return apperror.New(apperror.Exhausted, apperror.TooManyViews,
			"%s has %d views in project %q, the maximum: delete one first", v.Owner.Name, owned, v.Project)
	}
	if v.Shared && shared >= MaxShared {
		return apperror.New(apperror.Exhausted, apperror.TooManyViews,
			"project %q has %d shared views, the maximum: delete one first", v.Project, shared)
	}
	return nil
}

// entry returns the audit entry of a change; nil for a view that is not shared.
func (s *Service) entry(ctx context.Context, action string, v View, shared bool) *audit.Entry {
	if !shared {
		return nil
	}
	e := audit.NewEntry(ctx, s.now(), action, v.Project, v.ID, v.Name)
	return &e
}

// checked returns the view in the form that is stored, or why it cannot be stored.
func (s *Service) checked(ctx context.Context, v View) (View, error) {
	v.Name = strings.TrimSpace(v.Name)
	switch {
	case v.Name == "":
		return v, invalid("name", "is required", "the view has no name: give one")
	case len(v.Name) > MaxName || !utf8.ValidString(v.Name) || strings.ContainsFunc(v.Name, func(r rune) bool {
		return !unicode.IsPrint(r)
	}):
		return v, invalid("name", "must be printable text of at most 100 bytes",
			"the name of the view has %d bytes: use printable text of at most %d bytes", len(v.Name), MaxName)
	}
	if v.Shared {
		if err := auth.Require(ctx, v.Project, auth.Operator); err != nil {
			return v, err
		}
	}
	q, err := s.checkedQuery(ctx, v.Project, v.Query)
	v.Query = q
	return v, err
}

func (s *Service) checkedQuery(ctx context.Context, project string, q Query) (Query, error) {
	f := q.Filter
	f.Project = project
	f, err := s.filters.Checked(ctx, f)
	if err != nil {
		return q, err
	}
	q.Workflow = f.Workflow
	if err := checkPeriod("period", q.Period, "since", q.Since); err != nil {
		return q, err
	}
	if err := checkPeriod("ended_period", q.EndedPeriod, "ended_since", q.EndedSince); err != nil {
		return q, err
	}
	if e, wrong := apperror.From(f.CheckPeriods()); wrong {
		return q, invalid("query.filter."+e.Fields[0].Path, e.Fields[0].Message, "%s", e.Message)
	}
	if err := checkColumns(q.Columns); err != nil {
		return q, err
	}
	text, err := json.Marshal(q)
	if err == nil && len(text) > MaxQuery {
		err = invalid("query", "is too large", "the query has %d bytes as JSON: %d are allowed", len(text), MaxQuery)
	}
	return q, err
}

// checkPeriod checks a period, by its name and that of the time which it stands for.
func checkPeriod(name string, period time.Duration, sinceName string, since time.Time) error {
	switch {
	case period < 0 || period > MaxPeriod || period%time.Second != 0:
		return invalid("query."+name, "must be whole seconds, at most 3650 days",
			"%s %v: give whole seconds, at most %d days", name, period, MaxPeriod/(24*time.Hour))
	case period != 0 && !since.IsZero():
		return invalid("query."+name, "excludes "+sinceName, "both %s and %s: give one of them", sinceName, name)
	}
	return nil
}

func checkColumns(columns []string) error {
	known, seen := Columns(), map[string]bool{}
	for _, name := range known {
		seen[name] = false
	}
	for _, column := range columns {
		switch used, ok := seen[column]; {
		case !ok:
			return invalid("query.columns", fmt.Sprintf("unknown column %q", column), "unknown column %q; use some of %v",
				column, known)
		case used:
			return invalid("query.columns", fmt.Sprintf("has %q twice", column), "column %q twice: name each column once",
				column)
		}
		seen[column] = true
	}
	return nil
}

func invalid(field, violation, format string, args ...any) error {
	return apperror.New(apperror.Invalid, apperror.InvalidArgument, format, args...).WithField(field, "%s", violation)
}
