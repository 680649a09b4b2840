package event_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/fault"
)

// TestEmitFromRun: what the document leaves out comes from the run and the step, so that a repetition is a duplicate.
func TestEmitFromRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var kept []event.Event
		s := &slow{refuses: func(e event.Event) error {
			kept = append(kept, e)
			return nil
		}}
		service, _ := serve(t, s, &bell{})
		emission := event.Emission{Project: shop, Workflow: "a/b", RunID: "run-1", Key: "/do/0/emit", Event: event.Event{Type: "paid"}}
		now := time.Now()
		out, accepted, err := service.EmitFromRun(t.Context(), emission)
		require.NoError(t, err)
		require.Equal(t, event.Accepted{Position: 1}, accepted)
		require.NoError(t, uuid.Validate(out.ID))
		require.Equal(t, event.Event{
			ID: out.ID, Source: "/projects/shop/workflows/a/b/runs/run-1", Type: "paid", Time: now.UTC(), Position: 1,
		}, out)
		again, _, err := service.EmitFromRun(t.Context(), emission)
		require.NoError(t, err)
		require.Equal(t, out.ID, again.ID)
		emission.Key = "/do/1/emit"
		other, _, err := service.EmitFromRun(t.Context(), emission)
		require.NoError(t, err)
		require.NotEqual(t, out.ID, other.ID)

		emission.Event = event.Event{ID: "e-1", Source: "/mine", Type: "paid", Time: now.Add(-time.Hour)}
		own, _, err := service.EmitFromRun(t.Context(), emission)
		require.NoError(t, err)
		require.Equal(t, []any{"e-1", "/mine", now.Add(-time.Hour)}, []any{own.ID, own.Source, own.Time})
		require.Len(t, kept, 4)

		for _, typ := range []string{"", event.OwnerChanged} {
			emission.Event.Type = typ
			_, _, err = service.EmitFromRun(t.Context(), emission)
			require.True(t, fault.Is(err, fault.EventInvalid), "%v", err)
		}
	})
}

func TestListRefusesUnknownStatuses(t *testing.T) {
	t.Parallel()
	service := event.NewService(&slow{}, &slow{}, event.NewHints(), &bell{}, event.Options{})
	_, err := service.List(t.Context(), event.ListFilter{Project: shop, Statuses: []event.Status{event.Pending, "lost"}})
	require.True(t, fault.Is(err, fault.InvalidArgument), "%v", err)
	require.ErrorContains(t, err, `"lost" is none of pending, routed, unmatched, rejected`)
	_, err = service.List(t.Context(), event.ListFilter{Project: "none"})
	require.True(t, fault.Is(err, fault.ProjectNotFound), "%v", err)
	_, err = service.Get(t.Context(), "none", 1)
	require.True(t, fault.Is(err, fault.ProjectNotFound), "%v", err)
	_, err = service.Redeliver(t.Context(), "none", 1, nil, "")
	require.True(t, fault.Is(err, fault.ProjectNotFound), "%v", err)
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
		"nothing":            {event.Spec{}, []string{}},
		"a timer":            {event.Spec{Timed: "/s"}, []string{event.ScheduleFired}},
		"one":                {event.Spec{Mode: event.One, Filters: typed("a")}, []string{"a"}},
		"several":            {event.Spec{Mode: event.All, Filters: typed("b", "a", "b")}, []string{"a", "b"}},
		"any event":          {event.Spec{Mode: event.Any}, nil},
		"one of any type":    {event.Spec{Mode: event.Any, Filters: append(typed("a"), event.Filter{With: map[string]event.Value{"source": {Literal: []byte(`"/s"`)}}})}, nil},
		"an expression":      {event.Spec{Mode: event.One, Filters: []event.Filter{{With: map[string]event.Value{"type": {Expr: "true"}}}}}, nil},
		"a timer and events": {event.Spec{Mode: event.One, Timed: "/s", Filters: typed("a")}, []string{event.ScheduleFired, "a"}},
	}
	for name, tt := range tests {
		require.Equal(t, tt.want, tt.spec.Types(), name)
	}
}
