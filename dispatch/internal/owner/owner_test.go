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

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/contract"
	"github.com/signalbox-dev/signalbox/dispatch/internal/remote"
	"github.com/signalbox-dev/signalbox/dispatch/internal/terms"
	"github.com/signalbox-dev/signalbox/lease"
)

// story runs in a bubble with a world.
func story(t *testing.T, tell func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	inBubble(t, tell)
}

func inBubble(t *testing.T, tell func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { tell(t, newWorld(t)) })
}

func TestColdStart(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		a := w.start("a")
		pass(time.Second)
		require.Equal(t, []string{"start a/1"}, w.did())
		require.Equal(t, []terms.Outcome{terms.ColdStart}, a.outcomes())
		require.Equal(t, 1, a.told().active)
		require.Equal(t, inbox.Owner{Epoch: 1, Holder: "a"}, a.Owned().Owner)
		require.Equal(t, "run-1", a.Owned().RunID)
		entry, err := w.leases.Get(t.Context(), contract.OwnerKey(name))
		require.NoError(t, err)
		var claim contract.Claim
		require.NoError(t, json.Unmarshal(entry.Value, &claim))
		require.Equal(t, contract.Claim{ServerID: "a", Epoch: 1}, claim, "the epoch is there without waiting for a renewal")

		pass(time.Hour)
		require.NotNil(t, a.Owned(), "kept")
		require.Empty(t, w.did())
		a.stop()
		require.Nil(t, a.Owned())
		require.Zero(t, a.told().active)
		require.Empty(t, w.did(), "the dispatcher runs on")
		entry, err = w.leases.Get(t.Context(), contract.OwnerKey(name))
		require.NoError(t, err)
		require.Equal(t, lease.Resigned, entry.State)
	})
}

func TestOthersJoin(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.start("a")
		pass(time.Second)
		w.did()
		b := w.start("b")
		pass(time.Hour)
		require.Equal(t, 1, b.told().joined)
		require.Empty(t, w.did(), "who joins never touches a dispatcher whose owner's lease is held")
		require.Empty(t, b.outcomes())
	})
}

func TestACrashLoopBesideAHealthyOwner(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.start("a")
		pass(time.Second)
		w.did()
		for i := range 20 {
			b := w.start(fmt.Sprintf("b%d", i))
			pass(time.Duration(rand.N(5000)) * time.Millisecond)
			b.crash()
		}
		require.Empty(t, w.did())
	})
}

func TestWhoResignedIsSucceededByAdoption(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		a := w.start("a")
		pass(time.Second)
		b := w.start("b")
		pass(time.Second)
		w.did()
		a.stop()
		b.Hint()
		pass(100 * time.Millisecond)
		require.Equal(t, []string{"adopt run-1 b/2"}, w.did())
		require.Equal(t, []terms.Outcome{terms.Handover}, b.outcomes())
		require.Equal(t, "a", b.told().changes[0].From)
		require.Equal(t, int64(1), b.told().changes[0].FromEpoch)
	})
}

// Whoever is told to stop while it takes the dispatcher leaves one that the next adopts, wherever it was.
func TestToldToStopWhileTaking(t *testing.T) {
	t.Parallel()
	for _, moment := range []string{"win", "describe", "adopt"} {
		t.Run(moment, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				first := w.start("first")
				pass(time.Second)
				first.stop()
				second := w.process("second")
				if moment == "win" {
					second.store.won = func() { second.tell() }
				} else {
					w.on = func(act string) {
						if act == moment {
							second.tell()
						}
					}
				}
				close(second.ready)
				second.run(w)
				pass(time.Second)
				second.stop()
				w.mu.Lock()
				w.on = nil
				w.mu.Unlock()
				began := time.Now()
				third := w.start("third")
				pass(time.Second)
				require.NotNil(t, third.Owned())
				require.Empty(t, third.told().terminated)
				require.Less(t, third.Owned().Since.Sub(began), time.Second)
			})
		})
	}
}

func TestWithoutAHintItIsSucceededWhenItsLeaseWouldEnd(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		a := w.start("a")
		pass(time.Second)
		b := w.start("b")
		pass(time.Second)
		a.stop()
		pass(16 * time.Second)
		require.Equal(t, []terms.Outcome{terms.Handover}, b.outcomes())
	})
}

func TestWhoCrashedIsTakenOver(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		a := w.start("a")
		pass(time.Second)
		b := w.start("b")
		pass(30 * time.Second)
		w.did()
		entry, err := w.leases.Get(t.Context(), contract.OwnerKey(name))
		require.NoError(t, err)
		a.crash()
		began := time.Now()
		for b.Owned() == nil {
			pass(10 * time.Millisecond)
		}
		took := time.Since(began)
		require.Less(t, took, 16*time.Second)
		require.Equal(t, []string{"terminate run-1", "start b/2"}, w.did(), "the termination comes first")
		require.Equal(t, []terms.Outcome{terms.Takeover}, b.outcomes())
		require.Len(t, b.told().terminated, 1)
		got := b.told().terminated[0]
		require.Equal(t, "crashed", got.Kind)
		require.Equal(t, `taken over by "b" (epoch 2) from "a" (epoch 1): its owner did not renew its lease`, got.Reason)
		require.Equal(t, "run-1", got.RunID)
		require.Equal(t, `the one before was ended by "b", crashed: its owner did not renew its lease`, b.told().changes[0].Reason)
		require.Equal(t, b.Owned().Since.Sub(entry.RenewedAt), b.told().gaps[0], "from the last sign of life of the one before")
		require.Greater(t, b.told().gaps[0], 14*time.Second)
	})
}

func TestAnOutageOfTheStoreIsNoCrash(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		a := w.start("a")
		pass(time.Second)
		b := w.start("b")
		pass(time.Second)
		w.did()
		away := errors.New("redis is away")
		a.store.fail(away)
		b.store.fail(away)
		pass(2 * time.Minute)
		require.Nil(t, a.Owned(), "it steps down in time")
		require.Equal(t, []terms.Outcome{terms.ColdStart, terms.Lost}, a.outcomes())
		require.ErrorContains(t, errors.New(a.told().changes[1].Reason), "redis is away")
		a.store.fail(nil)
		b.store.fail(nil)
		pass(20 * time.Second)
		require.Len(t, w.did(), 1)
		require.Equal(t, int64(2), w.memo().Epoch)
		require.NotEqual(t, a.Owned() == nil, b.Owned() == nil, "one of them adopted it")
		require.Empty(t, append(a.told().terminated, b.told().terminated...))
	})
}

func TestWhoeverComesBackFirstAdopts(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		a := w.start("a")
		pass(time.Second)
		b := w.start("b")
		pass(time.Second)
		w.did()
		away := errors.New("redis is away")
		a.store.fail(away)
		b.store.fail(away)
		pass(2 * time.Minute)
		b.store.fail(nil)
		pass(20 * time.Second)
		require.Equal(t, []string{"adopt run-1 b/2"}, w.did(), "the other could not renew, which is no crash")
	})
}

func TestALeaseWhoseAnswerWasLostIsTaken(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		a := w.process("a")
		close(a.ready)
		a.store.lose()
		a.run(w)
		pass(2 * time.Second)
		require.NotNil(t, a.Owned(), "without waiting for it to run out")
		require.Len(t, a.told().failures, 1)
	})
}

func TestAStoreThatForgot(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		a := w.start("a")
		pass(time.Second)
		w.did()
		entry, err := w.leases.Get(t.Context(), contract.OwnerKey(name))
		require.NoError(t, err)
		require.NoError(t, w.leases.Delete(t.Context(), entry.Key, entry.Token, entry.Revision))
		pass(10 * time.Second)
		require.Equal(t, []string{"adopt run-1 a/2"}, w.did())
		require.Equal(t, []terms.Outcome{terms.ColdStart, terms.Lost, terms.Handover}, a.outcomes())
	})
}

func TestAnInboxThatForgot(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.put(&contract.Memo{Name: name, Owner: "old", Epoch: 41, Interpreter: 1})
		pass(time.Minute)
		w.start("a")
		pass(time.Second)
		require.Equal(t, []string{"adopt run-1 a/42"}, w.did(), "epochs go on above what was seen in Temporal")
	})
}

func TestOneThatDoesNotAnswerIsTakenOver(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.put(&contract.Memo{Name: name, Owner: "old", Epoch: 1, Interpreter: 1})
		w.mute = true
		pass(time.Minute)
		a := w.start("a")
		pass(15 * time.Second)
		require.Equal(t, []string{"adopt run-1 a/2", "terminate run-1", "start a/3"}, w.did())
		require.Equal(t, "unanswered", a.told().terminated[0].Kind)
	})
}

func TestOneThatMakesNoProgressIsTakenOver(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.put(&contract.Memo{Name: name, Owner: "old", Epoch: 1, Interpreter: 1})
		old, err := w.inbox.Fence(t.Context(), name, "old", 0)
		require.NoError(t, err)
		_, err = w.inbox.Claim(t.Context(), name, old, 1, time.Second)
		require.NoError(t, err)
		w.inbox.Publish(name, "", "waits")
		pass(time.Minute)
		a := w.start("a")
		pass(time.Second)
		require.Equal(t, []string{"terminate run-1", "start a/2"}, w.did())
		require.Equal(t, "silent", a.told().terminated[0].Kind)
	})
}

func TestALegacyOneIsTakenOver(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.put(nil)
		pass(time.Minute)
		a := w.start("a")
		pass(time.Second)
		require.Equal(t, []string{"terminate run-1", "start a/1"}, w.did())
		require.Equal(t, []terms.Outcome{terms.Takeover}, a.outcomes())
		require.Contains(t, a.told().terminated[0].Reason, "from nobody known")
	})
}

func TestAnothersIsLeftAlone(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.put(&contract.Memo{Name: inbox.Name{Project: "shop-orders", TaskQueue: "x"}, Owner: "other", Epoch: 1})
		a := w.start("a")
		pass(time.Hour)
		require.Empty(t, w.did())
		require.Nil(t, a.Owned())
		require.Greater(t, len(a.told().foreign), 100, "told again and again")
		require.Less(t, len(a.told().foreign), 1000, "not too often")
		require.Empty(t, a.told().failures)
	})
}

func TestTemporalThatCannotBeSeenIsNotTouched(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.put(&contract.Memo{Name: name, Owner: "old", Epoch: 1, Interpreter: 1})
		w.away = errors.New("unavailable")
		a := w.start("a")
		pass(time.Hour)
		require.Empty(t, w.did())
		require.NotEmpty(t, a.told().failures)
		w.mu.Lock()
		w.away = nil
		w.mu.Unlock()
		pass(20 * time.Second)
		require.NotNil(t, a.Owned())
	})
}

func TestNothingIsWonBeforeTemporalCanBeUsed(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		a := w.process("a")
		a.run(w)
		pass(time.Minute)
		_, err := w.leases.Get(t.Context(), contract.OwnerKey(name))
		require.ErrorIs(t, err, lease.ErrNotFound, "others who can use it may")
		close(a.ready)
		pass(time.Second)
		require.NotNil(t, a.Owned())
		require.Empty(t, a.told().failures)
	})
}

func TestAnswersThatWereLost(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.on = func(act string) {
			if act == "start" {
				w.mu.Lock()
				defer w.mu.Unlock()
				if w.open == nil {
					w.put(&contract.Memo{Name: name, Owner: "a", Epoch: 1, Interpreter: 1})
				}
				w.fails["start"] = []error{context.DeadlineExceeded}
			}
		}
		a := w.start("a")
		pass(time.Second)
		require.Equal(t, []string{"start a/1"}, w.did(), "it is found to be there")
		require.Equal(t, []terms.Outcome{terms.ColdStart}, a.outcomes())
	})
}

func TestTheServersGuardAgainstRestarts(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.put(nil) // started just now: the server starts no other within a second
		a := w.start("a")
		pass(3 * time.Second)
		require.NotNil(t, a.Owned())
		did := w.did()
		require.Equal(t, "terminate run-1", did[0])
		require.Greater(t, len(did), 2)
		require.Less(t, len(did), 12)
		require.Equal(t, []terms.Outcome{terms.Takeover}, a.outcomes())
	})
}

func TestATerminationThatFailsIsTriedAgain(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.put(nil)
		w.fails["terminate"] = []error{errors.New("unavailable"), errors.New("unavailable")}
		pass(time.Minute)
		a := w.start("a")
		pass(5 * time.Second)
		require.Equal(t, []string{"terminate run-1", "terminate run-1", "terminate run-1", "start a/1"}, w.did())
		require.Equal(t, 2, a.told().errors)
		require.Len(t, a.told().terminated, 1)
	})
}

func TestSomebodyElseWasLater(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.fails["start"] = []error{remote.ErrOpen}
		w.on = func(act string) {
			if act == "start" {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.put(&contract.Memo{Name: name, Owner: "z", Epoch: 9, Interpreter: 1})
				w.on = nil
			}
		}
		a := w.start("a")
		pass(200 * time.Millisecond)
		require.Equal(t, []string{"start a/1"}, w.did())
		require.Nil(t, a.Owned(), "it steps down")
		require.ErrorContains(t, a.told().failures[0], `belongs to "z" with epoch 9`)
		pass(5 * time.Second)
		require.Equal(t, []string{"adopt run-1 a/10"}, w.did(), "z does not hold the lease")
	})
}

func TestItGivesUpAndLeavesTheLeaseToOthers(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		for range 12 {
			w.fails["start"] = append(w.fails["start"], errors.New("no"))
		}
		a := w.start("a")
		for len(a.told().failures) == 0 {
			pass(100 * time.Millisecond)
		}
		require.EqualError(t, a.told().failures[0], `own dispatcher "dispatcher-shop-orders": gave up after 12 tries: no`)
		pass(2 * time.Second)
		require.NotNil(t, a.Owned())
		require.Equal(t, int64(2), a.Owned().Owner.Epoch)
	})
}

func TestHandover(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		a := w.start("a")
		pass(time.Second)
		b := w.start("b")
		pass(time.Second)
		w.did()
		a.HandOver(contract.Request{By: "ann", Reason: "deploy"})
		pass(10 * time.Millisecond)
		a.Hint() // of its own resignation
		b.Hint()
		pass(100 * time.Millisecond)
		require.Equal(t, []string{"adopt run-1 b/2"}, w.did())
		require.NotNil(t, b.Owned())
		require.Nil(t, a.Owned())
		pass(time.Minute)
		require.Empty(t, w.did())
	})
}

func TestAHandoverToNobodyComesBack(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		a := w.start("a")
		pass(time.Second)
		w.did()
		a.HandOver(contract.Request{By: "ann"})
		a.Hint()
		pass(2 * time.Second)
		require.Nil(t, a.Owned())
		pass(2 * time.Second)
		require.NotNil(t, a.Owned())
		require.Equal(t, []string{"adopt run-1 a/2"}, w.did())
	})
}

func TestADispatcherThatIsGoneIsStartedAgain(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		a := w.start("a")
		pass(time.Minute)
		w.did()
		a.Look()
		pass(time.Second)
		require.Empty(t, w.did(), "it is there")
		w.mu.Lock()
		w.open.RunID = "run-1-continued"
		w.mu.Unlock()
		a.Look()
		pass(time.Second)
		require.Empty(t, w.did())
		require.Equal(t, "run-1-continued", a.Owned().RunID)
		w.mu.Lock()
		w.open = nil // terminated by hand
		w.mu.Unlock()
		a.Look()
		pass(time.Second)
		require.Equal(t, []string{"start a/2"}, w.did())
		require.Equal(t, []terms.Outcome{terms.ColdStart, terms.ColdStart}, a.outcomes())
		require.Equal(t, 1, a.told().active)
		w.mu.Lock()
		w.away = errors.New("unavailable")
		w.mu.Unlock()
		a.Look()
		pass(time.Second)
		require.NotNil(t, a.Owned(), "what cannot be seen is not gone")
	})
}

func TestAFrozenOwnerChangesNothing(t *testing.T) {
	t.Parallel()
	for _, act := range []string{"describe", "adopt", "terminate", "start"} {
		t.Run(act, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, w *world) {
				if act != "start" {
					w.put(&contract.Memo{Name: name, Owner: "old", Epoch: 1, Interpreter: 1})
					w.mute = act == "terminate"
				}
				pass(time.Minute)
				frozen := make(chan struct{})
				w.on = func(now string) {
					if now != act {
						return
					}
					w.mu.Lock()
					w.on, w.mute = nil, false
					w.mu.Unlock()
					<-frozen
				}
				a := w.start("a")
				pass(11 * time.Second)
				a.store.fail(errors.New("frozen"))
				pass(30 * time.Second)
				b := w.start("b")
				pass(time.Second)
				require.NotNil(t, b.Owned())
				now, run := w.memo(), w.runID()
				a.store.fail(nil)
				close(frozen)
				pass(time.Minute)
				require.Equal(t, now, w.memo())
				require.Equal(t, run, w.runID(), "the new run survives")
				require.NotNil(t, b.Owned())
				require.Nil(t, a.Owned())
			})
		})
	}
}

func TestTwentyAtOnce(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.put(nil)
		pass(time.Minute)
		var all []*process
		for i := range 20 {
			all = append(all, w.start(fmt.Sprintf("p%d", i)))
		}
		pass(10 * time.Second)
		owners := 0
		for _, p := range all {
			if p.Owned() != nil {
				owners++
			}
		}
		require.Equal(t, 1, owners)
		require.Len(t, w.did(), 2, "one termination, one start")
	})
}

// TestForeignWorkflowUsesUpNoEpochs: while something else has the dispatcher's ID, nothing can be done under an epoch.
func TestForeignWorkflowUsesUpNoEpochs(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		a := w.start("a")
		pass(time.Second)
		require.Equal(t, int64(1), a.Owned().Owner.Epoch)
		w.mu.Lock()
		w.open = &contract.Execution{WorkflowID: name.DispatcherID(), RunID: "theirs", Type: "theirs.type", TaskQueue: "theirs"}
		w.mu.Unlock()
		w.did()
		a.Look()
		pass(10 * time.Minute)
		require.Nil(t, a.Owned())
		require.Empty(t, w.did(), "it is left alone")
		told := a.told()
		require.Empty(t, told.failures)
		require.Greater(t, len(told.foreign), 10, "it is tried again")
		got := told.foreign[0]
		got.At = time.Time{}
		require.Equal(t, terms.Foreign{Name: name, WorkflowID: name.DispatcherID(), RunID: "theirs", Type: "theirs.type", By: "a"}, got)
		progress, err := w.inbox.Progress(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, int64(1), progress[0].Owner.Epoch)

		w.mu.Lock()
		w.open = nil
		w.mu.Unlock()
		began := a.told().ours
		b := w.start("b")
		pass(time.Minute)
		require.Greater(t, a.told().ours+b.told().ours, began, "it is owned again")
		for _, p := range []*process{a, b} {
			if o := p.Owned(); o != nil {
				require.Equal(t, int64(2), o.Owner.Epoch)
			}
		}
		require.Positive(t, a.told().ours, "the process that reported it knows")
		require.Positive(t, b.told().ours)
	})
}
