package supervise_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/contract"
	"github.com/signalbox-dev/signalbox/dispatch/internal/plan"
	"github.com/signalbox-dev/signalbox/dispatch/internal/supervise"
	"github.com/signalbox-dev/signalbox/lease"
)

func TestWhatACrashLeftBehindIsCleanedUp(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		runID := w.crashed()
		report, err := w.Reconcile(w.ctx, false)
		require.NoError(t, err)
		require.Equal(t, []string{"terminate owner_gone " + runID + " applied=true "}, lines(report))
		require.Equal(t, []int{1, 0, 1, 0}, []int{report.Dispatchers, report.Healthy, report.Stale, report.Unknown})
		require.Empty(t, w.stillOpen())
		require.Nil(t, w.entry(orders))
		require.Len(t, w.record.ended, 1)
		ended := w.record.ended[0]
		require.Equal(t, []any{"a", int64(3), "owner_gone", "me"}, []any{ended.From, ended.FromEpoch, ended.Kind, ended.By})
		require.Equal(t, `ended by the supervisor of "me"; of "a" (epoch 3); it has no owner now: the lease of "a" ran out, and its heartbeat as well`, ended.Reason)
		require.Equal(t, []string{runID + ": " + ended.Reason}, w.remote.ended)
		require.Len(t, w.record.clean, 1)
		require.GreaterOrEqual(t, w.record.clean[0], time.Minute)
		require.Len(t, w.record.cycles, 1)
		require.NoError(t, w.record.cycles[0].Err)
		require.Equal(t, map[string]int{"shop": 0}, w.record.cycles[0].Stale, "it was cleaned up in that very cycle")

		report, err = w.Reconcile(w.ctx, false)
		require.NoError(t, err)
		require.Empty(t, report.Items, "the second cycle finds nothing to do")
		require.Equal(t, map[string]int{"shop": 0}, w.record.cycles[1].Stale)
	})
}

// The termination comes first: while it has not happened, there is an entry.
func TestTheEntryIsDeletedAfterTheTermination(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.crashed()
		w.remote.onEnd = func() {
			guard := w.entry(orders)
			require.Equal(t, []any{"super:me", lease.Held}, []any{guard.Holder, guard.State})
			_, _, err := w.leases.now().Acquire(w.ctx, contract.OwnerKey(orders), "b", nil, timing.Owner())
			require.ErrorIs(t, err, lease.ErrHeld, "nobody adopts what is being terminated")
		}
		_, err := w.Reconcile(w.ctx, false)
		require.NoError(t, err)
		require.Len(t, w.remote.ended, 1)
	})
}

func TestADryRunChangesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		runID := w.crashed()
		before := *w.entry(orders)
		report, err := w.Reconcile(w.ctx, true)
		require.NoError(t, err)
		require.True(t, report.DryRun)
		require.Equal(t, []string{"terminate owner_gone " + runID + " applied=false "}, lines(report))
		require.Equal(t, []string{runID}, w.stillOpen())
		require.Equal(t, before.Revision, w.entry(orders).Revision)
		require.Empty(t, w.record.cycles)
	})
}

// Between both readings, and between the second one and the act, everything may change. Then nothing is done.
func TestChangesInBetween(t *testing.T) {
	t.Parallel()
	const during = time.Second // of the pause between the readings
	take := func(w *world) {
		w.lives("b", orders)
	}
	for name, c := range map[string]struct {
		change func(w *world)
		at     string
		why    string
		open   int
	}{
		"taken over after the list":     {take, "list", "", 1},
		"taken over before the second":  {take, "pause", `its owner "b" holds the lease`, 1},
		"taken over before the act":     {take, "guard", "", 1},
		"a heartbeat before the second": {func(w *world) { w.lives("a") }, "pause", "nobody has taken it yet", 1},
		"terminated by another":         {func(w *world) { w.continues("") }, "pause", "not confirmed", 0},
		"terminated before the act":     {func(w *world) { w.continues("") }, "guard", "", 0},
		"continued as new":              {func(w *world) { w.continues("run-shop-new") }, "pause", "not confirmed", 1},
		"it moves":                      {func(w *world) { w.moves(time.Second) }, "pause", "it moves", 1},
		"it answers":                    {func(w *world) { w.remote.answers["run-shop-3"] = plan.Answered }, "before", "a worker answers", 1},
		"it cannot be asked":            {func(w *world) { w.remote.answers["run-shop-3"] = plan.Unclear }, "before", "could not be asked", 1},
		"the store loses everything":    {func(w *world) { w.leases.loses() }, "pause", "no keys at all", 1},
		"the store loses the entry":     {func(w *world) { e := w.entry(orders); _ = w.leases.now().Delete(w.ctx, e.Key, e.Token, e.Revision) }, "guard", "", 1},
		"the store is young again":      {func(w *world) { w.leases.loses(); w.lives("me") }, "pause", "no evidence", 1},
		"resigned by who took it over": {func(w *world) {
			got, _, _ := w.leases.now().Acquire(w.ctx, contract.OwnerKey(orders), "b", nil, timing.Owner())
			_ = w.leases.Resign(w.ctx, got.Key, got.Token)
		}, "guard", "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.crashed()
				switch c.at {
				case "before":
					c.change(w)
				case "list":
					w.remote.onList = func() { c.change(w) }
				case "guard":
					w.leases.first("Acquire super:me", func(context.Context) { c.change(w) })
				case "pause":
					go func() {
						<-time.After(during)
						c.change(w)
					}()
				}
				report, err := w.Reconcile(w.ctx, false)
				require.NoError(t, err)
				require.Empty(t, w.remote.ended)
				require.Len(t, w.stillOpen(), c.open)
				if c.at == "list" {
					require.Empty(t, report.Items)
					return
				}
				require.False(t, report.Items[0].Applied)
				require.Contains(t, report.Items[0].Error, c.why)
				require.Equal(t, c.at == "guard", report.Items[0].Error == "")
				if e := w.entry(orders); e != nil {
					require.NotEqual(t, []any{"super:me", lease.Held}, []any{e.Holder, e.State}, "no lease is kept for nothing")
				}
			})
		})
	}
}

// What cannot be read makes a failed cycle.
func TestReadErrorsAreErrors(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]func(w *world){
		"Temporal":            func(w *world) { w.remote.listErr = errOut },
		"the inbox":           func(w *world) { w.rows.err = errOut },
		"leases":              func(w *world) { w.leases.failing("List dispatcher:", errOut) },
		"heartbeats":          func(w *world) { w.leases.failing("List worker:", errOut) },
		"requests":            func(w *world) { w.leases.failing("List handover:", errOut) },
		"the second reading":  func(w *world) { w.leases.failing("Get", errOut) },
		"the lease to end it": func(w *world) { w.leases.failing("Acquire super:me", errOut) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				runID := w.crashed()
				broken(w)
				_, err := w.Reconcile(w.ctx, false)
				require.ErrorContains(t, err, errOut.Error())
				require.Equal(t, []string{runID}, w.stillOpen())
				require.Len(t, w.record.cycles, 1)
				require.Error(t, w.record.cycles[0].Err)
			})
		})
	}
}

// Of a termination that failed an entry stays, and it is tried again.
func TestATerminationThatFailsIsTriedAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		runID := w.crashed()
		w.remote.endErr = errOut
		report, err := w.Reconcile(w.ctx, false)
		require.ErrorContains(t, err, errOut.Error())
		require.Equal(t, []string{"terminate owner_gone " + runID + " applied=false it is away"}, lines(report))
		require.Equal(t, 1, w.record.failed)
		require.Equal(t, 1, w.record.broken, "that is a cleanup that failed, too")
		require.Equal(t, map[string]int{"shop": 1}, w.record.cycles[0].Stale)
		require.Empty(t, w.record.ended)
		require.NotNil(t, w.entry(orders))
		w.remote.endErr = nil
		wait(time.Minute)
		report, err = w.Reconcile(w.ctx, false)
		require.NoError(t, err)
		require.Equal(t, []string{"terminate owner_gone " + runID + " applied=true "}, lines(report))
		require.Nil(t, w.entry(orders))
	})
}

func TestADeletionThatFailsIsTriedAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.crashed()
		w.leases.failing("Delete", errOut)
		report, err := w.Reconcile(w.ctx, false)
		require.ErrorContains(t, err, errOut.Error())
		require.True(t, report.Items[0].Applied)
		require.Contains(t, report.Items[0].Error, `delete entry "dispatcher:shop:orders"`)
		require.Equal(t, 1, w.record.broken)
		require.Empty(t, w.stillOpen())
		w.leases.failing("Delete", nil)
		wait(time.Minute)
		report, err = w.Reconcile(w.ctx, false)
		require.NoError(t, err)
		require.Equal(t, []string{"delete_entry owner_gone  applied=true "}, lines(report))
		require.Nil(t, w.entry(orders))
	})
}

// Several supervisors come to the same thing: one acts.
func TestSeveralAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.crashed()
		for i := range 5 {
			go func() {
				_, err := w.another(fmt.Sprintf("s%d", i)).Reconcile(w.ctx, false)
				assert.NoError(t, err)
			}()
		}
		wait(10 * time.Second)
		require.Len(t, w.remote.ended, 1)
		require.Len(t, w.record.ended, 1)
		require.Nil(t, w.entry(orders))
		require.Len(t, w.record.cycles, 5)
	})
}

func TestOlderSchemeGoesWhileItsProcessLives(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.lives("me", orders)
		w.lives("old")
		mine := w.opens(orders, "me", 4)
		w.remote.open["old"] = &supervise.Listed{Execution: contract.Execution{
			WorkflowID: "router-shop-17", RunID: "old", Type: contract.WorkflowType, TaskQueue: "orders",
			Memo: &contract.Memo{Name: orders, Owner: "old", Epoch: 1},
		}}
		w.remote.answers["old"] = plan.Answered
		_, err := w.Reconcile(w.ctx, false)
		require.NoError(t, err)
		require.Equal(t, []string{mine}, w.stillOpen())
		require.Contains(t, w.remote.ended[0], `of "old" (epoch 1); now "me" (epoch 4) owns another`)
		require.Equal(t, []any{"me", int64(4)}, []any{w.record.ended[0].To, w.record.ended[0].ToEpoch})
		require.Equal(t, lease.Held, w.entry(orders).State, "the successor's lease is not touched")
		require.Equal(t, map[string]int{"shop": 0}, w.record.cycles[0].Duplicates)
		require.Equal(t, map[string]int{"shop": 0}, w.record.cycles[0].Stale)
		require.Zero(t, w.remote.asked)
	})
}

func TestNothingIsEndedInAnEmptyStore(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.opens(orders, "a", 3)
		report, err := w.Reconcile(w.ctx, false)
		require.NoError(t, err)
		require.Equal(t, []string{"alert no_keys  applied=false "}, lines(report))
		require.Len(t, w.stillOpen(), 1)
	})
}

func TestMassesWaitForTheNextCycle(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.lives("me")
		var names []inbox.Name
		for i := range 50 {
			names = append(names, inbox.Name{Project: fmt.Sprintf("p%02d", i), TaskQueue: "q"})
			w.opens(names[i], "a", 1)
		}
		w.lives("a", names...)()
		wait(time.Minute)
		stale := func(c supervise.Cycle) (sum int) {
			for _, n := range c.Stale {
				sum += n
			}
			return sum
		}
		for i, left := range []int{30, 10, 0, 0} {
			_, err := w.Reconcile(w.ctx, false)
			require.NoError(t, err)
			require.Len(t, w.stillOpen(), left)
			require.Equal(t, []int{left, left}, []int{w.record.cycles[i].Postponed, stale(w.record.cycles[i])})
			wait(45 * time.Second)
		}
	})
}

// run runs a supervisor until the test ends.
func (w *world) run(s *supervise.Supervisor) {
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	w.t.Cleanup(func() {
		cancel()
		<-done
	})
}

// A crash is cleaned up when the heartbeat runs out, long before the next cycle would come.
func TestACrashIsCleanedUpInTime(t *testing.T) {
	t.Parallel()
	for after := range 12 {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.lives("me")
				w.run(w.Supervisor)
				w.opens(orders, "a", 3)
				crash := w.lives("a", orders)
				w.moves(-1)
				wait(2*time.Minute + time.Duration(after)*700*time.Millisecond)
				require.Len(t, w.stillOpen(), 1)
				require.LessOrEqual(t, w.record.count(), 4, "a cycle a minute, as long as nothing happens")
				crash()
				began := time.Now()
				for len(w.stillOpen()) > 0 && time.Since(began) < time.Hour {
					wait(100 * time.Millisecond)
				}
				require.Less(t, time.Since(began), 26*time.Second)
				require.GreaterOrEqual(t, time.Since(began), 15*time.Second, "not before it counts as gone")
			})
		})
	}
}

// A failed cycle comes again sooner than its turn.
func TestAFailedCycleIsMadeAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.crashed()
		w.remote.listErr = errOut
		w.run(w.Supervisor)
		wait(time.Second)
		require.Equal(t, 1, w.record.count())
		w.remote.mu.Lock()
		w.remote.listErr = nil
		w.remote.mu.Unlock()
		wait(25 * time.Second)
		require.Empty(t, w.stillOpen())
	})
}

// While Temporal is away there is nothing to do; at once when it comes.
func TestCyclesWaitForTemporal(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.crashed()
		w.remote.away = errOut
		w.run(w.Supervisor)
		wait(time.Hour)
		require.Zero(t, w.record.count())
		w.remote.mu.Lock()
		w.remote.away = nil
		w.remote.mu.Unlock()
		wait(5 * time.Second)
		require.Equal(t, 1, w.record.count())
	})
}

// Stopping in the middle leaves what a crash would, which the next one cleans up.
func TestStoppedHalfway(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.crashed()
		ctx, cancel := context.WithCancel(w.ctx)
		w.remote.onEnd = cancel
		_, err := w.Reconcile(ctx, false)
		require.NoError(t, err)
		require.Nil(t, w.entry(orders), "what was begun is finished")
		ctx, cancel = context.WithCancel(w.ctx)
		cancel()
		_, err = w.Reconcile(ctx, false)
		require.Error(t, err)
	})
}

func TestReconcileWaitsForTheCycleUnderWay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.crashed()
		go func() {
			_, err := w.Reconcile(w.ctx, false)
			assert.NoError(t, err)
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		_, err := w.Reconcile(ctx, true)
		require.ErrorContains(t, err, "a cycle is under way")
		report, err := w.Reconcile(w.ctx, true)
		require.NoError(t, err)
		require.Empty(t, report.Items)
	})
}

// TestBrakeHoldsForAllProcesses: five supervisors together terminate no more at once than one.
func TestBrakeHoldsForAllProcesses(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.lives("me")
		var names []inbox.Name
		for i := range 200 {
			names = append(names, inbox.Name{Project: fmt.Sprintf("p%03d", i), TaskQueue: "q"})
			w.opens(names[i], "a", 1)
		}
		w.lives("a", names...)()
		wait(time.Minute)
		for left := 180; left >= 160; left -= 20 {
			for i := range 5 {
				go func() {
					_, err := w.another(fmt.Sprintf("s%d", i)).Reconcile(w.ctx, false)
					assert.NoError(t, err)
				}()
			}
			wait(10 * time.Second)
			require.Len(t, w.stillOpen(), left)
			wait(40 * time.Second)
		}
		postponed := 0
		for _, c := range w.record.cycles {
			postponed = max(postponed, c.Postponed)
		}
		require.GreaterOrEqual(t, postponed, 180, "a supervisor that may end none says how many it leaves")
	})
}

// TestEntriesThatAreLeftForLaterAreCounted: also where nothing is to be terminated.
func TestEntriesThatAreLeftForLaterAreCounted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.lives("me")
		var names []inbox.Name
		for i := range 50 {
			names = append(names, inbox.Name{Project: fmt.Sprintf("p%02d", i), TaskQueue: "q"})
		}
		w.lives("a", names...)()
		wait(time.Minute)
		report, err := w.Reconcile(w.ctx, false)
		require.NoError(t, err)
		require.Equal(t, 30, w.record.cycles[0].Postponed)
		require.Len(t, report.Items, 50)
		require.Equal(t, supervise.Postpone, report.Items[0].Action)
	})
}
