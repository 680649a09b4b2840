package start_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/quota"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/control"
)

// put makes a run in a state of the table.
func (b *bench) put(t *testing.T, id string, s control.State) run.Run {
	t.Helper()
	v, err := b.workflows.GetVersion(b.ctx, here, "examples/hello", "1.0.0")
	require.NoError(t, err)
	r := run.Run{
		ID: id, Project: here, Workflow: "examples/hello", Version: "1.0.0", DocumentHash: v.Hash, Status: run.Queued,
		QueuedReason: run.QueuedWorker,
		StatusAt:     b.clock(), CreatedAt: b.clock(), RequestID: id, Trigger: run.TriggerAPI, Actor: "ada",
		Input:       []byte(`{"name":"Ada"}`),
		Interpreter: 1,
	}
	switch {
	case s.Imported:
		r.Trigger = run.TriggerImport
	}
	if s.Status == run.Queued {
		r.QueuedReason = s.QueuedReason
	}
	switch r.QueuedReason {
	case run.QueuedAdmission:
		r.QueuedReason = run.QueuedStarting // the store makes it wait
	case run.QueuedEngine:
		r.ExpiresAt = b.clock().Add(time.Hour)
	}
	_, made, err := b.store.InsertRun(b.ctx, r, entry(b, id))
	require.NoError(t, err)
	require.True(t, made)
	if s.Status != run.Queued {
		u := run.Update{RunID: id, Position: 3,
			State: &run.State{Status: s.Status, WaitingKind: s.WaitingKind, Since: b.clock(), StartedAt: b.clock()}}
		if s.Status.Terminal() {
			u.State.EndedAt = b.clock()
		}
		_, err := b.store.ApplyUpdates(b.ctx, []run.Update{u})
		require.NoError(t, err)
	}
	if s.CancelRequested {
		_, err := b.store.MarkCancelRequested(b.ctx, here, id, "earlier", entry(b, id))
		require.NoError(t, err)
	}
	r = b.row(t, id)
	require.Equal(t, s, control.StateOf(r))
	return r
}

// use calls the method of a control.
func (b *bench) use(c control.Control, id string) (run.Run, error) {
	switch c {
	case control.Cancel:
		return b.Cancel(b.ctx, here, id, "why")
	case control.Terminate:
		return b.Terminate(b.ctx, here, id, "why")
	case control.Pause:
		return b.Pause(b.ctx, here, id, "why")
	case control.Unpause:
		return b.Unpause(b.ctx, here, id, "why")
	case control.ResumeQuota:
		return b.ResumeQuota(b.ctx, here, id, "why")
	case control.Replay:
		req := control.ReplayRequest{Project: here, RunID: id, Reason: "why"}
		if r, err := b.store.GetRun(b.ctx, here, id); err != nil || r.Trigger == run.TriggerImport {
			req.Version = control.Latest // its document is not stored
		}
		r, _, err := b.Replay(b.ctx, req)
		return r, err
	default:
		return b.Get(b.ctx, here, id)
	}
}

// waits sorts the states of runs that wait for a slot behind the others.
func waits(s control.State) int {
	if s.QueuedReason == run.QueuedAdmission {
		return 1
	}
	return 0
}

// TestEveryControlInEveryState compares the service with the table, with an engine that accepts and performs
// everything.
func TestEveryControlInEveryState(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		b.publish(t, "examples/hello", "1.0.0")
		b.engine.control = func(_ context.Context, r run.Run, op string) error {
			state := &run.State{Status: run.Running, Since: b.clock(), StartedAt: b.clock()}
			if op == string(control.Pause) {
				state.Status, state.WaitingKind = run.Waiting, run.WaitingPaused
			}
			if control.Decide(control.Control(op), control.StateOf(r)).Effect == control.Done {
				_, err := b.store.ApplyUpdates(b.ctx, []run.Update{{RunID: r.ID, Position: 8, State: state}})
				return err
			}
			return nil
		}
		states := control.States()
		slices.SortStableFunc(states, func(x, y control.State) int { return waits(x) - waits(y) })
		for i, s := range states {
			if s.QueuedReason == run.QueuedAdmission { // from now on there is no free slot
				_, err := b.store.Quotas().SetQuota(b.ctx, here, quota.Quota{ConcurrentRuns: 1}, entry(b, here))
				require.NoError(t, err)
			}
			for j, c := range control.Controls() {
				b.checkPair(t, fmt.Sprintf("%02d-%d", i, j), s, c)
			}
		}
	})
}

func (b *bench) checkPair(t *testing.T, id string, s control.State, c control.Control) {
	t.Helper()
	name := fmt.Sprintf("%s of a run that is %s", c, s)
	before := b.put(t, id, s)
	b.engine.called()
	entries := len(b.audited(t))
	r, err := b.use(c, id)
	after := b.row(t, id)
	a := control.Decide(c, s)
	switch a.Effect {
	case control.Refused:
		requireError(t, err, apperror.Refused, a.Reason, id)
		require.Equal(t, before, after, name)
		require.Empty(t, b.engine.called(), name)
		require.Len(t, b.audited(t), entries, name)
	case control.Nothing:
		require.NoError(t, err, name)
		require.Equal(t, before, after, name)
		require.Equal(t, before, r, name)
	case control.Done:
		require.NoError(t, err, name)
		require.Equal(t, c == control.Export || c == control.ResumeQuota && s.Status != run.Waiting,
			len(b.audited(t)) == entries, name)
		b.requireDone(t, name, c, before, after, r)
	}
}

func (b *bench) requireDone(t *testing.T, name string, c control.Control, before, after, r run.Run) {
	t.Helper()
	switch c {
	case control.Cancel:
		require.True(t, after.CancelRequested, name)
		require.Equal(t, "why", after.CancelReason, name)
		require.Equal(t, before.QueuedReason == run.QueuedEngine || before.QueuedReason == run.QueuedAdmission,
			after.Status == run.Canceled, name)
	case control.Terminate:
		require.Equal(t, run.Terminated, after.Status, name)
		require.Equal(t, after, r, name)
	case control.Pause:
		require.Equal(t, run.WaitingPaused, r.WaitingKind, name)
	case control.Unpause, control.ResumeQuota:
		require.Equal(t, run.Running, after.Status, name)
	case control.Replay:
		require.Equal(t, before.ID, r.ReplayOf, name)
		require.Equal(t, []string{r.ID}, after.Replays, name)
		after.Replays = nil
		require.Equal(t, before, after, name)
	case control.Export:
		require.Equal(t, before, after, name)
	}
}

func TestTerminate(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.begin(t)
	for _, none := range []string{"", " \t\n"} {
		_, err := b.Terminate(b.ctx, here, r.ID, none)
		requireError(t, err, apperror.Invalid, apperror.InvalidArgument, "no reason given")
	}
	require.Empty(t, b.engine.called())

	// Temporal does not have it: it is ended in the database.
	b.advance(startTimeout)
	b.engine.end = func(context.Context, run.Run) error { return run.ErrNotKnown }
	got, err := b.Terminate(b.ctx, here, r.ID, "runaway")
	require.NoError(t, err)
	require.Equal(t, []any{run.Terminated, "runaway", "Terminated by ada", b.clock()},
		[]any{got.Status, control.TerminateReason(got), got.Error.Title, got.EndedAt})
	require.Equal(t, []string{"run.start", "run.terminate runaway"}, b.audited(t))
	_, err = b.Terminate(b.ctx, here, r.ID, "again")
	requireError(t, err, apperror.Refused, apperror.RunEnded, "it is terminated")

	// It ended meanwhile: its own end stays.
	r = b.begin(t)
	b.engine.end = func(context.Context, run.Run) error { return run.ErrClosed }
	_, err = b.Terminate(b.ctx, here, r.ID, "late")
	requireError(t, err, apperror.Refused, apperror.RunEnded, "has ended in Temporal already")
	require.NotNil(t, b.row(t, r.ID).Behind, "a worker writes its end")
	b.applyState(t, r.ID, 9, run.Completed)
	_, err = b.Terminate(b.ctx, here, r.ID, "late")
	requireError(t, err, apperror.Refused, apperror.RunEnded, "it is completed")

	// Temporal is unavailable: nothing is changed.
	r = b.begin(t)
	b.engine.end = func(context.Context, run.Run) error { return unavailable() }
	_, err = b.Terminate(b.ctx, here, r.ID, "away")
	requireError(t, err, apperror.Unavailable, apperror.EngineUnavailable, "does not answer")
	require.Equal(t, r, b.row(t, r.ID))
	require.NotContains(t, b.audited(t), "run.terminate away")

	// Temporal accepts it: the row and its open steps end at once, and the history is not read.
	r = b.inStatus(t, run.Running, "")
	b.engine.end = nil
	b.engine.called()
	got, err = b.Terminate(b.ctx, here, r.ID, "blind")
	require.NoError(t, err)
	require.Equal(t, []any{run.Terminated, "blind", "Terminated by ada", b.clock()},
		[]any{got.Status, control.TerminateReason(got), got.Error.Title, got.EndedAt})
	require.Contains(t, b.audited(t), "run.terminate blind")
	require.Equal(t, []string{"terminate " + r.ID + " blind"}, b.engine.called())
	listPage, err := b.Steps(b.ctx, here, r.ID, run.StepFilter{Limit: 10})
	require.NoError(t, err)
	list := listPage.Steps
	require.Equal(t, "canceled", list[0].Status)
}

func TestControlsThatTemporalRejects(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	r := b.put(t, "r", control.State{Status: run.Running})
	b.engine.control = func(context.Context, run.Run, string) error { return unavailable() }
	for _, c := range []control.Control{control.Pause, control.Unpause, control.ResumeQuota} {
		_, err := b.use(c, r.ID)
		requireError(t, err, apperror.Unavailable, apperror.EngineUnavailable, "does not answer")
	}
	b.engine.control = func(context.Context, run.Run, string) error { return run.ErrNotKnown }
	_, err := b.use(control.Pause, r.ID)
	requireError(t, err, apperror.Refused, apperror.ExecutionMissing, "cancel it to end it")
	require.Equal(t, r, b.row(t, r.ID))
	require.Equal(t, []string{"run.start"}, b.audited(t))
	b.engine.control = func(context.Context, run.Run, string) error { return run.ErrClosed }
	_, err = b.use(control.Pause, r.ID)
	requireError(t, err, apperror.Refused, apperror.RunEnded, "has ended in Temporal already")
}

func TestInvalidReasonsAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.begin(t)
	for says, reason := range map[string]string{"1001 bytes": string(make([]byte, 1001)), "not plain text": "a\x00b"} {
		for _, do := range []func(context.Context, string, string, string) (run.Run, error){b.Cancel, b.Terminate, b.Pause} {
			_, err := do(b.ctx, here, r.ID, reason)
			requireError(t, err, apperror.Invalid, apperror.InvalidArgument, says)
		}
	}
	require.Empty(t, b.engine.called(), "no request to Temporal without a valid reason")
	require.Equal(t, []string{audit.RunStart}, b.audited(t))
}
