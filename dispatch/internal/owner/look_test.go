package owner_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/terms"
)

// TestOneThatSleepsUnmarked: a routing that was taken for dead took the mark off a dispatcher that was parked by the next one, so that nobody
// who accepts an event rings for it.
func TestOneThatSleepsUnmarked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.start("a")
		pass(time.Second)
		own := a.Owned().Owner
		_, err := w.inbox.Claim(t.Context(), name, own, 10, time.Minute)
		require.NoError(t, err)
		parked, err := w.inbox.Park(t.Context(), name, own)
		require.NoError(t, err)
		require.True(t, parked)
		w.inbox.Publish(name, "", "event")
		w.did()
		pass(time.Minute)
		a.Look()
		pass(time.Second)
		require.Empty(t, w.did(), "those who sweep see that one")
		require.NoError(t, w.inbox.Unpark(t.Context(), name, own))
		a.Look()
		pass(time.Second)
		require.Equal(t, []string{"ring"}, w.did())
		require.Equal(t, own, a.Owned().Owner)
	})
}

// silent has a process own a dispatcher that makes no progress although there is work.
func silent(t *testing.T, w *world) *process {
	t.Helper()
	a := w.start("a")
	pass(time.Second)
	_, err := w.inbox.Claim(t.Context(), name, a.Owned().Owner, 10, time.Minute)
	require.NoError(t, err)
	w.inbox.Publish(name, "", "event")
	pass(time.Minute)
	w.did()
	return a
}

// looks has the owner look, and returns what it did about what it saw.
func (p *process) looks(w *world) []string {
	p.Look()
	pass(30 * time.Second)
	return w.did()
}

// TestOneThatIsStuckIsReplacedByItsOwner: after an upgrade, a dispatcher may be unable to go on with its history.
func TestOneThatIsStuckIsReplacedByItsOwner(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		a := silent(t, w)
		w.mute = true
		a.Look()
		pass(time.Second)
		require.Equal(t, []string{"ring"}, w.did(), "seen once")
		a.Look()
		pass(30 * time.Second)
		require.Equal(t, []string{"ring"}, w.did(), "it had no time to hear it")
		require.Equal(t, []string{"ask run-1", "terminate run-1", "start a/2"}, a.looks(w))
		require.Equal(t, []terms.Outcome{terms.ColdStart, terms.Takeover}, a.outcomes())
		require.Equal(t, inbox.Owner{Epoch: 2, Holder: "a"}, a.Owned().Owner)
		require.Equal(t, 1, a.told().active)
		ended := a.told().terminated[0]
		require.Equal(t, "unanswered", ended.Kind)
		require.Contains(t, ended.Reason, "no progress although there is work, and did not answer")

		require.Equal(t, []string{"ring"}, a.looks(w), "the next one gets its time")
		require.Equal(t, []string{"ring"}, a.looks(w), "longer than the one before")
		require.Equal(t, []string{"ask run-2", "terminate run-2", "start a/3"}, a.looks(w))
		_, err := w.inbox.Claim(t.Context(), name, a.Owned().Owner, 10, time.Minute)
		require.NoError(t, err)
		require.Empty(t, a.looks(w), "it goes on")
		require.Empty(t, a.told().failures)
	})
}

func TestOneThatAnswersIsNotReplaced(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		a := silent(t, w)
		require.Equal(t, []string{"ring"}, a.looks(w))
		for range 20 {
			require.Equal(t, []string{"ask run-1", "ring"}, a.looks(w))
		}
		require.Equal(t, inbox.Owner{Epoch: 1, Holder: "a"}, a.Owned().Owner)
	})
}

func TestOneThatCannotBeAskedIsNotReplaced(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		a := silent(t, w)
		w.mute = true
		require.Equal(t, []string{"ring"}, a.looks(w))
		unavailable := errors.New("unavailable")
		w.fails["ask"] = []error{unavailable, context.DeadlineExceeded}
		require.Equal(t, []string{"ask run-1", "ring"}, a.looks(w))
		require.Equal(t, []string{"ask run-1", "ring"}, a.looks(w))
		w.fails["describe"] = []error{unavailable}
		require.Empty(t, a.looks(w))
		require.Equal(t, []string{"ring"}, a.looks(w), "two looks running, and none between that saw nothing")
		w.mu.Lock()
		w.open.RunID = "run-1-continued"
		w.mu.Unlock()
		require.Equal(t, []string{"ring"}, a.looks(w), "it went on to another run")
		require.Equal(t, []string{"ask run-1-continued", "terminate run-1-continued", "start a/2"}, a.looks(w))
	})
}
