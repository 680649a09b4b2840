package diagnose_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/diagnose"
)

// startPoison starts n runs with tasks that fail with a deadlock from now on.
func (w *fixture) startPoison(t *testing.T, from, n int) {
	t.Helper()
	for i := from; i < from+n; i++ {
		id := fmt.Sprintf("p%03d", i)
		w.start(t, id)
		w.engine.executions[id] = diagnose.Execution{
			Task: &diagnose.Task{Attempt: 3}, Failure: "[TMPRL1101]", Cause: run.Deadlock, FailedAt: w.now,
		}
	}
}

func (w *fixture) endPoison(t *testing.T) {
	t.Helper()
	_, err := w.store.UpdateProject(t.Context(), projectName, project.Change{EndPoison: new(true)},
		audit.Entry{Time: w.now, Action: audit.ProjectUpdate, Project: projectName, Subject: projectName})
	require.NoError(t, err)
}

func (w *fixture) limitEvents(t *testing.T) int {
	t.Helper()
	list, err := w.store.Events().ListEvents(t.Context(),
		event.ListFilter{Project: projectName, Type: diagnose.EventPoisonLimit, Limit: 10})
	require.NoError(t, err)
	return len(list)
}

func TestPoisonIsReportedAfterFifteenMinutes(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.polled()
	w.startPoison(t, 0, 1)
	require.Equal(t, run.TaskFailing, w.after(t, 61*time.Second, "p000"))
	require.Equal(t, run.TaskFailing, w.after(t, 13*time.Minute, "p000"))
	w.polled()
	require.Equal(t, run.Poison, w.after(t, 61*time.Second, "p000"))
	r, err := w.store.GetRun(t.Context(), projectName, "p000")
	require.NoError(t, err)
	require.Equal(t, run.Deadlock, r.Stuck.Cause)
	require.Equal(t, []string{"run.stuck TASK_FAILING  ", "run.stuck POISON TASK_FAILING "}, w.events(t))
	for range 5 {
		require.Equal(t, run.Poison, w.after(t, 2*time.Second, "p000"))
	}
	require.Empty(t, w.ended, "the default only reports it")
	w.engine.executions["p000"] = diagnose.Execution{Task: &diagnose.Task{Attempt: 1, Started: true}}
	require.Empty(t, w.after(t, 16*time.Second, "p000"), "a task that succeeds clears the verdict")
}

func TestPoisonIsEndedWhenTheProjectSetsEndPoison(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.polled()
	w.startPoison(t, 0, 2)
	w.endPoison(t)
	require.Equal(t, run.TaskFailing, w.after(t, 14*time.Minute, "p000"))
	w.polled()
	require.Equal(t, run.Poison, w.after(t, 61*time.Second, "p000"))
	require.Empty(t, w.ended, "the verdict is visible before the end")
	w.engine.executions["p001"] = diagnose.Execution{Task: &diagnose.Task{Attempt: 1, Started: true}}
	w.after(t, 2*time.Second, "p000")
	require.Equal(t, []string{"p000"}, w.ended, "the run that continues is not ended")
	require.Equal(t, auth.KindSystem, w.endedBy.Kind)
	require.Contains(t, w.endedFor, "DEADLOCK")
	w.move(t, "p000", 9, run.Terminated)
	w.after(t, time.Minute, "p000")
	require.Len(t, w.ended, 1)
}

func TestNoRunIsEndedOverTheLimit(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.polled()
	w.startPoison(t, 0, 11)
	w.endPoison(t)
	for range 30 {
		w.after(t, time.Minute, "p000")
		w.polled()
	}
	require.Equal(t, int64(11), w.countVerdicts(t, run.Poison))
	require.Empty(t, w.ended)
	require.Equal(t, 1, w.limitEvents(t), "one event in an hour")

	w.engine.executions["p010"] = diagnose.Execution{Task: &diagnose.Task{Attempt: 1, Started: true}}
	w.after(t, 16*time.Second, "p000")
	w.after(t, 2*time.Second, "p000")
	require.Len(t, w.ended, 10, "ten runs are within the limit")
	for _, id := range w.ended {
		w.move(t, id, 9, run.Terminated)
	}
	w.engine.executions["p010"] = diagnose.Execution{
		Task: &diagnose.Task{Attempt: 3}, Failure: "[TMPRL1101]", Cause: run.Deadlock, FailedAt: w.now.Add(-time.Hour),
	}
	restarted := newWatcher(w)
	for range 3 {
		w.now = w.now.Add(20 * time.Second)
		require.NoError(t, restarted.RunPass(t.Context()))
	}
	require.Len(t, w.ended, 10, "the count is stored")
	w.polled()
	for range 62 {
		w.now = w.now.Add(time.Minute)
		w.polled()
		require.NoError(t, restarted.RunPass(t.Context()))
	}
	require.Equal(t, "p010", w.ended[len(w.ended)-1], "an hour later the next run is ended")
}

func (w *fixture) countVerdicts(t *testing.T, code string) int64 {
	t.Helper()
	list, err := w.store.Verdicts().Verdicts(t.Context(), "", 1000)
	require.NoError(t, err)
	var n int64
	for _, g := range list {
		if g.Code == code {
			n++
		}
	}
	return n
}

// end stands for the platform's termination of a run.
func (w *fixture) end(ctx context.Context, _, id, reason string) error {
	w.ended, w.endedFor = append(w.ended, id), reason
	w.endedBy, _ = auth.ActorFrom(ctx)
	w.engine.executions[id] = diagnose.Execution{Closed: "Terminated"}
	return nil
}
