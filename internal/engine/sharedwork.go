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
func (s sharedEvents) Listen(ctx context.Context, l event.Listener) error {
	return s.turns.do(ctx, l.Project, "listen", func() error { return s.Events.Listen(ctx, l) })
}

// Unlisten implements [Events].
func (s sharedEvents) Unlisten(ctx context.Context, project, id string) error {
	return s.turns.do(ctx, project, "unlisten", func() error { return s.Events.Unlisten(ctx, project, id) })
}

// Publish implements [Events].
func (s sharedEvents) Publish(ctx context.Context, project string, list []event.Event) (accepted []event.Accepted,
	err error) {
	err = s.turns.do(ctx, project, "publish", func() (err error) {
		accepted, err = s.Events.Publish(ctx, project, list)
		return err
	})
	return accepted, err
}

// sharedChildren are [Children] whose calls take turns of their projects.
type sharedChildren struct {
	Children

	turns *Turns
}

// Start implements [Children].
func (s sharedChildren) Start(ctx context.Context, req child.Request) (r run.Run, err error) {
	err = s.turns.do(ctx, req.Project, "start child", func() (err error) {
		r, err = s.Children.Start(ctx, req)
		return err
	})
	return r, err
}

// Cancel implements [Children].
func (s sharedChildren) Cancel(ctx context.Context, project, id, reason string) error {
	return s.turns.do(ctx, project, "cancel child", func() error { return s.Children.Cancel(ctx, project, id, reason) })
}
