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

// The library alone: the first owner starts the dispatcher, who stops hands it over, who is gone is replaced.
func TestLibraryColdStartHandoverTakeover(t *testing.T) {
	t.Parallel()
	c := assemble(t)
	a := c.enroll(t, orders)
	c.owner(t, orders, a)
	b := c.enroll(t, orders)
	c.publish(t, a, orders, 0, 100)
	c.delivers(t, orders, 100)
	require.NoError(t, a.Stop(t.Context()))
	c.owner(t, orders, b)
	c.publish(t, b, orders, 100, 100)
	c.delivers(t, orders, 200)
	line := c.line(t, orders)
	require.Len(t, line, 1, "who stops leaves its dispatcher to the next")
	require.Len(t, line[0].Owners, 2)

	d := c.enroll(t, orders)
	b.freeze()
	c.publish(t, d, orders, 200, 100)
	began := time.Now()
	c.owner(t, orders, d)
	took := time.Since(began)
	c.delivers(t, orders, 300)
	line = c.line(t, orders)
	require.Equal(t, 1, succession.Terminated(line))
	run := succession.Open(line)[0].RunID
	b.recover()
	after(t, 2*brisk().TTL)
	line = c.line(t, orders)
	require.Equal(t, run, succession.Open(line)[0].RunID, "whoever was frozen changes nothing")
	require.Equal(t, d.id, succession.Open(line)[0].Owner().Server)
	c.publish(t, d, orders, 300, 100)
	c.delivers(t, orders, 400)
	require.Contains(t, line[0].Reason, b.id)
	require.Contains(t, line[0].Reason, d.id)
	promise.Record(t, promise.Figure{Promise: "P-D2", What: "library with a lease of 3 s: owner unreachable, until replaced by one attempt", Trials: 1, Figure: promise.Times{took}.String()})
}

// Two names give one ID: whoever comes second is refused, and the first is not touched.
func TestNamesThatShareAnID(t *testing.T) {
	t.Parallel()
	c := assemble(t)
	first, second := dispatch.Name{Project: "a-b", TaskQueue: "c"}, dispatch.Name{Project: "a", TaskQueue: "b-c"}
	a := c.enroll(t, first)
	c.owner(t, first, a)
	c.publish(t, a, first, 0, 10)
	before := c.line(t, first)
	b := c.enroll(t, second)
	after(t, 3*time.Second)
	require.False(t, b.owns(second))
	c.publish(t, a, first, 10, 10)
	c.delivers(t, first, 20)
	line := c.line(t, first)
	require.Len(t, line, 1)
	require.Equal(t, before[0].RunID, line[0].RunID)
	require.Len(t, line[0].Owners, 1)
	promise.Record(t, promise.Figure{Promise: "P-D1", What: `("a-b", "c") against ("a", "b-c"), which share an ID: dispatchers of the other that were touched`, Aim: "0", Trials: 1, Figure: "0"})
}

// Twenty owners start at once.
func TestTwentyMembersAtOnce(t *testing.T) {
	t.Parallel()
	c := assemble(t)
	var mu sync.Mutex
	var members []*member
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			m := c.enroll(t, orders)
			mu.Lock()
			defer mu.Unlock()
			members = append(members, m)
		})
	}
	c.publish(t, nil, orders, 0, 500)
	group.Wait()
	c.owner(t, orders, members...)
	c.delivers(t, orders, 500)
	line := c.line(t, orders)
	require.Len(t, line, 1)
	require.Len(t, line[0].Owners, 1)
	owners := 0
	for _, m := range members {
		if m.owns(orders) {
			owners++
		}
	}
	require.Equal(t, 1, owners)
	promise.Record(t, promise.Figure{Promise: "P-D3", What: "20 members of the library at once: owners, executions", Aim: "1, 1", Trials: 20, Figure: "1, 1"})
}

// Who does not poll leaves the dispatcher to others, also to those who come later.
func TestAMemberThatDoesNotPollOwnsNothing(t *testing.T) {
	t.Parallel()
	c := assemble(t)
	a := c.visit(t)
	a.idle.Store(true)
	c.admit(t, a, orders)
	after(t, 2*time.Second)
	require.Empty(t, c.line(t, orders), "nobody has started it")
	b := c.enroll(t, orders)
	c.owner(t, orders, b)
	c.publish(t, b, orders, 0, 10)
	c.delivers(t, orders, 10)
	a.idle.Store(false)
	require.NoError(t, b.Stop(t.Context()))
	c.owner(t, orders, a)
	require.Len(t, c.line(t, orders), 1, "and adopts it when it polls")
}

// A parked dispatcher has nothing pending and no timer; the doorbell wakes it.
func TestParkedDispatcherIsWokenByItsDoorbell(t *testing.T) {
	t.Parallel()
	c := assemble(t)
	m := c.enroll(t, orders)
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
	after(t, time.Second) // a look at the workers may have been under way
	parked()
	before := c.line(t, orders)[0].Events
	after(t, 3*time.Second)
	require.Equal(t, before, c.line(t, orders)[0].Events, "its history grew while it slept")
	var woken promise.Times
	trials := promise.Trials(3, 50)
	for n := range trials {
		parked()
		began := time.Now()
		c.publish(t, m, orders, n, 1)
		c.delivers(t, orders, n+1)
		c.mu.Lock()
		woken = append(woken, c.times[orders][n].Sub(began))
		c.mu.Unlock()
	}
	promise.Record(t, promise.Figure{Promise: "P-D10", What: "library, parked: growth of the history, timers; from publishing to delivery by the doorbell", Aim: "0, 0", Trials: trials, Figure: "0, 0; " + woken.String()})
}

// A burst is delivered once and in order though the dispatcher's history fills up and begins anew.
func TestBurstAcrossContinuingAsNew(t *testing.T) {
	t.Parallel()
	c := assemble(t)
	m := c.enroll(t, orders)
	other := c.enroll(t, orders)
	owner := c.owner(t, orders, m, other)
	const bursts, events, doorbells = 5, 1000, 1000
	ring := func() error {
		return c.client.SignalWorkflow(t.Context(), "dispatcher-shop-orders", "", "doorbell", nil)
	}
	published := 0
	for range bursts {
		require.NoError(t, platform.Together(doorbells, 8, ring))
		c.publish(t, owner, orders, published, events)
		published += events
	}
	platform.Eventually(t, patience, func() string {
		if line := c.line(t, orders); len(line) < 2 {
			return fmt.Sprintf("the history has %d events, and was not continued", line[0].Events)
		}
		return ""
	})
	c.publish(t, owner, orders, published, 10)
	published += 10
	c.delivers(t, orders, published)
	line := c.line(t, orders)
	newest := line[len(line)-1]
	require.Equal(t, owner.id, newest.Owner().Server, "the memo goes with it")
	require.Zero(t, succession.Terminated(line))
	promise.Record(t, promise.Figure{Promise: "P-D4", What: "library: bursts of events while needless doorbells fill the history: executions", Aim: "none lost, none twice", Trials: published, Figure: fmt.Sprint(len(line))})
}
