package storetest

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// fromStart returns a listener that takes the events since the start of its run.
func fromStart(id, runID string, types ...string) event.Listener {
	l := listener(id, runID, types...)
	l.FromStart = true
	return l
}

func typed(typ string, ids ...string) []event.Event {
	list := make([]event.Event, len(ids))
	for i, id := range ids {
		list[i] = newEvent(id)
		list[i].Type = typ
	}
	return list
}

// deliveredTo returns the positions of the deliveries to a listener, in order.
func deliveredTo(t testing.TB, s Store, runID, id string) (positions []int64) {
	t.Helper()
	list, err := s.Events().ListRunDeliveries(t.Context(), here, runID, nil, 100_000)
	require.NoError(t, err)
	for _, d := range list {
		if d.Listener == id {
			positions = append(positions, d.Position)
		}
	}
	return positions
}

func statuses(t testing.TB, s Store, from, to int64) (list []event.Status) {
	t.Helper()
	for position := from; position <= to; position++ {
		list = append(list, getEvent(t, s, position).Status)
	}
	return list
}

func unmatchedUpTo(t testing.TB, s Store, o inbox.Owner, from, to int64) {
	t.Helper()
	var routings []event.Routing
	for position := from; position <= to; position++ {
		r := routing(position, event.Unmatched)
		r.Reason = "no run waits"
		routings = append(routings, r)
	}
	require.NoError(t, s.Events().CommitRouting(t.Context(), here, o, routings))
}

// testEarlierEvents: a listener takes the matching events since its run's start that the run has not taken, in order,
// each once.
func testEarlierEvents(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	o := fence(t, s, "host-1")
	give(t, s, typed("a", "before 1", "before 2")...)
	insert(t, s, newRun("r", 0))
	give(t, s, typed("a", "3", "4")...)
	give(t, s, typed("b", "5")...)
	give(t, s, typed("a", "6")...)
	unmatchedUpTo(t, s, o, 1, 5) // 6 is not routed yet

	done, err := s.Events().Listen(ctx, fromStart("all of a", "r", "a"))
	require.NoError(t, err)
	require.True(t, done.Delivers)
	require.Equal(t, []int64{3, 4, 6}, deliveredTo(t, s, "r", "all of a"))
	l, found := getListener(t, s, "all of a")
	require.True(t, found)
	require.Equal(t, int64(6), l.Since)
	u, r := event.Unmatched, event.Routed
	require.Equal(t, []event.Status{u, u, r, r, u, event.Pending}, statuses(t, s, 1, 6))
	unmatchedUpTo(t, s, o, 6, 6)
	require.Equal(t, []event.Status{u, u, r, r, u, r}, statuses(t, s, 1, 6))
	require.Equal(t, "no run waits", getEvent(t, s, 5).Reason)
	require.Empty(t, getEvent(t, s, 4).Reason)
	list, err := s.Events().ListEvents(ctx, event.ListFilter{Project: here, Statuses: []event.Status{r}, Limit: 10})
	require.NoError(t, err)
	require.Len(t, list, 3)

	// They are delivered in order, and a repeated commit changes nothing.
	done, err = s.Events().Listen(ctx, fromStart("all of a", "r", "a"))
	require.NoError(t, err)
	require.False(t, done.Delivers)
	var order []int64
	for _, d := range due(t, s, o, 10) {
		require.Len(t, d.Events, 1)
		order = append(order, d.Position)
	}
	require.Equal(t, []int64{3, 4, 6}, order)

	// A later listener does not get what the run has taken; one of one event gets the first.
	next := fromStart("next", "r", "a", "b")
	next.Taken = []int64{3, 4}
	_, err = s.Events().Listen(ctx, next)
	require.NoError(t, err)
	require.Equal(t, []int64{5, 6}, deliveredTo(t, s, "r", "next"))
	one := fromStart("one", "r")
	one.Single = true
	_, err = s.Events().Listen(ctx, one)
	require.NoError(t, err)
	require.Equal(t, []int64{5}, deliveredTo(t, s, "r", "one"), "3 and 4 were taken, as the listener before has reported")

	// Neither does one that only takes later events, nor one of a run without a row.
	_, err = s.Events().Listen(ctx, listener("later", "r", "a"))
	require.NoError(t, err)
	_, err = s.Events().Listen(ctx, fromStart("unknown", "of no row", "a"))
	require.NoError(t, err)
	require.Empty(t, deliveredTo(t, s, "r", "later"))
	require.Empty(t, deliveredTo(t, s, "of no row", "unknown"))
	require.Empty(t, get(t, s, "r").Warnings)

	// The end of the run ends what is recorded of it.
	apply(t, s, state("r", 1, run.Completed))
	_, err = s.Events().Listen(ctx, fromStart("after", "r", "a"))
	require.Error(t, err)
}

// testEarlierEventsOfStarted: a run that events start takes those behind them.
func testEarlierEventsOfStarted(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	o := fence(t, s, "host-1")
	give(t, s, typed("a", "1", "2", "3")...)
	require.NoError(t, s.Events().CommitRouting(ctx, here, o, []event.Routing{
		routing(1, event.Unmatched), routing(2, event.Routed, startOf(2, "w")), routing(3, event.Unmatched),
	}))
	insert(t, s, newRun("run-2-w", 0))
	_, err := s.Events().Listen(ctx, fromStart("l", "run-2-w", "a"))
	require.NoError(t, err)
	require.Equal(t, []int64{3}, deliveredTo(t, s, "run-2-w", "l"))
}

// testEarlierEventsAreBounded: the newest events of a type are looked through, and the run has a warning.
func testEarlierEventsAreBounded(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	fence(t, s, "host-1")
	for _, id := range []string{"typed", "any", "far"} {
		insert(t, s, newRun(id, 0))
	}
	give(t, s, newEvents("e", MaxLookback+5)...)
	give(t, s, typed("other", "o1", "o2")...)
	for runID, l := range map[string]event.Listener{
		"typed": fromStart("l1", "typed", "test.event"), "any": fromStart("l2", "any"),
		"far": fromStart("l3", "far", "other"),
	} {
		_, err := s.Events().Listen(ctx, l)
		require.NoError(t, err)
		got := deliveredTo(t, s, runID, l.ID)
		if runID == "far" {
			require.Equal(t, []int64{MaxLookback + 6, MaxLookback + 7}, got)
			require.Empty(t, get(t, s, runID).Warnings)
			continue
		}
		require.Len(t, got, MaxLookback)
		require.Equal(t, run.WarningEventsNotSearched, get(t, s, runID).Warnings[0].Code)
		require.Contains(t, get(t, s, runID).Warnings[0].Detail, "the newest 200 events")
	}
	after := fromStart("l4", "far", "test.event")
	after.After = MaxLookback + 2
	_, err := s.Events().Listen(ctx, after)
	require.NoError(t, err)
	require.Equal(t, []int64{MaxLookback + 3, MaxLookback + 4, MaxLookback + 5}, deliveredTo(t, s, "far", "l4"))
	require.Contains(t, get(t, s, "far").Warnings[0].Detail, "more events than are recorded")
}

// testEarlierAgainstPublish: while events are accepted and routed, each listener gets each event since its run's start
// once: at its commit or by matching.
func testEarlierAgainstPublish(t *testing.T, open Opener) {
	stores := []Store{open(t), open(t), open(t)}
	insert(t, stores[0], newRun("r", 0))
	known := listenAgainstPublish(t, stores, func(i int) event.Listener {
		return fromStart(roundID(i), "r", "test.event")
	})
	all, early := make([]int64, 2*rounds), map[int64]bool{}
	for i := range all {
		all[i] = int64(i + 1)
	}
	for i := range rounds {
		id := roundID(i)
		l, found := getListener(t, stores[0], id)
		require.True(t, found)
		got := deliveredTo(t, stores[0], "r", id)
		for _, position := range got {
			early[position] = true
		}
		for position, listeners := range known {
			if listeners[id] && position > l.Since {
				got = append(got, position)
			}
		}
		slices.SortFunc(got, cmp.Compare[int64])
		require.Equal(t, all, got, id)
	}
	for _, position := range all {
		want := event.Unmatched
		if early[position] {
			want = event.Routed
		}
		require.Equal(t, want, getEvent(t, stores[0], position).Status, position)
	}
}
