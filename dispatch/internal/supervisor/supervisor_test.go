package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/plan"
	"github.com/signalbox-dev/signalbox/dispatch/internal/supervisor"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/lease"
)

func TestCleanupAfterCrash(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		runID := f.crashed()
		report, err := f.Reconcile(f.ctx, false)
		require.NoError(t, err)
		require.Equal(t, []string{"terminate owner_gone " + runID + " applied=true "}, lines(report))
		require.Equal(t, []int{1, 0, 1, 0}, []int{report.Dispatchers, report.Healthy, report.Stale, report.Unknown})
		require.Empty(t, f.stillOpen())
		require.Nil(t, f.entry(orders))
		require.Len(t, f.record.ended, 1)
		ended := f.record.ended[0]
		require.Equal(t, []any{"a", int64(3), "owner_gone", "me"},
			[]any{ended.From.Holder, ended.From.Epoch, ended.Kind, ended.By})
		require.Equal(t, `terminated by the supervisor of "me"; of "a" (epoch 3); it has no owner now: the lease and the heartbeat of "a" expired`, ended.Reason)
		require.Equal(t, []string{runID + ": " + ended.Reason}, f.remote.ended)
		require.Len(t, f.record.clean, 1)
		require.GreaterOrEqual(t, f.record.clean[0], time.Minute)
		require.Len(t, f.record.cycles, 1)
		require.NoError(t, f.record.cycles[0].Err)
		require.Equal(t, map[string]int{"shop": 0}, f.record.cycles[0].Stale, "cleaned up in the same cycle")

		report, err = f.Reconcile(f.ctx, false)
		require.NoError(t, err)
		require.Empty(t, report.Items, "the second cycle finds nothing to do")
		require.Equal(t, map[string]int{"shop": 0}, f.record.cycles[1].Stale)
	})
}

// The termination comes first: until it has happened, there is an entry.
func TestEntryIsDeletedAfterTermination(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		f.crashed()
		f.remote.onEnd = func() {
			guard := f.entry(orders)
			require.Equal(t, []any{"super:me", lease.Held}, []any{guard.Holder, guard.State})
			_, _, err := f.leases.now().Acquire(f.ctx, wire.OwnerKey(orders), "b", nil, timing.Owner())
			require.ErrorIs(t, err, lease.ErrHeld, "no process can adopt it during the termination")
		}
		_, err := f.Reconcile(f.ctx, false)
		require.NoError(t, err)
		require.Len(t, f.remote.ended, 1)
	})
}

func TestDryRunChangesNothing(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		runID := f.crashed()
		before := *f.entry(orders)
		report, err := f.Reconcile(f.ctx, true)
		require.NoError(t, err)
		require.True(t, report.DryRun)
		require.Equal(t, []string{"terminate owner_gone " + runID + " applied=false "}, lines(report))
		require.Equal(t, []string{runID}, f.stillOpen())
		require.Equal(t, before.Revision, f.entry(orders).Revision)
		require.Empty(t, f.record.cycles)
	})
}

// Changes between both snapshots, or between the second snapshot and the action, prevent the action.
func TestChangesDuringCyclePreventAction(t *testing.T) {
	t.Parallel()
	const during = time.Second // of the pause between the snapshots
	take := func(f *fixture) {
		f.keepAlive("b", orders)
	}
	for name, c := range map[string]struct {
		change func(f *fixture)
		at     string
		why    string
		open   int
	}{
		"taken over after the list":     {take, "list", "", 1},
		"taken over before the second":  {take, "pause", `its owner "b" holds the lease`, 1},
		"taken over before the act":     {take, "guard", "", 1},
		"a heartbeat before the second": {func(f *fixture) { f.keepAlive("a") }, "pause", "has no new owner yet", 1},
		"terminated by another":         {func(f *fixture) { f.continueAs("") }, "pause", "not confirmed", 0},
		"terminated before the act":     {func(f *fixture) { f.continueAs("") }, "guard", "", 0},
		"continued as new":              {func(f *fixture) { f.continueAs("run-shop-new") }, "pause", "not confirmed", 1},
		"it makes progress":             {func(f *fixture) { f.claimed(time.Second) }, "pause", "makes progress", 1},
		"it answers": {func(f *fixture) {
			f.remote.answers["run-shop-3"] = plan.Answered
		}, "before", "a worker answers", 1},
		"it cannot be asked": {func(f *fixture) {
			f.remote.answers["run-shop-3"] = plan.Unclear
		}, "before", "could not be asked", 1},
		"the store loses everything": {func(f *fixture) { f.leases.loseData() }, "pause", "no keys at all", 1},
		"the store loses the entry": {func(f *fixture) {
			e := f.entry(orders)
			_ = f.leases.now().Delete(f.ctx, e.Key, e.Token, e.Revision)
		}, "guard", "", 1},
		"the store is young again": {func(f *fixture) { f.leases.loseData(); f.keepAlive("me") }, "pause", "no evidence", 1},
		"taken over and resigned": {func(f *fixture) {
			got, _, _ := f.leases.now().Acquire(f.ctx, wire.OwnerKey(orders), "b", nil, timing.Owner())
			_ = f.leases.Resign(f.ctx, got.Key, got.Token)
		}, "guard", "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, f *fixture) {
				f.crashed()
				switch c.at {
				case "before":
					c.change(f)
				case "list":
					f.remote.onList = func() { c.change(f) }
				case "guard":
					f.leases.first("Acquire super:me", func(context.Context) { c.change(f) })
				case "pause":
					go func() {
						<-time.After(during)
						c.change(f)
					}()
				}
				report, err := f.Reconcile(f.ctx, false)
				require.NoError(t, err)
				require.Empty(t, f.remote.ended)
				require.Len(t, f.stillOpen(), c.open)
				if c.at == "list" {
					require.Empty(t, report.Items)
					return
				}
				require.False(t, report.Items[0].Applied)
				require.Contains(t, report.Items[0].Error, c.why)
				require.Equal(t, c.at == "guard", report.Items[0].Error == "")
				if e := f.entry(orders); e != nil {
					require.NotEqual(t, []any{"super:me", lease.Held}, []any{e.Holder, e.State}, "the lease is resigned")
				}
			})
		})
	}
}

// A failed read makes a failed cycle, whose error names the source.
func TestFailedReadFailsCycle(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		broken func(f *fixture)
		part   dispatchtype.Part
	}{
		"Temporal":            {func(f *fixture) { f.remote.listErr = errOut }, dispatchtype.PartTemporal},
		"a description":       {func(f *fixture) { f.remote.describeErr = errOut }, dispatchtype.PartTemporal},
		"the inbox":           {func(f *fixture) { f.rows.err = errOut }, dispatchtype.PartInbox},
		"leases":              {func(f *fixture) { f.leases.failing("List dispatcher:", errOut) }, dispatchtype.PartLeases},
		"heartbeats":          {func(f *fixture) { f.leases.failing("List worker:", errOut) }, dispatchtype.PartLeases},
		"requests":            {func(f *fixture) { f.leases.failing("List handover:", errOut) }, dispatchtype.PartLeases},
		"the second snapshot": {func(f *fixture) { f.leases.failing("Get", errOut) }, dispatchtype.PartLeases},
		"the lease to end it": {func(f *fixture) { f.leases.failing("Acquire super:me", errOut) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, f *fixture) {
				runID := f.crashed()
				tt.broken(f)
				_, err := f.Reconcile(f.ctx, false)
				require.ErrorContains(t, err, errOut.Error())
				failed, _ := errors.AsType[dispatchtype.PartError](err)
				require.Equal(t, tt.part, failed.Part)
				require.Equal(t, []string{runID}, f.stillOpen())
				require.Len(t, f.record.cycles, 1)
				require.Error(t, f.record.cycles[0].Err)
			})
		})
	}
}

// After a failed termination the entry stays, and a later cycle retries.
func TestFailedTerminationIsRetried(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		runID := f.crashed()
		f.remote.endErr = errOut
		report, err := f.Reconcile(f.ctx, false)
		require.ErrorContains(t, err, errOut.Error())
		require.Equal(t, []string{"terminate owner_gone " + runID + " applied=false unavailable"}, lines(report))
		require.Equal(t, 1, f.record.failed)
		require.Equal(t, 1, f.record.broken, "it counts as a failed cleanup too")
		require.Equal(t, map[string]int{"shop": 1}, f.record.cycles[0].Stale)
		require.Empty(t, f.record.ended)
		require.NotNil(t, f.entry(orders))
		f.remote.endErr = nil
		wait(time.Minute)
		report, err = f.Reconcile(f.ctx, false)
		require.NoError(t, err)
		require.Equal(t, []string{"terminate owner_gone " + runID + " applied=true "}, lines(report))
		require.Nil(t, f.entry(orders))
	})
}

func TestFailedDeletionIsRetried(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		f.crashed()
		f.leases.failing("Delete", errOut)
		report, err := f.Reconcile(f.ctx, false)
		require.ErrorContains(t, err, errOut.Error())
		require.True(t, report.Items[0].Applied)
		require.Contains(t, report.Items[0].Error, `delete entry "dispatcher:shop:orders"`)
		require.Equal(t, 1, f.record.broken)
		require.Empty(t, f.stillOpen())
		f.leases.failing("Delete", nil)
		wait(time.Minute)
		report, err = f.Reconcile(f.ctx, false)
		require.NoError(t, err)
		require.Equal(t, []string{"delete_entry owner_gone  applied=true "}, lines(report))
		require.Nil(t, f.entry(orders))
	})
}

// Several supervisors make the same plan: one acts.
func TestConcurrentSupervisorsActOnce(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		f.crashed()
		for i := range 5 {
			go func() {
				_, err := f.another(fmt.Sprintf("s%d", i)).Reconcile(f.ctx, false)
				assert.NoError(t, err)
			}()
		}
		wait(10 * time.Second)
		require.Len(t, f.remote.ended, 1)
		require.Len(t, f.record.ended, 1)
		require.Nil(t, f.entry(orders))
		require.Len(t, f.record.cycles, 5)
	})
}

func TestOlderSchemeIsTerminatedWhileItsProcessLives(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		f.keepAlive("me", orders)
		f.keepAlive("old")
		mine := f.opens(orders, "me", 4)
		f.remote.open["old"] = &supervisor.Listed{Execution: wire.Execution{
			WorkflowID: "router-shop-17", RunID: "old", Type: wire.WorkflowType, TaskQueue: "orders",
			Memo: &wire.Memo{Name: orders, Owner: "old", Epoch: 1},
		}}
		f.remote.answers["old"] = plan.Answered
		_, err := f.Reconcile(f.ctx, false)
		require.NoError(t, err)
		require.Equal(t, []string{mine}, f.stillOpen())
		require.Contains(t, f.remote.ended[0], `of "old" (epoch 1); now "me" (epoch 4) owns another`)
		require.Equal(t, []any{"me", int64(4)}, []any{f.record.ended[0].To.Holder, f.record.ended[0].To.Epoch})
		require.Equal(t, lease.Held, f.entry(orders).State, "the successor's lease is not touched")
		require.Equal(t, map[string]int{"shop": 0}, f.record.cycles[0].Duplicates)
		require.Equal(t, map[string]int{"shop": 0}, f.record.cycles[0].Stale)
		require.Zero(t, f.remote.asked)
	})
}

func TestEmptyStoreCausesNoTermination(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		f.opens(orders, "a", 3)
		report, err := f.Reconcile(f.ctx, false)
		require.NoError(t, err)
		require.Equal(t, []string{"alert no_keys  applied=false "}, lines(report))
		require.Len(t, f.stillOpen(), 1)
	})
}

func TestTerminationsAboveLimitArePostponed(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		f.keepAlive("me")
		var names []inbox.Name
		for i := range 50 {
			names = append(names, inbox.Name{Project: fmt.Sprintf("p%02d", i), TaskQueue: "q"})
			f.opens(names[i], "a", 1)
		}
		f.keepAlive("a", names...)()
		wait(time.Minute)
		stale := func(c supervisor.Cycle) (sum int) {
			for _, n := range c.Stale {
				sum += n
			}
			return sum
		}
		for i, left := range []int{30, 10, 0, 0} {
			_, err := f.Reconcile(f.ctx, false)
			require.NoError(t, err)
			require.Len(t, f.stillOpen(), left)
			require.Equal(t, []int{left, left}, []int{f.record.cycles[i].Postponed, stale(f.record.cycles[i])})
			wait(45 * time.Second)
		}
	})
}

// runInBackground runs a supervisor until the test ends.
func (f *fixture) runInBackground(s *supervisor.Supervisor) {
	ctx, cancel := context.WithCancel(f.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	f.t.Cleanup(func() {
		cancel()
		<-done
	})
}

// A crash is cleaned up when the heartbeat expires, long before the next periodic cycle.
func TestCrashIsCleanedUpWithinBound(t *testing.T) {
	t.Parallel()
	for after := range 12 {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			run(t, func(t *testing.T, f *fixture) {
				f.keepAlive("me")
				f.runInBackground(f.Supervisor)
				f.opens(orders, "a", 3)
				crash := f.keepAlive("a", orders)
				f.claimed(-1)
				wait(2*time.Minute + time.Duration(after)*700*time.Millisecond)
				require.Len(t, f.stillOpen(), 1)
				require.LessOrEqual(t, f.record.count(), 4, "one cycle per minute without changes")
				crash()
				began := time.Now()
				for len(f.stillOpen()) > 0 && time.Since(began) < time.Hour {
					wait(100 * time.Millisecond)
				}
				require.Less(t, time.Since(began), 26*time.Second)
				require.GreaterOrEqual(t, time.Since(began), 15*time.Second, "not before it counts as dead")
			})
		})
	}
}

// A failed cycle is repeated before the interval.
func TestFailedCycleIsRepeatedEarly(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		f.crashed()
		f.remote.listErr = errOut
		f.runInBackground(f.Supervisor)
		wait(time.Second)
		require.Equal(t, 1, f.record.count())
		f.remote.mu.Lock()
		f.remote.listErr = nil
		f.remote.mu.Unlock()
		wait(25 * time.Second)
		require.Empty(t, f.stillOpen())
	})
}

// While Temporal is unavailable no cycle runs; the next one runs at once when it is back.
func TestCyclesWaitForTemporal(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		f.crashed()
		f.remote.away = errOut
		f.runInBackground(f.Supervisor)
		wait(time.Hour)
		require.Zero(t, f.record.count())
		f.remote.mu.Lock()
		f.remote.away = nil
		f.remote.mu.Unlock()
		wait(5 * time.Second)
		require.Equal(t, 1, f.record.count())
	})
}

// A supervisor that stops halfway completes the termination that it has begun.
func TestStopCompletesTermination(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		f.crashed()
		ctx, cancel := context.WithCancel(f.ctx)
		f.remote.onEnd = cancel
		_, err := f.Reconcile(ctx, false)
		require.NoError(t, err)
		require.Nil(t, f.entry(orders), "the begun termination is completed")
		ctx, cancel = context.WithCancel(f.ctx)
		cancel()
		_, err = f.Reconcile(ctx, false)
		require.Error(t, err)
	})
}

func TestReconcileWaitsForRunningCycle(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		f.crashed()
		go func() {
			_, err := f.Reconcile(f.ctx, false)
			assert.NoError(t, err)
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(f.ctx, time.Second)
		defer cancel()
		_, err := f.Reconcile(ctx, true)
		require.ErrorContains(t, err, "a cycle is already running")
		report, err := f.Reconcile(f.ctx, true)
		require.NoError(t, err)
		require.Empty(t, report.Items)
	})
}

// TestTerminationLimitHoldsForAllProcesses: five supervisors together terminate no more at once than one.
func TestTerminationLimitHoldsForAllProcesses(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		f.keepAlive("me")
		var names []inbox.Name
		for i := range 200 {
			names = append(names, inbox.Name{Project: fmt.Sprintf("p%03d", i), TaskQueue: "q"})
			f.opens(names[i], "a", 1)
		}
		f.keepAlive("a", names...)()
		wait(time.Minute)
		for left := 180; left >= 160; left -= 20 {
			for i := range 5 {
				go func() {
					_, err := f.another(fmt.Sprintf("s%d", i)).Reconcile(f.ctx, false)
					assert.NoError(t, err)
				}()
			}
			wait(10 * time.Second)
			require.Len(t, f.stillOpen(), left)
			wait(40 * time.Second)
		}
		postponed := 0
		for _, c := range f.record.cycles {
			postponed = max(postponed, c.Postponed)
		}
		require.GreaterOrEqual(t, postponed, 180, "a supervisor without budget reports how many it postpones")
	})
}

// TestPostponedEntriesAreCounted: also if nothing is to be terminated.
func TestPostponedEntriesAreCounted(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		f.keepAlive("me")
		var names []inbox.Name
		for i := range 50 {
			names = append(names, inbox.Name{Project: fmt.Sprintf("p%02d", i), TaskQueue: "q"})
		}
		f.keepAlive("a", names...)()
		wait(time.Minute)
		report, err := f.Reconcile(f.ctx, false)
		require.NoError(t, err)
		require.Equal(t, 30, f.record.cycles[0].Postponed)
		require.Len(t, report.Items, 50)
		require.Equal(t, dispatchtype.ActionPostpone, report.Items[0].Action)
	})
}
