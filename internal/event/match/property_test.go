package match_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/event/cloudevents"
	"github.com/signalbox-dev/signalbox/internal/event/match"
)

func drawFilter(t *rapid.T) event.Filter {
	f := event.Filter{With: map[string]event.Value{}}
	switch rapid.IntRange(0, 3).Draw(t, "type") {
	case 0:
		f.With["type"] = event.Value{Expr: `. == "a" or . == "b"`}
	default:
		f.With["type"] = literal(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "t"))
	}
	if expr := rapid.SampledFrom([]string{"", "", ".n > 1", ".missing.deep.er", "("}).Draw(t, "data"); expr != "" {
		f.With["data"] = event.Value{Expr: expr}
	}
	for _, name := range rapid.SampledFrom([][]string{nil, {"k"}, {"k", "m"}}).Draw(t, "keys") {
		f = by(f, name, map[string]string{"k": ".data.k", "m": ".data.m"}[name],
			rapid.SampledFrom([]string{"", "", "1", `"1"`, "2.0"}).Draw(t, "expect"))
	}
	return f
}

func drawFilters(t *rapid.T) (event.Mode, []event.Filter) {
	mode := rapid.SampledFrom([]event.Mode{event.One, event.Any, event.All}).Draw(t, "mode")
	least, most := 1, 3
	if mode == event.One {
		most = 1
	}
	if mode == event.Any {
		least = 0
	}
	return mode, rapid.SliceOfN(rapid.Custom(drawFilter), least, most).Draw(t, "filters")
}

func drawEvent(t *rapid.T, position int64) event.Event {
	return ev(position, rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "type"),
		rapid.SampledFrom([]string{
			"", `{}`, `"text"`, `{"n":2}`, `{"n":1,"k":1}`, `{"n":2,"k":1.0,"m":2}`, `{"n":3,"k":"1","m":1}`,
			`{"k":2,"m":2}`}).Draw(t, "data"))
}

// meets reports with the language's own matcher whether an event matches a filter.
func meets(t require.TestingT, f event.Filter, e event.Event) bool {
	m, err := eventfilter.Compile(f, jq.NewCompiler())
	if err != nil {
		return false
	}
	value, err := jq.DecodeJSON(cloudevents.JSON(e))
	require.NoError(t, err)
	plain, _ := value.(map[string]any)
	return m.Match(plain).OK
}

// The tables must give the same result as the language's own matcher, filter by filter.
func TestTableAgreesWithMatcher(t *testing.T) {
	t.Parallel()
	m := match.New(match.Options{Targets: 3, Shapes: 3}) // small, so that entries are evicted and compiled again
	round := 0
	rapid.Check(t, func(t *rapid.T) {
		round++
		var b event.Batch
		for i := range rapid.IntRange(0, 6).Draw(t, "listeners") {
			mode, filters := drawFilters(t)
			l := listener(fmt.Sprint(round, "-", i), mode, filters...)
			l.Since = rapid.Int64Range(0, 2).Draw(t, "since")
			b.Listeners = append(b.Listeners, l)
		}
		for i := range rapid.IntRange(1, 4).Draw(t, "events") {
			b.Events = append(b.Events, drawEvent(t, int64(i+1)))
		}
		routings := evaluated(m, b)
		require.Len(t, routings, len(b.Events))
		require.Equal(t, routings, indexed(m, b), "with an index of the listeners")
		for i, e := range b.Events {
			var want, got []string
			for _, l := range b.Listeners {
				wanted := l.Spec.Mode == event.Any && len(l.Spec.Filters) == 0 ||
					slices.ContainsFunc(l.Spec.Filters, func(f event.Filter) bool { return meets(t, f, e) })
				if wanted && e.Position > l.Since {
					want = append(want, l.ID)
				}
			}
			for _, d := range routings[i].Deliveries {
				got = append(got, d.Listener)
			}
			require.Equal(t, want, got, "event %d", i)
			require.Equal(t, len(want) == 0, routings[i].Status == event.Unmatched)
			require.Equal(t, len(want) == 0, routings[i].Reason != "")
		}
	})
}

// However events are divided into batches, the sets are the same: no event is in two sets of a workflow, each matches
// the filter at its index, and the events of a set agree on their keys.
func TestSetsDoNotDependOnBatches(t *testing.T) {
	t.Parallel()
	round := 0
	rapid.Check(t, func(t *rapid.T) {
		round++
		var triggers []event.Trigger
		for i := range rapid.IntRange(1, 3).Draw(t, "triggers") {
			_, filters := drawFilters(t)
			if len(filters) == 0 {
				filters = []event.Filter{drawFilter(t)}
			}
			triggers = append(triggers, trigger(fmt.Sprint("a/", round, "-", i), event.All, filters...))
		}
		var events []event.Event
		for i := range rapid.IntRange(1, 12).Draw(t, "events") {
			events = append(events, drawEvent(t, int64(i+1)))
		}
		m := match.New(match.Options{Sets: rapid.IntRange(0, 3).Draw(t, "sets")})
		whole := evaluated(m, event.Batch{Events: events, Triggers: triggers})
		var kept shelf
		var pieces []event.Routing
		for rest := events; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			pieces = append(pieces, kept.match(m, event.Batch{Events: rest[:n], Triggers: triggers})...)
			rest = rest[n:]
		}
		require.Equal(t, whole, pieces)

		used := map[string]bool{}
		for _, r := range whole {
			for _, d := range r.Deliveries {
				i := slices.IndexFunc(triggers, func(tr event.Trigger) bool { return tr.Workflow == d.Workflow })
				require.Equal(t, slices.Max(d.Positions), r.Position)
				values := map[string]string{}
				for index, position := range d.Positions {
					require.False(t, used[fmt.Sprint(d.Workflow, position)], "position %d is used twice", position)
					used[fmt.Sprint(d.Workflow, position)] = true
					f, e := triggers[i].Spec.Filters[index], events[position-1]
					require.True(t, meets(t, f, e))
					agree(t, values, f, e)
				}
			}
		}
	})
}

func agree(t *rapid.T, values map[string]string, f event.Filter, e event.Event) {
	if len(f.Correlate) == 0 {
		return
	}
	var data map[string]any
	require.NoError(t, json.Unmarshal(e.Data, &data))
	for name := range f.Correlate {
		text, err := json.Marshal(data[name])
		require.NoError(t, err)
		if have, ok := values[name]; ok {
			require.Equal(t, have, string(text))
		}
		values[name] = string(text)
	}
}
