package store_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
)

func crowdRow(r run.Run) sqlrow.Fields {
	return sqlrow.Row(
		"id", r.ID, "project", r.Project, "workflow", r.Workflow, "version", r.Version, "document_hash", "h",
		"status", r.Status, "queued_reason", "", "waiting_kind", "", "cancel_requested", false, "cancel_reason", "",
		"request_id", r.RequestID, "trigger_kind", r.Trigger, "actor", "", "created_at", r.CreatedAt.UnixMicro(),
		"steps_total", 0, "steps_done", 0, "sequence", 1, "position", 0, "state_position", 0, "interpreter", 1,
		"execution_id", "",
	)
}

// crowd creates so many runs that lists use other plans than for few: one per minute, most with IDs that contain their
// time, some with the time of another run, some with none.
func crowd(t *testing.T, o store.Options) (list []run.Run) {
	began := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	id := func(i int) string {
		hex := fmt.Sprintf("%012x", began.Add(time.Duration(i)*time.Minute).UnixMilli())
		return hex[:8] + "-" + hex[8:]
	}
	const size = 10_400
	for i := range size {
		name := fmt.Sprintf("-7000-8000-%012x", i)
		switch i % 500 {
		case 7:
			name = id((i*7919)%size) + name
		case 8:
			name = fmt.Sprintf("import%d", i)
		default:
			name = id(i) + name
		}
		r := run.Run{
			ID: name, Project: project.Default, Workflow: fmt.Sprintf("w/%d", i%3), Version: "1", Status: run.Completed,
			Trigger:   run.TriggerAPI,
			CreatedAt: began.Add(time.Duration(i/2*2) * time.Minute), RequestID: fmt.Sprintf("order-%d", i), Sequence: 1,
			Labels: map[string]string{"order": fmt.Sprint(i / 5), "region": []string{"eu", "us", "us"}[i%3]},
		}
		if i%4 > 0 {
			r.Labels["stage"] = "live"
		}
		switch {
		case i%100 == 1:
			r.Status = run.Failed
		case i%400 == 2:
			r.Status = run.Running
		case i%600 == 3:
			r.RequestID = fmt.Sprintf("0194%d", i)
		}
		list = append(list, r)
	}
	db, err := sqldb.Open(t.Context(), sqldb.Options{Driver: o.Driver, DSN: o.DSN, MaxConns: 1, CallTimeout: patience})
	require.NoError(t, err)
	require.NoError(t, db.Write(t.Context(), "test", func(ctx context.Context, c sqldb.Conn) error {
		_, err := sqlrow.InsertMany(ctx, c, db.Dialect(), "runs", ``, list, crowdRow)
		if err != nil {
			return err
		}
		if err := addLabels(ctx, c, db.Dialect(), list); err != nil {
			return err
		}
		// Half of the verdicts are of a binary that stored no workflow with them.
		_, err = c.ExecContext(ctx,
			`INSERT INTO run_verdicts (run_id, project, workflow, code, created_at, sequence, since, checked_at, detail, advice)
SELECT id, project, CASE WHEN created_at % 7 < 3 THEN workflow ELSE '' END, 'NO_POLLER', created_at, sequence, 0, 0, '', '' FROM runs WHERE status = 'running'`)
		return err
	}))
	require.NoError(t, db.Close())
	return list
}

func TestListsOfManyRuns(t *testing.T) {
	t.Parallel()
	for name, options := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t)
			s := start(t, o)
			all := crowd(t, o)
			for _, text := range []string{
				"", "0", "0194", "01941", "01942", "019421f", "01941f29-", "01941f29-7", "01941f29-7c", "01941F", "0195", "9",
				"import", "order-", "order-77"} {
				for _, f := range []run.Filter{
					{},
					{Statuses: []run.Status{run.Failed, run.Running}},
					{Workflow: "w/1", Until: all[700].CreatedAt},
					{Since: all[300].CreatedAt, Until: all[5000].CreatedAt},
					{Workflow: "w/2", Stuck: []string{"NO_POLLER"}},
					{Workflow: "w/2", Stuck: []string{run.AnyCode}, Statuses: []run.Status{run.Running}},
				} {
					f.Project, f.Text = project.Default, text
					requirePages(t, s, f, all)
				}
			}
			for _, labels := range []map[string]string{
				{"order": "77"}, {"order": "77", "region": "us"}, {"region": "us"}, {"stage": "live", "region": "eu"},
				{"stage": "live", "order": "none"},
			} {
				for _, f := range []run.Filter{
					{}, {Statuses: []run.Status{run.Failed, run.Running}}, {Statuses: []run.Status{run.Completed}}, {Workflow: "w/1"},
					{Text: "0194"}, {Text: "01941"}, {Text: "order-77"},
					{Stuck: []string{run.AnyCode}}, {Since: all[300].CreatedAt, Until: all[5000].CreatedAt},
				} {
					f.Project, f.Labels = project.Default, labels
					requirePages(t, s, f, all)
				}
			}
			requireCounts(t, s, all)
		})
	}
}

// requirePages reads the first pages in both orders, and some from the middle.
func requirePages(t *testing.T, s *storetest.Plain, f run.Filter, all []run.Run) {
	t.Helper()
	var want []run.Run
	for _, r := range all {
		if (strings.HasPrefix(r.ID, f.Text) || strings.HasPrefix(r.RequestID, f.Text)) &&
			(f.Workflow == "" || r.Workflow == f.Workflow) &&
			(len(f.Statuses) == 0 || slices.Contains(f.Statuses, r.Status)) && (len(f.Stuck) == 0 || r.Status == run.Running) &&
			!r.CreatedAt.Before(f.Since) && (f.Until.IsZero() || r.CreatedAt.Before(f.Until)) && hasLabels(r, f.Labels) {
			want = append(want, r)
		}
	}
	slices.SortFunc(want, func(a, b run.Run) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ID, b.ID))
	})
	for _, f.OldestFirst = range []bool{true, false} {
		f.Limit = 20
		for _, from := range []int{0, 20, len(want) / 2, len(want) - 3} {
			if from < 0 || from > len(want) {
				continue
			}
			if f.After = nil; from > 0 {
				f.After = &run.Cursor{CreatedAt: want[from-1].CreatedAt, ID: want[from-1].ID}
			}
			got, err := s.ListRuns(t.Context(), f)
			require.NoError(t, err)
			require.Equal(t, idsOf(want[from:min(len(want), from+f.Limit)]), idsOf(got), "%+v from %d", f, from)
		}
		slices.Reverse(want)
	}
}

func hasLabels(r run.Run, labels map[string]string) bool {
	for key, value := range labels {
		if r.Labels[key] != value {
			return false
		}
	}
	return true
}

func idsOf(list []run.Run) []string {
	ids := make([]string, len(list))
	for i, r := range list {
		ids[i] = r.ID
	}
	return ids
}

func requireCounts(t *testing.T, s *storetest.Plain, all []run.Run) {
	t.Helper()
	counts, err := s.CountRuns(t.Context(), run.Filter{Project: project.Default})
	require.NoError(t, err)
	require.Equal(t, run.Counts{
		Statuses: map[string]int64{"completed": run.MaxCount, "failed": 104, "running": 26},
		Stuck:    map[string]int64{"NO_POLLER": 26},
		More:     []run.Status{run.Completed},
	}, counts, "ended runs are counted up to a bound")
	counts, err = s.CountRuns(t.Context(),
		run.Filter{Project: project.Default, Workflow: "w/2", Until: all[2000].CreatedAt})
	require.NoError(t, err)
	want := run.Counts{Statuses: map[string]int64{}, Stuck: map[string]int64{}}
	for _, r := range all[:2000] {
		if r.Workflow == "w/2" {
			want.Statuses[string(r.Status)]++
			if r.Status == run.Running {
				want.Stuck["NO_POLLER"]++
			}
		}
	}
	require.Equal(t, want, counts)
	for _, labels := range []map[string]string{{"order": "77"}, {"region": "us"}, {"stage": "live", "region": "eu"}} {
		for _, f := range []run.Filter{
			{}, {Statuses: []run.Status{run.Completed, run.Failed}}, {Workflow: "w/1"}, {Statuses: []run.Status{run.Running}}} {
			f.Project, f.Labels = project.Default, labels
			counts, err = s.CountRuns(t.Context(), f)
			require.NoError(t, err)
			want := map[string]int64{}
			for _, r := range all {
				if f.Matches(r) {
					want[string(r.Status)]++
				}
			}
			require.Equal(t, want, counts.Statuses, "%+v", f)
		}
	}
}
