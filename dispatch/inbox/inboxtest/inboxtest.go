// Package inboxtest is the conformance suite for implementations of [inbox.Inbox]: it tests every promise that a
// dispatcher relies on.
//
//	func TestInbox(t *testing.T) {
//		inboxtest.Run(t, func(t *testing.T) inboxtest.Fixture { … })
//	}
//
// It does not test how an inbox turns events into deliveries, nor what a delivery does: that is the inbox's own.
package inboxtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
)

// Fixture is an inbox without events for the names of a test.
type Fixture struct {
	Inbox inbox.Inbox
	// Name returns the name of a dispatcher that the inbox can serve, a different one for each number.
	Name func(n int) inbox.Name
	// Accept accepts an event that makes one delivery in the lane; an empty lane has no order. wake reports that the
	// dispatcher is parked.
	Accept func(t *testing.T, name inbox.Name, lane string) (wake bool)
}

const (
	// long is a claim that does not expire during a test, short one that does.
	long  = time.Hour
	short = 50 * time.Millisecond
	// within is the longest wait for an expected condition.
	within = 10 * time.Second
	poll   = 10 * time.Millisecond
)

// Run runs the suite. fresh is called for each test.
func Run(t *testing.T, fresh func(t *testing.T) Fixture) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Fixture){
		"epochs grow":                                              epochsGrow,
		"epochs are above the given one":                           epochsAbove,
		"concurrent owners get different epochs":                   epochsRace,
		"only the owner claims, records outcomes and parks":        fenced,
		"dispatchers are independent":                              independent,
		"a done delivery is not claimed again":                     doneOnce,
		"a claim expires after its visibility time":                visible,
		"a later owner claims deliveries without an outcome":       inherited,
		"a retry is due after its pause":                           retried,
		"a released delivery is due and not counted as an attempt": released,
		"a dead delivery is not claimed again":                     dead,
		"deliveries of a lane are in order":                        laneInOrder,
		"a lane waits for its first delivery":                      laneWaits,
		"lanes are independent":                                    lanesApart,
		"a claim returns at most its limit":                        limited,
		"park is rejected while something is due":                  parkRefuses,
		"an event for a parked dispatcher needs the doorbell":      parkWakes,
		"parked dispatchers with due work are listed":              asleep,
		"await ends with a new event and with its context":         await,
		"progress has the position and the backlog":                progress,
		"owners of one epoch share without overlap":                concurrent,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, fresh(t))
		})
	}
}

func own(t *testing.T, f Fixture, name inbox.Name, holder string) inbox.Owner {
	t.Helper()
	owner, err := f.Inbox.Fence(t.Context(), name, holder, 0)
	require.NoError(t, err)
	require.Equal(t, holder, owner.Holder)
	return owner
}

func claim(t *testing.T, f Fixture, name inbox.Name, owner inbox.Owner, limit int,
	visible time.Duration) []inbox.Delivery {
	t.Helper()
	got, err := f.Inbox.Claim(t.Context(), name, owner, limit, visible)
	require.NoError(t, err)
	return got
}

// claimEventually polls until count deliveries were claimed.
func claimEventually(t *testing.T, f Fixture, name inbox.Name, owner inbox.Owner, count int) []inbox.Delivery {
	t.Helper()
	var got []inbox.Delivery
	require.Eventually(t, func() bool {
		more, err := f.Inbox.Claim(t.Context(), name, owner, 100, long)
		got = append(got, more...)
		return err == nil && len(got) >= count
	}, within, poll)
	require.Len(t, got, count)
	return got
}

func record(t *testing.T, f Fixture, name inbox.Name, owner inbox.Owner, outcome inbox.Outcome, ids ...string) {
	t.Helper()
	var outcomes []inbox.DeliveryOutcome
	for _, id := range ids {
		outcomes = append(outcomes, inbox.DeliveryOutcome{ID: id, Outcome: outcome})
	}
	require.NoError(t, f.Inbox.RecordOutcomes(t.Context(), name, owner, outcomes))
}

func ids(deliveries []inbox.Delivery) []string {
	var list []string
	for _, d := range deliveries {
		list = append(list, d.ID)
	}
	return list
}

func epochsGrow(t *testing.T, f Fixture) {
	name := f.Name(1)
	first := own(t, f, name, "a")
	require.Positive(t, first.Epoch)
	second := own(t, f, name, "b")
	require.Greater(t, second.Epoch, first.Epoch)
	require.Greater(t, own(t, f, name, "b").Epoch, second.Epoch, "also for the same holder")
}

func epochsAbove(t *testing.T, f Fixture) {
	name := f.Name(1)
	owner, err := f.Inbox.Fence(t.Context(), name, "a", 41)
	require.NoError(t, err)
	require.Greater(t, owner.Epoch, int64(41))
	require.Greater(t, own(t, f, name, "b").Epoch, owner.Epoch)
}

func epochsRace(t *testing.T, f Fixture) {
	name := f.Name(1)
	var group sync.WaitGroup
	epochs := make([]int64, 8)
	failures := make([]error, len(epochs))
	for i := range epochs {
		group.Go(func() {
			owner, err := f.Inbox.Fence(t.Context(), name, fmt.Sprintf("holder-%d", i), 0)
			epochs[i], failures[i] = owner.Epoch, err
		})
	}
	group.Wait()
	require.NoError(t, errors.Join(failures...))
	slices.Sort(epochs)
	require.Len(t, slices.Compact(epochs), len(failures))
}

func fenced(t *testing.T, f Fixture) {
	name := f.Name(1)
	f.Accept(t, name, "")
	old := own(t, f, name, "a")
	got := claim(t, f, name, old, 10, long)
	require.Len(t, got, 1)
	current := own(t, f, name, "b")
	for _, other := range []inbox.Owner{
		old, {Epoch: current.Epoch, Holder: "a"}, {Epoch: current.Epoch + 1, Holder: "b"}, {Epoch: old.Epoch, Holder: "b"},
		{},
	} {
		_, err := f.Inbox.Claim(t.Context(), name, other, 10, long)
		require.ErrorIs(t, err, inbox.ErrFenced, "%+v", other)
		_, err = f.Inbox.Park(t.Context(), name, other)
		require.ErrorIs(t, err, inbox.ErrFenced, "%+v", other)
		require.ErrorIs(t, f.Inbox.Unpark(t.Context(), name, other), inbox.ErrFenced, "%+v", other)
		err = f.Inbox.RecordOutcomes(t.Context(), name, other,
			[]inbox.DeliveryOutcome{{ID: got[0].ID, Outcome: inbox.Outcome{Result: inbox.Done}}})
		require.ErrorIs(t, err, inbox.ErrFenced, "%+v", other)
	}
	require.Equal(t, ids(got), ids(claim(t, f, name, current, 10, long)), "a rejected call changed nothing")
}

func independent(t *testing.T, f Fixture) {
	one, two := f.Name(1), f.Name(2)
	f.Accept(t, one, "")
	owner := own(t, f, two, "a")
	require.Empty(t, claim(t, f, two, owner, 10, long))
	_, err := f.Inbox.Claim(t.Context(), one, owner, 10, long)
	require.ErrorIs(t, err, inbox.ErrFenced)
	own(t, f, one, "b")
	require.Empty(t, claim(t, f, two, owner, 10, long), "not fenced by the other's owner")
}

func doneOnce(t *testing.T, f Fixture) {
	name := f.Name(1)
	owner := own(t, f, name, "a")
	f.Accept(t, name, "")
	f.Accept(t, name, "")
	got := claim(t, f, name, owner, 10, long)
	require.Len(t, got, 2)
	require.NotEqual(t, got[0].ID, got[1].ID)
	require.Equal(t, 1, got[0].Attempt)
	record(t, f, name, owner, inbox.Outcome{Result: inbox.Done}, ids(got)...)
	require.Empty(t, claim(t, f, name, owner, 10, long))
	require.Empty(t, claim(t, f, name, own(t, f, name, "b"), 10, long))
	record(t, f, name, own(t, f, name, "c"), inbox.Outcome{Result: inbox.Retry}, ids(got)...)
	require.Empty(t, claim(t, f, name, own(t, f, name, "d"), 10, long), "a done delivery stays done")
}

func visible(t *testing.T, f Fixture) {
	name := f.Name(1)
	owner := own(t, f, name, "a")
	f.Accept(t, name, "")
	first := claim(t, f, name, owner, 10, long)
	require.Len(t, first, 1)
	require.Empty(t, claim(t, f, name, owner, 10, long))
	f.Accept(t, name, "")
	second := claim(t, f, name, owner, 10, short)
	require.Len(t, second, 1)
	again := claimEventually(t, f, name, owner, 1)
	require.Equal(t, second[0].ID, again[0].ID)
	require.Equal(t, 2, again[0].Attempt)
}

func inherited(t *testing.T, f Fixture) {
	name := f.Name(1)
	owner := own(t, f, name, "a")
	for range 3 {
		f.Accept(t, name, "lane")
	}
	got := claim(t, f, name, owner, 10, long)
	require.Len(t, got, 3)
	record(t, f, name, owner, inbox.Outcome{Result: inbox.Done}, got[0].ID)
	again := claim(t, f, name, own(t, f, name, "b"), 10, long)
	require.Equal(t, ids(got[1:]), ids(again))
	require.Equal(t, 2, again[0].Attempt)
}

func retried(t *testing.T, f Fixture) {
	name := f.Name(1)
	owner := own(t, f, name, "a")
	f.Accept(t, name, "")
	got := claim(t, f, name, owner, 10, long)
	record(t, f, name, owner, inbox.Outcome{Result: inbox.Retry, After: long, Reason: "not now"}, ids(got)...)
	require.Empty(t, claim(t, f, name, owner, 10, long))
	require.Empty(t, claim(t, f, name, own(t, f, name, "b"), 10, long), "nor for a later owner")
	f.Accept(t, name, "")
	owner = own(t, f, name, "c")
	got = claim(t, f, name, owner, 10, long)
	record(t, f, name, owner, inbox.Outcome{Result: inbox.Retry, After: short, Reason: "soon"}, ids(got)...)
	again := claimEventually(t, f, name, owner, 1)
	require.Equal(t, ids(got), ids(again))
	require.Equal(t, 2, again[0].Attempt)
}

func released(t *testing.T, f Fixture) {
	name := f.Name(1)
	owner := own(t, f, name, "a")
	f.Accept(t, name, "lane")
	got := claim(t, f, name, owner, 10, long)
	record(t, f, name, owner, inbox.Outcome{Result: inbox.Released}, ids(got)...)
	again := claimEventually(t, f, name, owner, 1)
	require.Equal(t, ids(got), ids(again))
	require.Equal(t, 1, again[0].Attempt)
}

func dead(t *testing.T, f Fixture) {
	name := f.Name(1)
	owner := own(t, f, name, "a")
	f.Accept(t, name, "lane")
	f.Accept(t, name, "lane")
	got := claim(t, f, name, owner, 10, long)
	require.Len(t, got, 2)
	record(t, f, name, owner, inbox.Outcome{Result: inbox.Dead, Reason: "never"}, got[0].ID)
	require.Equal(t, ids(got[1:]), ids(claim(t, f, name, own(t, f, name, "b"), 10, long)),
		"the rest of the lane continues")
}

func laneInOrder(t *testing.T, f Fixture) {
	name := f.Name(1)
	owner := own(t, f, name, "a")
	for range 5 {
		f.Accept(t, name, "lane")
	}
	first := claim(t, f, name, owner, 2, long)
	require.Len(t, first, 2)
	record(t, f, name, owner, inbox.Outcome{Result: inbox.Done}, ids(first)...)
	rest := claimEventually(t, f, name, owner, 3)
	everything := ids(append(first, rest...))
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(everything))), 5)
	for _, d := range rest {
		require.Equal(t, first[0].Lane, d.Lane)
	}
	require.NotEmpty(t, first[0].Lane)
}

func laneWaits(t *testing.T, f Fixture) {
	name := f.Name(1)
	owner := own(t, f, name, "a")
	for range 3 {
		f.Accept(t, name, "lane")
	}
	got := claim(t, f, name, owner, 1, long)
	require.Len(t, got, 1)
	require.Empty(t, claim(t, f, name, owner, 10, long), "the first is claimed")
	record(t, f, name, owner, inbox.Outcome{Result: inbox.Retry, After: long}, got[0].ID)
	require.Empty(t, claim(t, f, name, owner, 10, long), "the first is not due")
}

func lanesApart(t *testing.T, f Fixture) {
	name := f.Name(1)
	owner := own(t, f, name, "a")
	f.Accept(t, name, "one")
	got := claim(t, f, name, owner, 10, long)
	record(t, f, name, owner, inbox.Outcome{Result: inbox.Retry, After: long}, ids(got)...)
	f.Accept(t, name, "one")
	f.Accept(t, name, "two")
	f.Accept(t, name, "")
	require.Len(t, claim(t, f, name, owner, 10, long), 2)
}

func limited(t *testing.T, f Fixture) {
	name := f.Name(1)
	owner := own(t, f, name, "a")
	for range 5 {
		f.Accept(t, name, "")
	}
	first := claim(t, f, name, owner, 3, long)
	require.Len(t, first, 3)
	second := claim(t, f, name, owner, 3, long)
	require.Len(t, second, 2)
	everything := slices.Concat(ids(first), ids(second))
	slices.Sort(everything)
	require.Len(t, slices.Compact(everything), 5)
}

func parkRefuses(t *testing.T, f Fixture) {
	name := f.Name(1)
	owner := own(t, f, name, "a")
	f.Accept(t, name, "")
	parked, err := f.Inbox.Park(t.Context(), name, owner)
	require.NoError(t, err)
	require.False(t, parked, "an event is not routed")
	got := claim(t, f, name, owner, 10, long)
	record(t, f, name, owner, inbox.Outcome{Result: inbox.Retry, After: long}, ids(got)...)
	parked, err = f.Inbox.Park(t.Context(), name, owner)
	require.NoError(t, err)
	require.True(t, parked, "the only delivery is due in an hour")
}

func parkWakes(t *testing.T, f Fixture) {
	name := f.Name(1)
	owner := own(t, f, name, "a")
	require.False(t, f.Accept(t, name, ""), "the dispatcher is not parked")
	record(t, f, name, owner, inbox.Outcome{Result: inbox.Done}, ids(claim(t, f, name, owner, 10, long))...)
	parked, err := f.Inbox.Park(t.Context(), name, owner)
	require.NoError(t, err)
	require.True(t, parked)
	require.True(t, f.Accept(t, name, ""))
	require.NoError(t, f.Inbox.Unpark(t.Context(), name, owner))
	require.False(t, f.Accept(t, name, ""))
	require.Len(t, claim(t, f, name, owner, 10, long), 2)
}

func asleep(t *testing.T, f Fixture) {
	name := f.Name(1)
	owner := own(t, f, name, "a")
	listed := func() bool {
		names, err := f.Inbox.ParkedDue(t.Context(), 1000)
		require.NoError(t, err)
		return slices.Contains(names, name)
	}
	f.Accept(t, name, "")
	require.False(t, listed(), "the dispatcher is not parked")
	got := claim(t, f, name, owner, 10, long)
	record(t, f, name, owner, inbox.Outcome{Result: inbox.Retry, After: short}, ids(got)...)
	var parked bool
	require.Eventually(t, func() bool {
		// A retry that is due already is claimed and delayed once more.
		var err error
		parked, err = f.Inbox.Park(t.Context(), name, owner)
		require.NoError(t, err)
		if !parked {
			record(t, f, name, owner, inbox.Outcome{Result: inbox.Retry, After: short},
				ids(claim(t, f, name, owner, 10, long))...)
		}
		return parked
	}, within, time.Millisecond)
	require.Eventually(t, listed, within, poll, "the retry is due")
	require.NoError(t, f.Inbox.Unpark(t.Context(), name, owner))
	require.False(t, listed())
}

func await(t *testing.T, f Fixture) {
	name := f.Name(1)
	owner := own(t, f, name, "a")
	require.Empty(t, claim(t, f, name, owner, 10, long))
	over, cancel := context.WithTimeout(t.Context(), short)
	defer cancel()
	f.Inbox.Await(over, name)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	waiting := make(chan struct{})
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		close(waiting)
		f.Inbox.Await(ctx, name)
	}()
	<-waiting
	f.Accept(t, name, "")
	<-returned
	require.NoError(t, ctx.Err(), "a new event ends Await")
	f.Inbox.Await(ctx, name)
	require.NoError(t, ctx.Err(), "an earlier event ends it too")
}

func progress(t *testing.T, f Fixture) {
	name := f.Name(1)
	read := func() inbox.Progress {
		list, err := f.Inbox.Progress(t.Context(), name)
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Equal(t, name, list[0].Name)
		return list[0]
	}
	owner := own(t, f, name, "a")
	require.Equal(t, owner, read().Owner)
	require.False(t, read().Due)
	require.Zero(t, read().Lag)
	f.Accept(t, name, "")
	require.Eventually(t, func() bool { p := read(); return p.Due && p.Lag > 0 }, within, poll)
	require.Equal(t, int64(1), read().Pending, "an accepted event is pending, routed or not")
	before := read().Head
	require.Positive(t, before)
	got := claim(t, f, name, owner, 10, long)
	p := read()
	require.Equal(t, int64(1), p.Pending)
	require.False(t, p.Due, "a claimed delivery is not due")
	require.Zero(t, p.Lag)
	require.Positive(t, p.Oldest, "its event still waits")
	require.Equal(t, p.Head, p.Routed)
	require.GreaterOrEqual(t, p.SinceProgress, time.Duration(0))
	record(t, f, name, owner, inbox.Outcome{Result: inbox.Retry, After: long}, ids(got)...)
	p = read()
	require.False(t, p.Due)
	require.Positive(t, p.Oldest, "the time until the next attempt counts")
	record(t, f, name, owner, inbox.Outcome{Result: inbox.Done}, ids(got)...)
	require.Zero(t, read().Pending)
	require.Zero(t, read().Oldest)
	parked, err := f.Inbox.Park(t.Context(), name, owner)
	require.NoError(t, err)
	require.True(t, parked)
	require.True(t, read().Parked)
	everything, err := f.Inbox.Progress(t.Context())
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(everything, func(p inbox.Progress) bool { return p.Name == name }))
}

func concurrent(t *testing.T, f Fixture) {
	name := f.Name(1)
	owner := own(t, f, name, "a")
	const events = 40
	for range events {
		f.Accept(t, name, "")
	}
	var mu sync.Mutex
	var group sync.WaitGroup
	var failures []error
	counts := map[string]int{}
	for range 4 {
		group.Go(func() {
			for {
				got, err := f.Inbox.Claim(t.Context(), name, owner, 5, long)
				mu.Lock()
				failures = append(failures, err)
				for _, d := range got {
					counts[d.ID]++
				}
				mu.Unlock()
				if err != nil || len(got) == 0 {
					return
				}
			}
		})
	}
	group.Wait()
	require.NoError(t, errors.Join(failures...))
	require.Len(t, counts, events)
	for id, n := range counts {
		require.Equal(t, 1, n, id)
	}
}
