package match_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/event/match"
)

const shop = "shop"

// ev returns an event of a type at a position, with data.
func ev(position int64, typ, data string) event.Event {
	e := event.Event{Project: shop, Position: position, ID: fmt.Sprint("e-", position), Source: "/s", Type: typ,
		Status: event.Pending}
	if data != "" {
		e.Data = json.RawMessage(data)
	}
	return e
}

func literal(text string) event.Value {
	return event.Value{Literal: json.RawMessage(fmt.Sprintf("%q", text))}
}

// wants returns a filter for a type and, unless empty, an expression on the data.
func wants(typ, data string) event.Filter {
	f := event.Filter{With: map[string]event.Value{"type": literal(typ)}}
	if data != "" {
		f.With["data"] = event.Value{Expr: data}
	}
	return f
}

// by adds a correlation key; expect may be empty.
func by(f event.Filter, name, from, expect string) event.Filter {
	k := event.Key{From: from}
	if expect != "" {
		k.Expect = json.RawMessage(expect)
	}
	if f.Correlate == nil {
		f.Correlate = map[string]event.Key{}
	}
	f.Correlate[name] = k
	return f
}

func trigger(name string, mode event.Mode, filters ...event.Filter) event.Trigger {
	return event.Trigger{
		Project: shop, Workflow: name, Version: "1.0.0", DocumentHash: "sha256:" + name,
		Spec: event.Spec{Mode: mode, Filters: filters},
	}
}

func listener(id string, mode event.Mode, filters ...event.Filter) event.Listener {
	return event.Listener{ID: id, Project: shop, RunID: "run-" + id, Spec: event.Spec{Mode: mode, Filters: filters}}
}

// outcome formats a routing: the status, the targets with their events, and the reason.
func outcome(r event.Routing) string {
	parts := []string{string(r.Status)}
	for _, d := range r.Deliveries {
		parts = append(parts, fmt.Sprint(d.Workflow, d.Listener, d.Positions))
	}
	if r.Reason != "" {
		parts = append(parts, r.Reason)
	}
	return strings.Join(parts, " | ")
}

func outcomes(routings []event.Routing) []string {
	out := make([]string, len(routings))
	for i, r := range routings {
		out[i] = outcome(r)
	}
	return out
}

func TestTargets(t *testing.T) {
	t.Parallel()
	paused := trigger("a/paused", event.One, wants("paid", ""))
	paused.Paused = true
	late := trigger("a/late", event.One, wants("paid", ""))
	late.Since = 1
	timed := event.Trigger{Project: shop, Workflow: "a/timed", Version: "1.0.0",
		Spec: event.Spec{Timed: event.TimerSource(shop, "a/timed")}}
	fired := ev(1, event.ScheduleFired, "")
	fired.Source = event.TimerSource(shop, "a/timed")
	anothers := fired
	anothers.Source = event.TimerSource(shop, "a/other")
	opened := ev(1, "paid", `{"n":"planted","token":"planted"}`)
	opened.Opened = true
	tests := map[string]struct {
		event     event.Event
		triggers  []event.Trigger
		listeners []event.Listener
		want      string
	}{
		"nobody": {ev(1, "paid", ""), nil, nil, `unmatched | no published workflow and no waiting run matches type "paid"`},
		"another type": {
			ev(1, "paid", ""),
			[]event.Trigger{trigger("a/b", event.One, wants("shipped", ""))}, nil,
			`unmatched | no published workflow and no waiting run matches type "paid"`,
		},
		"a workflow and a run": {
			ev(1, "paid", ""),
			[]event.Trigger{trigger("a/b", event.One, wants("paid", ""))},
			[]event.Listener{listener("l", event.One, wants("paid", ""))},
			`routed | a/b[1] | l[1]`,
		},
		"one of several filters, once": {
			ev(1, "paid", `{"n":1}`),
			[]event.Trigger{trigger("a/b", event.Any, wants("paid", ".n == 2"), wants("paid", ".n > 0"),
				wants("paid", ".n == 1"))}, nil,
			`routed | a/b[1]`,
		},
		"all of a run's filters are for the run to count": {
			ev(1, "paid", ""), nil, []event.Listener{listener("l", event.All, wants("paid", ""), wants("shipped", ""))},
			`routed | l[1]`,
		},
		"every event": {
			ev(1, "paid", ""), []event.Trigger{trigger("a/b", event.Any)}, []event.Listener{listener("l", event.Any)},
			`routed | a/b[1] | l[1]`,
		},
		"any type by an expression": {
			ev(1, "order.paid", ""),
			[]event.Trigger{trigger("a/b", event.One,
				event.Filter{With: map[string]event.Value{"type": {Expr: `startswith("order.")`}}})}, nil,
			`routed | a/b[1]`,
		},
		"other data": {
			ev(1, "paid", `{"n":1}`), []event.Trigger{trigger("a/b", event.One, wants("paid", ".n == 2"))}, nil,
			`unmatched | the triggers and listeners for type "paid" match other events of it`,
		},
		"data that the filter cannot be evaluated on": {
			ev(1, "paid", `"text"`),
			[]event.Trigger{trigger("a/b", event.One, wants("paid", ".n == 2")),
				trigger("a/c", event.One, wants("paid", ".n == 2"))},
			nil, `unmatched | the filter of workflow "a/b" and 1 more cannot be evaluated for "data": evaluate ".n == 2": expected an object but got: string ("text")`,
		},
		"a definition that is broken beside one that is not": {
			ev(1, "paid", ""),
			[]event.Trigger{trigger("a/bad", event.One, wants("paid", "(")), trigger("a/good", event.One, wants("paid", ""))},
			nil,
			`routed | a/good[1]`,
		},
		"a definition that is broken": {
			ev(1, "paid", ""), []event.Trigger{trigger("a/bad", event.One, wants("paid", "("))}, nil,
			`unmatched | the filter of workflow "a/bad" cannot be evaluated: compile what "data" must be: unexpected EOF`,
		},
		"sensitive data that the filter cannot be evaluated on": {
			opened, []event.Trigger{trigger("a/b", event.One, wants("paid", ".n.m == 2"))}, nil,
			`unmatched | the filter of workflow "a/b" cannot be evaluated; the cause is hidden, because the event has sensitive values`,
		},
		"a definition that never ends": {
			ev(1, "paid", "1"),
			[]event.Trigger{trigger("a/bad", event.One, wants("paid", "def f: f; f")),
				trigger("a/good", event.One, wants("paid", ""))}, nil,
			`routed | a/good[1]`,
		},
		"paused": {ev(1, "paid", ""), []event.Trigger{paused}, nil, `unmatched | workflow "a/paused" is paused`},
		"accepted before": {
			ev(1, "paid", ""), []event.Trigger{late}, nil,
			`unmatched | the triggers and listeners for type "paid" match other events of it`,
		},
		"accepted after": {ev(2, "paid", ""), []event.Trigger{late}, nil, `routed | a/late[2]`},
		"a timer":        {fired, []event.Trigger{timed}, nil, `routed | a/timed[1]`},
		"another timer": {anothers, []event.Trigger{timed}, nil,
			`unmatched | no published workflow and no waiting run matches type "io.signalbox.schedule.fired"`},
		"what runs expect": {
			ev(1, "paid", `{"order":7.0}`), nil,
			[]event.Listener{
				listener("a", event.One, by(wants("paid", ""), "order", ".data.order", "7")),
				listener("b", event.One, by(wants("paid", ""), "order", ".data.order", "8")),
				listener("c", event.One, by(wants("paid", ""), "order", ".data.order", "")),
				listener("d", event.One, by(wants("paid", ""), "order", ".data.order", `"7"`)),
			}, `routed | a[1] | c[1]`,
		},
		"no value for a key": {
			ev(1, "paid", `{}`), nil,
			[]event.Listener{listener("a", event.One, by(wants("paid", ""), "order", ".data.order", ""))},
			`unmatched | the triggers and listeners for type "paid" match other events of it`,
		},
		"poison": {
			ev(1, "paid", strings.Repeat("[", 2000)+strings.Repeat("]", 2000)), []event.Trigger{trigger("a/b", event.Any)}, nil,
			`rejected | it cannot be read: decode JSON: nested deeper than 1000 levels`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			routings := evaluated(match.New(match.Options{}),
				event.Batch{Events: []event.Event{tt.event}, Triggers: tt.triggers, Listeners: tt.listeners})
			require.Equal(t, []string{tt.want}, outcomes(routings))
			require.Equal(t, tt.event.Position, routings[0].Position)
		})
	}
}

func TestInvalidEventDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	b := event.Batch{Triggers: []event.Trigger{trigger("a/b", event.One, wants("paid", ".n == 1"))}}
	for i := range 5 {
		data := `{"n":1}`
		if i == 2 {
			data = strings.Repeat("[", 2000)
		}
		b.Events = append(b.Events, ev(int64(i+1), "paid", data))
	}
	got := outcomes(evaluated(match.New(match.Options{}), b))
	require.Contains(t, got[2], "rejected | it cannot be read")
	require.Equal(t, []string{"routed | a/b[1]", "routed | a/b[2]"}, got[:2])
	require.Equal(t, []string{"routed | a/b[4]", "routed | a/b[5]"}, got[3:])
}

// TestEndlessFilters: filters that do not terminate are cut off, and routing makes progress.
func TestEndlessFilters(t *testing.T) {
	t.Parallel()
	var b event.Batch
	for i := range 30 {
		b.Triggers = append(b.Triggers,
			trigger(fmt.Sprint("a/bad-", i), event.One, wants("paid", fmt.Sprintf("def f: f; f | %d", i))))
		b.Events = append(b.Events, ev(int64(i+1), "paid", "1"))
	}
	b.Triggers = append(b.Triggers, trigger("a/good", event.One, wants("paid", "")))
	m := match.New(match.Options{})
	first := evaluated(m, b)
	require.NotEmpty(t, first)
	require.Less(t, len(first), len(b.Events))
	b.Events = b.Events[len(first):]
	for i, r := range append(first, evaluated(m, b)...) {
		require.Equal(t, fmt.Sprintf("routed | a/good[%d]", i+1), outcome(r))
	}
}

func TestReasonNamesFewNearMatches(t *testing.T) {
	t.Parallel()
	b := event.Batch{Events: []event.Event{ev(1, "paid", "")}}
	for i := range 5 {
		p := trigger(fmt.Sprint("a/", i), event.One, wants("paid", ""))
		p.Paused = true
		b.Triggers = append(b.Triggers, p)
	}
	require.Equal(t, []string{
		`unmatched | workflow "a/0" is paused; workflow "a/1" is paused; workflow "a/2" is paused (and 2 more)`},
		outcomes(evaluated(match.New(match.Options{}), b)))
}

func TestDeliveries(t *testing.T) {
	t.Parallel()
	b := event.Batch{
		Events:    []event.Event{ev(9, "paid", "")},
		Triggers:  []event.Trigger{trigger("a/b", event.One, wants("paid", ""))},
		Listeners: []event.Listener{listener("l", event.One, wants("paid", ""))},
	}
	got := evaluated(match.New(match.Options{}), b)[0].Deliveries
	start, wake := got[0], got[1]
	require.Equal(t, event.Delivery{
		ID: start.ID, RunID: start.RunID, Project: shop, Position: 9, Kind: event.Start, Workflow: "a/b", Version: "1.0.0",
		Positions: []int64{9}, Status: event.DeliveryPending,
	}, start)
	require.Equal(t, event.Delivery{
		ID: wake.ID, RunID: "run-l", Project: shop, Position: 9, Kind: event.Wake, Listener: "l",
		Positions: []int64{9}, Status: event.DeliveryPending,
	}, wake)
	ids := map[string]bool{}
	for _, id := range []string{start.ID, start.RunID, wake.ID} {
		parsed, err := uuid.Parse(id)
		require.NoError(t, err)
		require.Equal(t, uuid.Version(8), parsed.Version())
		ids[id] = true
	}
	require.Len(t, ids, 3)

	// A run's ID depends on the event and the workflow, not on the version or the event's position.
	b.Triggers[0].Version, b.Events[0].Position = "2.0.0", 10
	require.Equal(t, start.RunID, evaluated(match.New(match.Options{}), b)[0].Deliveries[0].RunID)
	for change, apply := range map[string]func(*event.Batch){
		"source":   func(b *event.Batch) { b.Events[0].Source = "/t" },
		"ID":       func(b *event.Batch) { b.Events[0].ID = "other" },
		"boundary": func(b *event.Batch) { b.Events[0].Source, b.Events[0].ID = "/se", "-9" },
		"workflow": func(b *event.Batch) { b.Triggers[0].Workflow = "a/c" },
		"project":  func(b *event.Batch) { b.Triggers[0].Project = "other" },
	} {
		c := event.Batch{Events: []event.Event{b.Events[0]}, Triggers: []event.Trigger{b.Triggers[0]}}
		apply(&c)
		require.NotEqual(t, start.RunID, evaluated(match.New(match.Options{}), c)[0].Deliveries[0].RunID, change)
	}
}

// A batch is written in one transaction, which must finish within its timeout however many runs wait for every event.
func TestBatchEndsAfterMaxDeliveries(t *testing.T) {
	t.Parallel()
	b := event.Batch{}
	for i := range 3000 {
		b.Listeners = append(b.Listeners, listener(fmt.Sprint("l-", i), event.One, wants("a", "")))
	}
	for position := range int64(5) {
		b.Events = append(b.Events, ev(position+1, "a", ""))
	}
	routings := evaluated(match.New(match.Options{}), b)
	require.Len(t, routings, 1)
	require.Len(t, routings[0].Deliveries, 3000)
	b.Listeners = b.Listeners[:300]
	require.Len(t, evaluated(match.New(match.Options{}), b), 5)
}
