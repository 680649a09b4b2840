package event

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/traceparent"
)

// retryAfter is the default delay before callers retry.
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

// Service accepts events and returns their state.
type Service struct {
	store     Store
	projects  Projects
	opts      Options
	hints     *pubsub.Notifier
	committer *committer
	waker     *backgroundWaker
}

// NewService returns a service. hints is notified of each commit of this process; waker is called where a dispatcher is
// parked.
func NewService(store Store, projects Projects, hints *pubsub.Notifier, waker Waker, opts Options) *Service {
	s := &Service{store: store, projects: projects, opts: opts, hints: hints, waker: newBackgroundWaker(waker)}
	s.committer = newCommitter(store, s.committed)
	return s
}

// Start begins to wake parked dispatchers.
func (s *Service) Start(ctx context.Context) error {
	s.waker.start(ctx)
	return nil
}

// Stop accepts no more events, waits until the accepted ones are written, and ends the background calls.
func (s *Service) Stop(context.Context) error {
	s.committer.close()
	s.waker.stop()
	return nil
}

// Publish commits events, all or none, and returns when they are durable; Temporal may be unavailable. Each result has
// the position that the event has, or had already. Events of the platform's own types are refused.
func (s *Service) Publish(ctx context.Context, project string, events []Event) ([]Accepted, error) {
	for _, e := range events {
		if strings.HasPrefix(e.Type, Own) {
			return nil, apperror.New(apperror.Invalid, apperror.EventInvalid,
				"the type %q begins with %q, which is reserved for the platform's own events; no event was stored", e.Type, Own).
				WithField("type", "is reserved for the platform")
		}
	}
	return s.publish(ctx, project, events)
}

// Platform is the service for the platform itself, which may publish events of its own types.
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
	kept, parent := make([]Event, len(events)), traceparent.Of(ctx)
	for i, e := range events {
		e.Project, e.Actor, e.Status, e.Traceparent = project, actor.Name, Pending, parent
		kept[i] = e
	}
	return s.committer.commit(ctx, project, kept)
}

// Committed notifies the subscribers of a project's events that another component has committed some. wake means that
// the project's dispatcher is parked.
func (s *Service) Committed(ctx context.Context, project string, wake bool) {
	s.committed(ctx, project, wake)
}

// committed notifies the subscribers of a project's events.
func (s *Service) committed(_ context.Context, project string, wake bool) {
	s.hints.Notify(project)
	if wake {
		s.waker.wake(project)
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

// OfRun returns up to limit deliveries that started a run, woke it or should have woken it, in order of their events.
func (s *Service) OfRun(ctx context.Context, project, runID string, after *DeliveryCursor,
	limit int) ([]Delivery, error) {
	return s.store.ListRunDeliveries(ctx, project, runID, after, limit)
}

// deliveriesPage is the number of deliveries of a run that are read at once.
const deliveriesPage = 500

// ToRun returns the deliveries of listed events to a run, in order of their positions. The first delivery of a run may
// be of several events.
func (s *Service) ToRun(ctx context.Context, project, runID string, events []Event) (list []Delivery, err error) {
	if len(events) == 0 {
		return nil, nil
	}
	listed := map[int64]bool{}
	least, most := events[0].Position, events[0].Position
	for _, e := range events {
		listed[e.Position] = true
		least, most = min(least, e.Position), max(most, e.Position)
	}
	of := func(d Delivery) bool {
		return listed[d.Position] || slices.ContainsFunc(d.Positions, func(position int64) bool { return listed[position] })
	}
	first, err := s.store.ListRunDeliveries(ctx, project, runID, nil, 1)
	if err != nil {
		return nil, err
	}
	if len(first) > 0 && first[0].Position > most && of(first[0]) {
		list = first
	}
	after := &DeliveryCursor{Position: least}
	for {
		page, err := s.store.ListRunDeliveries(ctx, project, runID, after, deliveriesPage)
		if err != nil {
			return nil, err
		}
		for _, d := range page {
			if d.Position <= most && of(d) {
				list = append(list, d)
			}
		}
		if len(page) < deliveriesPage || page[len(page)-1].Position > most {
			return list, nil
		}
		last := page[len(page)-1]
		after = &DeliveryCursor{Position: last.Position, ID: last.ID}
	}
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
			return nil, apperror.New(apperror.Invalid, apperror.InvalidArgument,
				"event status %q is not one of pending, routed, unmatched, rejected", status).
				WithField("statuses", "unknown status %q", status)
		}
	}
	return s.store.ListEvents(ctx, f)
}

// Redeliver makes deliveries of an event due at once: the pending or dead ones among ids, or all of them without ids.
// It does not change done deliveries, nor those that their run would no longer accept because it got later events. It
// returns the deliveries that it changed.
func (s *Service) Redeliver(ctx context.Context, project string, position int64, ids []string,
	reason string) ([]Delivery, error) {
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

// Listen commits that a run waits for events. Every matching event that is accepted after it returns is delivered, and
// for a listener from the start of the run every earlier one that the run has not taken. Listening again changes
// nothing.
func (s *Service) Listen(ctx context.Context, l Listener) error {
	done, err := s.store.Listen(ctx, l)
	if err == nil && done.Delivers {
		s.committed(ctx, l.Project, done.Parked)
	}
	return err
}

// Unlisten removes a listener.
func (s *Service) Unlisten(ctx context.Context, project, id string) error {
	return s.store.Unlisten(ctx, project, id)
}

// OwnerHistory returns up to limit changes of a dispatcher's owner, newest first. The history has no workflow IDs and
// durations.
func (s *Service) OwnerHistory(ctx context.Context, name inbox.Name, limit int) ([]dispatchtype.OwnerChange, error) {
	return s.store.OwnerHistory(ctx, name, limit)
}
