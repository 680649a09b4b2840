package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// lister creates runs of all kinds and computes which of them a filter matches.
type lister struct {
	runs []run.Run
	// links are the runs by the filter that selects them: of a parent, of a replayed run, of a batch.
	links map[string][]string
}

func newLister(t *testing.T, s Store) lister {
	require.NoError(t, s.CreateProject(t.Context(), project.Project{Name: "other", CreatedAt: at(0)},
		entry(audit.ProjectCreate, "other", "other")))
	l := lister{links: map[string][]string{}}
	for i := range 48 {
		// Several have the same time.
		r := newRun(fmt.Sprintf("r%02d", (i*29)%48), i/3)
		r.Workflow = []string{hello, "examples/other"}[i%2]
		r.Version = []string{"1", "2", "3"}[i%3]
		r.Project = []string{here, here, here, "other"}[i%4]
		r.Trigger = []string{run.TriggerAPI, run.TriggerAPI, run.TriggerEvent, run.TriggerReplay, run.TriggerAPI}[i%5]
		r.RequestID = []string{"request-", "order-", "r1"}[i%3] + r.ID
		r.Labels = []map[string]string{nil, {"order": "4711"}, {"order": "4711", "region": "eu"}, {"region": "eu"}}[i/2%4]
		if i%4 == 0 {
			r.ReplayOf = []string{"r00", "x"}[i%8/4]
			l.links["replay of "+r.ReplayOf] = append(l.links["replay of "+r.ReplayOf], r.ID)
		}
		if i%5 == 0 {
			r.Parent = run.Parent{RunID: "r01", Path: "/do/0", Depth: 1}
			l.links["parent r01"] = append(l.links["parent r01"], r.ID)
		}
		if i%3 > 0 {
			l.links["batch b"] = append(l.links["batch b"], r.ID)
		}
		insert(t, s, r)
		status := run.Statuses()[(i/2)%8]
		if status != run.Queued {
			apply(t, s, listedState(r.ID, status, i))
		}
		if !status.Terminal() && i%4 != 1 {
			giveVerdict(t, s, r.Project, r.ID, run.Codes()[i%3])
		}
		full, err := s.GetRun(t.Context(), r.Project, r.ID)
		require.NoError(t, err)
		full.WrittenAt = time.Time{}
		full.Input, full.Output = nil, nil
		full.ReplayOf, full.Replays, full.Parent, full.Children = "", nil, run.Parent{}, nil
		l.runs = append(l.runs, full)
	}
	b := batch.Batch{ID: "b", Project: here, Action: batch.Cancel, RequestID: "b", Rate: 1, CreatedAt: at(1)}
	_, _, err := s.Batches().StartBatch(t.Context(), b, l.links["batch b"], 100, entry(audit.BatchStart, here, "b"))
	require.NoError(t, err)
	return l
}

// listedState returns the state of a run of a list: runs end at different times, and fail with errors of different
// types.
func listedState(id string, status run.Status, i int) run.Update {
	u := state(id, 1, status)
	if status.Terminal() {
		u.State.EndedAt = at(1 + i%7)
	}
	if status == run.Failed || status == run.TimedOut {
		of := []string{run.ErrorTypeExecutionMissing, run.ErrorTypes("communication")[2],
			"https://example.com/<order>é?a=\"1\"&b", "communication"}[(i/16+i%2)%4]
		u.State.Error = &run.Error{Type: of, Status: 500, Title: "Failed", Instance: "/do/0/a"}
	}
	return u
}

func (l lister) match(f run.Filter) map[string]run.Run {
	want := map[string]run.Run{}
	for _, r := range l.runs {
		status := len(f.Statuses) == 0
		for _, s := range f.Statuses {
			status = status || s == r.Status
		}
		if status && wanted(f, r) && l.linked(f, r) && (f.Project == "" || f.Project == r.Project) &&
			(f.Workflow == "" || f.Workflow == r.Workflow) &&
			(f.Version == "" || f.Version == r.Version) && (f.RequestID == "" || f.RequestID == r.RequestID) &&
			!r.CreatedAt.Before(f.Since) && (f.Until.IsZero() || r.CreatedAt.Before(f.Until)) {
			want[r.ID] = r
		}
	}
	return want
}

// linked reports whether a run has the relations to other runs and batches of a filter.
func (l lister) linked(f run.Filter, r run.Run) bool {
	for name, id := range map[string]string{"parent ": f.ParentRunID, "replay of ": f.ReplayOf, "batch ": f.BatchID} {
		if id != "" && !slices.Contains(l.links[name+id], r.ID) {
			return false
		}
	}
	return true
}

// wanted reports whether a run has the codes, the labels, the trigger and the text of a filter.
func wanted(f run.Filter, r run.Run) bool {
	has := len(f.Stuck) == 0 || r.Stuck != nil && (f.AnyCode() || slices.Contains(f.Stuck, r.Stuck.Code))
	for key, value := range f.Labels {
		has = has && r.Labels[key] == value
	}
	return has && (f.Trigger == "" || f.Trigger == r.Trigger) &&
		(strings.HasPrefix(r.ID, f.Text) || strings.HasPrefix(r.RequestID, f.Text) ||
			len(r.ID) == 36 && len(f.Text) >= 8 && strings.HasSuffix(r.ID, f.Text))
}

func testListRuns(t *testing.T, open Opener) {
	s := open(t)
	l := newLister(t, s)
	statuses := [][]run.Status{nil, {run.Queued}, {run.Failed, run.Running, run.Failed}, run.Statuses(), {"unknown"}}
	for _, projectName := range []string{here, "other", ""} {
		for _, workflowName := range []string{"", hello, "none/none"} {
			for _, versionName := range []string{"", "2"} {
				for _, list := range statuses {
					f := run.Filter{Project: projectName, Workflow: workflowName, Version: versionName, Statuses: list}
					l.check(t, s, f)
					f.Since, f.Until = at(3), at(9)
					l.check(t, s, f)
				}
			}
		}
	}
	codes := run.Codes()
	for _, statuses := range [][]run.Status{nil, {run.Queued, run.Failed}} {
		for _, trigger := range []string{"", run.TriggerEvent, run.TriggerParent} {
			for _, text := range []string{"", "r", "r1", "order-r0", "r%", "none"} {
				for _, stuck := range [][]string{nil, {run.AnyCode}, {codes[0]}, {codes[1], codes[2]}, {codes[9]}} {
					f := run.Filter{Project: here, Statuses: statuses, Trigger: trigger, Text: text, Stuck: stuck}
					l.check(t, s, f)
					f.Workflow, f.Since = hello, at(4)
					l.check(t, s, f)
				}
			}
		}
	}
	for _, link := range []run.Filter{
		{ParentRunID: "r01"}, {ReplayOf: "r00"}, {BatchID: "b"}, {ParentRunID: "r01", ReplayOf: "r00", BatchID: "b"},
		{ParentRunID: "none"}, {ReplayOf: "r01"}, {BatchID: "none"},
	} {
		for _, f := range []run.Filter{
			{}, {Statuses: []run.Status{run.Failed, run.Running}}, {Text: "r1"}, {Stuck: []string{run.AnyCode}},
			{Workflow: hello, Since: at(4)}} {
			f.Project, f.ParentRunID, f.ReplayOf, f.BatchID = here, link.ParentRunID, link.ReplayOf, link.BatchID
			l.check(t, s, f)
		}
	}
	for _, labels := range []map[string]string{
		{"order": "4711"}, {"order": "4711", "region": "eu"}, {"order": "eu"}, {"none": "4711"}} {
		for _, f := range []run.Filter{
			{}, {Statuses: []run.Status{run.Failed, run.Running}}, {Text: "r1"}, {Stuck: []string{run.AnyCode}},
			{Workflow: hello, Since: at(4)}, {ParentRunID: "r01"},
			{BatchID: "b", Trigger: run.TriggerAPI},
		} {
			f.Project, f.Labels = here, labels
			l.check(t, s, f)
		}
	}
	l.count(t, s, run.Filter{Project: here})
	l.count(t, s, run.Filter{Project: here, Workflow: hello, Since: at(3), Until: at(9)})
	l.count(t, s, run.Filter{Project: here, Since: at(99)})
	_, err := s.CountRuns(t.Context(), run.Filter{Project: "none"})
	requireError(t, err, apperror.NotFound, apperror.ProjectNotFound, "none")
	l.check(t, s, run.Filter{Project: here, RequestID: "request-r05"})
	l.check(t, s, run.Filter{Project: here, RequestID: "request-r05", Statuses: []run.Status{run.Queued, run.Failed}})
}

// count compares the counts with the runs.
func (l lister) count(t *testing.T, s Store, f run.Filter) {
	t.Helper()
	want := run.Counts{Statuses: map[string]int64{}, Stuck: map[string]int64{}}
	for _, r := range l.match(f) {
		want.Statuses[string(r.Status)]++
		if r.Stuck != nil {
			want.Stuck[r.Stuck.Code]++
		}
	}
	got, err := s.CountRuns(t.Context(), f)
	require.NoError(t, err)
	require.Equal(t, want, got, "%+v", f)
	l.buckets(t, s, f)
}

// buckets compares the counts of intervals of three time units, the last of which is shorter.
func (l lister) buckets(t *testing.T, s Store, f run.Filter) {
	t.Helper()
	f.Since, f.Until = at(2), at(12)
	length := at(3).Sub(at(0))
	var want []run.Bucket
	for _, start := range []time.Time{at(2), at(5), at(8), at(11)} {
		want = append(want, run.Bucket{Start: start, Statuses: map[string]int64{}})
	}
	for _, r := range l.match(f) {
		want[r.CreatedAt.Sub(f.Since)/length].Statuses[string(r.Status)]++
	}
	got, err := s.CountBuckets(t.Context(), f, length)
	require.NoError(t, err)
	require.Equal(t, want, got, "%+v", f)
}

// check reads a list page by page in both directions.
func (l lister) check(t *testing.T, s Store, f run.Filter) {
	t.Helper()
	want := l.match(f)
	if f.Project == here {
		l.count(t, s, f)
	}
	for _, oldest := range []bool{false, true} {
		for _, limit := range []int{3, 100} {
			f.OldestFirst, f.Limit, f.After = oldest, limit, nil
			got := pages(t, s, f, nil)
			require.Len(t, got, len(want), "%+v", f)
			for i, r := range got {
				require.Equal(t, want[r.ID], r)
				if i > 0 {
					require.Equal(t, oldest, before(got[i-1], r), "order of %s and %s", got[i-1].ID, r.ID)
				}
			}
		}
	}
}

func before(a, b run.Run) bool {
	if a.CreatedAt.Equal(b.CreatedAt) {
		return strings.Compare(a.ID, b.ID) < 0
	}
	return a.CreatedAt.Before(b.CreatedAt)
}

// pages reads a list to its end, calling between after each page.
func pages(t testing.TB, s Store, f run.Filter, between func(page int)) []run.Run {
	t.Helper()
	var all []run.Run
	for n := 0; ; n++ {
		page, err := s.ListRuns(t.Context(), f)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page), f.Limit)
		all = append(all, page...)
		if len(page) < f.Limit {
			return all
		}
		last := page[len(page)-1]
		f.After = &run.Cursor{CreatedAt: last.CreatedAt, ID: last.ID}
		if between != nil {
			between(n)
		}
	}
}
