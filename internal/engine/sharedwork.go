package engine

import (
	"context"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/child"
)

// sharedEvents are [Events] whose calls take turns of their projects.
type sharedEvents struct {
	Events

	turns *Turns
}

// Listen implements [Listeners].
func (s sharedEvents) Listen(ctx context.Context, l event.Listener) (err error) {
	release, err := s.turns.Acquire(ctx, l.Project, "listen")
	if err != nil {
		return err
	}
	defer func() { release(err == nil) }()
	return s.Events.Listen(ctx, l)
}

// Unlisten implements [Events].
func (s sharedEvents) Unlisten(ctx context.Context, project, id string) (err error) {
	release, err := s.turns.Acquire(ctx, project, "unlisten")
	if err != nil {
		return err
	}
	defer func() { release(err == nil) }()
	return s.Events.Unlisten(ctx, project, id)
}

// Publish implements [Events].
func (s sharedEvents) Publish(ctx context.Context, project string, list []event.Event) (accepted []event.Accepted,
	err error) {
	release, err := s.turns.Acquire(ctx, project, "publish")
	if err != nil {
		return nil, err
	}
	defer func() { release(err == nil) }()
	return s.Events.Publish(ctx, project, list)
}

// sharedChildren are [Children] whose calls take turns of their projects.
type sharedChildren struct {
	Children

	turns *Turns
}

// Start implements [Children].
func (s sharedChildren) Start(ctx context.Context, req child.Request) (r run.Run, err error) {
	release, err := s.turns.Acquire(ctx, req.Project, "start child")
	if err != nil {
		return run.Run{}, err
	}
	defer func() { release(err == nil) }()
	return s.Children.Start(ctx, req)
}

// Cancel implements [Children].
func (s sharedChildren) Cancel(ctx context.Context, project, id, reason string) (err error) {
	release, err := s.turns.Acquire(ctx, project, "cancel child")
	if err != nil {
		return err
	}
	defer func() { release(err == nil) }()
	return s.Children.Cancel(ctx, project, id, reason)
}
