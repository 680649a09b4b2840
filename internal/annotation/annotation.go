// Package annotation lists what happened around the runs of a project, to be shown beside charts of them: outages of
// Temporal, publications of workflows, and changes of the dispatcher's owner.
//
//	s := annotation.NewService(annotation.Options{Outages: store, Publications: store, Owners: events, …})
//	list, err := s.List(ctx, annotation.Request{Project: "shop", From: from, To: to})
//	r := annotation.NewRecorder(manager.Status, store, serverID, time.Now)
//	err = r.Start(ctx)
//
// Publications and changes of owners are read from where they are stored. Outages are recorded by a [Recorder] in each
// process, because otherwise only the process that saw one would report it, until its end.
package annotation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

// Kind is a kind of annotation.
type Kind string

// The kinds.
const (
	KindOutage  Kind = "outage"
	KindPublish Kind = "publish"
	KindOwner   Kind = "owner"
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{KindOutage, KindPublish, KindOwner} }

// MaxOfKind is the number of annotations of one kind that are listed, the newest.
const MaxOfKind = 500

// defaultPeriod is the length of the period without From.
const defaultPeriod = 24 * time.Hour

// Annotation is one event or period.
type Annotation struct {
	Kind  Kind
	Start time.Time
	// End is zero while an outage is open. A publication and a change of owner end when they start.
	End   time.Time
	Title string
	// Subject is the workflow of a publication, the task queue of a dispatcher, or "temporal".
	Subject string
	Detail  string
}

// Request selects annotations that overlap a period.
type Request struct {
	Project string
	// From is inclusive, To exclusive; zero means 24 hours before To, and now.
	From, To time.Time
	// Kinds is empty for all.
	Kinds []Kind
}

// List is the answer to a request.
type List struct {
	// Annotations are in the order of their starts.
	Annotations []Annotation
	// More are the kinds of which the period has more than those that are listed.
	More []Kind
}

// Publications reads published versions.
type Publications interface {
	// ListPublications returns versions without source and canonical form that were published in a period, newest first.
	ListPublications(ctx context.Context, project string, from, to time.Time, limit int) ([]workflow.Version, error)
}

// Owners reads the history of a dispatcher.
type Owners interface {
	// OwnerHistory returns up to limit changes, newest first.
	OwnerHistory(ctx context.Context, name inbox.Name, limit int) ([]dispatchtype.OwnerChange, error)
}

// Projects finds projects.
type Projects interface {
	GetProject(ctx context.Context, name string) (project.Project, error)
}

// Options are the sources of annotations.
type Options struct {
	Outages      Store
	Publications Publications
	Owners       Owners
	Projects     Projects
	// TaskQueue returns the task queue of a project.
	TaskQueue func(project string) string
	Now       func() time.Time
}

// Service lists annotations.
type Service struct{ o Options }

// NewService returns a service.
func NewService(o Options) *Service { return &Service{o} }

// List returns the annotations of a project in a period.
func (s *Service) List(ctx context.Context, req Request) (List, error) {
	now := s.o.Now()
	if req.To.IsZero() {
		req.To = now
	}
	if req.From.IsZero() {
		req.From = req.To.Add(-defaultPeriod)
	}
	if err := check(req); err != nil {
		return List{}, err
	}
	if _, err := s.o.Projects.GetProject(ctx, req.Project); err != nil {
		return List{}, err
	}
	var out List
	for _, kind := range Kinds() {
		if len(req.Kinds) > 0 && !slices.Contains(req.Kinds, kind) {
			continue
		}
		list, more, err := s.ofKind(ctx, kind, req, now)
		if err != nil {
			return List{}, err
		}
		if more {
			out.More = append(out.More, kind)
		}
		out.Annotations = append(out.Annotations, list...)
	}
	slices.SortStableFunc(out.Annotations, func(a, b Annotation) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.Subject, b.Subject))
	})
	return out, nil
}

func check(req Request) error {
	for _, kind := range req.Kinds {
		if !slices.Contains(Kinds(), kind) {
			return apperror.New(apperror.Invalid, apperror.InvalidArgument, "annotation kind %q is not one of %v", kind,
				Kinds()).
				WithField("kinds", "unknown kind %q", kind)
		}
	}
	if !req.From.Before(req.To) {
		return apperror.New(apperror.Invalid, apperror.InvalidArgument, "the period ends at %s, not after its start %s",
			req.To.UTC().Format(time.RFC3339), req.From.UTC().Format(time.RFC3339)).WithField("to", "is not after from")
	}
	return nil
}

// ofKind returns the annotations of one kind, and whether there are more.
func (s *Service) ofKind(ctx context.Context, kind Kind, req Request, now time.Time) ([]Annotation, bool, error) {
	switch kind {
	case KindOutage:
		rows, err := s.o.Outages.ListOutages(ctx, req.From.Add(-openFor), req.To, MaxOfKind+1)
		outages, more := first(rows)
		return merge(outages, req.From, now), more, err
	case KindPublish:
		rows, err := s.o.Publications.ListPublications(ctx, req.Project, req.From, req.To, MaxOfKind+1)
		versions, more := first(rows)
		return publications(versions), more, err
	case KindOwner:
		rows, err := s.o.Owners.OwnerHistory(ctx, inbox.Name{Project: req.Project, TaskQueue: s.o.TaskQueue(req.Project)},
			MaxOfKind+1)
		changes, more := first(rows)
		// Rows are in the order of time: what is not listed is in the period only if the last one listed is.
		more = more && !changes[len(changes)-1].At.Before(req.From)
		return owners(changes, req), more, err
	}
	return nil, false, nil
}

// first returns the rows to list, and whether there are more.
func first[T any](rows []T) ([]T, bool) {
	return rows[:min(len(rows), MaxOfKind)], len(rows) > MaxOfKind
}

func publications(versions []workflow.Version) (out []Annotation) {
	for _, v := range versions {
		out = append(out, Annotation{
			Kind: KindPublish, Start: v.PublishedAt, End: v.PublishedAt,
			Title:   fmt.Sprintf("%s %s was published", v.Workflow, v.Version),
			Subject: v.Workflow, Detail: fmt.Sprintf("version %s by %s", v.Version, v.Publisher),
		})
	}
	return out
}

func owners(changes []dispatchtype.OwnerChange, req Request) (out []Annotation) {
	for _, c := range changes {
		if c.At.Before(req.From) || !c.At.Before(req.To) {
			continue
		}
		a := Annotation{Kind: KindOwner, Start: c.At, End: c.At, Title: "The dispatcher changed its owner",
			Subject: c.Name.TaskQueue}
		if c.Outcome == dispatchtype.Lost {
			a.Title = "The dispatcher lost its owner"
			a.Detail = "from " + c.From.Holder
		} else {
			a.Detail = fmt.Sprintf("to %s, epoch %d (%s)", c.To.Holder, c.To.Epoch, c.Outcome)
		}
		if c.Reason != "" {
			a.Detail += ": " + c.Reason
		}
		out = append(out, a)
	}
	return out
}
