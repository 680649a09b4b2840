package projection_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/projection"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
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
	require.Equal(t, run.Waiting, joined.State.Status, "an update without a state keeps it")
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

// TestRowsDoNotDependOnTheWayOfWriting writes the records of a run's workflow tasks to a store in two ways: one by one
// and in order, and as the platform does: collected in a backlog while the store is busy, some joined to a rebuilt
// history, some repeated and late.
func TestRowsDoNotDependOnTheWayOfWriting(t *testing.T) {
	t.Parallel()
	for name, draw := range map[string]func(*rapid.T) []workflowTask{
		"short runs": drawTasks, "summarized runs": drawLongRun} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkRows(t, draw)
		})
	}
}

func checkRows(t *testing.T, draw func(*rapid.T) []workflowTask) {
	t.Helper()
	kept := openStore(t)
	cases := 0
	rapid.Check(t, func(rt *rapid.T) {
		cases++
		plain, gathered := fmt.Sprintf("plain-%d", cases), fmt.Sprintf("gathered-%d", cases)
		insert(t, kept, plain)
		insert(t, kept, gathered)
		tasks := draw(rt)
		for _, task := range tasks {
			_, err := kept.ApplyUpdates(t.Context(), task.accept(plain))
			require.NoError(rt, err)
		}

		gate := &gated{Plain: kept, calls: make(chan struct{}), answers: make(chan error)}
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

// workflowTask holds the records of one workflow task: several, since the interpreter publishes after every change.
type workflowTask struct {
	execution string
	position  int64
	records   []*interp.RunRecord // one per call of the sink; nil where only steps changed
	steps     [][]interp.StepRecord
}

// accept returns the updates that a tap creates from the task.
func (k workflowTask) accept(id string) []run.Update {
	var made []run.Update
	tap := projection.NewTap(time.Now, func(_ string, u run.Update, _ time.Time) { made = append(made, u) })
	e := flow.Execution{WorkflowID: id, RunID: k.execution}
	w := wire{Tap: tap}
	open := task("", "token")
	open.WorkflowExecution.WorkflowId, open.WorkflowExecution.RunId = e.WorkflowID, e.RunID
	// the start of a first task is reported if the task takes long, which a busy machine decides
	open.PreviousStartedEventId = 1
	if err := w.call(nil, open, nil); err != nil {
		panic(err)
	}
	for i := range k.records {
		tap.Records(e, k.position, k.records[i], k.steps[i], nil, nil)
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
						Number: n + 1, Status: interp.StatusCompleted, StartedAt: at(0), EndedAt: &end,
						Output: json.RawMessage(fmt.Sprint(i)),
					})
				}
			}
			if rapid.Bool().Draw(t, "enters") || entered == 0 {
				entered++
				steps = append(steps, interp.StepRecord{Number: entered, Status: interp.StatusRunning, StartedAt: at(i)})
			}
			var r *interp.RunRecord
			// A run's first task always records its state, as the interpreter does.
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

const longRun = `
document: {dsl: '1.0.0', namespace: test, name: long, version: '1.0.0'}
do:
  - f:
      fork:
        branches:
          - w: {wait: {seconds: 3}}
          - l:
              for: {in: '[range(6)]'}
              do:
                - t: {try: [{r: {raise: {error: {type: 'https://e/x', status: 500}}}}], catch: {do: [{h: {set: {x: 1}}}]}}
                - p: {wait: {seconds: 1}}`

// drawLongRun interprets a run of which few steps have rows, and draws the ends of its workflow tasks.
func drawLongRun(t *rapid.T) []workflowTask {
	doc, problems := dsl.Parse([]byte(longRun))
	require.Empty(t, problems)
	limits := interp.DefaultLimits()
	limits.Records = interp.RecordLimits{First: 2, Last: 3, Failures: 2, Pending: 2}
	m := interp.New(doc, interp.Start{RunID: "r", At: at(0)}, limits)
	tasks := []workflowTask{{execution: "e0", position: 3}}
	timers := map[interp.EffectID]time.Time{}
	now := at(0)
	for {
		for _, e := range m.Advance(now) {
			switch e := e.(type) {
			case interp.StartTimer:
				timers[e.ID] = e.Deadline
			case interp.CancelTimer:
				delete(timers, e.ID)
			}
		}
		r, steps := m.TakeRecords()
		k := &tasks[len(tasks)-1]
		k.records, k.steps = append(k.records, r), append(k.steps, steps)
		if _, done := m.Done(); done {
			return tasks
		}
		if rapid.Bool().Draw(t, "task ends") {
			tasks = append(tasks, workflowTask{execution: "e0", position: k.position + 3})
		}
		if m.Yielded() {
			continue
		}
		var first interp.EffectID
		for id, due := range timers {
			if first == 0 || due.Before(timers[first]) || due.Equal(timers[first]) && id < first {
				first = id
			}
		}
		now = timers[first]
		delete(timers, first)
		m.Fire(first, now)
	}
}

// A long run that is interpreted at once takes about as much memory as its rows.
func TestRecordsOfALongRunAreBounded(t *testing.T) {
	t.Parallel()
	w := newWire()
	w.poll(t, "long", "token")
	const total = 200_000
	for n := int64(1); n <= total; n += 500 {
		r := &interp.RunRecord{Status: interp.StatusRunning, Since: at(0), StepsTotal: n + 499, StepsDone: n + 499}
		if n > 9_000 {
			r.Summary = &interp.Summary{
				From: 5_001, To: n + 499 - 4_000, Tasks: []interp.TaskSummary{{Pointer: "/do/0/a", Count: n + 499 - 9_000}}}
		}
		var steps []interp.StepRecord
		for i := range int64(500) {
			end := at(1)
			steps = append(steps, interp.StepRecord{Number: n + i, Status: interp.StatusCompleted, EndedAt: &end})
		}
		w.Records(execution("long"), 3, r, steps, nil, nil)
	}
	require.NoError(t, w.complete("token", nil))
	u := w.accepted[len(w.accepted)-1] // the first may be the report of the start
	require.Less(t, cap(u.Steps), 3*9_500, "what is summarized is dropped on the way")
	joined := projection.Join(run.Update{RunID: u.RunID}, u)
	require.Len(t, joined.Steps, 9_000)
	require.Equal(t, int64(total-9_000), joined.Summary.Steps())
}

// bring passes the tasks to a writer over a gated store.
func bring(rt *rapid.T, kept *storetest.Plain, w *projection.Writer, gate *gated, tasks []workflowTask, id string) {
	for i, task := range tasks {
		for _, u := range task.accept(id) {
			w.Accept(queue, u, time.Now())
		}
		switch rapid.IntRange(0, 4).Draw(rt, "then") {
		case 0:
			gate.step(nil)
		case 1:
			gate.step(context.DeadlineExceeded) // the store was unavailable: retried soon
		case 2:
			// A reader finds the row behind and repairs it from the history so far.
			var whole run.Update
			for _, earlier := range tasks[:i+1] {
				for _, u := range earlier.accept(id) {
					whole = projection.Join(whole, u)
				}
			}
			_, err := kept.ApplyUpdates(rt.Context(), []run.Update{whole})
			require.NoError(rt, err)
		case 3:
			// Another process writes an older task late.
			old := rapid.SampledFrom(tasks[:i+1]).Draw(rt, "old")
			_, err := kept.ApplyUpdates(rt.Context(), old.accept(id))
			require.NoError(rt, err)
		}
	}
}

// gated is a store that blocks its calls until the test ends them.
type gated struct {
	*storetest.Plain
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
	return g.Plain.ApplyUpdates(ctx, updates)
}

func (g *gated) Written(context.Context, []string, []run.Transition, time.Duration) {}

// step ends the waiting call, if there is one.
func (g *gated) step(err error) {
	select {
	case <-g.calls:
		g.answers <- err
	default:
	}
}

// finish ends all calls until the writer has stopped.
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

func openStore(t *testing.T) *storetest.Plain {
	t.Helper()
	s, err := storetest.Open(t.Context(), t, store.Options{
		Driver: store.SQLite, DSN: storetest.SQLite(t), AutoMigrate: true, CallTimeout: time.Minute,
	})
	require.NoError(t, err)
	ctx := t.Context()
	t.Cleanup(func() { require.NoError(t, s.Stop(context.WithoutCancel(ctx))) })
	require.NoError(t, s.Start(ctx))
	return s
}

func insert(t *testing.T, s *storetest.Plain, id string) {
	t.Helper()
	_, _, err := s.InsertRun(t.Context(), run.Run{
		ID: id, Project: project.Default, Workflow: "examples/hello", Version: "1.0.0", Status: run.Queued,
		QueuedReason: run.QueuedStarting, StatusAt: at(0), CreatedAt: at(0), RequestID: id,
	}, audit.NewEntry(t.Context(), at(0), audit.RunStart, project.Default, id, ""))
	require.NoError(t, err)
}

// rows are a run and its steps without its names and without the count of changes, which depends on the way of writing.
type rows struct {
	run     run.Run
	steps   []run.Step
	summary *run.StepSummary
}

func rowsOf(rt *rapid.T, s *storetest.Plain, id string) rows {
	r, err := s.GetRun(rt.Context(), project.Default, id)
	require.NoError(rt, err)
	listPage, err := s.ListSteps(rt.Context(), project.Default, id, run.StepFilter{Limit: 1000})
	require.NoError(rt, err)
	list := listPage.Steps
	r.ID, r.RequestID, r.Sequence, r.WrittenAt = "", "", 0, time.Time{}
	for i := range list {
		list[i].Sequence = 0
	}
	summary, err := s.StepSummary(rt.Context(), project.Default, id, 0)
	require.NoError(rt, err)
	if summary != nil {
		for i := range summary.Tasks {
			summary.Tasks[i].Sequence = 0
		}
	}
	return rows{r, list, summary}
}
