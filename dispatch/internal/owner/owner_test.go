package owner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/remote"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/lease"
)

// run runs a parallel test in a synctest bubble with a fixture.
func run(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Helper()
	t.Parallel()
	runInBubble(t, test)
}

func runInBubble(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newFixture(t)) })
}

func TestColdStart(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		a := f.start("a")
		advance(time.Second)
		require.Equal(t, []string{"start a/1"}, f.actions())
		require.Equal(t, []dispatchtype.Outcome{dispatchtype.ColdStart}, a.outcomes())
		require.Equal(t, 1, a.events().active)
		require.Equal(t, inbox.Owner{Epoch: 1, Holder: "a"}, a.Owned().Owner)
		require.Equal(t, "run-1", a.Owned().RunID)
		entry, err := f.leases.Get(t.Context(), wire.OwnerKey(name))
		require.NoError(t, err)
		var claim wire.Claim
		require.NoError(t, json.Unmarshal(entry.Value, &claim))
		require.Equal(t, wire.Claim{ServerID: "a", Epoch: 1}, claim, "the epoch is written without waiting for a renewal")

		advance(time.Hour)
		require.NotNil(t, a.Owned(), "kept")
		require.Empty(t, f.actions())
		a.stop()
		require.Nil(t, a.Owned())
		require.Zero(t, a.events().active)
		require.Empty(t, f.actions(), "the dispatcher keeps running")
		entry, err = f.leases.Get(t.Context(), wire.OwnerKey(name))
		require.NoError(t, err)
		require.Equal(t, lease.Resigned, entry.State)
	})
}

func TestProcessJoinsExistingOwner(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		f.start("a")
		advance(time.Second)
		f.actions()
		b := f.start("b")
		advance(time.Hour)
		require.Equal(t, 1, b.events().joined)
		require.Empty(t, f.actions(), "no action while another owner holds the lease")
		require.Empty(t, b.outcomes())
	})
}

func TestCrashLoopBesideHealthyOwnerTakesNoAction(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		f.start("a")
		advance(time.Second)
		f.actions()
		for i := range 20 {
			b := f.start(fmt.Sprintf("b%d", i))
			advance(time.Duration(rand.N(5000)) * time.Millisecond)
			b.crash()
		}
		require.Empty(t, f.actions())
	})
}

func TestCrashedOwnersDispatcherIsReplaced(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		a := f.start("a")
		advance(time.Second)
		b := f.start("b")
		advance(30 * time.Second)
		f.actions()
		entry, err := f.leases.Get(t.Context(), wire.OwnerKey(name))
		require.NoError(t, err)
		f.beat("a")
		a.crash()
		began := time.Now()
		for b.Owned() == nil {
			advance(10 * time.Millisecond)
		}
		took := time.Since(began)
		require.Less(t, took, 10*time.Second)
		require.Equal(t, []string{"terminate run-1", "start b/2"}, f.actions(), "the termination comes first")
		require.Equal(t, []dispatchtype.Outcome{dispatchtype.Takeover}, b.outcomes())
		require.Len(t, b.events().terminated, 1)
		got := b.events().terminated[0]
		require.Equal(t, "crashed", got.Kind)
		require.Equal(t, `taken over by "b" (epoch 2) from "a" (epoch 1): its owner did not renew its lease`, got.Reason)
		require.Equal(t, "run-1", got.RunID)
		require.Equal(t, `the previous run was terminated by "b", crashed: its owner did not renew its lease`,
			b.events().changes[0].Reason)
		require.Equal(t, b.Owned().Since.Sub(entry.RenewedAt), b.events().gaps[0],
			"since the last renewal of the previous owner")
		require.Greater(t, b.events().gaps[0], 9*time.Second)
	})
}

// An owner that cannot renew its lease although it is alive has not crashed: its dispatcher continues.
func TestDispatcherOfLivingOwnerIsAdopted(t *testing.T) {
	t.Parallel()
	for what, lives := range map[string]func(f *fixture, successor *process){
		"by its heartbeat": func(f *fixture, _ *process) { f.beat("a") },
		"its heartbeat cannot be read": func(_ *fixture, successor *process) {
			successor.store.failReads(errors.New("lost"))
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			runInBubble(t, func(t *testing.T, f *fixture) {
				a, b := f.pair()
				f.actions()
				a.store.refuse(errors.New("no permission"))
				for b.Owned() == nil {
					advance(time.Second)
					lives(f, b)
				}
				require.Equal(t, []string{"adopt run-1 b/2"}, f.actions())
				require.Equal(t, []dispatchtype.Outcome{dispatchtype.Handover}, b.outcomes())
				require.Empty(t, b.events().terminated)
			})
		})
	}
}

// A process that got no epoch has never owned the dispatcher. After it a supervisor may be about to terminate the
// dispatcher still, so that no process adopts it, although that process is alive.
func TestDispatcherIsReplacedAfterHolderWithoutEpoch(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		f.put(&wire.Memo{Name: name, Owner: "a", Epoch: 1, Interpreter: 1})
		value, err := json.Marshal(wire.Claim{ServerID: "x"})
		require.NoError(t, err)
		_, _, err = f.leases.Acquire(t.Context(), wire.OwnerKey(name), "x", value,
			dispatchtype.Timing{}.WithDefaults().Owner())
		require.NoError(t, err)
		b := f.start("b")
		for b.Owned() == nil {
			advance(time.Second)
			f.beat("x")
		}
		require.Equal(t, []string{"terminate run-1", "start b/2"}, f.actions())
	})
}

func TestStoreOutageIsNoCrash(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		a, b := f.pair()
		f.actions()
		away := errors.New("redis is away")
		a.store.fail(away)
		b.store.fail(away)
		advance(2 * time.Minute)
		require.Nil(t, a.Owned(), "the lease is not trusted any more")
		require.Equal(t, []dispatchtype.Outcome{dispatchtype.ColdStart, dispatchtype.Lost}, a.outcomes())
		require.ErrorContains(t, errors.New(a.events().changes[1].Reason), "redis is away")
		a.store.fail(nil)
		b.store.fail(nil)
		advance(20 * time.Second)
		require.Len(t, f.actions(), 1)
		require.Equal(t, int64(2), f.memo().Epoch)
		require.NotEqual(t, a.Owned() == nil, b.Owned() == nil, "one of them adopted it")
		require.Empty(t, append(a.events().terminated, b.events().terminated...))
	})
}

func TestFirstProcessAfterStoreOutageAdopts(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		a, b := f.pair()
		f.actions()
		away := errors.New("redis is away")
		a.store.fail(away)
		b.store.fail(away)
		advance(2 * time.Minute)
		b.store.fail(nil)
		advance(20 * time.Second)
		require.Equal(t, []string{"adopt run-1 b/2"}, f.actions(), "a store failure is no crash")
	})
}

func TestLeaseWithLostAnswerIsUsed(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		a := f.process("a")
		close(a.ready)
		a.store.lose()
		a.run(f)
		advance(2 * time.Second)
		require.NotNil(t, a.Owned(), "without waiting for the lease to expire")
		require.Len(t, a.events().failures, 1)
	})
}

func TestLeaseStoreDataLoss(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		a := f.start("a")
		advance(time.Second)
		f.actions()
		entry, err := f.leases.Get(t.Context(), wire.OwnerKey(name))
		require.NoError(t, err)
		require.NoError(t, f.leases.Delete(t.Context(), entry.Key, entry.Token, entry.Revision))
		advance(10 * time.Second)
		require.Equal(t, []string{"adopt run-1 a/2"}, f.actions())
		require.Equal(t, []dispatchtype.Outcome{dispatchtype.ColdStart, dispatchtype.Lost, dispatchtype.Handover},
			a.outcomes())
	})
}

func TestInboxDataLoss(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		f.put(&wire.Memo{Name: name, Owner: "old", Epoch: 41, Interpreter: 1})
		advance(time.Minute)
		f.start("a")
		advance(time.Second)
		require.Equal(t, []string{"adopt run-1 a/42"}, f.actions(), "the epoch is above the one in Temporal")
	})
}

func TestUnansweringDispatcherIsReplaced(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		f.put(&wire.Memo{Name: name, Owner: "old", Epoch: 1, Interpreter: 1})
		f.unanswered = true
		advance(time.Minute)
		a := f.start("a")
		advance(15 * time.Second)
		require.Equal(t, []string{"adopt run-1 a/2", "terminate run-1", "start a/3"}, f.actions())
		require.Equal(t, "unanswered", a.events().terminated[0].Kind)
	})
}

func TestDispatcherWithoutProgressIsReplaced(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		f.put(&wire.Memo{Name: name, Owner: "old", Epoch: 1, Interpreter: 1})
		old, err := f.inbox.Fence(t.Context(), name, "old", 0)
		require.NoError(t, err)
		_, err = f.inbox.Claim(t.Context(), name, old, 1, time.Second)
		require.NoError(t, err)
		f.inbox.Publish(name, "", "waits")
		advance(time.Minute)
		a := f.start("a")
		advance(time.Second)
		require.Equal(t, []string{"terminate run-1", "start a/2"}, f.actions())
		require.Equal(t, "silent", a.events().terminated[0].Kind)
	})
}

func TestLegacyDispatcherIsReplaced(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		f.put(nil)
		advance(time.Minute)
		a := f.start("a")
		advance(time.Second)
		require.Equal(t, []string{"terminate run-1", "start a/1"}, f.actions())
		require.Equal(t, []dispatchtype.Outcome{dispatchtype.Takeover}, a.outcomes())
		require.Contains(t, a.events().terminated[0].Reason, "from an unknown owner")
	})
}

func TestForeignDispatcherIsNotTouched(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		f.put(&wire.Memo{Name: inbox.Name{Project: "shop-orders", TaskQueue: "x"}, Owner: "other", Epoch: 1})
		a := f.start("a")
		advance(time.Hour)
		require.Empty(t, f.actions())
		require.Nil(t, a.Owned())
		require.Greater(t, len(a.events().foreign), 100, "reported at each attempt")
		require.Less(t, len(a.events().foreign), 1000, "not too often")
		require.Empty(t, a.events().failures)
	})
}

func TestNoActionWhileTemporalIsUnreachable(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		f.put(&wire.Memo{Name: name, Owner: "old", Epoch: 1, Interpreter: 1})
		f.away = errors.New("unavailable")
		a := f.start("a")
		advance(time.Hour)
		require.Empty(t, f.actions())
		require.NotEmpty(t, a.events().failures)
		f.mu.Lock()
		f.away = nil
		f.mu.Unlock()
		advance(20 * time.Second)
		require.NotNil(t, a.Owned())
	})
}

func TestNoLeaseBeforeTemporalIsUsable(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		a := f.process("a")
		a.run(f)
		advance(time.Minute)
		_, err := f.leases.Get(t.Context(), wire.OwnerKey(name))
		require.ErrorIs(t, err, lease.ErrNotFound, "the lease stays free for others")
		close(a.ready)
		advance(time.Second)
		require.NotNil(t, a.Owned())
		require.Empty(t, a.events().failures)
	})
}

func TestLostAnswerOfStart(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		f.on = func(act string) {
			if act == "start" {
				f.mu.Lock()
				defer f.mu.Unlock()
				if f.open == nil {
					f.put(&wire.Memo{Name: name, Owner: "a", Epoch: 1, Interpreter: 1})
				}
				f.fails["start"] = []error{context.DeadlineExceeded}
			}
		}
		a := f.start("a")
		advance(time.Second)
		require.Equal(t, []string{"start a/1"}, f.actions(), "the started run is found")
		require.Equal(t, []dispatchtype.Outcome{dispatchtype.ColdStart}, a.outcomes())
	})
}

func TestStartIsRetriedAfterServersRestartGuard(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		f.put(nil) // the server starts no second run within a second
		a := f.start("a")
		advance(3 * time.Second)
		require.NotNil(t, a.Owned())
		did := f.actions()
		require.Equal(t, "terminate run-1", did[0])
		require.Greater(t, len(did), 2)
		require.Less(t, len(did), 12)
		require.Equal(t, []dispatchtype.Outcome{dispatchtype.Takeover}, a.outcomes())
	})
}

func TestFailedTerminationIsRetried(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		f.put(nil)
		f.fails["terminate"] = []error{errors.New("unavailable"), errors.New("unavailable")}
		advance(time.Minute)
		a := f.start("a")
		advance(5 * time.Second)
		require.Equal(t, []string{"terminate run-1", "terminate run-1", "terminate run-1", "start a/1"}, f.actions())
		require.Equal(t, 2, a.events().errors)
		require.Len(t, a.events().terminated, 1)
	})
}

func TestHigherEpochMakesOwnerStepDown(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		f.fails["start"] = []error{remote.ErrOpen}
		f.on = func(act string) {
			if act == "start" {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.put(&wire.Memo{Name: name, Owner: "z", Epoch: 9, Interpreter: 1})
				f.on = nil
			}
		}
		a := f.start("a")
		advance(200 * time.Millisecond)
		require.Equal(t, []string{"start a/1"}, f.actions())
		require.Nil(t, a.Owned(), "the lease is resigned")
		require.ErrorContains(t, a.events().failures[0], `belongs to "z" with epoch 9`)
		advance(5 * time.Second)
		require.Equal(t, []string{"adopt run-1 a/10"}, f.actions(), "z does not hold the lease")
	})
}

func TestLeaseIsResignedAfterFailedAttempts(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		for range 12 {
			f.fails["start"] = append(f.fails["start"], errors.New("no"))
		}
		a := f.start("a")
		for len(a.events().failures) == 0 {
			advance(100 * time.Millisecond)
		}
		require.EqualError(t, a.events().failures[0],
			`own dispatcher "dispatcher-shop-orders": gave up after 12 attempts: no`)
		advance(2 * time.Second)
		require.NotNil(t, a.Owned())
		require.Equal(t, int64(2), a.Owned().Owner.Epoch)
	})
}

func TestClosedDispatcherIsStartedAgain(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		a := f.start("a")
		advance(time.Minute)
		f.actions()
		a.Check()
		advance(time.Second)
		require.Empty(t, f.actions(), "the dispatcher is open")
		f.mu.Lock()
		f.open.RunID = "run-1-continued"
		f.mu.Unlock()
		a.Check()
		advance(time.Second)
		require.Empty(t, f.actions())
		require.Equal(t, "run-1-continued", a.Owned().RunID)
		f.mu.Lock()
		f.open = nil // terminated by hand
		f.mu.Unlock()
		a.Check()
		advance(time.Second)
		require.Equal(t, []string{"start a/2"}, f.actions())
		require.Equal(t, []dispatchtype.Outcome{dispatchtype.ColdStart, dispatchtype.ColdStart}, a.outcomes())
		require.Equal(t, 1, a.events().active)
		f.mu.Lock()
		f.away = errors.New("unavailable")
		f.mu.Unlock()
		a.Check()
		advance(time.Second)
		require.NotNil(t, a.Owned(), "a failed read is no closed dispatcher")
	})
}

func TestFrozenOwnerChangesNothing(t *testing.T) {
	t.Parallel()
	for _, act := range []string{"describe", "adopt", "terminate", "start"} {
		t.Run(act, func(t *testing.T) {
			t.Parallel()
			runInBubble(t, func(t *testing.T, f *fixture) {
				if act != "start" {
					f.put(&wire.Memo{Name: name, Owner: "old", Epoch: 1, Interpreter: 1})
					f.unanswered = act == "terminate"
				}
				advance(time.Minute)
				frozen := make(chan struct{})
				f.on = func(now string) {
					if now != act {
						return
					}
					f.mu.Lock()
					f.on, f.unanswered = nil, false
					f.mu.Unlock()
					<-frozen
				}
				a := f.start("a")
				advance(11 * time.Second)
				a.store.fail(errors.New("frozen"))
				advance(30 * time.Second)
				b := f.start("b")
				advance(time.Second)
				require.NotNil(t, b.Owned())
				now, run := f.memo(), f.runID()
				a.store.fail(nil)
				close(frozen)
				advance(time.Minute)
				require.Equal(t, now, f.memo())
				require.Equal(t, run, f.runID(), "the new run survives")
				require.NotNil(t, b.Owned())
				require.Nil(t, a.Owned())
			})
		})
	}
}

func TestTwentyConcurrentProcesses(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		f.put(nil)
		advance(time.Minute)
		var all []*process
		for i := range 20 {
			all = append(all, f.start(fmt.Sprintf("p%d", i)))
		}
		advance(10 * time.Second)
		owners := 0
		for _, p := range all {
			if p.Owned() != nil {
				owners++
			}
		}
		require.Equal(t, 1, owners)
		require.Len(t, f.actions(), 2, "one termination, one start")
	})
}

// TestForeignWorkflowConsumesNoEpochs: while a foreign workflow has the dispatcher's ID, an epoch would be useless.
func TestForeignWorkflowConsumesNoEpochs(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		a := f.start("a")
		advance(time.Second)
		require.Equal(t, int64(1), a.Owned().Owner.Epoch)
		f.mu.Lock()
		f.open = &wire.Execution{WorkflowID: name.DispatcherID(), RunID: "theirs", Type: "theirs.type", TaskQueue: "theirs"}
		f.mu.Unlock()
		f.actions()
		a.Check()
		advance(10 * time.Minute)
		require.Nil(t, a.Owned())
		require.Empty(t, f.actions(), "the foreign workflow is not touched")
		seen := a.events()
		require.Empty(t, seen.failures)
		require.Greater(t, len(seen.foreign), 10, "attempts are repeated")
		got := seen.foreign[0]
		got.At = time.Time{}
		require.Equal(t, dispatchtype.ForeignWorkflow{
			Name: name, WorkflowID: name.DispatcherID(), RunID: "theirs", Type: "theirs.type", By: "a"}, got)
		progress, err := f.inbox.Progress(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, int64(1), progress[0].Owner.Epoch)

		f.mu.Lock()
		f.open = nil
		f.mu.Unlock()
		began := a.events().ours
		b := f.start("b")
		advance(time.Minute)
		require.Greater(t, a.events().ours+b.events().ours, began, "the dispatcher is owned again")
		for _, p := range []*process{a, b} {
			if o := p.Owned(); o != nil {
				require.Equal(t, int64(2), o.Owner.Epoch)
			}
		}
		require.Positive(t, a.events().ours, "the process that reported it is notified")
		require.Positive(t, b.events().ours)
	})
}
