package projection_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/projection"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/fresh"
)

func numbered(list []run.Step) []string {
	var lines []string
	for _, s := range list {
		lines = append(lines, fmt.Sprintf("%d %s@%d", s.Number, s.Status, s.Position))
	}
	return lines
}

func TestJoin(t *testing.T) {
	t.Parallel()
	first := update("r", 3, run.Step{Number: 1, Status: "completed"}, run.Step{Number: 2, Status: "running"})
	require.Equal(t, first, projection.Join(run.Update{}, first), "the first stands for itself")

	second := update("r", 1<<32, run.Step{Number: 2, Status: "completed"}, run.Step{Number: 3, Status: "running"})
	second.ExecutionID, second.State.Status = "e2", run.Waiting
	joined := projection.Join(first, second)
	require.Equal(t, []any{"r", "e2", int64(1 << 32)}, []any{joined.RunID, joined.ExecutionID, joined.Position})
	require.Equal(t, run.Waiting, joined.State.Status)
	require.Equal(t, at(3), joined.State.StartedAt, "the run began in the first execution")
	require.Equal(t, []string{"1 completed@3", "2 completed@4294967296", "3 running@4294967296"}, numbered(joined.Steps))

	silent := run.Update{RunID: "r", ExecutionID: "e3", Position: 2 << 32}
	joined = projection.Join(joined, silent)
	require.Equal(t, "e3", joined.ExecutionID)
	require.Equal(t, run.Waiting, joined.State.Status, "who says nothing of the state leaves it")
}

func TestJoinKeepsTheNewerOfAStep(t *testing.T) {
	t.Parallel()
	newer := update("r", 9, run.Step{Number: 1, Status: "completed"})
	older := update("r", 5, run.Step{Number: 1, Status: "running"}, run.Step{Number: 2, Status: "running"})
	older.ExecutionID = "old"
	joined := projection.Join(newer, older)
	require.Equal(t, []any{int64(9), "e"}, []any{joined.Position, joined.ExecutionID})
	require.Equal(t, at(9), joined.State.Since)
	require.Equal(t, []string{"1 completed@9", "2 running@5"}, numbered(joined.Steps))
}

func TestClose(t *testing.T) {
	t.Parallel()
	u := update("r", 9,
		run.Step{Number: 1, Status: "completed", EndedAt: at(5)},
		run.Step{Number: 2, Status: "waiting", WaitingKind: "timer", WaitUntil: at(99), StartedAt: at(6)})
	u.State.StepsTotal, u.State.StepsDone, u.State.StartedAt = 2, 1, at(1)
	final := run.State{Status: run.Terminated, Since: at(50), StartedAt: at(0), EndedAt: at(50), Error: &run.Problem{Title: "Terminated"}}
	closed := projection.Close(u, final)
	require.Equal(t, int64(10), closed.Position, "it is beyond all that the interpreter said")
	require.Equal(t, &run.State{
		Status: run.Terminated, Since: at(50), StartedAt: at(1), EndedAt: at(50), Error: final.Error, StepsTotal: 2, StepsDone: 2,
	}, closed.State)
	require.Equal(t, []run.Step{
		{Number: 1, Status: "completed", EndedAt: at(5), Position: 9},
		{Number: 2, Status: "canceled", StartedAt: at(6), EndedAt: at(50), Position: 10},
	}, closed.Steps)

	// A run that never had a workflow task.
	closed = projection.Close(run.Update{RunID: "r", ExecutionID: "e"}, final)
	require.Equal(t, []any{int64(1), final}, []any{closed.Position, *closed.State})
}

// TestAnyWayOfWritingGivesTheSameRows takes the workflow tasks of runs and brings their records to a store in two ways: one
// by one and in order, and as the platform does, gathered in a backlog while the store is at work, some joined to a
// rebuilt history, some told twice and late.
func TestAnyWayOfWritingGivesTheSameRows(t *testing.T) {
	t.Parallel()
	kept := openStore(t)
	cases := 0
	rapid.Check(t, func(rt *rapid.T) {
		cases++
		plain, gathered := fmt.Sprintf("plain-%d", cases), fmt.Sprintf("gathered-%d", cases)
		insert(t, kept, plain)
		insert(t, kept, gathered)
		tasks := drawTasks(rt)
		for _, task := range tasks {
			_, err := kept.ApplyUpdates(t.Context(), task.accept(plain))
			require.NoError(rt, err)
		}

		gate := &gated{Store: kept, calls: make(chan struct{}), answers: make(chan error)}
		w := projection.NewWriter(gate, gate, time.Now)
		require.NoError(t, w.Start(t.Context()))
		bring(rt, kept, w, gate, tasks, gathered)
		finished := make(chan error, 1)
		go func() { finished <- w.Stop(t.Context()) }()
		gate.finish(finished)

		want, got := rowsOf(rt, kept, plain), rowsOf(rt, kept, gathered)
		require.Equal(rt, want, got)
	})
}

// tasksOf is the records of one workflow task: several, since the interpreter speaks whenever something changed.
type workflowTask struct {
	execution string
	position  int64
	records   []*interp.RunRecord // one per call of the sink; nil where only steps changed
	steps     [][]interp.StepRecord
}

// accept returns what a tap makes of the task.
func (k workflowTask) accept(id string) []run.Update {
	var made []run.Update
	tap := projection.NewTap(time.Now, func(u run.Update, _ time.Time) { made = append(made, u) })
	e := flow.Execution{WorkflowID: id, RunID: k.execution}
	w := wire{Tap: tap}
	open := task("", "token")
	open.WorkflowExecution.WorkflowId, open.WorkflowExecution.RunId = e.WorkflowID, e.RunID
	if err := w.call(nil, open, nil); err != nil {
		panic(err)
	}
	for i := range k.records {
		tap.Records(e, k.position, k.records[i], k.steps[i], nil)
	}
	if err := w.complete("token", nil); err != nil {
		panic(err)
	}
	return made
}

func drawTasks(t *rapid.T) []workflowTask {
	var tasks []workflowTask
	length, chain := 0, 0
	entered, ended := int64(0), map[int64]bool{}
	count := rapid.IntRange(1, 10).Draw(t, "tasks")
	for i := range count {
		length += rapid.IntRange(2, 9).Draw(t, "events")
		if i > 0 && rapid.IntRange(0, 4).Draw(t, "continues") == 0 {
			chain, length = chain+1, 3
		}
		k := workflowTask{execution: fmt.Sprintf("e%d", chain), position: flow.Position(chain, length)}
		last := i == count-1 && rapid.Bool().Draw(t, "ends")
		turns := rapid.IntRange(1, 3).Draw(t, "turns")
		for turn := range turns {
			var steps []interp.StepRecord
			for n := range entered {
				if !ended[n+1] && rapid.Bool().Draw(t, "moves") {
					ended[n+1] = true
					end := at(i)
					steps = append(steps, interp.StepRecord{
						Number: n + 1, Status: interp.StatusCompleted, StartedAt: at(0), EndedAt: &end, Output: json.RawMessage(fmt.Sprint(i)),
					})
				}
			}
			if rapid.Bool().Draw(t, "enters") || entered == 0 {
				entered++
				steps = append(steps, interp.StepRecord{Number: entered, Status: interp.StatusRunning, StartedAt: at(i)})
			}
			var r *interp.RunRecord
			// A run's first task always tells its state, as the interpreter does.
			if i == 0 || turn == turns-1 && last || rapid.Bool().Draw(t, "state") {
				r = &interp.RunRecord{
					Status: rapid.SampledFrom([]interp.Status{interp.StatusRunning, interp.StatusWaiting}).Draw(t, "status"),
					Since:  at(i), StepsTotal: entered, StepsDone: int64(len(ended)),
				}
				if turn == turns-1 && last {
					r.Status, r.Output = interp.StatusCompleted, json.RawMessage(`{}`)
				}
			}
			k.records, k.steps = append(k.records, r), append(k.steps, steps)
		}
		tasks = append(tasks, k)
	}
	return tasks
}

// bring gives the tasks to a writer whose store answers when the draw says so.
func bring(rt *rapid.T, kept *store.Store, w *projection.Writer, gate *gated, tasks []workflowTask, id string) {
	for i, task := range tasks {
		for _, u := range task.accept(id) {
			w.Accept(u, time.Now())
		}
		switch rapid.IntRange(0, 4).Draw(rt, "then") {
		case 0:
			gate.step(nil)
		case 1:
			gate.step(context.DeadlineExceeded) // the store was away: tried again in a moment
		case 2:
			// A reader finds the row behind and makes up for it from the history so far.
			var whole run.Update
			for _, earlier := range tasks[:i+1] {
				for _, u := range earlier.accept(id) {
					whole = projection.Join(whole, u)
				}
			}
			_, err := kept.ApplyUpdates(rt.Context(), []run.Update{whole})
			require.NoError(rt, err)
		case 3:
			// Another process was told of an older task, late.
			old := rapid.SampledFrom(tasks[:i+1]).Draw(rt, "old")
			_, err := kept.ApplyUpdates(rt.Context(), old.accept(id))
			require.NoError(rt, err)
		}
	}
}

// gated is a store whose calls wait for their answer.
type gated struct {
	*store.Store
	calls   chan struct{}
	answers chan error
}

func (g *gated) ApplyUpdates(ctx context.Context, updates []run.Update) ([]run.Transition, error) {
	select {
	case g.calls <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := <-g.answers; err != nil {
		return nil, err
	}
	return g.Store.ApplyUpdates(ctx, updates)
}

func (g *gated) Written(context.Context, []string, []run.Transition, time.Duration) {}

// step answers the call that waits, if there is one by now.
func (g *gated) step(err error) {
	select {
	case <-g.calls:
		g.answers <- err
	default:
	}
}

// finish lets all calls through until the writer has stopped.
func (g *gated) finish(stopped <-chan error) {
	for {
		select {
		case <-g.calls:
			g.answers <- nil
		case <-stopped:
			return
		}
	}
}

func openStore(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{
		Driver: store.SQLite, DSN: fresh.SQLite(t), AutoMigrate: true, CallTimeout: time.Minute,
	})
	require.NoError(t, err)
	ctx := t.Context()
	t.Cleanup(func() { require.NoError(t, s.Stop(context.WithoutCancel(ctx))) })
	require.NoError(t, s.Start(ctx))
	return s
}

func insert(t *testing.T, s *store.Store, id string) {
	t.Helper()
	_, _, err := s.InsertRun(t.Context(), run.Run{
		ID: id, Project: project.Default, Workflow: "examples/hello", Version: "1.0.0", Status: run.Queued,
		QueuedReason: run.QueuedStarting, StatusAt: at(0), CreatedAt: at(0), RequestID: id,
	}, audit.NewEntry(t.Context(), at(0), audit.RunStart, project.Default, id, ""))
	require.NoError(t, err)
}

// rows are a run and its steps without its names and without the count of changes, which depends on how they came.
type rows struct {
	run   run.Run
	steps []run.Step
}

func rowsOf(rt *rapid.T, s *store.Store, id string) rows {
	r, err := s.GetRun(rt.Context(), project.Default, id)
	require.NoError(rt, err)
	list, err := s.ListSteps(rt.Context(), project.Default, id, 0, 1000)
	require.NoError(rt, err)
	r.ID, r.RequestID, r.Sequence = "", "", 0
	for i := range list {
		list[i].Sequence = 0
	}
	return rows{r, list}
}
