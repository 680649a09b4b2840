package event

import (
	"context"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/notice"
	"github.com/signalbox-dev/signalbox/internal/project"
)

// retryAfter is what callers are told when nothing else says when to try again.
const retryAfter = time.Second

// Projects finds projects.
type Projects interface {
	GetProject(ctx context.Context, name string) (project.Project, error)
}

// Options bound what the service accepts.
type Options struct {
	Limits Limits
	// Now is the clock.
	Now func() time.Time
}

// Service takes events, and tells what became of them.
type Service struct {
	store     Store
	projects  Projects
	opts      Options
	hints     *notice.Board
	committer *committer
	ringer    *ringer
}

// NewService wires the service. hints are told of what this process commits; bell is rung where a dispatcher sleeps.
func NewService(store Store, projects Projects, hints *notice.Board, bell Bell, opts Options) *Service {
	s := &Service{store: store, projects: projects, opts: opts, hints: hints, ringer: newRinger(bell)}
	s.committer = newCommitter(store, s.committed)
	return s
}

// Start lets the service ring for dispatchers that sleep.
func (s *Service) Start(ctx context.Context) error {
	s.ringer.start(ctx)
	return nil
}

// Stop takes no more events, lets those that were taken be written, and joins what runs in the background.
func (s *Service) Stop(context.Context) error {
	s.committer.close()
	s.ringer.stop()
	return nil
}

// Publish commits events, all or none, and returns when they are durable; whether Temporal is there does not matter. Each answer says which
// position the event has, or had already. Events of the platform's own types are refused.
func (s *Service) Publish(ctx context.Context, project string, events []Event) ([]Accepted, error) {
	for _, e := range events {
		if strings.HasPrefix(e.Type, Own) {
			return nil, fault.New(fault.Invalid, fault.EventInvalid,
				"the type %q begins with %q, which only the platform's own events do; nothing was kept", e.Type, Own).
				WithField("type", "is the platform's own")
		}
	}
	return s.publish(ctx, project, events)
}

// Platform is the service for the platform itself, whose events may be of its own types.
type Platform struct{ Service *Service }

// Publish is [Service.Publish] for events of any type.
func (p Platform) Publish(ctx context.Context, project string, events []Event) ([]Accepted, error) {
	return p.Service.publish(ctx, project, events)
}

func (s *Service) publish(ctx context.Context, project string, events []Event) ([]Accepted, error) {
	if _, err := s.projects.GetProject(ctx, project); err != nil {
		return nil, err
	}
	if err := s.opts.Limits.Validate(events); err != nil {
		return nil, err
	}
	if len(events) == 0 {
		return nil, nil
	}
	actor, ok := auth.ActorFrom(ctx)
	if !ok {
		actor = auth.System()
	}
	kept := make([]Event, len(events))
	for i, e := range events {
		e.Project, e.Actor, e.Status = project, actor.Name, Pending
		kept[i] = e
	}
	return s.committer.commit(ctx, project, kept)
}

// Committed tells those who wait for a project's events of some that were committed in a transaction of somebody else's. wake tells
// that its dispatcher is parked.
func (s *Service) Committed(ctx context.Context, project string, wake bool) {
	s.committed(ctx, project, wake)
}

// committed tells those who wait for events.
func (s *Service) committed(_ context.Context, project string, wake bool) {
	s.hints.Notify(project)
	if wake {
		s.ringer.ring(project)
	}
}

// Get returns one event.
func (s *Service) Get(ctx context.Context, project string, position int64) (Event, error) {
	if _, err := s.projects.GetProject(ctx, project); err != nil {
		return Event{}, err
	}
	return s.store.GetEvent(ctx, project, position)
}

// Deliveries returns the deliveries that an event is part of, in the order in which they were made.
func (s *Service) Deliveries(ctx context.Context, project string, position int64) ([]Delivery, error) {
	return s.store.ListDeliveries(ctx, project, position)
}

// OfRun returns up to limit deliveries that started a run, woke it or should have, in order of their events.
func (s *Service) OfRun(ctx context.Context, project, runID string, after *DeliveryCursor, limit int) ([]Delivery, error) {
	return s.store.ListRunDeliveries(ctx, project, runID, after, limit)
}

// List lists events, newest first, without their payloads.
func (s *Service) List(ctx context.Context, f ListFilter) ([]Event, error) {
	if _, err := s.projects.GetProject(ctx, f.Project); err != nil {
		return nil, err
	}
	for _, status := range f.Statuses {
		switch status {
		case Pending, Routed, Unmatched, Rejected:
		default:
			return nil, fault.New(fault.Invalid, fault.InvalidArgument,
				"event status %q is none of pending, routed, unmatched, rejected", status).WithField("statuses", "unknown status %q", status)
		}
	}
	return s.store.ListEvents(ctx, f)
}

// Redeliver makes deliveries of an event due at once: those that are pending or dead, all of them where no IDs are given. What is
// delivered stays as it is, and so does what a run that has gone on with later events would not take any more. It returns those that it changed.
func (s *Service) Redeliver(ctx context.Context, project string, position int64, ids []string, reason string) ([]Delivery, error) {
	e, err := s.Get(ctx, project, position)
	if err != nil {
		return nil, err
	}
	now := s.opts.Now()
	changed, err := s.store.Redeliver(ctx, project, position, ids, now,
		audit.NewEntry(ctx, now, audit.EventRedeliver, project, e.Source+" "+e.ID, reason))
	if err != nil {
		return nil, err
	}
	if len(changed) > 0 {
		s.committed(ctx, project, true)
	}
	return changed, nil
}

// Listen commits that a run waits for events: from its return on, none that is accepted is missed. Listening again changes nothing.
func (s *Service) Listen(ctx context.Context, l Listener) error { return s.store.Listen(ctx, l) }

// Unlisten takes a listener away.
func (s *Service) Unlisten(ctx context.Context, project, id string) error {
	return s.store.Unlisten(ctx, project, id)
}

// OwnerHistory returns up to limit changes of a dispatcher's owner, newest first.
func (s *Service) OwnerHistory(ctx context.Context, name inbox.Name, limit int) ([]OwnerChange, error) {
	return s.store.OwnerHistory(ctx, name, limit)
}
