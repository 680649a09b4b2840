package dispatch_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/signalbox-dev/signalbox/dispatch"
	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/lease"
	"github.com/signalbox-dev/signalbox/lease/redislease"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
	"github.com/signalbox-dev/signalbox/test/succession"
)

// abandonDispatchers leaves dispatchers as owners leave them that crashed long ago: open in Temporal, with expired
// entries of lease and heartbeat. It returns their names.
func (c *processGroup) abandonDispatchers(t *testing.T, n int) []dispatch.Name {
	t.Helper()
	store, err := redislease.Open(redislease.Options{URL: c.redis.URL(), Prefix: c.prefix})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	short := lease.Lifetime{TTL: 50 * time.Millisecond, Retention: 10 * time.Minute}
	_, _, err = store.Acquire(t.Context(), "worker:gone", "gone", []byte(`{"serverId":"gone"}`), short)
	require.NoError(t, err)
	names := make([]dispatch.Name, n)
	index := make(chan int, n)
	for i := range n {
		index <- i
	}
	err = platform.Concurrently(n, 16, func() error {
		i := <-index
		name := dispatch.Name{Project: fmt.Sprintf("p%05d", i), TaskQueue: "abandoned"}
		names[i] = name
		owner, err := c.inbox.Fence(t.Context(), name, "gone", 0)
		if err != nil {
			return err
		}
		key := "dispatcher:" + name.Project + ":" + name.TaskQueue
		if _, _, err := store.Acquire(t.Context(), key, "gone",
			fmt.Appendf(nil, `{"serverId":"gone","epoch":%d}`, owner.Epoch), short); err != nil {
			return err
		}
		return c.start(t.Context(), name, owner.Epoch)
	})
	require.NoError(t, err)
	return names
}

// start starts a dispatcher without a worker.
func (c *processGroup) start(ctx context.Context, name dispatch.Name, epoch int64) error {
	id, err := dispatch.ID(name.Project, name.TaskQueue)
	if err != nil {
		return err
	}
	_, err = c.client.ExecuteWorkflow(ctx,
		client.StartWorkflowOptions{ID: id, TaskQueue: name.TaskQueue, Memo: map[string]any{
			"project": name.Project, "task_queue": name.TaskQueue, "owner": "gone", "epoch": epoch, "interpreter": 1,
		}}, succession.WorkflowType)
	return err
}

// countActions counts the actions of a report, by action and kind.
func countActions(r dispatchtype.Report) map[string]int {
	out := map[string]int{}
	for _, item := range r.Items {
		out[fmt.Sprintf("%s %s", item.Action, item.Kind)]++
	}
	return out
}

// Many dispatchers are stale at once: a cycle ends a limited number, and reports the rest. Until the next cycle is due,
// no other process ends more. It runs alone, because each of the calls of a cycle has a limit of its own, and a call
// over it is left to a later cycle.
func TestStaleDispatchersAreEndedInBatches(t *testing.T) {
	c := newProcessGroup(t)
	m := c.newMember(t)
	c.abandonDispatchers(t, 30)
	waitFor(t, shortTiming().StaleAfter)
	dry, err := m.Reconcile(t.Context(), true)
	require.NoError(t, err)
	require.Equal(t, 20, countActions(dry)["terminate owner_gone"], dry)
	require.Zero(t, succession.Terminated(succession.ReadAll(t, c.client)), "a dry run does nothing")
	other := c.newMember(t)
	for cycle, want := range []struct {
		by                            *member
		terminated, postponed, masses int
	}{{m, 20, 10, 1}, {other, 20, 10, 0}, {m, 30, 0, 0}} {
		if cycle == 2 { // as if the time had passed
			require.NoError(t, c.redis.Client.Del(t.Context(), c.prefix+"terminations").Err())
		}
		report, err := want.by.Reconcile(t.Context(), false)
		require.NoError(t, err)
		require.Equal(t, want.postponed, countActions(report)["postpone owner_gone"], "cycle %d: %v", cycle, report)
		require.Equal(t, want.masses, countActions(report)["alert too_many_stale"])
		require.Equal(t, want.terminated, succession.Terminated(succession.ReadAll(t, c.client)))
	}
	keys, err := c.redis.Client.Keys(t.Context(), c.prefix+"dispatcher:*").Result()
	require.NoError(t, err)
	require.Empty(t, keys, "entries go with their dispatchers")
	promise.Record(t, promise.Figure{Promise: "P-D6", What: "30 dispatchers stale at once: ended in the first cycle, " +
		"postponed with an alert, ended meanwhile by another process, ended in the next", Aim: "20, 10, 0, 10", Trials: 30,
		Figure: "20, 10, 0, 10"})
}

// Several supervisors read at the same time: each stale dispatcher is ended once.
func TestConcurrentSupervisorsEndEachDispatcherOnce(t *testing.T) {
	t.Parallel()
	c := newProcessGroup(t)
	owner := c.startMember(t, orders)
	c.owner(t, orders, owner)
	members := []*member{owner, c.newMember(t), c.newMember(t)}
	c.abandonDispatchers(t, 10)
	waitFor(t, shortTiming().StaleAfter)
	reports := make(chan error, len(members))
	for _, m := range members {
		go func() {
			_, err := m.Reconcile(t.Context(), false)
			reports <- err
		}()
	}
	for range members {
		require.NoError(t, <-reports)
	}
	require.Equal(t, 10, succession.Terminated(succession.ReadAll(t, c.client)))
	require.Len(t, succession.Open(succession.ReadAll(t, c.client)), 1)
}

// Between a supervisor's read and its action, another process takes the dispatcher over, or the owner renews its
// heartbeat: the open dispatcher then survives.
func TestDispatcherThatChangesAfterTheReadSurvives(t *testing.T) {
	t.Parallel()
	const key = "dispatcher:p00000:abandoned"
	takenOver := func(t *testing.T, c *processGroup, name dispatch.Name) {
		require.NoError(t, c.client.TerminateWorkflow(t.Context(), "dispatcher-p00000-abandoned", "", "taken over meanwhile"))
		owner, err := c.inbox.Fence(t.Context(), name, "new", 0)
		require.NoError(t, err)
		require.NoError(t, c.acquire(t, key, "new"))
		require.NoError(t, c.start(t.Context(), name, owner.Epoch))
	}
	for what, trial := range map[string]struct {
		when   string
		change func(*testing.T, *processGroup, dispatch.Name)
	}{
		"taken over after the first reading":  {"list handover:", takenOver},
		"taken over after the second reading": {"get " + key, takenOver},
		"a heartbeat after the first reading": {"list handover:", func(t *testing.T, c *processGroup, _ dispatch.Name) {
			require.NoError(t, c.acquire(t, "worker:gone", "gone"))
		}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := newProcessGroup(t)
			m := c.newMember(t)
			name := c.abandonDispatchers(t, 1)[0]
			waitFor(t, shortTiming().StaleAfter)
			dry, err := m.Reconcile(t.Context(), true)
			require.NoError(t, err)
			require.Equal(t, 1, countActions(dry)["terminate owner_gone"], dry)
			var once sync.Once
			m.leases.onRead(func(call string) {
				if call == trial.when {
					once.Do(func() { trial.change(t, c, name) })
				}
			})
			_, err = m.Reconcile(t.Context(), false)
			require.NoError(t, err)
			line := succession.ReadAll(t, c.client)
			require.Len(t, succession.Open(line), 1)
			for _, e := range line {
				require.NotContains(t, e.Reason, "supervisor")
			}
		})
	}
}

// acquire takes a lease as its new holder.
func (c *processGroup) acquire(t *testing.T, key, holder string) error {
	t.Helper()
	store, err := redislease.Open(redislease.Options{URL: c.redis.URL(), Prefix: c.prefix})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	_, _, err = store.Acquire(t.Context(), key, holder, []byte(`{"serverId":"`+holder+`"}`),
		lease.Lifetime{TTL: time.Minute, Retention: time.Minute})
	return err
}

// A cycle over a very large number of dispatchers is short, and makes a bounded number of requests.
func TestManyDispatchersAreReadFast(t *testing.T) {
	t.Parallel()
	c := newProcessGroup(t)
	m := c.newMember(t)
	n := promise.Trials(300, 10_000)
	c.abandonDispatchers(t, n)
	// Their owner lives: there is nothing to do.
	require.NoError(t, c.acquire(t, "worker:gone", "gone"))
	var took promise.Times
	for range promise.Trials(2, 10) {
		began := time.Now()
		report, err := m.Reconcile(t.Context(), true)
		require.NoError(t, err)
		took = append(took, time.Since(began))
		require.Zero(t, countActions(report)["terminate owner_gone"])
	}
	promise.Within(t, "a cycle", took.At(.5), 2*time.Second)
	promise.Record(t, promise.Figure{
		Promise: "P-D9", What: fmt.Sprintf("a cycle over %d dispatchers, nothing to do", n), Aim: "2 s", Trials: len(took),
		Figure: took.String()})
}
