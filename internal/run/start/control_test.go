package start_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/run"
)

func TestStatuses(t *testing.T) {
	t.Parallel()
	terminal := map[run.Status]bool{
		run.Queued: false, run.Running: false, run.Waiting: false,
		run.Completed: true, run.Failed: true, run.Canceled: true, run.Terminated: true, run.TimedOut: true,
	}
	require.Len(t, run.Statuses(), len(terminal))
	for _, status := range run.Statuses() {
		require.True(t, status.Known())
		require.Equal(t, terminal[status], status.Terminal(), status)
	}
	for _, odd := range []run.Status{"", "Running", "done"} {
		require.False(t, odd.Known(), odd)
		require.False(t, odd.Terminal(), odd)
	}
}

// inStatus returns a run with a status.
func (b *bench) inStatus(t *testing.T, status run.Status, reason string) run.Run {
	t.Helper()
	if status == run.Queued && reason == run.QueuedStarting {
		return b.startUnknown(t)
	}
	r := b.begin(t)
	if status != run.Queued {
		b.applyState(t, r.ID, 3, status, run.Step{Number: 1, Status: "running", Position: 3})
	}
	return b.row(t, r.ID)
}

func TestCancel(t *testing.T) {
	t.Parallel()
	gone := errors.New("the network is down")
	type openState struct {
		status run.Status
		reason string
	}
	open := []openState{{run.Queued, run.QueuedStarting}, {run.Queued, run.QueuedWorker}, {run.Running, ""},
		{run.Waiting, ""}}
	for _, p := range open {
		for name, answer := range map[string]error{
			"taken": nil, "not known": run.ErrNotKnown, "closed": run.ErrClosed, "unavailable": unavailable(), "broken": gone,
		} {
			t.Run(fmt.Sprintf("%s %s, %s", p.status, p.reason, name), func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				before := b.inStatus(t, p.status, p.reason)
				b.advance(startTimeout)
				b.engine.cancel = func(context.Context, run.Run) error { return fmt.Errorf("cancel: %w", answer) }
				if answer == nil {
					b.engine.cancel = nil
				}
				b.checkCancel(t, before, answer)
			})
		}
	}
}

// checkCancel cancels a run and compares the result with the engine's answer.
func (b *bench) checkCancel(t *testing.T, before run.Run, answer error) {
	t.Helper()
	got, err := b.Cancel(b.ctx, here, before.ID, "too slow")
	after := b.row(t, before.ID)
	calls := b.engine.called()
	require.Equal(t, "cancel "+before.ID+" too slow", calls[0])
	switch {
	case answer == nil:
		require.NoError(t, err)
		want := before
		want.CancelRequested, want.CancelReason, want.Sequence = true, "too slow", before.Sequence+1
		require.Equal(t, want, got)
		require.Equal(t, want, after)
		require.Equal(t, []string{"run.start", "run.cancel too slow"}, b.audited(t))
	case errors.Is(answer, run.ErrNotKnown):
		require.NoError(t, err)
		require.Equal(t, after, got)
		require.Equal(t, run.Canceled, got.Status)
		require.Equal(t, b.clock(), got.EndedAt)
		require.Equal(t, "Execution missing", got.Error.Title)
		require.Equal(t, []string{"run.start", "run.cancel too slow"}, b.audited(t))
	case errors.Is(answer, run.ErrClosed):
		requireError(t, err, apperror.Refused, apperror.RunEnded, "has ended in Temporal already")
		require.Equal(t, before.Status, after.Status, "a worker writes the end")
		require.Equal(t, "the run has ended in Temporal, and its end is not written", after.Behind.Reason)
		require.Equal(t, []string{"run.start"}, b.audited(t))
	default:
		require.ErrorIs(t, err, answer)
		require.Equal(t, before, after, "nothing has changed")
		require.Equal(t, []string{"run.start"}, b.audited(t))
	}
}

func TestCancelOfAFinishedRunIsRefused(t *testing.T) {
	t.Parallel()
	for _, status := range run.Statuses() {
		if !status.Terminal() {
			continue
		}
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			before := b.inStatus(t, status, "")
			_, err := b.Cancel(b.ctx, here, before.ID, "late")
			requireError(t, err, apperror.Refused, apperror.RunEnded, "it is "+string(status))
			require.Empty(t, b.engine.called())
			require.Equal(t, before, b.row(t, before.ID))
			require.Equal(t, []string{"run.start"}, b.audited(t))
		})
	}
}

func TestCancelOfARunThatIsBeingHandedOver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.startUnknown(t)
	b.engine.cancel = func(context.Context, run.Run) error { return run.ErrNotKnown }
	b.advance(startTimeout - time.Millisecond)
	_, err := b.Cancel(b.ctx, here, r.ID, "")
	requireError(t, err, apperror.Refused, apperror.RunStarting, "in a moment")
	f, _ := apperror.From(err)
	require.Equal(t, startTimeout, f.RetryAfter)
	require.Equal(t, r, b.row(t, r.ID), "it may yet arrive there")

	b.advance(time.Millisecond)
	ended, err := b.Cancel(b.ctx, here, r.ID, "")
	require.NoError(t, err)
	require.Equal(t, run.Canceled, ended.Status)
}

func TestCancelTwiceIsOneRequest(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.begin(t)
	first, err := b.Cancel(b.ctx, here, r.ID, "one")
	require.NoError(t, err)
	again, err := b.Cancel(b.ctx, here, r.ID, "two")
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.Equal(t, []string{"run.start", "run.cancel one"}, b.audited(t))
}

func TestCancelOfAMissingRun(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.begin(t)
	_, err := b.Cancel(b.ctx, here, "none", "")
	requireError(t, err, apperror.NotFound, apperror.RunNotFound, `"none"`)
	_, err = b.Cancel(b.ctx, "elsewhere", r.ID, "")
	requireError(t, err, apperror.NotFound, apperror.ProjectNotFound, `"elsewhere"`)
	require.Empty(t, b.engine.called())
}

func TestCancelEndsOpenSteps(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.inStatus(t, run.Running, "")
	b.engine.cancel = func(context.Context, run.Run) error { return run.ErrNotKnown }
	_, err := b.Cancel(b.ctx, here, r.ID, "")
	require.NoError(t, err)
	listPage, err := b.Steps(b.ctx, here, r.ID, run.StepFilter{Limit: 10})
	require.NoError(t, err)
	list := listPage.Steps
	require.Len(t, list, 1)
	require.Equal(t, "canceled", list[0].Status)
}

func TestList(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.begin(t)
	b.advance(time.Second)
	second := b.begin(t)
	b.applyState(t, second.ID, 3, run.Failed)
	ids := func(f run.Filter) []string {
		f.Project, f.Limit = here, 10
		list, err := b.List(b.ctx, f)
		require.NoError(t, err)
		var out []string
		for _, r := range list {
			out = append(out, r.ID)
			require.Nil(t, r.Input, "lists have no inputs")
		}
		return out
	}
	require.Equal(t, []string{second.ID, first.ID}, ids(run.Filter{}))
	require.Equal(t, []string{second.ID},
		ids(run.Filter{Workflow: "hello", Statuses: []run.Status{run.Failed, run.Completed}}))
	require.Equal(t, []string{first.ID}, ids(run.Filter{OldestFirst: true, Until: second.CreatedAt}))
	require.Empty(t, ids(run.Filter{Workflow: "other/hello"}))

	_, err := b.List(b.ctx, run.Filter{Project: here, Statuses: []run.Status{run.Failed, "done"}})
	requireError(t, err, apperror.Invalid, apperror.InvalidArgument, `"done"`)
	_, err = b.List(b.ctx, run.Filter{Project: here, Workflow: "none"})
	requireError(t, err, apperror.NotFound, apperror.WorkflowNotFound, `"none"`)
	_, err = b.List(b.ctx, run.Filter{Project: "none"})
	requireError(t, err, apperror.NotFound, apperror.ProjectNotFound, `"none"`)
}
