package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/run/child"
	"github.com/signalbox-dev/signalbox/internal/semaphore"
)

// countedEvents counts the calls.
type countedEvents int

func (c *countedEvents) Listen(context.Context, event.Listener) error {
	*c++
	return nil
}

func (c *countedEvents) Unlisten(context.Context, string, string) error {
	*c++
	return nil
}

func (c *countedEvents) Publish(context.Context, string, []event.Event) ([]event.Accepted, error) {
	*c++
	return nil, nil
}

func TestRequestsOfRunsTakeTurnsOfTheirProject(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := &Turns{compute: semaphore.NewShared(1), requests: semaphore.NewShared(1), fastest: map[string]*fastest{}}
		var events countedEvents
		children := &fakeChildren{}
		e, c := sharedEvents{&events, shared}, sharedChildren{children, shared}
		for name, request := range map[string]func(context.Context) error{
			"listen":   func(ctx context.Context) error { return e.Listen(ctx, event.Listener{Project: "shop"}) },
			"unlisten": func(ctx context.Context) error { return e.Unlisten(ctx, "shop", "l") },
			"publish": func(ctx context.Context) error {
				_, err := e.Publish(ctx, "shop", nil)
				return err
			},
			"start": func(ctx context.Context) error {
				_, err := c.Start(ctx, child.Request{Project: "shop"})
				return err
			},
			"cancel": func(ctx context.Context) error { return c.Cancel(ctx, "shop", "r", "why") },
		} {
			release, err := shared.Acquire(t.Context(), "other", "listen")
			require.NoError(t, err)
			short, cancel := context.WithTimeout(t.Context(), time.Second)
			require.ErrorIs(t, request(short), context.DeadlineExceeded, name)
			cancel()
			release(true)
			require.NoError(t, request(t.Context()), name)
		}
		require.EqualValues(t, 3, events)
		require.Len(t, children.started, 1)
		require.Len(t, children.ended, 1)
		require.True(t, shared.requests.Enter("other", time.Now()).Wait(0), "every turn was given back")
	})
}
