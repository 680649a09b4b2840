package owner_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
)

// TestParkedDispatcherWithoutMarkIsRung: a routing that was taken for dead removed the mark after the next one had
// parked, so that no process that accepts an event rings.
func TestParkedDispatcherWithoutMarkIsRung(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		a := f.start("a")
		advance(time.Second)
		own := a.Owned().Owner
		_, err := f.inbox.Claim(t.Context(), name, own, 10, time.Minute)
		require.NoError(t, err)
		parked, err := f.inbox.Park(t.Context(), name, own)
		require.NoError(t, err)
		require.True(t, parked)
		f.inbox.Publish(name, "", "event")
		f.actions()
		advance(time.Minute)
		a.Check()
		advance(time.Second)
		require.Empty(t, f.actions(), "the inbox lists it as parked with due work")
		require.NoError(t, f.inbox.Unpark(t.Context(), name, own))
		a.Check()
		advance(time.Second)
		require.Equal(t, []string{"ring"}, f.actions())
		require.Equal(t, own, a.Owned().Owner)
	})
}

// newStalled starts a process that owns a dispatcher without progress although work is due.
func newStalled(t *testing.T, f *fixture) *process {
	t.Helper()
	a := f.start("a")
	advance(time.Second)
	_, err := f.inbox.Claim(t.Context(), name, a.Owned().Owner, 10, time.Minute)
	require.NoError(t, err)
	f.inbox.Publish(name, "", "event")
	advance(time.Minute)
	f.actions()
	return a
}

// check makes the owner check the dispatcher, and returns its actions.
func (p *process) check(f *fixture) []string {
	p.Check()
	advance(30 * time.Second)
	return f.actions()
}

// TestOwnerReplacesStuckDispatcher: after an upgrade, a dispatcher may be unable to replay its history.
func TestOwnerReplacesStuckDispatcher(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		a := newStalled(t, f)
		f.unanswered = true
		a.Check()
		advance(time.Second)
		require.Equal(t, []string{"ring"}, f.actions(), "first check without progress")
		a.Check()
		advance(30 * time.Second)
		require.Equal(t, []string{"ring"}, f.actions(), "no time to react to the doorbell")
		require.Equal(t, []string{"ask run-1", "terminate run-1", "start a/2"}, a.check(f))
		require.Equal(t, []dispatchtype.Outcome{dispatchtype.ColdStart, dispatchtype.Takeover}, a.outcomes())
		require.Equal(t, inbox.Owner{Epoch: 2, Holder: "a"}, a.Owned().Owner)
		require.Equal(t, 1, a.events().active)
		ended := a.events().terminated[0]
		require.Equal(t, "unanswered", ended.Kind)
		require.Contains(t, ended.Reason, "no progress although there is work, and did not answer")

		require.Equal(t, []string{"ring"}, a.check(f), "the next run has the same time at first")
		require.Equal(t, []string{"ring"}, a.check(f), "then twice the time")
		require.Equal(t, []string{"ask run-2", "terminate run-2", "start a/3"}, a.check(f))
		_, err := f.inbox.Claim(t.Context(), name, a.Owned().Owner, 10, time.Minute)
		require.NoError(t, err)
		require.Empty(t, a.check(f), "it makes progress")
		require.Empty(t, a.events().failures)
	})
}

func TestAnsweringDispatcherIsNotReplaced(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		a := newStalled(t, f)
		require.Equal(t, []string{"ring"}, a.check(f))
		for range 20 {
			require.Equal(t, []string{"ask run-1", "ring"}, a.check(f))
		}
		require.Equal(t, inbox.Owner{Epoch: 1, Holder: "a"}, a.Owned().Owner)
	})
}

func TestUnreachableDispatcherIsNotReplaced(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		a := newStalled(t, f)
		f.unanswered = true
		require.Equal(t, []string{"ring"}, a.check(f))
		unavailable := errors.New("unavailable")
		f.fails["ask"] = []error{unavailable, context.DeadlineExceeded}
		require.Equal(t, []string{"ask run-1", "ring"}, a.check(f))
		require.Equal(t, []string{"ask run-1", "ring"}, a.check(f))
		f.fails["describe"] = []error{unavailable}
		require.Empty(t, a.check(f))
		require.Equal(t, []string{"ring"}, a.check(f), "a failed check starts the period again")
		f.mu.Lock()
		f.open.RunID = "run-1-continued"
		f.mu.Unlock()
		require.Equal(t, []string{"ring"}, a.check(f), "another run starts the period again")
		require.Equal(t, []string{"ask run-1-continued", "terminate run-1-continued", "start a/2"}, a.check(f))
	})
}
