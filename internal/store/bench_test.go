package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/explain"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/runrow"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

// databases are the databases that the benchmarks compare; an unavailable one is skipped.
func databases() map[string]func(testing.TB) store.Options {
	return map[string]func(testing.TB) store.Options{"sqlite": sqlite, "postgres": postgres}
}

func benchRun(i int) run.Run {
	created := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * time.Second)
	id := fmt.Sprintf("run-%08d", i)
	return run.Run{
		ID: id, Project: "default", Workflow: fmt.Sprintf("examples/w%d", i%10), Version: "1.0.0", DocumentHash: "sha256:aa",
		Status: run.Queued, QueuedReason: run.QueuedStarting, StatusAt: created, RequestID: id, Trigger: run.TriggerAPI,
		CreatedAt: created, Input: json.RawMessage(`{"customer":"ada","items":[1,2,3]}`),
	}
}

func benchInsert(b testing.TB, s storetest.Store, i int) string {
	r := benchRun(i)
	_, _, err := s.InsertRun(b.Context(), r,
		audit.Entry{Time: r.CreatedAt, Action: audit.RunStart, Project: r.Project, Subject: r.ID})
	require.NoError(b, err)
	return r.ID
}

// benchUpdate is the update of one workflow task of a small run: two steps and a state.
func benchUpdate(id string, position int64, status run.Status) run.Update {
	now := time.Unix(1767225600+position, 0)
	u := run.Update{
		RunID: id, ExecutionID: "0197a6a0-0000-7000-8000-000000000000", Position: position,
		State: &run.State{Status: status, Since: now, StartedAt: now, StepsTotal: position, StepsDone: position},
	}
	for n := range int64(2) {
		u.Steps = append(u.Steps, run.Step{
			Number: 2*position + n, Path: "/do/0/charge", Pointer: "/do/0/charge", Task: "charge", Kind: "call",
			Status:    "completed",
			StartedAt: now, EndedAt: now, Position: position, Input: json.RawMessage(`{"amount":12}`),
			Output: json.RawMessage(`{"ok":true}`),
		})
	}
	return u
}

// BenchmarkApplyUpdates writes 100 updates of 100 runs, with 200 steps, in each call.
func BenchmarkApplyUpdates(b *testing.B) {
	for name, options := range databases() {
		b.Run(name, func(b *testing.B) {
			s := start(b, options(b))
			const runs = 100
			ids := make([]string, runs)
			for i := range ids {
				ids[i] = benchInsert(b, s, i)
			}
			position := int64(0)
			for b.Loop() {
				position++
				updates := make([]run.Update, runs)
				for i, id := range ids {
					updates[i] = benchUpdate(id, position, run.Running)
				}
				_, err := s.ApplyUpdates(b.Context(), updates)
				require.NoError(b, err)
			}
			b.ReportMetric(float64(2*runs*b.N)/b.Elapsed().Seconds(), "steps/s")
		})
	}
}

// BenchmarkStartRun inserts a run and marks it as handed over, from several goroutines.
func BenchmarkStartRun(b *testing.B) {
	for name, options := range databases() {
		b.Run(name, func(b *testing.B) {
			s := start(b, options(b))
			ids := make(chan int, 64)
			done := make(chan struct{})
			go func() {
				defer close(ids)
				for i := 0; ; i++ {
					select {
					case ids <- i:
					case <-done:
						return
					}
				}
			}()
			b.SetParallelism(8)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					id := benchInsert(b, s, <-ids)
					require.NoError(b, s.MarkHandedOver(b.Context(), id, "execution", time.Unix(1767225600, 0)))
				}
			})
			close(done)
		})
	}
}

// BenchmarkStart inserts runs with two labels from one caller, and from 32.
func BenchmarkStart(b *testing.B) {
	for name, options := range databases() {
		for _, callers := range []int{1, 32} {
			b.Run(fmt.Sprintf("%s/callers=%d", name, callers), func(b *testing.B) {
				s := start(b, options(b))
				var next atomic.Int64
				var wg sync.WaitGroup
				b.ReportAllocs()
				b.ResetTimer()
				for range callers {
					wg.Go(func() {
						for n := int(next.Add(1)); n <= b.N; n = int(next.Add(1)) {
							r := benchRun(n)
							r.Labels = map[string]string{"order": r.ID, "stage": "live"}
							_, made, err := s.InsertRun(b.Context(), r,
								audit.Entry{Time: r.CreatedAt, Action: audit.RunStart, Project: r.Project, Subject: r.ID})
							if err != nil || !made {
								b.Errorf("insert %s: %t, %v", r.ID, made, err)
							}
						}
					})
				}
				wg.Wait()
			})
		}
	}
}

// BenchmarkGetWorkflow reads a workflow with its newest version, as each start of a run does.
func BenchmarkGetWorkflow(b *testing.B) {
	for name, options := range databases() {
		b.Run(name, func(b *testing.B) {
			s := start(b, options(b))
			v := workflow.Version{
				Project: "default", Workflow: "examples/w0", Version: "1.0.0", Hash: "sha256:aa", Source: "source",
				Canonical:   []byte(`{}`),
				PublishedAt: time.Unix(1767225600, 0),
			}
			_, _, err := s.Publish(b.Context(), v, workflow.Newer,
				audit.Entry{Time: v.PublishedAt, Action: audit.WorkflowPublish, Project: v.Project})
			require.NoError(b, err)
			for b.Loop() {
				w, err := s.GetWorkflow(b.Context(), v.Project, v.Workflow)
				require.NoError(b, err)
				require.Equal(b, v.Hash, w.LatestHash)
			}
		})
	}
}

// BenchmarkListRuns reads a page of 50 out of 10,000 runs.
func BenchmarkListRuns(b *testing.B) {
	for name, options := range databases() {
		b.Run(name, func(b *testing.B) {
			s := start(b, options(b))
			const runs, batch = 10_000, 500
			var updates []run.Update
			for i := range runs {
				id := benchInsert(b, s, i)
				// Of a hundred runs one fails and one is still running.
				status := run.Completed
				switch i % 100 {
				case 7:
					status = run.Failed
				case 8:
					status = run.Running
				}
				updates = append(updates, benchUpdate(id, 1, status))
				if len(updates) == batch {
					_, err := s.ApplyUpdates(b.Context(), updates)
					require.NoError(b, err)
					updates = updates[:0]
				}
			}
			middle := benchRun(runs / 2)
			b.Run("lengths of all", func(b *testing.B) {
				for b.Loop() {
					lengths, err := s.Statistics().ReadLengths(b.Context(),
						run.Filter{Project: "default", Statuses: []run.Status{run.Completed, run.Failed}, Limit: runs})
					require.NoError(b, err)
					require.Len(b, lengths, runs/100*99)
				}
			})
			for _, f := range []struct {
				name   string
				filter run.Filter
			}{
				{"newest", run.Filter{}},
				{"middle", run.Filter{After: &run.Cursor{CreatedAt: middle.CreatedAt, ID: middle.ID}}},
				{"failed", run.Filter{Statuses: []run.Status{run.Failed}}},
				{"open", run.Filter{Statuses: []run.Status{run.Queued, run.Running, run.Waiting}}},
				{"workflow", run.Filter{Workflow: "examples/w3"}},
				{"workflow-failed", run.Filter{Workflow: "examples/w7", Statuses: []run.Status{run.Failed}}},
				{"request", run.Filter{RequestID: middle.RequestID}},
			} {
				b.Run(f.name, func(b *testing.B) {
					f.filter.Project, f.filter.Limit = "default", 50
					for b.Loop() {
						_, err := s.ListRuns(b.Context(), f.filter)
						require.NoError(b, err)
					}
				})
			}
		})
	}
}

// BenchmarkFailureGroups groups as many failed runs of one project as problems are found from, in 20 groups.
func BenchmarkFailureGroups(b *testing.B) {
	for name, options := range databases() {
		b.Run(name, func(b *testing.B) {
			s := start(b, options(b))
			const runs, batch = 20_000, 500
			var updates []run.Update
			for i := range runs {
				u := benchUpdate(benchInsert(b, s, i), 1, run.Failed)
				u.State.Error = &run.Error{
					Type: "communication", Status: 503, Title: "no answer", Instance: fmt.Sprintf("/do/%d/charge", i/10%2)}
				u.State.EndedAt = u.State.StartedAt.Add(time.Duration(i) * time.Second)
				if updates = append(updates, u); len(updates) == batch {
					_, err := s.ApplyUpdates(b.Context(), updates)
					require.NoError(b, err)
					updates = updates[:0]
				}
			}
			for b.Loop() {
				groups, _, err := s.Problems().FailureGroups(b.Context(), []string{"default"}, benchRun(0).CreatedAt, runs)
				require.NoError(b, err)
				require.Len(b, groups, 20)
			}
		})
	}
}

// BenchmarkWaits reads what a run waits for that has entered as many steps as can have rows, each with values of 2 KB;
// one of them is open.
func BenchmarkWaits(b *testing.B) {
	for name, options := range databases() {
		b.Run(name, func(b *testing.B) {
			s := start(b, options(b))
			id := benchInsert(b, s, 0)
			value := json.RawMessage(fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 2000)))
			for position := int64(1); position <= 90; position++ {
				u := run.Update{RunID: id, Position: position}
				for n := range int64(100) {
					at := time.Unix(1767225600+position, 0)
					u.Steps = append(u.Steps, run.Step{
						Number: 100*position + n, Path: "/do/0/charge", Kind: "call", Status: "completed", StartedAt: at, EndedAt: at,
						Position: position,
						Input:    value, Output: value,
					})
				}
				if position == 90 {
					last := &u.Steps[99]
					last.Status, last.WaitingKind, last.EndedAt = "waiting", run.WaitingTimer, time.Time{}
				}
				_, err := s.ApplyUpdates(b.Context(), []run.Update{u})
				require.NoError(b, err)
			}
			for b.Loop() {
				rows, err := s.Waits().Pending(b.Context(), "default", id, explain.Page{Limit: 500, Key: func(path string) string {
					return path
				}})
				require.NoError(b, err)
				require.Len(b, rows.Steps, 1)
			}
		})
	}
}

// BenchmarkSumSteps sums up the 10,000 steps of one run of 20 tasks.
func BenchmarkSumSteps(b *testing.B) {
	for name, options := range databases() {
		b.Run(name, func(b *testing.B) {
			s := start(b, options(b))
			id := benchInsert(b, s, 0)
			payload := json.RawMessage(`"` + strings.Repeat("x", 8<<10) + `"`)
			for from := int64(1); from <= 10_000; from += 500 {
				u := run.Update{RunID: id, Position: from}
				for n := from; n < from+500; n++ {
					pointer, now := fmt.Sprintf("/do/0/loop/do/%d/t%d", n%20, n%20), time.Unix(1767225600+n, 0)
					u.Steps = append(u.Steps, run.Step{
						Number: n, Path: pointer, Pointer: pointer, Task: fmt.Sprint("t", n%20), Kind: "call", Status: "completed",
						StartedAt: now, EndedAt: now, Position: from,
						Input: payload, Output: payload,
						Attempts: []run.Attempt{{Number: 1, StartedAt: now, EndedAt: &now, Outcome: "answered", HTTPStatus: 200}},
					})
				}
				_, err := s.ApplyUpdates(b.Context(), []run.Update{u})
				require.NoError(b, err)
			}
			b.ResetTimer()
			for b.Loop() {
				list, err := s.SumSteps(b.Context(), "default", id)
				require.NoError(b, err)
				require.Len(b, list, 20)
			}
		})
	}
}

// BenchmarkLabels lists and counts runs by labels among 100,000 runs: a label of one run, one of 20,000 and one of all.
func BenchmarkLabels(b *testing.B) {
	for name, options := range databases() {
		b.Run(name, func(b *testing.B) {
			o := options(b)
			s := start(b, o)
			for first := 0; first < 100_000; first += 10_000 {
				insertLabelled(b, o, first, 10_000)
			}
			for _, f := range []struct {
				name   string
				filter run.Filter
			}{
				{"one", run.Filter{Labels: map[string]string{"order": "77777"}}},
				{"one-of-all", run.Filter{Labels: map[string]string{"order": "77777", "stage": "live"}}},
				{"many", run.Filter{Labels: map[string]string{"region": "r3"}}},
				{"many-failed", run.Filter{Labels: map[string]string{"region": "r3"}, Statuses: []run.Status{run.Failed}}},
				{"all", run.Filter{Labels: map[string]string{"stage": "live"}}},
				{"none", run.Filter{Labels: map[string]string{"order": "none"}}},
			} {
				f.filter.Project, f.filter.Limit = "default", 50
				b.Run("list-"+f.name, func(b *testing.B) {
					for b.Loop() {
						_, err := s.ListRuns(b.Context(), f.filter)
						require.NoError(b, err)
					}
				})
				b.Run("count-"+f.name, func(b *testing.B) {
					for b.Loop() {
						_, err := s.CountRuns(b.Context(), f.filter)
						require.NoError(b, err)
					}
				})
			}
		})
	}
}

// insertLabelled adds runs with labels, of which one of fifty failed and the others are completed.
func insertLabelled(b *testing.B, o store.Options, first, count int) {
	b.Helper()
	db, err := sqldb.Open(b.Context(), sqldb.Options{Driver: o.Driver, DSN: o.DSN, MaxConns: 1, CallTimeout: patience})
	require.NoError(b, err)
	list := make([]run.Run, count)
	for i := range list {
		n := first + i
		list[i] = benchRun(n)
		list[i].Labels = map[string]string{"order": fmt.Sprint(n), "region": fmt.Sprint("r", n%5), "stage": "live"}
		list[i].Status = run.Completed
		if n%50 == 1 {
			list[i].Status = run.Failed
		}
	}
	require.NoError(b, db.Write(b.Context(), "test", func(ctx context.Context, c sqldb.Conn) error {
		_, err := sqlrow.InsertMany(ctx, c, db.Dialect(), "runs", ``, list, crowdRow)
		if err != nil {
			return err
		}
		return addLabels(ctx, c, db.Dialect(), list)
	}))
	require.NoError(b, db.Close())
}

// addLabels adds the labels of runs.
func addLabels(ctx context.Context, c sqldb.Conn, d sqldb.Dialect, runs []run.Run) error {
	of := make([]*run.Run, len(runs))
	for i := range runs {
		of[i] = &runs[i]
	}
	_, err := sqlrow.InsertMany(ctx, c, d, "run_labels", "", runrow.LabelsOfRuns(of), runrow.Label.Fields)
	return err
}
