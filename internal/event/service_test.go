package event_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/pubsub"
)

func TestOnlyPlatformPublishesItsOwnTypes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var kept []event.Event
		s := &slow{refuses: func(e event.Event) error {
			kept = append(kept, e)
			return nil
		}}
		service, _ := serve(t, s, &waker{})
		own := []event.Event{{ID: "1", Source: "/x", Type: event.ScheduleFired}}
		_, err := service.Publish(t.Context(), shop, own)
		require.True(t, apperror.Is(err, apperror.EventInvalid), "%v", err)
		require.Empty(t, kept)
		_, err = event.Platform{Service: service}.Publish(t.Context(), shop, own)
		require.NoError(t, err)
		require.Len(t, kept, 1)
	})
}

func TestListRefusesUnknownStatuses(t *testing.T) {
	t.Parallel()
	service := event.NewService(&slow{}, &slow{}, pubsub.NewNotifier(), &waker{}, event.Options{})
	_, err := service.List(t.Context(), event.ListFilter{Project: shop, Statuses: []event.Status{event.Pending, "lost"}})
	require.True(t, apperror.Is(err, apperror.InvalidArgument), "%v", err)
	require.ErrorContains(t, err, `"lost" is not one of pending, routed, unmatched, rejected`)
	_, err = service.List(t.Context(), event.ListFilter{Project: "none"})
	require.True(t, apperror.Is(err, apperror.ProjectNotFound), "%v", err)
	_, err = service.Get(t.Context(), "none", 1)
	require.True(t, apperror.Is(err, apperror.ProjectNotFound), "%v", err)
	_, err = service.Redeliver(t.Context(), "none", 1, nil, "")
	require.True(t, apperror.Is(err, apperror.ProjectNotFound), "%v", err)
}

// delivered has deliveries of one run, in order.
type delivered struct {
	slow

	list []event.Delivery
}

func (d *delivered) ListRunDeliveries(_ context.Context, _, _ string, after *event.DeliveryCursor,
	limit int) (page []event.Delivery, _ error) {
	for _, e := range d.list {
		if len(page) < limit && (after == nil || e.Position > after.Position || e.Position == after.Position &&
			e.ID > after.ID) {
			page = append(page, e)
		}
	}
	return page, nil
}

func TestDeliveriesOfListedEventsToARun(t *testing.T) {
	t.Parallel()
	s := &delivered{list: []event.Delivery{{ID: "start", Kind: event.Start, Position: 5, Positions: []int64{2, 5}}}}
	for position := int64(6); position <= 1300; position++ {
		s.list = append(s.list, event.Delivery{
			ID: "wake", Kind: event.Wake, Position: position, Positions: []int64{position}})
	}
	service := event.NewService(s, &slow{}, pubsub.NewNotifier(), &waker{}, event.Options{})
	for name, tt := range map[string]struct{ listed, want []int64 }{
		"none":                         {nil, nil},
		"the first event of the start": {[]int64{2}, []int64{5}},
		"both events of the start":     {[]int64{7, 5, 2}, []int64{5, 7}},
		"more than are read at once":   {[]int64{1300, 900, 6}, []int64{6, 900, 1300}},
		"an event of no delivery":      {[]int64{1}, nil},
	} {
		var events []event.Event
		for _, position := range tt.listed {
			events = append(events, event.Event{Position: position})
		}
		list, err := service.ToRun(t.Context(), shop, "r", events)
		require.NoError(t, err)
		var got []int64
		for _, d := range list {
			got = append(got, d.Position)
		}
		require.Equal(t, tt.want, got, name)
	}
}

func TestTypesOfSpecs(t *testing.T) {
	t.Parallel()
	typed := func(names ...string) []event.Filter {
		var out []event.Filter
		for _, name := range names {
			out = append(out, event.Filter{With: map[string]event.Value{"type": {Literal: []byte(`"` + name + `"`)}}})
		}
		return out
	}
	tests := map[string]struct {
		spec event.Spec
		want []string
	}{
		"nothing":   {event.Spec{}, []string{}},
		"a timer":   {event.Spec{Timed: "/s"}, []string{event.ScheduleFired}},
		"one":       {event.Spec{Mode: event.One, Filters: typed("a")}, []string{"a"}},
		"several":   {event.Spec{Mode: event.All, Filters: typed("b", "a", "b")}, []string{"a", "b"}},
		"any event": {event.Spec{Mode: event.Any}, nil},
		"one of any type": {event.Spec{
			Mode: event.Any, Filters: append(typed("a"),
				event.Filter{With: map[string]event.Value{"source": {Literal: []byte(`"/s"`)}}})}, nil},
		"an expression": {event.Spec{
			Mode: event.One, Filters: []event.Filter{{With: map[string]event.Value{"type": {Expr: "true"}}}}}, nil},
		"a timer and events": {event.Spec{Mode: event.One, Timed: "/s", Filters: typed("a")},
			[]string{event.ScheduleFired, "a"}},
	}
	for name, tt := range tests {
		require.Equal(t, tt.want, tt.spec.Types(), name)
	}
}
