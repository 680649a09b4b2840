package match_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/event/match"
)

// shelf stores partials as a store does.
type shelf struct {
	partials map[string]event.Partial // by workflow and key
	events   []event.Event
}

// match matches events with the stored partials, and stores the resulting ones.
func (s *shelf) match(m *match.Matcher, b event.Batch) []event.Routing {
	if s.partials == nil {
		s.partials = map[string]event.Partial{}
	}
	for _, key := range slices.Sorted(maps.Keys(s.partials)) {
		b.Partials = append(b.Partials, s.partials[key])
	}
	for _, e := range s.events {
		if slices.ContainsFunc(b.Partials, func(p event.Partial) bool { return slices.Contains(p.Positions, e.Position) }) {
			b.Earlier = append(b.Earlier, e)
		}
	}
	routings := evaluated(m, b)
	for _, r := range routings {
		for _, p := range r.Partials {
			key := p.Workflow + "\n" + p.Key
			if len(p.Positions) == 0 {
				delete(s.partials, key)
				continue
			}
			s.partials[key] = p
		}
	}
	s.events = append(s.events, b.Events...)
	return routings
}

func reading(position int64, typ, room string) event.Event {
	return ev(position, typ, fmt.Sprintf(`{"room":%q}`, room))
}

func TestSets(t *testing.T) {
	t.Parallel()
	room := func(typ, expect string) event.Filter { return by(wants(typ, ""), "room", ".data.room", expect) }
	type step struct {
		event event.Event
		want  string
	}
	const waits = "routed | it waits for the other events of its set"
	tests := map[string]struct {
		trigger event.Trigger
		steps   []step
	}{
		"in any order, handed over in the order of the filters": {
			trigger("a/b", event.All, wants("t", ""), wants("h", "")),
			[]step{{ev(1, "h", ""), waits}, {ev(2, "t", ""), "routed | a/b[2 1]"}, {ev(3, "t", ""), waits}},
		},
		"of one filter": {trigger("a/b", event.All, wants("t", "")), []step{{ev(1, "t", ""), "routed | a/b[1]"}}},
		"sets fill from the oldest": {
			trigger("a/b", event.All, wants("t", ""), wants("h", "")),
			[]step{{ev(1, "t", ""), waits}, {ev(2, "t", ""), waits}, {ev(3, "h", ""), "routed | a/b[1 3]"},
				{ev(4, "h", ""), "routed | a/b[2 4]"}},
		},
		"an event counts once, also where it meets two filters": {
			trigger("a/b", event.All, wants("t", ""), wants("t", "")),
			[]step{{ev(1, "t", ""), waits}, {ev(2, "t", ""), "routed | a/b[1 2]"}},
		},
		"by a key": {
			trigger("a/b", event.All, room("t", ""), room("h", "")),
			[]step{
				{reading(1, "t", "x"), waits},
				{reading(2, "h", "y"), waits},
				{reading(3, "t", "y"), "routed | a/b[3 2]"},
				{reading(4, "h", "x"), "routed | a/b[1 4]"},
			},
		},
		"a key that is expected": {
			trigger("a/b", event.All, room("t", `"x"`), room("h", "")),
			[]step{
				{reading(1, "t", "y"), `unmatched | the triggers and listeners for type "t" match other events of it`},
				{reading(2, "t", "x"), waits},
				{reading(3, "h", "x"), "routed | a/b[2 3]"},
			},
		},
		"keys that not all filters have": {
			trigger("a/b", event.All, wants("start", ""), room("t", ""), room("h", "")),
			[]step{
				{ev(1, "start", ""), waits},
				{reading(2, "t", "x"), waits},
				{reading(3, "h", "y"), waits},
				{reading(4, "h", "x"), "routed | a/b[1 2 4]"},
			},
		},
		"a key that is too long": {
			trigger("a/b", event.All, room("t", ""), room("h", "")),
			[]step{
				{reading(1, "t", strings.Repeat("x", event.MaxPartialKey)),
					`unmatched | its correlation keys are too long for workflow "a/b"`},
				{reading(2, "t", "x"), waits},
				{reading(3, "h", "x"), "routed | a/b[2 3]"},
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := match.New(match.Options{})
			var together event.Batch
			var want []string
			for _, s := range tt.steps {
				together.Events = append(together.Events, s.event)
				want = append(want, s.want)
			}
			together.Triggers = []event.Trigger{tt.trigger}
			require.Equal(t, want, outcomes(evaluated(m, together)), "in one batch")
			var kept shelf
			for i, s := range tt.steps {
				got := kept.match(m, event.Batch{Events: []event.Event{s.event}, Triggers: together.Triggers})
				require.Equal(t, []string{s.want}, outcomes(got), "alone, step %d", i)
			}
		})
	}
}

func TestSetsAreBounded(t *testing.T) {
	t.Parallel()
	const waits = "routed | it waits for the other events of its set"
	triggers := []event.Trigger{
		trigger("a/b", event.All, by(wants("t", ""), "room", ".data.room", ""), by(wants("h", ""), "room", ".data.room", "")),
	}
	events := []event.Event{
		reading(1, "t", "x"), reading(2, "t", "y"), reading(3, "t", strings.Repeat("z", event.MaxPartialKey)),
		reading(4, "t", "z"), reading(5, "h", "x"), reading(6, "h", "y"), reading(7, "h", "z"), reading(8, "t", "x"),
	}
	want := []string{
		waits, waits,
		`unmatched | its correlation keys are too long for workflow "a/b"`, // and no set is dropped for it
		waits, // replaces the first set
		waits, // the event that the first set lacked opens a set and replaces the second
		waits, // the same for the event that the second set lacked
		waits, waits,
	}
	m := match.New(match.Options{Sets: 2})
	require.Equal(t, want, outcomes(evaluated(m, event.Batch{Events: events, Triggers: triggers})))
	var kept shelf
	for i, e := range events {
		require.Equal(t, want[i:i+1], outcomes(kept.match(m, event.Batch{Events: []event.Event{e}, Triggers: triggers})),
			"event %d", i+1)
		require.LessOrEqual(t, len(kept.partials), 2)
	}
	// The two remaining sets are the newest.
	newest := event.Batch{Events: []event.Event{reading(9, "t", "z"), reading(10, "h", "x")}, Triggers: triggers}
	require.Equal(t, []string{"routed | a/b[9 7]", "routed | a/b[8 10]"}, outcomes(kept.match(m, newest)))
	require.Empty(t, kept.partials)
}

// TestSetsOfAnotherVersion: sets that were made for other filters are dropped.
func TestSetsOfAnotherVersion(t *testing.T) {
	t.Parallel()
	m := match.New(match.Options{})
	var kept shelf
	first := trigger("a/b", event.All, wants("t", ""), wants("h", ""))
	kept.match(m, event.Batch{Events: []event.Event{ev(1, "t", "")}, Triggers: []event.Trigger{first}})
	require.Len(t, kept.partials, 1)
	second := trigger("a/b", event.All, wants("t", ""), wants("w", ""))
	second.DocumentHash = "sha256:other"
	got := kept.match(m, event.Batch{Events: []event.Event{ev(2, "w", "")}, Triggers: []event.Trigger{second}})
	require.Equal(t, []string{"routed | it waits for the other events of its set"}, outcomes(got))
	require.Len(t, kept.partials, 1)
	for _, p := range kept.partials {
		require.Equal(t, []int64{0, 2}, p.Positions)
	}

	// So are sets with deleted events, and keys that are not valid.
	kept.events = nil
	kept.partials["x"] = event.Partial{Project: shop, Workflow: "a/b", Key: "x", Positions: []int64{0, 0}}
	got = evaluated(m, event.Batch{
		Events: []event.Event{ev(3, "t", "")}, Triggers: []event.Trigger{second},
		Partials: slices.Collect(maps.Values(kept.partials)),
	})
	require.Equal(t, []string{"routed | it waits for the other events of its set"}, outcomes(got))
	require.Len(t, got[0].Partials, 3)
	for _, p := range got[0].Partials[:2] {
		require.Empty(t, p.Positions)
	}
	require.Equal(t, []int64{3, 0}, got[0].Partials[2].Positions)
	require.True(t, json.Valid([]byte(got[0].Partials[2].Key)))
}
