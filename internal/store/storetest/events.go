package storetest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/project"
)

// newEvent returns an event as callers pass it to the store.
func newEvent(id string) event.Event {
	return event.Event{ID: id, Source: "/test", Type: "test.event", Actor: "ada"}
}

func newEvents(prefix string, n int) []event.Event {
	list := make([]event.Event, n)
	for i := range list {
		list[i] = newEvent(fmt.Sprintf("%s%d", prefix, i))
	}
	return list
}

// give publishes events that are all new and returns the position of the first.
func give(t testing.TB, s Store, list ...event.Event) int64 {
	t.Helper()
	accepted, _, err := s.Events().Publish(t.Context(), here, list)
	require.NoError(t, err)
	require.Len(t, accepted, len(list))
	for i, a := range accepted {
		require.Equal(t, event.Accepted{Position: accepted[0].Position + int64(i)}, a)
	}
	return accepted[0].Position
}

func getEvent(t testing.TB, s Store, position int64) event.Event {
	t.Helper()
	e, err := s.Events().GetEvent(t.Context(), here, position)
	require.NoError(t, err)
	return e
}

func createProject(t testing.TB, s Store, name string) {
	t.Helper()
	p := project.Project{Name: name, CreatedAt: at(0)}
	require.NoError(t, s.CreateProject(t.Context(), p, entry(audit.ProjectCreate, name, name)))
}

func testPublishEvents(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	full := event.Event{
		ID: "a ü \"x\"", Source: "https://example.com/s?x=%20'", Type: "t", Subject: "s", DataContentType: "application/json",
		DataSchema: "https://example.com/schema", Time: at(1).Add(789), Extensions: json.RawMessage(`{"b": 1,"a":"x"}`),
		Data: json.RawMessage(`{"n": 1.0, "big":12345678901234567890}`), Actor: "ada", ReceivedAt: at(9), Position: 77,
		Status:   event.Rejected,
		Original: &event.Original{KeyID: "k1", Sealed: []byte{1, 0, 2}},
	}
	binary := newEvent("b")
	binary.Data, binary.DataBase64 = json.RawMessage(`"AAEC"`), true
	begin := time.Now().Add(-time.Minute)
	accepted, wake, err := s.Events().Publish(ctx, here, []event.Event{full, binary})
	require.NoError(t, err)
	require.False(t, wake, "no dispatcher is parked")
	require.Equal(t, []event.Accepted{{Position: 1}, {Position: 2}}, accepted)
	got := getEvent(t, s, 1)
	require.WithinRange(t, got.ReceivedAt, begin, time.Now().Add(time.Minute))
	full.Project, full.Position, full.Status, full.ReceivedAt = here, 1, event.Pending, got.ReceivedAt
	shown := full
	shown.Original = nil
	require.Equal(t, shown, got, "reads for display have no originals")
	listed, err := s.Events().ListEvents(ctx, event.ListFilter{Project: here, Limit: 2})
	require.NoError(t, err)
	require.Nil(t, listed[1].Original)
	batch, err := s.Events().Unrouted(ctx, here, 1)
	require.NoError(t, err)
	require.Equal(t, []event.Event{full}, batch.Events, "reads for delivery have them")
	got = getEvent(t, s, 2)
	binary.Project, binary.Position, binary.Status, binary.ReceivedAt = here, 2, event.Pending, got.ReceivedAt
	require.Equal(t, binary, got)

	// Duplicates get no position, whether they are of an earlier batch or of the same.
	other := newEvent("b")
	other.Source = "/other"
	accepted, _, err = s.Events().Publish(ctx, here,
		[]event.Event{newEvent("c"), newEvent("b"), newEvent("c"), other, newEvent("d")})
	require.NoError(t, err)
	require.Equal(t, []event.Accepted{
		{Position: 3}, {Position: 2, Duplicate: true, Different: true}, {Position: 3, Duplicate: true}, {Position: 4},
		{Position: 5}}, accepted)
	accepted, _, err = s.Events().Publish(ctx, here, []event.Event{newEvent("d"), newEvent("b")})
	require.NoError(t, err)
	require.Equal(t, []event.Accepted{{Position: 5, Duplicate: true}, {Position: 2, Duplicate: true, Different: true}},
		accepted)
	require.Equal(t, int64(6), give(t, s, newEvent("e")))
	accepted, _, err = s.Events().Publish(ctx, here, nil)
	require.NoError(t, err)
	require.Empty(t, accepted)

	// Each project has positions of its own.
	createProject(t, s, "other")
	accepted, _, err = s.Events().Publish(ctx, "other", []event.Event{newEvent("b")})
	require.NoError(t, err)
	require.Equal(t, []event.Accepted{{Position: 1}}, accepted)

	odd := newEvent("x\x00")
	_, _, err = s.Events().Publish(ctx, here, []event.Event{newEvent("f"), odd})
	f, _ := apperror.From(err)
	require.NotNil(t, f, "%v", err)
	require.Equal(t, apperror.Invalid, f.Class)
	require.Equal(t, int64(7), give(t, s, newEvent("f")), "nothing of a refused batch is kept")
	give(t, s, newEvents("many", 700)...)
	positions, err := s.Events().Positions(ctx, here, newEvent("b").Source, []string{"b", "missing", "d", "b"})
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"b": 2, "d": 5}, positions)
	positions, err = s.Events().Positions(ctx, here, "/another", []string{"b"})
	require.NoError(t, err)
	require.Empty(t, positions)
}

// testPublishEventsAtOnce has concurrent publishers of the same events in different orders.
func testPublishEventsAtOnce(t *testing.T, open Opener) {
	stores := []Store{open(t), open(t)}
	const rivals, events = 8, 60
	var wg sync.WaitGroup
	all := make([][]event.Accepted, rivals)
	orders := make([][]int, rivals)
	errs := make([]error, rivals)
	for i := range rivals {
		orders[i] = rand.Perm(events)
		wg.Go(func() {
			for part := range 6 {
				var batch []event.Event
				for _, n := range orders[i][part*10 : part*10+10] {
					batch = append(batch, newEvent(fmt.Sprint(n)))
				}
				accepted, _, err := stores[i%2].Events().Publish(t.Context(), here, batch)
				if err != nil {
					errs[i] = err
					return
				}
				all[i] = append(all[i], accepted...)
			}
		})
	}
	wg.Wait()
	position := map[int]int64{}
	kept := 0
	for i := range rivals {
		require.NoError(t, errs[i])
		for j, a := range all[i] {
			n := orders[i][j]
			if p, known := position[n]; known {
				require.Equal(t, p, a.Position)
			}
			position[n] = a.Position
			if !a.Duplicate {
				kept++
			}
		}
	}
	require.Equal(t, events, kept, "each event was kept once")
	list, err := stores[0].Events().ListEvents(t.Context(), event.ListFilter{Project: here, Limit: 1000})
	require.NoError(t, err)
	require.Len(t, list, events)
	for i, e := range list {
		require.Equal(t, int64(events-i), e.Position, "without gaps")
		if i > 0 {
			require.False(t, e.ReceivedAt.After(list[i-1].ReceivedAt), "times go along with positions")
		}
	}
}

func testListEvents(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	o := fence(t, s, "host-1")
	// Positions 1 to 12: types and sources alternate, one batch each so that times may differ.
	for i := 1; i <= 12; i++ {
		e := newEvent(fmt.Sprintf("id-%d", i%7))
		e.Type, e.Source = fmt.Sprintf("type-%d", i%3), fmt.Sprintf("/source/%d", i%4)
		require.Equal(t, int64(i), give(t, s, e))
	}
	route(t, s, o,
		routing(1, event.Unmatched), routing(2, event.Unmatched), routing(3, event.Routed, startOf(3, "a/b")),
		routing(4, event.Unmatched),
		routing(5, event.Rejected), routing(6, event.Unmatched), routing(7, event.Unmatched),
		routing(8, event.Routed, startOf(8, "a/b")))
	claimed := due(t, s, o, 10)
	require.Len(t, claimed, 2)
	writeResults(t, s, o, inbox.DeliveryOutcome{
		ID: claimed[0].ID, Outcome: inbox.Outcome{Result: inbox.Dead, Reason: "no"}})
	retrying := func() (found []int64) {
		list, err := s.Events().ListEvents(ctx, event.ListFilter{Project: here, Retrying: true, Limit: 10})
		require.NoError(t, err)
		for _, e := range list {
			found = append(found, e.Position)
		}
		return found
	}
	require.Empty(t, retrying(), "its first attempt is not over")
	writeResults(t, s, o, inbox.DeliveryOutcome{
		ID: claimed[1].ID, Outcome: inbox.Outcome{Result: inbox.Retry, Reason: "away"}})
	require.Equal(t, []int64{8}, retrying())
	require.Len(t, due(t, s, o, 10), 1)
	require.Equal(t, []int64{8}, retrying(), "also during the second attempt")
	var times []time.Time
	for i := range 12 {
		times = append(times, getEvent(t, s, int64(i+1)).ReceivedAt)
	}
	between := func(since, until time.Time) []int64 {
		var want []int64
		for i := 12; i >= 1; i-- {
			if at := times[i-1]; !at.Before(since) && at.Before(until) {
				want = append(want, int64(i))
			}
		}
		return want
	}
	far := times[11].Add(time.Hour)

	for _, tt := range []struct {
		name   string
		filter event.ListFilter
		want   []int64
	}{
		{"all", event.ListFilter{}, []int64{12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}},
		{"page", event.ListFilter{Before: 9, Limit: 3}, []int64{8, 7, 6}},
		{"type", event.ListFilter{Type: "type-1"}, []int64{10, 7, 4, 1}},
		{"source", event.ListFilter{Source: "/source/2", Before: 10}, []int64{6, 2}},
		{"id", event.ListFilter{ID: "id-3"}, []int64{10, 3}},
		{"id and source", event.ListFilter{ID: "id-3", Source: "/source/3"}, []int64{3}},
		{"pending", event.ListFilter{Statuses: []event.Status{event.Pending}}, []int64{12, 11, 10, 9}},
		{"unmatched", event.ListFilter{Statuses: []event.Status{event.Unmatched}}, []int64{7, 6, 4, 2, 1}},
		{"unmatched page", event.ListFilter{Statuses: []event.Status{event.Unmatched}, Before: 7, Limit: 3},
			[]int64{6, 4, 2}},
		{"in the middle of a stretch", event.ListFilter{Statuses: []event.Status{event.Unmatched}, Before: 2}, []int64{1}},
		{"several", event.ListFilter{Statuses: []event.Status{event.Rejected, event.Pending, event.Routed}, Limit: 6},
			[]int64{12, 11, 10, 9, 8, 5}},
		{"status and type", event.ListFilter{Statuses: []event.Status{event.Unmatched}, Type: "type-1"}, []int64{7, 4, 1}},
		{"status, type and page",
			event.ListFilter{Statuses: []event.Status{event.Unmatched, event.Pending}, Type: "type-1", Before: 10, Limit: 2},
			[]int64{7, 4}},
		{"dead", event.ListFilter{Dead: true}, []int64{3}},
		{"dead and unmatched", event.ListFilter{Dead: true, Statuses: []event.Status{event.Unmatched}}, nil},
		{"since is inclusive", event.ListFilter{Since: times[5]}, between(times[5], far)},
		{"until is exclusive", event.ListFilter{Until: times[5]}, between(time.Time{}, times[5])},
		{"since and until", event.ListFilter{Since: times[2], Until: times[9]}, between(times[2], times[9])},
		{"since is later", event.ListFilter{Since: far}, nil},
		{"until is later, pending", event.ListFilter{Until: far, Statuses: []event.Status{event.Pending}},
			[]int64{12, 11, 10, 9}},
		{"nothing", event.ListFilter{Type: "none"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.filter.Project, tt.filter.Limit = here, max(tt.filter.Limit, 1)
			if tt.filter.Limit == 1 {
				tt.filter.Limit = 100
			}
			list, err := s.Events().ListEvents(ctx, tt.filter)
			require.NoError(t, err)
			var got []int64
			for _, e := range list {
				got = append(got, e.Position)
				require.Equal(t, getEvent(t, s, e.Position), e)
			}
			require.Equal(t, tt.want, got)
		})
	}
	createProject(t, s, "empty")
	list, err := s.Events().ListEvents(ctx, event.ListFilter{Project: "empty", Limit: 1})
	require.NoError(t, err)
	require.Empty(t, list)
}

func testEventsNotFound(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	e := s.Events()
	give(t, s, newEvent("a"))
	change := dispatchtype.OwnerChange{Name: inbox.Name{Project: "none", TaskQueue: "q"}, At: at(1)}
	for name, call := range map[string]func() error{
		"publish": func() error { _, _, err := e.Publish(ctx, "none", newEvents("x", 1)); return err },
		"get":     func() error { _, err := e.GetEvent(ctx, "none", 1); return err },
		"list":    func() error { _, err := e.ListEvents(ctx, event.ListFilter{Project: "none", Limit: 1}); return err },
		"fence":   func() error { _, err := e.Fence(ctx, "none", "q", "host", 0); return err },
		"listen": func() error {
			_, err := e.Listen(ctx, event.Listener{ID: "l", Project: "none", RunID: "r"})
			return err
		},
		"record":  func() error { return e.RecordOwner(ctx, change, newEvent("x"), entry("any", "none", "any")) },
		"history": func() error { _, err := e.OwnerHistory(ctx, change.Name, 1); return err },
		"redeliver": func() error {
			_, err := e.Redeliver(ctx, "none", 1, nil, at(0), entry("any", "none", "any"))
			return err
		},
	} {
		requireError(t, call(), apperror.NotFound, apperror.ProjectNotFound, "none")
		_ = name
	}
	for name, call := range map[string]func() error{
		"get":        func() error { _, err := e.GetEvent(ctx, here, 2); return err },
		"deliveries": func() error { _, err := e.ListDeliveries(ctx, here, 2); return err },
		"redeliver":  func() error { _, err := e.Redeliver(ctx, here, 2, nil, at(0), entry("any", here, "any")); return err },
	} {
		t.Run(name, func(t *testing.T) { requireError(t, call(), apperror.NotFound, apperror.EventNotFound, "2") })
	}
	_, err := e.Redeliver(ctx, here, 1, []string{"d"}, at(0), entry("any", here, "any"))
	requireError(t, err, apperror.NotFound, apperror.DeliveryNotFound, "d")
	for name, call := range map[string]func(o inbox.Owner) error{
		"due":    func(o inbox.Owner) error { _, err := e.Due(ctx, here, o, 1, time.Minute); return err },
		"record": func(o inbox.Owner) error { return e.RecordOutcomes(ctx, here, o, nil) },
		"commit": func(o inbox.Owner) error {
			return e.CommitRouting(ctx, here, o, []event.Routing{routing(1, event.Routed)})
		},
		"park":   func(o inbox.Owner) error { _, err := e.Park(ctx, here, o); return err },
		"unpark": func(o inbox.Owner) error { return e.Unpark(ctx, here, o) },
	} {
		t.Run("fenced "+name, func(t *testing.T) {
			require.ErrorIs(t, call(inbox.Owner{Epoch: 1, Holder: "host-1"}), inbox.ErrFenced)
		})
	}
}
