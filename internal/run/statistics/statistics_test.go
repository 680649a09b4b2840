package statistics_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/statistics"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

const source = `document: {dsl: 1.0.0, namespace: shop, name: order, version: 1.0.0}
do:
  - outer:
      do:
        - inner: {set: {ok: true}}
  - ship: {set: {ok: true}}
`

var now = time.Date(2026, 3, 29, 12, 0, 0, 0, time.UTC)

// bench is a store with one workflow, shop/order.
type bench struct {
	rows  map[string]statistics.Rows
	runs  []run.Run
	cells []statistics.TaskRows

	latest string
	window statistics.Window
	filter run.Filter
	// lengths are the open runs in a list by length.
	lengths []statistics.Length
}

func (b *bench) service() *statistics.Service {
	return statistics.NewService(statistics.Options{Store: b, Runs: b, Workflows: b, Documents: b, Now: func() time.Time {
		return now
	}})
}

func (b *bench) ReadWorkflows(_ context.Context, _ string, _ []string,
	w statistics.Window) (map[string]statistics.Rows, error) {
	b.window = w
	return b.rows, nil
}

func (b *bench) ReadCells(context.Context, []string) ([]statistics.TaskRows, error) {
	return b.cells, nil
}

func (b *bench) ReadLengths(_ context.Context, f run.Filter) ([]statistics.Length, error) {
	if f.OldestFirst {
		return b.lengths, nil
	}
	return nil, nil
}

func (b *bench) ListRuns(_ context.Context, f run.Filter) ([]run.Run, error) {
	b.filter = f
	return b.runs, nil
}

func (b *bench) Get(_ context.Context, _, name string) (workflow.Workflow, error) {
	if name != "order" {
		return workflow.Workflow{},
			apperror.New(apperror.NotFound, apperror.WorkflowNotFound, "workflow %q does not exist", name)
	}
	return workflow.Workflow{Name: "shop/order", LatestVersion: b.latest}, nil
}

func (b *bench) GetVersion(_ context.Context, _, name, version string) (workflow.Version, error) {
	if name != "shop/order" || version != "1.0.0" {
		return workflow.Version{},
			apperror.New(apperror.NotFound, apperror.VersionNotFound, "version %q does not exist", version)
	}
	return workflow.Version{Version: version, Hash: "sha256:aa"}, nil
}

func (b *bench) Document(context.Context, string) (*dsl.Document, error) {
	doc, problems := dsl.Parse([]byte(source))
	if doc == nil {
		return nil, problems
	}
	return doc, nil
}

func ended(status run.Status, d time.Duration) statistics.Ended {
	return statistics.Ended{Status: status, Duration: &d}
}

func TestStatisticsDescribeTheSample(t *testing.T) {
	t.Parallel()
	var sample []statistics.Ended
	for n := range 100 {
		sample = append(sample, ended(run.Completed, time.Duration(n+1)*time.Second))
	}
	sample = append(sample, statistics.Ended{Status: run.Failed}, ended(run.TimedOut, 0), ended(run.Canceled, 0),
		ended(run.Terminated, 0))
	b := &bench{rows: map[string]statistics.Rows{"shop/order": {
		Statuses: map[run.Status]int64{run.Completed: run.MaxCount + 1, run.Failed: 1, run.Queued: 0},
		Open:     map[run.Status]int64{run.Running: run.MaxCount, run.Waiting: 1}, Stuck: 2, Sample: sample,
	}}}
	got, err := b.service().OfWorkflows(t.Context(), "default", []string{"shop/order"}, 0)
	require.NoError(t, err)
	require.Equal(t, statistics.Window{Since: now.Add(-24 * time.Hour), Until: now}, b.window)
	w := got["shop/order"]
	require.Equal(t, map[run.Status]int64{run.Completed: run.MaxCount, run.Failed: 1}, w.Statuses)
	require.Equal(t, []string{"completed", statistics.CountOpen}, w.More)
	require.Equal(t, int64(run.MaxCount), w.Open)
	require.Equal(t, int64(2), w.Stuck)
	require.InDelta(t, 100.0/102, *w.SuccessRate, 1e-9, "canceled and terminated runs do not count")
	require.Equal(t, 49*time.Second, *w.P50)
	require.Equal(t, 95*time.Second, *w.P95)
	require.Equal(t, int64(104), w.Sample)
}

func TestUnknownStatisticsAreAbsent(t *testing.T) {
	t.Parallel()
	for name, sample := range map[string][]statistics.Ended{
		"no run ended": nil, "canceled without a start": {{Status: run.Canceled}},
	} {
		b := &bench{rows: map[string]statistics.Rows{"shop/order": {Sample: sample}}}
		got, err := b.service().OfWorkflows(t.Context(), "default", []string{"shop/order"}, time.Hour)
		require.NoError(t, err)
		require.Nil(t, got["shop/order"].SuccessRate, name)
		require.Nil(t, got["shop/order"].P50, name)
		require.Nil(t, got["shop/order"].P95, name)
	}
}

func TestWindowIsBounded(t *testing.T) {
	t.Parallel()
	for _, window := range []time.Duration{-time.Hour, time.Second, statistics.MaxWindow + time.Second} {
		_, err := (&bench{}).service().OfWorkflows(t.Context(), "default", []string{"shop/order"}, window)
		require.True(t, apperror.Is(err, apperror.InvalidArgument), "%s: %v", window, err)
	}
}

func TestGrid(t *testing.T) {
	t.Parallel()
	second := func(n int) time.Time { return now.Add(time.Duration(n) * time.Second) }
	rows := func(id, pointer, status string, count int64, start, end int) statistics.TaskRows {
		return statistics.TaskRows{
			RunID: id, Pointer: pointer, Task: "task", Kind: "call", Status: status, Count: count, Attempts: count,
			StartedAt: second(start), EndedAt: second(end),
		}
	}
	open := rows("r1", "/do/1/ship", "running", 1, 1, 1)
	open.Open, open.EndedAt = true, time.Time{}
	b := &bench{
		latest: "1.0.0", runs: []run.Run{{ID: "r1"}, {ID: "r2", StepsTotal: 2*statistics.GridSteps + 1}},
		cells: []statistics.TaskRows{
			rows("r2", "/do/9/old", "skipped", 1, 5, 6), rows("r2", "/do/0/outer/do/0/inner", "completed", 58, 2, 4),
			rows("r2", "/do/0/outer/do/0/inner", "failed", 2, 1, 3),
			open, rows("r1", "/do/1/ship", "completed", 1, 0, 1),
		},
	}
	g, err := b.service().Grid(t.Context(), statistics.GridRequest{Project: "default", Workflow: "order"})
	require.NoError(t, err)
	require.Equal(t, run.Filter{Project: "default", Workflow: "shop/order", Limit: statistics.DefaultRuns}, b.filter)
	require.Equal(t, []statistics.GridTask{
		{Pointer: "/do/0/outer", Name: "outer", Kind: "do"}, {Pointer: "/do/0/outer/do/0/inner", Name: "inner", Kind: "set"},
		{Pointer: "/do/1/ship", Name: "ship", Kind: "set"}, {Pointer: "/do/9/old", Name: "task", Kind: "call"},
	}, g.Tasks)
	require.Equal(t, []statistics.Cell{
		{Run: 0, Task: 2, Status: "running", Count: 2, Attempts: 2},
		{Run: 1, Task: 1, Status: "failed", Count: 60, Attempts: 60, Duration: new(3 * time.Second)},
		{Run: 1, Task: 3, Status: "skipped", Count: 1, Attempts: 1, Duration: new(time.Second)},
	}, g.Cells)
	require.False(t, statistics.Partial(g.Runs[0]))
	require.True(t, statistics.Partial(g.Runs[1]))
}

func TestGridOfADraftHasNoTasks(t *testing.T) {
	t.Parallel()
	g, err := (&bench{}).service().Grid(t.Context(), statistics.GridRequest{Project: "default", Workflow: "order"})
	require.NoError(t, err)
	require.Equal(t, statistics.Grid{}, g)
}

func TestGridRefusesWrongRequests(t *testing.T) {
	t.Parallel()
	for reason, req := range map[string]statistics.GridRequest{
		apperror.InvalidArgument: {Workflow: "order", Runs: 51}, apperror.WorkflowNotFound: {Workflow: "none"},
		apperror.VersionNotFound: {Workflow: "order", Version: "2.0.0"},
	} {
		_, err := (&bench{}).service().Grid(t.Context(), req)
		require.True(t, apperror.Is(err, reason), fmt.Sprint(err))
	}
	_, err := (&bench{}).service().Grid(t.Context(), statistics.GridRequest{Workflow: "order", Runs: -1})
	require.True(t, apperror.Is(err, apperror.InvalidArgument))
}
