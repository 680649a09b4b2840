package match_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/event/match"
)

// Events that report failures match only filters that name their type.
func TestFailuresMatchFiltersThatNameThem(t *testing.T) {
	t.Parallel()
	anyType := event.Filter{With: map[string]event.Value{"source": literal("/s")}}
	computed := event.Filter{With: map[string]event.Value{"type": {Expr: `${ . == "io.signalbox.run.failed" }`}}}
	b := event.Batch{
		Triggers: []event.Trigger{
			trigger("any", event.Any), trigger("source", event.One, anyType), trigger("computed", event.One, computed),
			trigger("named", event.One, wants(event.RunFailed, "")), trigger("other", event.One, wants(event.RunTimedOut, "")),
		},
		Listeners: []event.Listener{listener("la", event.Any), listener("ln", event.Any, wants(event.RunFailed, ""))},
		Events: []event.Event{
			ev(1, event.RunFailed, `{}`), ev(2, event.DeliveryDeadLettered, `{}`), ev(3, "io.signalbox.run.stuck", `{}`)},
	}
	routings := evaluated(match.New(match.Options{}), b)
	require.Equal(t, "routed | named[1] | ln[1]", outcome(routings[0]))
	require.Equal(t, event.Unmatched, routings[1].Status)
	require.Equal(t, "routed | any[3] | source[3] | la[3]", outcome(routings[2]),
		"other events of the platform match as before")
}

// The failure of a run that follows from a failure starts no workflow.
func TestFailuresAfterFailuresStartNothing(t *testing.T) {
	t.Parallel()
	b := event.Batch{
		Triggers: []event.Trigger{
			trigger("named", event.One, wants(event.RunFailed, "")),
			trigger("all", event.All, wants(event.RunFailed, ""), wants("x", "")),
		},
		Events: []event.Event{ev(1, event.RunFailed, `{}`).WithAfterFailure()},
	}
	m := match.New(match.Options{})
	r := evaluated(m, b)[0]
	require.Equal(t, event.Unmatched, r.Status)
	require.Contains(t, r.Reason, "it reports a failure that followed from another one")
	require.Empty(t, r.Partials)

	b.Listeners = []event.Listener{listener("l", event.One, wants(event.RunFailed, ""))}
	require.Equal(t, "routed | l[1]", outcome(evaluated(m, b)[0]), "a run that waits for it receives it")

	forged := ev(1, "io.signalbox.run.stuck", `{}`).WithAfterFailure()
	require.False(t, forged.AfterFailure(), "the attribute has no meaning for other types")
}
