package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/event"
)

// visible is longer than any test.
const visible = time.Hour

func fence(t testing.TB, s Store, holder string) inbox.Owner {
	t.Helper()
	o, err := s.Events().Fence(t.Context(), here, "queue", holder, 0)
	require.NoError(t, err)
	require.Equal(t, holder, o.Holder)
	return o
}

func routing(position int64, status event.Status, deliveries ...event.Delivery) event.Routing {
	return event.Routing{Position: position, Status: status, Deliveries: deliveries}
}

func startOf(position int64, workflow string) event.Delivery {
	return event.Delivery{
		ID: fmt.Sprintf("%d %s", position, workflow), Project: here, Position: position, Kind: event.Start,
		Workflow: workflow, Version: "1.0.0",
		RunID: fmt.Sprintf("run-%d-%s", position, workflow), Positions: []int64{position},
	}
}

func wakeOf(position int64, runID string) event.Delivery {
	return event.Delivery{
		ID: fmt.Sprintf("%d %s", position, runID), Project: here, Position: position, Kind: event.Wake, RunID: runID,
		Listener:  "listener of " + runID,
		Positions: []int64{position},
	}
}

func route(t testing.TB, s Store, o inbox.Owner, routings ...event.Routing) {
	t.Helper()
	require.NoError(t, s.Events().CommitRouting(t.Context(), here, o, routings))
}

func due(t testing.TB, s Store, o inbox.Owner, limit int) []event.Delivery {
	t.Helper()
	list, err := s.Events().Due(t.Context(), here, o, limit, visible)
	require.NoError(t, err)
	return list
}

func deliveryIDs(list []event.Delivery) []string {
	var ids []string
	for _, d := range list {
		ids = append(ids, d.ID)
	}
	return ids
}

func writeResults(t testing.TB, s Store, o inbox.Owner, outcomes ...inbox.DeliveryOutcome) {
	t.Helper()
	require.NoError(t, s.Events().RecordOutcomes(t.Context(), here, o, outcomes))
}

func outcome(id string, result inbox.Result, after time.Duration) inbox.DeliveryOutcome {
	return inbox.DeliveryOutcome{ID: id, Outcome: inbox.Outcome{Result: result, After: after, Reason: "reason of " + id}}
}

func deliveries(t testing.TB, s Store, position int64) []event.Delivery {
	t.Helper()
	list, err := s.Events().ListDeliveries(t.Context(), here, position)
	require.NoError(t, err)
	return list
}

func delivery(t testing.TB, s Store, position int64) event.Delivery {
	t.Helper()
	list := deliveries(t, s, position)
	require.Len(t, list, 1)
	return list[0]
}

// pending returns the number of pending deliveries; events that are not routed yet are not counted.
func pending(t testing.TB, s Store) int64 {
	t.Helper()
	list, err := s.Events().Progress(t.Context(), []inbox.Name{{Project: here, TaskQueue: "queue"}})
	require.NoError(t, err)
	require.Len(t, list, 1)
	return list[0].Pending - (list[0].Head - list[0].Routed)
}

func testRouteEvents(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	o := fence(t, s, "host-1")
	batch, err := s.Events().Unrouted(ctx, here, 10)
	require.NoError(t, err)
	require.Empty(t, batch)
	for i := range 5 {
		give(t, s, newEvents(fmt.Sprint(i, "-"), 100)...)
	}
	batch, err = s.Events().Unrouted(ctx, here, 150)
	require.NoError(t, err)
	require.Len(t, batch.Events, 150)
	for i, e := range batch.Events {
		require.Equal(t, int64(i+1), e.Position)
	}
	require.Equal(t, getEvent(t, s, 150), batch.Events[149])

	var routings []event.Routing
	for i := range 150 {
		r := routing(int64(i+1), event.Unmatched)
		switch {
		case i == 70:
			r = routing(71, event.Routed, startOf(71, "b/b"), startOf(71, "a/a"), wakeOf(71, "run-1"))
		case i%50 == 0:
			r.Status, r.Reason = event.Rejected, "odd \x00 reason"
		}
		routings = append(routings, r)
	}
	route(t, s, o, routings...)
	require.Equal(t, int64(3), pending(t, s))
	for position, want := range map[int64][2]string{
		1: {"rejected", "odd \uFFFD reason"}, 2: {"unmatched", ""}, 50: {"unmatched", ""},
		51: {"rejected", "odd \uFFFD reason"},
		71: {"routed", ""}, 72: {"unmatched", ""}, 150: {"unmatched", ""}, 151: {"pending", ""},
	} {
		e := getEvent(t, s, position)
		require.Equal(t, want, [2]string{string(e.Status), e.Reason}, position)
	}
	batch, err = s.Events().Unrouted(ctx, here, 1)
	require.NoError(t, err)
	require.Equal(t, int64(151), batch.Events[0].Position)

	list := deliveries(t, s, 71)
	require.Equal(t, []string{"71 a/a", "71 b/b", "71 run-1"}, deliveryIDs(list))
	d := list[0]
	require.Equal(t, []any{event.DeliveryPending, 0, "a/a", "1.0.0", []int64{71}},
		[]any{d.Status, d.Attempts, d.Workflow, d.Version, d.Positions})
	require.Equal(t, d.CreatedAt, d.NextAt)
	require.Empty(t, deliveries(t, s, 72))

	// A position that does not follow is refused, and nothing changes.
	for _, position := range []int64{150, 152} {
		err = s.Events().CommitRouting(ctx, here, o,
			[]event.Routing{routing(position, event.Routed, startOf(position, "a/a"))})
		require.ErrorContains(t, err, "does not follow")
	}
	err = s.Events().CommitRouting(ctx, here, o, []event.Routing{routing(151, event.Routed), routing(153, event.Routed)})
	require.ErrorContains(t, err, "does not follow")
	require.Equal(t, event.Pending, getEvent(t, s, 151).Status)
	require.Equal(t, int64(3), pending(t, s))
	// An existing delivery does not change.
	route(t, s, o, routing(151, event.Routed, startOf(71, "a/a"), startOf(151, "a/a")))
	require.Equal(t, int64(4), pending(t, s))
	require.Equal(t, list, deliveries(t, s, 71))
}

func testClaimDeliveries(t *testing.T, open Opener) {
	s := open(t)
	o := fence(t, s, "host-1")
	list := newEvents("e", 6)
	list[0].Traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	give(t, s, list...)
	require.Empty(t, due(t, s, o, 10))
	both := startOf(6, "all/of")
	both.Positions = []int64{2, 6}
	route(t, s, o, routing(1, event.Routed, startOf(1, "a/a")), routing(2, event.Routed, startOf(2, "a/a")),
		routing(3, event.Routed, startOf(3, "a/a")))
	route(t, s, o, routing(4, event.Unmatched), routing(5, event.Routed, startOf(5, "a/a")),
		routing(6, event.Routed, both))

	first := due(t, s, o, 3)
	require.Equal(t, []string{"1 a/a", "2 a/a", "3 a/a"}, deliveryIDs(first))
	require.Equal(t, 1, first[0].Attempts, "the coming one is counted")
	traced := getEvent(t, s, 1)
	require.Empty(t, traced.Traceparent, "what shows events does not read it")
	traced.Traceparent = list[0].Traceparent
	require.Equal(t, []event.Event{traced}, first[0].Events)
	rest := due(t, s, o, 10)
	require.Equal(t, []string{"5 a/a", "6 all/of"}, deliveryIDs(rest))
	require.Equal(t, []event.Event{getEvent(t, s, 2), getEvent(t, s, 6)}, rest[1].Events)
	require.Equal(t, []string{"2 a/a", "6 all/of"}, deliveryIDs(deliveries(t, s, 2)), "what an event is part of")
	require.Empty(t, due(t, s, o, 10), "claimed is claimed")

	writeResults(t, s, o, outcome("1 a/a", inbox.Done, 0), outcome("2 a/a", inbox.Retry, 0),
		outcome("3 a/a", inbox.Retry, time.Hour),
		outcome("5 a/a", inbox.Dead, 0), outcome("none", inbox.Done, 0))
	require.Equal(t, int64(3), pending(t, s))
	for position, want := range map[int64][]any{
		1: {event.DeliveryDone, 1, "reason of 1 a/a", true}, 3: {event.DeliveryPending, 1, "reason of 3 a/a", false},
		5: {event.DeliveryDead, 1, "reason of 5 a/a", true},
	} {
		d := delivery(t, s, position)
		require.Equal(t, want, []any{d.Status, d.Attempts, d.Reason, d.NextAt.IsZero()})
	}
	require.Greater(t, delivery(t, s, 3).NextAt.Sub(delivery(t, s, 3).UpdatedAt), 59*time.Minute)
	again := due(t, s, o, 10)
	require.Equal(t, []string{"2 a/a"}, deliveryIDs(again))
	require.Equal(t, 2, again[0].Attempts)
	writeResults(t, s, o, outcome("2 a/a", inbox.Done, 0), outcome("1 a/a", inbox.Dead, 0),
		outcome("5 a/a", inbox.Retry, 0))
	require.Equal(t, event.DeliveryDone, delivery(t, s, 1).Status, "an outcome is final")
	require.Equal(t, event.DeliveryDead, delivery(t, s, 5).Status)
	require.Equal(t, int64(2), pending(t, s))

	// The next owner claims at once what this owner has left, except deliveries that are to be retried later.
	next := fence(t, s, "host-2")
	require.Equal(t, []string{"6 all/of"}, deliveryIDs(due(t, s, next, 10)))

	// So does the same owner when the claim expires.
	for _, brief := range []time.Duration{0, time.Microsecond} {
		next = fence(t, s, "host-2")
		list, err := s.Events().Due(t.Context(), here, next, 10, brief)
		require.NoError(t, err)
		require.Equal(t, []string{"6 all/of"}, deliveryIDs(list))
		require.Eventually(t, func() bool {
			list, err = s.Events().Due(t.Context(), here, next, 10, visible)
			return err != nil || len(list) > 0
		}, 10*time.Second, time.Millisecond)
		require.NoError(t, err)
		require.Equal(t, []string{"6 all/of"}, deliveryIDs(list))
	}
}

func testLanes(t *testing.T, open Opener) {
	s := open(t)
	o := fence(t, s, "host-1")
	give(t, s, newEvents("e", 20)...)
	var routings []event.Routing
	for p := int64(1); p <= 5; p++ {
		routings = append(routings, routing(p, event.Routed, wakeOf(p, "x")))
	}
	routings = append(routings, routing(6, event.Routed, wakeOf(6, "y"), startOf(6, "a/a")))
	route(t, s, o, routings...)

	require.Equal(t, []string{"1 x", "2 x", "3 x", "4 x", "5 x", "6 a/a", "6 y"}, deliveryIDs(due(t, s, o, 10)),
		"a lane comes as a row")
	route(t, s, o, routing(7, event.Routed, wakeOf(7, "x"), wakeOf(7, "y")))
	require.Empty(t, due(t, s, o, 10), "a lane that is being worked on is left alone")
	writeResults(t, s, o, outcome("6 y", inbox.Done, 0), outcome("1 x", inbox.Done, 0),
		outcome("2 x", inbox.Retry, time.Hour))
	require.Equal(t, []string{"7 y"}, deliveryIDs(due(t, s, o, 10)),
		"what is to be tried again holds its lane up, and no other")
	require.True(t, delivery(t, s, 3).NextAt.IsZero())

	// The lane continues where it stopped, including the deliveries behind that its owner had claimed.
	changed, err := s.Events().Redeliver(t.Context(), here, 2, nil, at(1), entry(audit.EventRedeliver, here, "2"))
	require.NoError(t, err)
	require.Equal(t, []string{"2 x"}, deliveryIDs(changed))
	list := due(t, s, o, 10)
	require.Equal(t, []string{"2 x", "3 x", "4 x", "5 x", "7 x"}, deliveryIDs(list))
	require.Equal(t, []int{2, 1}, []int{list[0].Attempts, list[1].Attempts})
	writeResults(t, s, o, outcome("2 x", inbox.Dead, 0), outcome("3 x", inbox.Done, 0))
	require.Empty(t, due(t, s, o, 10), "the rest of the row is still being made")
	require.False(t, delivery(t, s, 4).NextAt.IsZero(), "until its claim is over")
	writeResults(t, s, o, outcome("4 x", inbox.Done, 0))
	require.Empty(t, due(t, s, o, 10), "those behind it are being made")
	next := fence(t, s, "host-2")
	require.Equal(t, []string{"5 x", "6 a/a", "7 x", "7 y"}, deliveryIDs(due(t, s, next, 10)))
	writeResults(t, s, next, outcome("5 x", inbox.Done, 0), outcome("7 x", inbox.Done, 0))
	require.Equal(t, int64(2), pending(t, s))
}

func testRedeliver(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	o := fence(t, s, "host-1")
	give(t, s, newEvents("e", 3)...)
	route(t, s, o, routing(1, event.Routed, startOf(1, "dead/1"), startOf(1, "dead/2"), startOf(1, "done/1"),
		startOf(1, "late/1"), startOf(1, "claimed/1")))
	due(t, s, o, 10)
	writeResults(t, s, o, outcome("1 dead/1", inbox.Dead, 0), outcome("1 dead/2", inbox.Dead, 0),
		outcome("1 done/1", inbox.Done, 0), outcome("1 late/1", inbox.Retry, time.Hour))
	require.Equal(t, int64(2), pending(t, s))

	redeliver := func(ids ...string) []event.Delivery {
		list, err := s.Events().Redeliver(ctx, here, 1, ids, at(7), entry(audit.EventRedeliver, here, "event 1"))
		require.NoError(t, err)
		return list
	}
	require.Empty(t, redeliver("1 done/1", "1 claimed/1"))
	require.Empty(t, audited(t, s, "event 1"), "nothing was done")
	_, err := s.Events().Redeliver(ctx, here, 1, []string{"1 dead/1", "2 dead/1"}, at(7),
		entry(audit.EventRedeliver, here, "event 1"))
	requireError(t, err, apperror.NotFound, apperror.DeliveryNotFound, "2 dead/1")
	changed := redeliver("1 dead/1")
	require.Equal(t, []string{"1 dead/1"}, deliveryIDs(changed))
	d := changed[0]
	require.Equal(t, []any{event.DeliveryPending, 1, "", at(7)}, []any{d.Status, d.Attempts, d.Reason, d.UpdatedAt})
	require.False(t, d.NextAt.IsZero())
	require.Len(t, audited(t, s, "event 1"), 1)
	require.Equal(t, int64(3), pending(t, s))
	require.Equal(t, []string{"1 dead/1"}, deliveryIDs(due(t, s, o, 10)))
	require.Equal(t, []string{"1 dead/2", "1 late/1"}, deliveryIDs(redeliver()), "all but what is done or being made")
	list := due(t, s, o, 10)
	require.Equal(t, []string{"1 dead/2", "1 late/1"}, deliveryIDs(list))
	require.Equal(t, 2, list[1].Attempts)
	require.Equal(t, int64(4), pending(t, s))
	bad := entry("any", here, "any")
	bad.Reason = "not storable: \x00"
	writeResults(t, s, o, outcome("1 dead/2", inbox.Dead, 0))
	_, err = s.Events().Redeliver(ctx, here, 1, nil, at(8), bad)
	require.True(t, apperror.Is(err, apperror.InvalidArgument), "%v", err)
	require.Equal(t, int64(3), pending(t, s), "the change goes with its entry")
}

// A dead start delivery starts the version that is published now. A delivery that is only late, or has started a run,
// keeps its version.
func testRedeliverNewerVersion(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	const spec = `{"mode":"any"}`
	o := fence(t, s, "host-1")
	give(t, s, newEvents("e", 1)...)
	route(t, s, o, routing(1, event.Routed, startOf(1, "dead/1"), startOf(1, "late/1"), startOf(1, "begun/1"),
		startOf(1, "gone/1")))
	before := map[string]string{}
	for _, d := range due(t, s, o, 10) {
		before[d.Workflow] = d.Version
		if d.Workflow != "gone/1" {
			publish(t, s, triggered(d.Workflow, "77", spec))
		}
		if d.Workflow == "begun/1" {
			r := newRun(d.RunID, 1)
			_, _, err := s.InsertRun(ctx, r, entry(audit.RunStart, here, r.ID))
			require.NoError(t, err)
		}
	}
	require.Len(t, before, 4)
	writeResults(t, s, o, outcome("1 dead/1", inbox.Dead, 0), outcome("1 late/1", inbox.Retry, time.Hour),
		outcome("1 begun/1", inbox.Dead, 0), outcome("1 gone/1", inbox.Dead, 0))
	_, err := s.Events().Redeliver(ctx, here, 1, nil, at(7), entry(audit.EventRedeliver, here, "event 1"))
	require.NoError(t, err)
	after := map[string]string{}
	for _, d := range due(t, s, o, 10) {
		after[d.Workflow] = d.Version
	}
	before["dead/1"] = "77"
	require.Equal(t, before, after)
}

func testRedeliverInALane(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	o := fence(t, s, "host-1")
	give(t, s, newEvents("e", 6)...)
	route(t, s, o, routing(1, event.Routed, wakeOf(1, "x")), routing(2, event.Routed, wakeOf(2, "x")),
		routing(3, event.Routed, wakeOf(3, "x")))
	due(t, s, o, 10)
	writeResults(t, s, o, outcome("1 x", inbox.Dead, 0), outcome("2 x", inbox.Retry, time.Hour))
	redeliver := func(position int64) []string {
		list, err := s.Events().Redeliver(ctx, here, position, nil, at(7), entry(audit.EventRedeliver, here, "x"))
		require.NoError(t, err)
		return deliveryIDs(list)
	}
	require.Empty(t, redeliver(3), "it waits for an earlier one")
	require.Equal(t, []string{"1 x"}, redeliver(1))
	require.True(t, delivery(t, s, 2).NextAt.IsZero(), "the earlier one comes first again")
	require.Equal(t, []string{"1 x", "2 x", "3 x"}, deliveryIDs(due(t, s, o, 10)))
	writeResults(t, s, o, outcome("1 x", inbox.Dead, 0))
	require.Empty(t, redeliver(1), "later ones are being delivered, and the run ignores earlier positions after them")
	route(t, s, o, routing(4, event.Routed, wakeOf(4, "x")))
	writeResults(t, s, o, outcome("3 x", inbox.Retry, 0), outcome("2 x", inbox.Retry, time.Hour))
	require.Equal(t, []string{"1 x"}, redeliver(1), "none of them was made")
	require.Equal(t, []string{"1 x", "2 x"}, deliveryIDs(due(t, s, o, 2)), "no more than was asked for")
	writeResults(t, s, o, outcome("1 x", inbox.Dead, 0), outcome("2 x", inbox.Done, 0))
	require.Empty(t, redeliver(1), "the run has consumed a later one")
	d := delivery(t, s, 1)
	require.Equal(t, []any{event.DeliveryDead, true}, []any{d.Status, d.NextAt.IsZero()})
	require.Equal(t, int64(2), pending(t, s))
	require.Equal(t, []string{"3 x", "4 x"}, deliveryIDs(due(t, s, o, 10)))
	// A released delivery was no attempt, and the run has not consumed it.
	writeResults(t, s, o, outcome("3 x", inbox.Dead, 0), outcome("4 x", inbox.Released, 0))
	require.Equal(t, []string{"3 x"}, redeliver(3))
	list := due(t, s, o, 10)
	require.Equal(t, []string{"3 x", "4 x"}, deliveryIDs(list))
	require.Equal(t, []int{3, 1}, []int{list[0].Attempts, list[1].Attempts})
	writeResults(t, s, o, outcome("3 x", inbox.Done, 0), outcome("4 x", inbox.Done, 0))
	// Each listener of a run, and each run, has a lane of its own.
	other := wakeOf(5, "x")
	other.Listener = "another of x"
	route(t, s, o, routing(5, event.Routed, other, wakeOf(5, "y")),
		routing(6, event.Routed, wakeOf(6, "x"), startOf(6, "a/a")))
	due(t, s, o, 10)
	writeResults(t, s, o, outcome("5 x", inbox.Dead, 0), outcome("5 y", inbox.Dead, 0), outcome("6 x", inbox.Done, 0),
		outcome("6 a/a", inbox.Done, 0))
	require.Equal(t, []string{"5 x", "5 y"}, redeliver(5))
	due(t, s, o, 10)
	writeResults(t, s, o, outcome("5 x", inbox.Done, 0), outcome("5 y", inbox.Done, 0))
	require.Zero(t, pending(t, s))
}

func testPartials(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	o := fence(t, s, "host-1")
	publish(t, s, triggered("a/all", "1",
		`{"mode":"all","filters":[{"with":{"type":{"literal":"one"}}},{"with":{"type":{"literal":"two"}}}]}`))
	first, second := newEvent("1"), newEvent("2")
	first.Type, second.Type = "one", "two"
	give(t, s, first)
	long := fmt.Sprintf("%08000d", 1)
	partial := func(key string, positions ...int64) event.Partial {
		return event.Partial{Project: here, Workflow: "a/all", Key: key, Positions: positions}
	}
	r := routing(1, event.Routed)
	gone := partial("k")
	gone.Workflow = "a/none"
	gone.Positions = []int64{1}
	r.Partials = []event.Partial{partial("k", 1, 1), partial("k", 1, 0), partial(long, 1, 0), partial("other", 0, 1), gone}
	route(t, s, o, r)
	give(t, s, second)
	batch, err := s.Events().Unrouted(ctx, here, 10)
	require.NoError(t, err)
	require.ElementsMatch(t, []event.Partial{partial("k", 1, 0), partial(long, 1, 0), partial("other", 0, 1)},
		batch.Partials)
	kept := getEvent(t, s, 1)
	require.Equal(t, []event.Event{{Project: here, Position: 1, ID: kept.ID, Source: kept.Source}}, batch.Earlier,
		"not what may be large")
	r = routing(2, event.Routed)
	r.Partials = []event.Partial{partial("k"), partial("other", 2, 1)}
	route(t, s, o, r)
	give(t, s, newEvent("3"))
	batch, err = s.Events().Unrouted(ctx, here, 10)
	require.NoError(t, err)
	require.Empty(t, batch.Partials, "no trigger matches this type")
	third := newEvent("4")
	third.Type = "one"
	give(t, s, third)
	batch, err = s.Events().Unrouted(ctx, here, 10)
	require.NoError(t, err)
	require.ElementsMatch(t, []event.Partial{partial(long, 1, 0), partial("other", 2, 1)}, batch.Partials)
	require.Len(t, batch.Earlier, 2)

	// A version with the same filters keeps the open sets, one with other filters starts new ones.
	publish(t, s, triggered("a/all", "22",
		`{"mode":"all","filters":[{"with":{"type":{"literal":"one"}}},{"with":{"type":{"literal":"two"}}}]}`))
	batch, err = s.Events().Unrouted(ctx, here, 10)
	require.NoError(t, err)
	require.Len(t, batch.Partials, 2)
	publish(t, s, triggered("a/all", "333",
		`{"mode":"all","filters":[{"with":{"type":{"literal":"one"}}},{"with":{"type":{"literal":"three"}}}]}`))
	batch, err = s.Events().Unrouted(ctx, here, 10)
	require.NoError(t, err)
	require.Empty(t, batch.Partials)
}

func testRunDeliveries(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	o := fence(t, s, "host-1")
	give(t, s, newEvents("e", 5)...)
	route(t, s, o, routing(1, event.Routed, startOf(1, "a/one"), wakeOf(1, "r1")), routing(2, event.Unmatched),
		routing(3, event.Routed, wakeOf(3, "r1"), wakeOf(3, "r2")),
		routing(4, event.Routed, wakeOf(4, "r1")))
	list, err := s.Events().ListRunDeliveries(ctx, here, "r1", nil, 2)
	require.NoError(t, err)
	require.Equal(t, []string{"1 r1", "3 r1"}, deliveryIDs(list))
	require.Equal(t, []int64{3}, list[1].Positions)
	list, err = s.Events().ListRunDeliveries(ctx, here, "r1", &event.DeliveryCursor{Position: 3, ID: "3 r1"}, 2)
	require.NoError(t, err)
	require.Equal(t, []string{"4 r1"}, deliveryIDs(list))
	listed := func(f event.ListFilter) (positions []int64) {
		f.Project, f.Limit = here, max(f.Limit, 2)
		events, err := s.Events().ListEvents(ctx, f)
		require.NoError(t, err)
		for _, e := range events {
			positions = append(positions, e.Position)
		}
		return positions
	}
	require.Equal(t, []int64{4, 3}, listed(event.ListFilter{RunID: "r1"}))
	require.Equal(t, []int64{1}, listed(event.ListFilter{RunID: "r1", Before: 3}))
	require.Equal(t, []int64{3}, listed(event.ListFilter{RunID: "r2"}))
	require.Equal(t, []int64{4, 3},
		listed(event.ListFilter{RunID: "r1", Statuses: []event.Status{event.Routed, event.Pending}}))
	require.Empty(t, listed(event.ListFilter{RunID: "r1", Statuses: []event.Status{event.Unmatched}}))
	require.Empty(t, listed(event.ListFilter{RunID: "r1", Type: "none"}))
	require.Empty(t, listed(event.ListFilter{RunID: "none"}))
	give(t, s, newEvents("f", 3)...)
	set := startOf(7, "a/all")
	set.Positions = []int64{5, 7}
	route(t, s, o, routing(5, event.Unmatched), routing(6, event.Unmatched), routing(7, event.Routed, set))
	require.Equal(t, []int64{7, 5}, listed(event.ListFilter{RunID: set.RunID}), "all events of a set")
	for project, id := range map[string]string{"elsewhere": "r1", here: "none"} {
		list, err = s.Events().ListRunDeliveries(ctx, project, id, nil, 2)
		require.NoError(t, err)
		require.Empty(t, list)
	}
}
