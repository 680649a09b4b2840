package dispatch_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
	"github.com/signalbox-dev/signalbox/test/succession"
)

var orders = dispatch.Name{Project: "shop", TaskQueue: "orders"}

// The library alone: the first owner starts the dispatcher, an owner that stops hands it over, an owner that has
// expired is replaced.
func TestLibraryColdStartHandoverTakeover(t *testing.T) {
	t.Parallel()
	c := newProcessGroup(t)
	a := c.startMember(t, orders)
	c.owner(t, orders, a)
	b := c.startMember(t, orders)
	c.publish(t, a, orders, 0, 100)
	c.requireDelivered(t, orders, 100)
	require.NoError(t, a.Stop(t.Context()))
	c.owner(t, orders, b)
	c.publish(t, b, orders, 100, 100)
	c.requireDelivered(t, orders, 200)
	line := c.executions(t, orders)
	require.Len(t, line, 1, "an owner that stops leaves its dispatcher to the next")
	require.Len(t, line[0].Owners, 2)

	d := c.startMember(t, orders)
	b.freeze()
	c.publish(t, d, orders, 200, 100)
	began := time.Now()
	c.owner(t, orders, d)
	took := time.Since(began)
	c.requireDelivered(t, orders, 300)
	line = c.executions(t, orders)
	require.Equal(t, 1, succession.Terminated(line))
	run := succession.Open(line)[0].RunID
	b.recover()
	waitFor(t, 2*shortTiming().TTL)
	line = c.executions(t, orders)
	require.Equal(t, run, succession.Open(line)[0].RunID, "the former owner changes nothing")
	require.Equal(t, d.id, succession.Open(line)[0].Owner().Server)
	c.publish(t, d, orders, 300, 100)
	c.requireDelivered(t, orders, 400)
	require.Contains(t, line[0].Reason, b.id)
	require.Contains(t, line[0].Reason, d.id)
	promise.Record(t, promise.Figure{Promise: "P-D2", What: "library with a lease of 3 s: owner unreachable, until " +
		"replaced by one attempt", Trials: 1, Figure: promise.Times{took}.String()})
}

// Two names map to one ID: the second one is refused, and the dispatcher of the first is not touched.
func TestNamesWithTheSameIDAreRefused(t *testing.T) {
	t.Parallel()
	c := newProcessGroup(t)
	first, second := dispatch.Name{Project: "a-b", TaskQueue: "c"}, dispatch.Name{Project: "a", TaskQueue: "b-c"}
	a := c.startMember(t, first)
	c.owner(t, first, a)
	c.publish(t, a, first, 0, 10)
	before := c.executions(t, first)
	b := c.startMember(t, second)
	waitFor(t, 3*time.Second)
	require.False(t, b.owns(second))
	c.publish(t, a, first, 10, 10)
	c.requireDelivered(t, first, 20)
	line := c.executions(t, first)
	require.Len(t, line, 1)
	require.Equal(t, before[0].RunID, line[0].RunID)
	require.Len(t, line[0].Owners, 1)
	promise.Record(t, promise.Figure{
		Promise: "P-D1", What: `("a-b", "c") against ("a", "b-c"), which share an ID: dispatchers of the other that were touched`, Aim: "0", Trials: 1, Figure: "0"})
}

// Twenty members start at once.
func TestTwentyMembersElectOneOwner(t *testing.T) {
	t.Parallel()
	c := newProcessGroup(t)
	var mu sync.Mutex
	var members []*member
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			m := c.startMember(t, orders)
			mu.Lock()
			defer mu.Unlock()
			members = append(members, m)
		})
	}
	c.publish(t, nil, orders, 0, 500)
	group.Wait()
	c.owner(t, orders, members...)
	c.requireDelivered(t, orders, 500)
	line := c.executions(t, orders)
	require.Len(t, line, 1)
	require.Len(t, line[0].Owners, 1)
	owners := 0
	for _, m := range members {
		if m.owns(orders) {
			owners++
		}
	}
	require.Equal(t, 1, owners)
	promise.Record(t, promise.Figure{
		Promise: "P-D3", What: "20 members of the library at once: owners, executions", Aim: "1, 1", Trials: 20,
		Figure: "1, 1"})
}

// A member that does not poll leaves the dispatcher to others, also to members that start later.
func TestMemberWithoutPollersOwnsNothing(t *testing.T) {
	t.Parallel()
	c := newProcessGroup(t)
	a := c.newMember(t)
	a.idle.Store(true)
	c.startServing(t, a, orders)
	waitFor(t, 2*time.Second)
	require.Empty(t, c.executions(t, orders), "it is not started")
	b := c.startMember(t, orders)
	c.owner(t, orders, b)
	c.publish(t, b, orders, 0, 10)
	c.requireDelivered(t, orders, 10)
	a.idle.Store(false)
	require.NoError(t, b.Stop(t.Context()))
	c.owner(t, orders, a)
	require.Len(t, c.executions(t, orders), 1, "and adopts it when it polls")
}

// A parked dispatcher has nothing pending and no timer; the doorbell wakes it.
func TestDoorbellWakesParkedDispatcher(t *testing.T) {
	t.Parallel()
	c := newProcessGroup(t)
	m := c.startMember(t, orders)
	c.owner(t, orders, m)
	id := "dispatcher-shop-orders"
	parked := func() {
		platform.Eventually(t, soon, func() string {
			progress, err := c.inbox.Progress(t.Context(), orders)
			if err != nil || len(progress) != 1 || !progress[0].Parked {
				return fmt.Sprintf("not parked: %v %v", progress, err)
			}
			d, err := c.client.DescribeWorkflowExecution(t.Context(), id, "")
			switch {
			case err != nil:
				return err.Error()
			case len(d.GetPendingActivities()) > 0 || d.GetPendingWorkflowTask() != nil || timers(t, c.client, id) > 0:
				return "something is pending"
			}
			return ""
		})
	}
	parked()
	waitFor(t, time.Second) // a check of the workers may have been in progress
	parked()
	before := c.executions(t, orders)[0].Events
	waitFor(t, 3*time.Second)
	require.Equal(t, before, c.executions(t, orders)[0].Events, "its history grew while it was parked")
	var woken promise.Times
	trials := promise.Trials(3, 50)
	for n := range trials {
		parked()
		began := time.Now()
		c.publish(t, m, orders, n, 1)
		c.requireDelivered(t, orders, n+1)
		c.mu.Lock()
		woken = append(woken, c.times[orders][n].Sub(began))
		c.mu.Unlock()
	}
	promise.Record(t, promise.Figure{Promise: "P-D10", What: "library, parked: growth of the history, timers; from " +
		"publishing to delivery by the doorbell", Aim: "0, 0", Trials: trials, Figure: "0, 0; " + woken.String()})
}

// A burst is delivered once and in order although the dispatcher's history fills up and it continues as new.
func TestBurstAcrossContinueAsNew(t *testing.T) {
	t.Parallel()
	c := newProcessGroup(t)
	m := c.startMember(t, orders)
	other := c.startMember(t, orders)
	owner := c.owner(t, orders, m, other)
	const bursts, events, doorbells = 5, 1000, 1000
	ring := func() (err error) {
		for range 10 { // a busy Temporal resets streams
			if err = c.client.SignalWorkflow(t.Context(), "dispatcher-shop-orders", "", "doorbell", nil); err == nil {
				return nil
			}
		}
		return err
	}
	published := 0
	for range bursts {
		require.NoError(t, platform.Concurrently(doorbells, 8, ring))
		c.publish(t, owner, orders, published, events)
		published += events
	}
	platform.Eventually(t, soon, func() string {
		if line := c.executions(t, orders); len(line) < 2 {
			return fmt.Sprintf("the history has %d events, and was not continued", line[0].Events)
		}
		return ""
	})
	c.publish(t, owner, orders, published, 10)
	published += 10
	c.requireDelivered(t, orders, published)
	line := c.executions(t, orders)
	newest := line[len(line)-1]
	require.Equal(t, owner.id, newest.Owner().Server, "the memo is carried over")
	require.Zero(t, succession.Terminated(line))
	promise.Record(t, promise.Figure{Promise: "P-D4", What: "library: bursts of events while needless doorbells fill " +
		"the history: executions", Aim: "none lost, none twice", Trials: published, Figure: fmt.Sprint(len(line))})
}
