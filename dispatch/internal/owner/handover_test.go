package owner_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
)

func TestResignedDispatcherIsAdopted(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		a, b := f.pair()
		f.actions()
		a.stop()
		b.Hint()
		advance(100 * time.Millisecond)
		require.Equal(t, []string{"adopt run-1 b/2"}, f.actions())
		require.Equal(t, []dispatchtype.Outcome{dispatchtype.Handover}, b.outcomes())
		require.Equal(t, "a", b.events().changes[0].From.Holder)
		require.Equal(t, int64(1), b.events().changes[0].From.Epoch)
	})
}

func TestResignedDispatcherIsAdoptedWithoutHint(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		a, b := f.pair()
		a.stop()
		advance(16 * time.Second)
		require.Equal(t, []dispatchtype.Outcome{dispatchtype.Handover}, b.outcomes())
	})
}

// The fence ends the routing of the previous owner, and that makes a workflow task: it must not wait for a worker that
// is stopping.
func TestDispatcherIsDetachedBeforeTheFence(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		a, b := f.pair()
		var fenced []string
		f.mu.Lock()
		f.on = func(act string) {
			if act == "detach" {
				<-time.After(50 * time.Millisecond)
				progress, err := f.inbox.Progress(t.Context(), name)
				require.NoError(t, err)
				fenced = append(fenced, progress[0].Owner.Holder)
			}
		}
		f.mu.Unlock()
		a.stop()
		b.Hint()
		advance(200 * time.Millisecond)
		require.Equal(t, []string{"a"}, fenced, "at the end of the request, once")
		require.NotNil(t, b.Owned())
	})
}

// A process that stops while it takes the dispatcher leaves a dispatcher that the next process adopts, at every step.
func TestStopWhileTakingLeavesAdoptableDispatcher(t *testing.T) {
	t.Parallel()
	for _, moment := range []string{"acquire", "describe", "adopt"} {
		t.Run(moment, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				first := f.start("first")
				advance(time.Second)
				first.stop()
				second := f.process("second")
				if moment == "acquire" {
					second.store.acquired = func() { second.requestStop() }
				} else {
					f.on = func(act string) {
						if act == moment {
							second.requestStop()
						}
					}
				}
				close(second.ready)
				second.run(f)
				advance(time.Second)
				second.stop()
				f.mu.Lock()
				f.on = nil
				f.mu.Unlock()
				began := time.Now()
				third := f.start("third")
				advance(time.Second)
				require.NotNil(t, third.Owned())
				require.Empty(t, third.events().terminated)
				require.Less(t, third.Owned().Since.Sub(began), time.Second)
			})
		})
	}
}

func TestHandover(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		a, b := f.pair()
		f.actions()
		a.HandOver(wire.Request{By: "ann", Reason: "deploy"})
		advance(10 * time.Millisecond)
		a.Hint() // of its own resignation
		b.Hint()
		advance(100 * time.Millisecond)
		require.Equal(t, []string{"adopt run-1 b/2"}, f.actions())
		require.NotNil(t, b.Owned())
		require.Nil(t, a.Owned())
		advance(time.Minute)
		require.Empty(t, f.actions())
	})
}

func TestHandoverWithoutOtherProcessReturns(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		a := f.start("a")
		advance(time.Second)
		f.actions()
		a.HandOver(wire.Request{By: "ann"})
		a.Hint()
		advance(2 * time.Second)
		require.Nil(t, a.Owned())
		advance(2 * time.Second)
		require.NotNil(t, a.Owned())
		require.Equal(t, []string{"adopt run-1 a/2"}, f.actions())
	})
}
