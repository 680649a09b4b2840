package storetest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

func testFence(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	e := s.Events()
	first := fence(t, s, "host-1")
	require.Equal(t, int64(1), first.Epoch)
	second, err := e.Fence(ctx, here, "queue", "host-2", 41)
	require.NoError(t, err)
	require.Equal(t, inbox.Owner{Epoch: 42, Holder: "host-2"}, second, "higher than what was seen elsewhere")
	third, err := e.Fence(ctx, here, "queue", "host-2", 7)
	require.NoError(t, err)
	require.Equal(t, int64(43), third.Epoch, "higher than every one before")

	give(t, s, newEvent("a"))
	for name, o := range map[string]inbox.Owner{
		"earlier": first, "same holder": second, "same epoch": {Epoch: 43, Holder: "host-1"},
		"later": {Epoch: 44, Holder: "host-2"}, "no owner": {},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := e.Due(ctx, here, o, 1, visible)
			require.ErrorIs(t, err, inbox.ErrFenced)
			require.ErrorIs(t, e.CommitRouting(ctx, here, o, []event.Routing{routing(1, event.Routed, startOf(1, "a/a"))}),
				inbox.ErrFenced)
			require.ErrorIs(t, e.RecordOutcomes(ctx, here, o, []inbox.DeliveryOutcome{outcome("1 a/a", inbox.Done, 0)}),
				inbox.ErrFenced)
			_, err = e.Park(ctx, here, o)
			require.ErrorIs(t, err, inbox.ErrFenced)
			require.ErrorIs(t, e.Unpark(ctx, here, o), inbox.ErrFenced)
		})
	}
	require.Equal(t, event.Pending, getEvent(t, s, 1).Status)
	route(t, s, third, routing(1, event.Routed, startOf(1, "a/a")))
	require.Len(t, due(t, s, third, 1), 1)
	createProject(t, s, "other")
	other, err := e.Fence(ctx, "other", "queue", "host-1", 0)
	require.NoError(t, err)
	require.Equal(t, int64(1), other.Epoch, "each project counts for itself")
}

func testPark(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	e := s.Events()
	o := fence(t, s, "host-1")
	park := func(want bool) {
		t.Helper()
		parked, err := e.Park(ctx, here, o)
		require.NoError(t, err)
		require.Equal(t, want, parked)
	}
	asleep := func(want ...inbox.Name) {
		t.Helper()
		list, err := e.ParkedDue(ctx, 10)
		require.NoError(t, err)
		require.Equal(t, want, list)
	}
	wakes := func(id string) bool {
		t.Helper()
		_, wake, err := e.Publish(ctx, here, []event.Event{newEvent(id)})
		require.NoError(t, err)
		return wake
	}
	park(true)
	park(true)
	asleep()
	name := inbox.Name{Project: here, TaskQueue: "queue"}
	require.True(t, wakes("1"), "the publisher of an event must wake the dispatcher now")
	require.True(t, wakes("1"), "a duplicate too: its first sender may have died before it rang")
	require.True(t, wakes("2"))
	asleep(name)
	require.NoError(t, e.Unpark(ctx, here, o))
	asleep()
	require.False(t, wakes("3"))
	park(false)
	route(t, s, o, routing(1, event.Unmatched), routing(2, event.Unmatched), routing(3, event.Routed, startOf(3, "a/a")))
	park(false)
	require.Len(t, due(t, s, o, 10), 1)
	park(true)
	// Deliveries that are claimed or retried later become due in time, and are found then.
	o = fence(t, s, "host-2")
	asleep(name)
	require.Len(t, due(t, s, o, 10), 1)
	writeResults(t, s, o, outcome("3 a/a", inbox.Retry, time.Hour))
	asleep()
	require.True(t, wakes("4"), "a new owner finds it as parked as it was")
	asleep(name)
	require.NoError(t, e.Unpark(ctx, here, o))
	route(t, s, o, routing(4, event.Unmatched))
	park(true)
	_, err := e.Redeliver(ctx, here, 3, nil, at(1), entry(audit.EventRedeliver, here, "3"))
	require.NoError(t, err)
	asleep(name)
	list, err := e.ParkedDue(ctx, 0)
	require.NoError(t, err)
	require.Empty(t, list)
}

// testNoEventIsMissed runs publishers against a router that parks whenever there are no events, and continues only when
// a publisher receives the request to wake it: without that request it would stay parked for ever although there is an
// event.
func testNoEventIsMissed(t *testing.T, open Opener) {
	stores := []Store{open(t), open(t), open(t)}
	const publishers, each = 4, 40
	o := fence(t, stores[0], "host-1")
	bell := make(chan struct{}, 1)
	failed := make(chan error, publishers+1)
	var wg sync.WaitGroup
	for p := range publishers {
		wg.Go(func() {
			for i := range each {
				_, wake, err := stores[p%2].Events().Publish(t.Context(), here, newEvents(fmt.Sprintf("%d-%d-", p, i), 1+i%3))
				if err != nil {
					failed <- err
					return
				}
				if wake {
					select {
					case bell <- struct{}{}:
					default:
					}
				}
			}
		})
	}
	want := 0
	for i := range each {
		want += publishers * (1 + i%3)
	}
	routed, parks := 0, 0
	routeAll := func() error {
		for {
			batch, err := stores[2].Events().Unrouted(t.Context(), here, 7)
			if err != nil {
				return err
			}
			var routings []event.Routing
			for _, e := range batch.Events {
				routings = append(routings, routing(e.Position, event.Unmatched))
			}
			if err := stores[2].Events().CommitRouting(t.Context(), here, o, routings); err != nil {
				return err
			}
			routed += len(routings)
			if len(routings) > 0 {
				continue
			}
			parked, err := stores[2].Events().Park(t.Context(), here, o)
			if err != nil || parked {
				return err
			}
		}
	}
	wg.Go(func() {
		for {
			if err := routeAll(); err != nil {
				failed <- err
				return
			}
			parks++
			if routed == want {
				return
			}
			select {
			case <-bell:
			case <-time.After(20 * time.Second):
				failed <- fmt.Errorf("asleep after %d of %d events", routed, want)
				return
			}
			if err := stores[2].Events().Unpark(t.Context(), here, o); err != nil {
				failed <- err
				return
			}
		}
	})
	wg.Wait()
	close(failed)
	for err := range failed {
		require.NoError(t, err)
	}
	require.Positive(t, parks)
}

// testOneOwnerAtATime has owners that replace each other during their work: no event is routed twice, and no delivery
// is claimed by an owner after another one has been fenced in.
func testOneOwnerAtATime(t *testing.T, open Opener) {
	stores := []Store{open(t), open(t)}
	ctx := t.Context()
	const events, rivals = 120, 4
	var mu sync.Mutex
	claims := map[string]map[int]int64{} // of each delivery: by which epoch the attempt was claimed
	give(t, stores[0], newEvents("e", events)...)
	work := func(s *Store, name string) error {
		o, err := (*s).Events().Fence(ctx, here, "queue", name, 0)
		if err != nil {
			return err
		}
		for {
			batch, err := (*s).Events().Unrouted(ctx, here, 3)
			if err != nil {
				return err
			}
			var routings []event.Routing
			for _, e := range batch.Events {
				routings = append(routings,
					routing(e.Position, event.Routed, startOf(e.Position, "a/a"),
						wakeOf(e.Position, fmt.Sprint("run-", e.Position%2))))
			}
			if err := (*s).Events().CommitRouting(ctx, here, o, routings); err != nil {
				return err
			}
			list, err := (*s).Events().Due(ctx, here, o, 5, visible)
			if err != nil {
				return err
			}
			var done []inbox.DeliveryOutcome
			mu.Lock()
			for _, d := range list {
				if claims[d.ID] == nil {
					claims[d.ID] = map[int]int64{}
				}
				if rival, taken := claims[d.ID][d.Attempts]; taken {
					err = fmt.Errorf("attempt %d of %s was claimed by epoch %d and by %d", d.Attempts, d.ID, rival, o.Epoch)
				}
				claims[d.ID][d.Attempts] = o.Epoch
				done = append(done, outcome(d.ID, inbox.Done, 0))
			}
			mu.Unlock()
			if err != nil {
				return err
			}
			if err := (*s).Events().RecordOutcomes(ctx, here, o, done); err != nil {
				return err
			}
			if len(list) == 0 && len(batch.Events) == 0 {
				return nil
			}
		}
	}
	var wg sync.WaitGroup
	errs := make(chan error, rivals)
	for i := range rivals {
		wg.Go(func() {
			for range 20 {
				err := work(&stores[i%2], fmt.Sprint("host-", i))
				if err != nil && !errors.Is(err, inbox.ErrFenced) && !isOvertaken(err) {
					errs <- err
					return
				}
			}
			errs <- nil
		})
	}
	wg.Wait()
	for range rivals {
		require.NoError(t, <-errs)
	}
	require.NoError(t, work(&stores[0], "last"))
	require.Len(t, claims, 2*events, "each delivery was made")
	for id, byAttempt := range claims {
		var last int64
		for _, attempt := range slices.Sorted(maps.Keys(byAttempt)) {
			require.Greater(t, byAttempt[attempt], last, "%s was claimed by one after another one had been fenced in: %v", id,
				byAttempt)
			last = byAttempt[attempt]
		}
	}
	require.Zero(t, pending(t, stores[0]))
	for p := range int64(events) {
		for _, d := range deliveries(t, stores[0], p+1) {
			require.Equal(t, event.DeliveryDone, d.Status)
		}
	}
}

// isOvertaken reports whether another owner routed the events between reading and committing, before this owner was
// fenced in.
func isOvertaken(err error) bool { return err != nil && errContains(err, "does not follow") }

func testProgress(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	e := s.Events()
	name := inbox.Name{Project: here, TaskQueue: "queue"}
	progress := func() inbox.Progress {
		t.Helper()
		list, err := e.Progress(ctx, []inbox.Name{name})
		require.NoError(t, err)
		require.Len(t, list, 1)
		return list[0]
	}
	all := func() []inbox.Progress {
		t.Helper()
		list, err := e.Progress(ctx, nil)
		require.NoError(t, err)
		return list
	}
	list, err := e.Progress(ctx, []inbox.Name{name})
	require.NoError(t, err)
	require.Empty(t, list)
	give(t, s, newEvents("e", 2)...)
	p := progress()
	require.GreaterOrEqual(t, p.Lag, time.Duration(0))
	p.Lag, p.Oldest = 0, 0
	require.Equal(t, inbox.Progress{Name: name, Head: 2, Pending: 2, Due: true, SinceProgress: -1}, p,
		"there is work, and no owner")
	require.Empty(t, all(), "dispatchers that there never were have no name")

	o := fence(t, s, "host-1")
	require.Equal(t, time.Duration(-1), progress().SinceProgress)
	require.Equal(t, []inbox.Name{name}, []inbox.Name{all()[0].Name})
	route(t, s, o, routing(1, event.Unmatched))
	p = progress()
	require.GreaterOrEqual(t, p.SinceProgress, time.Duration(0))
	p.Lag, p.Oldest, p.SinceProgress = 0, 0, 0
	require.Equal(t, inbox.Progress{Name: name, Owner: o, Head: 2, Routed: 1, Pending: 1, Due: true}, p)
	require.Eventually(t, func() bool { return progress().Lag > 0 }, 10*time.Second, time.Millisecond)

	route(t, s, o, routing(2, event.Routed, startOf(2, "a/a"), startOf(2, "b/b")))
	p = progress()
	require.Equal(t, []any{int64(2), true}, []any{p.Pending, p.Due})
	require.Eventually(t, func() bool { return progress().Lag > 0 }, 10*time.Second, time.Millisecond)
	require.Len(t, due(t, s, o, 10), 2)
	p = progress()
	require.Equal(t, []any{int64(2), false, time.Duration(0)}, []any{p.Pending, p.Due, p.Lag})
	require.Positive(t, p.Oldest, "claimed deliveries wait")
	require.Eventually(t, func() bool {
		return progress().SinceProgress > 5*time.Millisecond
	}, 10*time.Second, time.Millisecond)
	writeResults(t, s, o, outcome("2 a/a", inbox.Done, 0), outcome("2 b/b", inbox.Retry, time.Hour))
	p = progress()
	require.Equal(t, []any{int64(1), false}, []any{p.Pending, p.Due})
	retried := p.Oldest
	require.Eventually(t, func() bool {
		return progress().Oldest > retried+time.Millisecond
	}, 10*time.Second, time.Millisecond,
		"the time until the next attempt counts")
	parked, err := e.Park(ctx, here, o)
	require.NoError(t, err)
	require.True(t, parked)
	require.True(t, progress().Parked)

	// Many at once, in order, some of which do not exist.
	names := []inbox.Name{{Project: "none", TaskQueue: "q"}, {Project: here, TaskQueue: "another"}}
	for i := range 300 {
		n := inbox.Name{Project: fmt.Sprintf("p%03d", i), TaskQueue: "q"}
		createProject(t, s, n.Project)
		_, err := e.Fence(ctx, n.Project, n.TaskQueue, "host-1", 0)
		require.NoError(t, err)
		names = append(names, n)
	}
	list, err = e.Progress(ctx, names)
	require.NoError(t, err)
	require.Len(t, list, 300)
	for _, p := range list {
		require.Contains(t, names[2:], p.Name)
		require.False(t, p.Due)
	}
	require.Len(t, all(), 301)
}

// testBacklogs reads the backlogs that metrics and alerts show, whether or not a process serves the project.
func testBacklogs(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	e := s.Events()
	const other = "without-events"
	createProject(t, s, other)
	read := func(orphanAfter time.Duration) event.Backlog {
		t.Helper()
		list, err := e.Backlogs(ctx, orphanAfter)
		require.NoError(t, err)
		at := slices.IndexFunc(list, func(b event.Backlog) bool { return b.Project == other })
		require.GreaterOrEqual(t, at, 0)
		require.Equal(t, event.Backlog{Project: other}, list[at], "a project without events has no backlog")
		at = slices.IndexFunc(list, func(b event.Backlog) bool { return b.Project == here })
		require.GreaterOrEqual(t, at, 0)
		return list[at]
	}
	require.Equal(t, event.Backlog{Project: here}, read(0))
	give(t, s, newEvents("e", 2)...)
	require.Eventually(t, func() bool {
		b := read(0)
		return b.Pending == 2 && b.Oldest > 0 && !b.Orphan
	}, 10*time.Second, time.Millisecond,
		"events wait, and there was no dispatcher yet")
	o := fence(t, s, "host-1")
	require.True(t, read(0).Orphan, "its owner has not written, and work is due")
	require.False(t, read(time.Hour).Orphan, "the work is not due for that long")
	const recent = 2 * time.Second // a slow machine reads within it
	require.Eventually(t, func() bool { return read(recent).Orphan }, 10*time.Second, time.Millisecond)
	require.Eventually(t, func() bool {
		require.NoError(t, s.BeatWorker(ctx, worker.Worker{ServerID: "host-1", StartedAt: at(1)}, time.Hour))
		return !read(recent).Orphan
	}, 10*time.Second, time.Millisecond, "the owner lives")
	require.NoError(t, s.LeaveWorker(ctx, "host-1"))
	route(t, s, o, routing(1, event.Unmatched), routing(2, event.Unmatched))
	require.Equal(t, event.Backlog{Project: here}, read(0), "without work, a lost owner delays nothing")
}

func testNews(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	e := s.Events()
	news := func(mark int64) (map[string]event.News, int64) {
		t.Helper()
		list, next, err := e.News(ctx, mark)
		require.NoError(t, err)
		require.GreaterOrEqual(t, next, mark)
		byProject := map[string]event.News{}
		for _, n := range list {
			require.NotContains(t, byProject, n.Project, "each once")
			byProject[n.Project] = n
		}
		return byProject, next
	}
	createProject(t, s, "other")
	give(t, s, newEvent("before"))
	got, mark := news(0)
	require.Empty(t, got)
	_, _, err := e.Publish(ctx, "other", newEvents("x", 3))
	require.NoError(t, err)
	give(t, s, newEvent("a"))
	got, next := news(mark)
	require.Equal(t, map[string]event.News{here: {Project: here, Head: 2}, "other": {Project: "other", Head: 3}}, got)
	got, _ = news(min(mark+lateHeads.Microseconds(), next))
	require.Equal(t, int64(2), got[here].Head, "its transaction may have been committed after the previous read")
	list, _, err := e.News(ctx, next+2*lateHeads.Microseconds())
	require.NoError(t, err)
	require.Empty(t, list, "after a while it is no news any more")

	// A delivery that becomes due is reported.
	o := fence(t, s, "host-1")
	route(t, s, o, routing(1, event.Unmatched), routing(2, event.Routed, startOf(2, "a/a")))
	require.Len(t, due(t, s, o, 1), 1)
	_, next = news(next)
	before := next
	writeResults(t, s, o, outcome("2 a/a", inbox.Retry, 50*time.Millisecond))
	require.Eventually(t, func() bool {
		got, next = news(next)
		return got[here].Due
	}, 10*time.Second, time.Millisecond)
	require.Equal(t, event.News{Project: here, Head: 2, Due: true}, got[here])
	require.False(t, got["other"].Due)
	got, _ = news(min(before+lateDue.Microseconds(), next))
	require.True(t, got[here].Due, "its transaction may have been committed after the previous read")
	require.Len(t, due(t, s, o, 1), 1)
	got, _ = news(next)
	require.False(t, got[here].Due, "it is claimed")
}

// How long after the time in its row a transaction may be committed without being missed.
const (
	lateHeads = 5 * time.Second
	lateDue   = 100 * time.Millisecond
)

func testOwners(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	e := s.Events()
	name := inbox.Name{Project: here, TaskQueue: "queue"}
	change := func(epoch int64) dispatchtype.OwnerChange {
		return dispatchtype.OwnerChange{
			Name: name, To: inbox.Owner{Epoch: epoch, Holder: fmt.Sprint("host-", epoch)}, Outcome: "takeover",
			From: inbox.Owner{Epoch: epoch - 1, Holder: fmt.Sprint("host-", epoch-1)}, RunID: fmt.Sprint("run-", epoch),
			Ended: "run", Reason: "why", At: at(int(epoch)),
		}
	}
	tell := func(epoch int64) event.Event { return newEvent(fmt.Sprint("owner-", epoch)) }
	record := func(c dispatchtype.OwnerChange) {
		t.Helper()
		require.NoError(t, e.RecordOwner(ctx, c, tell(c.To.Epoch), entry(audit.DispatcherChangeOwner, here, "dispatcher")))
	}
	list, err := e.OwnerHistory(ctx, name, 10)
	require.NoError(t, err)
	require.Empty(t, list)
	for epoch := int64(1); epoch <= 3; epoch++ {
		record(change(epoch))
	}
	again := change(2)
	again.RunID, again.At = "another", at(9)
	record(again)
	for range 2 { // a repeated report is one change
		repeated := change(3)
		repeated.Reason = "another"
		record(repeated)
	}
	list, err = e.OwnerHistory(ctx, name, 10)
	require.NoError(t, err)
	require.Equal(t, []dispatchtype.OwnerChange{change(3), again, change(2), change(1)}, list)
	list, err = e.OwnerHistory(ctx, name, 1)
	require.NoError(t, err)
	require.Equal(t, []dispatchtype.OwnerChange{change(3)}, list)
	require.Equal(t, "owner-3", getEvent(t, s, 3).ID)
	require.Len(t, audited(t, s, "dispatcher"), 4)
	_, err = e.GetEvent(ctx, here, 4)
	require.Error(t, err, "each is reported once")

	bad := entry("any", here, "any")
	bad.Reason = "not storable: \x00"
	require.Error(t, e.RecordOwner(ctx, change(4), tell(4), bad))
	list, err = e.OwnerHistory(ctx, name, 1)
	require.NoError(t, err)
	require.Equal(t, int64(3), list[0].To.Epoch)
	require.Equal(t, int64(4), give(t, s, newEvent("next")))
}
