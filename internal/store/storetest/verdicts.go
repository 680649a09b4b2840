package storetest

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/diagnose"
)

func verdictOf(code string) *diagnose.Verdict {
	return &diagnose.Verdict{
		Code: code, Cause: "cause", Since: at(2), Detail: "no worker\x00 polls", Advice: "start a worker"}
}

func verdictEvents(id string) []event.Event {
	return []event.Event{{ID: id, Source: "/projects/x/runs", Type: diagnose.EventStuck, Subject: id,
		DataContentType: "application/json", Data: []byte(`{}`)}}
}

// giveVerdict gives a run a verdict on its current state.
func giveVerdict(t testing.TB, s Store, projectName, id, code string) {
	t.Helper()
	r, err := s.GetRun(t.Context(), projectName, id)
	require.NoError(t, err)
	done, err := s.Verdicts().ChangeVerdicts(t.Context(), projectName, at(9),
		[]diagnose.Change{{RunID: id, Sequence: r.Sequence, To: verdictOf(code)}})
	require.NoError(t, err)
	require.Equal(t, []string{id}, done.Runs)
}

// stuckEvents returns the IDs of the events that report verdicts, the newest first.
func stuckEvents(t testing.TB, s Store) []string {
	t.Helper()
	list, err := s.Events().ListEvents(t.Context(), event.ListFilter{Project: here, Type: diagnose.EventStuck, Limit: 100})
	require.NoError(t, err)
	var ids []string
	for _, e := range list {
		ids = append(ids, e.ID)
	}
	return ids
}

func testVerdicts(t *testing.T, open Opener) {
	s, v := open(t), open(t).Verdicts()
	change := func(changes ...diagnose.Change) []string {
		t.Helper()
		done, err := v.ChangeVerdicts(t.Context(), here, at(9), changes)
		require.NoError(t, err)
		return done.Runs
	}
	given := func() (list []diagnose.StoredVerdict) {
		t.Helper()
		list, err := v.Verdicts(t.Context(), "", 100)
		require.NoError(t, err)
		return list
	}
	for _, id := range []string{"r1", "r2", "r3"} {
		insert(t, s, newRun(id, 1))
	}
	before := get(t, s, "r1")
	require.Nil(t, before.Stuck)
	require.Equal(t, []string{"r1"}, change(
		diagnose.Change{RunID: "r1", Sequence: before.Sequence, To: verdictOf(run.NoPoller), Events: verdictEvents("r1-a")},
		diagnose.Change{RunID: "r2", Sequence: 99, To: verdictOf(run.NoPoller), Events: verdictEvents("r2-a")},
		diagnose.Change{RunID: "none", Sequence: 1, To: verdictOf(run.NoPoller), Events: verdictEvents("none")},
		diagnose.Change{RunID: "r3", Sequence: 1, Events: verdictEvents("r3-a")},
	), "those that come too late, and those about nothing, are passed over")
	r := get(t, s, "r1")
	require.Equal(t, before.Sequence+1, r.Sequence, "who watches sees it")
	want := run.Stuck{Code: run.NoPoller, Cause: "cause", Since: at(2), Detail: "no worker\uFFFD polls",
		Advice: "start a worker", CheckedAt: at(9)}
	require.Equal(t, &want, r.Stuck)
	listed, err := s.ListRuns(t.Context(), run.Filter{Project: here, Limit: 10, OldestFirst: true})
	require.NoError(t, err)
	require.Equal(t, &want, listed[0].Stuck)
	require.Nil(t, listed[1].Stuck)
	require.Equal(t, []string{"r1-a-" + strconv.FormatInt(r.Sequence, 10)}, stuckEvents(t, s))
	g := given()
	require.Len(t, g, 1)
	require.Equal(t, []any{"r1", here, hello, "1.0.0", "queued", r.Sequence, false, at(9)},
		[]any{g[0].RunID, g[0].Project, g[0].Workflow, g[0].Version, g[0].Status, g[0].Sequence, g[0].Moved, g[0].CheckedAt})
	rest, err := v.Verdicts(t.Context(), "r1", 10)
	require.NoError(t, err)
	require.Empty(t, rest)

	require.NoError(t, v.CheckVerdicts(t.Context(), []string{"r1", "none"}, at(20)))
	require.Equal(t, at(20), get(t, s, "r1").Stuck.CheckedAt)
	require.Equal(t, r.Sequence, get(t, s, "r1").Sequence, "a confirmation is no change")

	require.Equal(t, []string{"r1"},
		change(diagnose.Change{RunID: "r1", Sequence: r.Sequence, To: verdictOf(run.Backlog)}))
	require.Equal(t, run.Backlog, get(t, s, "r1").Stuck.Code)
	require.Empty(t, change(diagnose.Change{RunID: "r1", Sequence: r.Sequence, Events: verdictEvents("r1-b")}),
		"it was changed since")

	// The run continues: its verdict no longer applies, and still exists so that it can be withdrawn.
	apply(t, s, state("r1", 1, run.Running))
	require.Nil(t, get(t, s, "r1").Stuck)
	g = given()
	require.True(t, g[0].Moved)
	require.Equal(t, "running", g[0].Status)
	moved := get(t, s, "r1")
	require.Equal(t, []string{"r1"},
		change(diagnose.Change{RunID: "r1", Sequence: g[0].Sequence, Events: verdictEvents("r1-c")}))
	require.Equal(t, moved, get(t, s, "r1"), "there is nothing new to see")
	require.Empty(t, given())
	require.Empty(t, change(diagnose.Change{RunID: "r1", Sequence: g[0].Sequence, Events: verdictEvents("r1-c")}), "once")
	require.Len(t, stuckEvents(t, s), 2)

	giveVerdict(t, s, here, "r1", run.Unknown)
	r = get(t, s, "r1")
	require.Equal(t, []string{"r1"}, change(diagnose.Change{RunID: "r1", Sequence: r.Sequence}))
	require.Equal(t, r.Sequence+1, get(t, s, "r1").Sequence, "who watches sees it go, too")

	apply(t, s, state("r1", 2, run.Completed))
	require.Empty(t, change(diagnose.Change{RunID: "r1", Sequence: get(t, s, "r1").Sequence, To: verdictOf(run.Unknown)}),
		"it has ended")
	_, err = v.ChangeVerdicts(t.Context(), "none", at(9),
		[]diagnose.Change{{RunID: "r2", Sequence: get(t, s, "r2").Sequence, To: verdictOf(run.Backlog),
			Events: verdictEvents("r2")}})
	requireError(t, err, apperror.NotFound, apperror.ProjectNotFound, "none")
	require.Nil(t, get(t, s, "r2").Stuck, "without the event there is no verdict")
}

// testVerdictsAgainstUpdates gives verdicts while runs change: there is no deadlock, and no verdict is shown for a run
// that has changed since.
func testVerdictsAgainstUpdates(t *testing.T, open Opener) {
	s, v := open(t), open(t).Verdicts()
	ids := []string{"r1", "r2", "r3", "r4", "r5", "r6"}
	for _, id := range ids {
		insert(t, s, newRun(id, 1))
	}
	var group sync.WaitGroup
	group.Go(func() {
		for position := int64(1); position <= 20; position++ {
			var updates []run.Update
			for _, id := range ids {
				updates = append(updates, state(id, position, run.Running))
			}
			apply(t, s, updates...)
		}
	})
	for range 20 {
		var changes []diagnose.Change
		for i := range ids {
			r := get(t, s, ids[len(ids)-1-i])
			changes = append(changes,
				diagnose.Change{RunID: r.ID, Sequence: r.Sequence, To: verdictOf(run.Unknown), Events: verdictEvents(r.ID)})
		}
		_, err := v.ChangeVerdicts(t.Context(), here, at(9), changes)
		require.NoError(t, err)
	}
	group.Wait()
	for _, id := range ids {
		apply(t, s, state(id, 21, run.Waiting))
		require.Nil(t, get(t, s, id).Stuck)
	}
}

func testOverdue(t *testing.T, open Opener) {
	s := open(t)
	v := s.Verdicts()
	for i, shape := range []struct {
		id     string
		reason string
		status run.Status
	}{
		{"worker", run.QueuedWorker, run.Queued},
		{"starting", run.QueuedStarting, run.Queued},
		{"engine", run.QueuedEngine, run.Queued},
		{"running", run.QueuedStarting, run.Running},
		{"waiting", run.QueuedStarting, run.Waiting},
		{"event", run.QueuedStarting, run.Waiting},
		{"ended", run.QueuedStarting, run.Failed},
	} {
		r := newRun(shape.id, i)
		r.QueuedReason = shape.reason
		insert(t, s, r)
		if shape.status == run.Queued {
			continue
		}
		u := state(shape.id, 5, shape.status)
		if shape.id == "event" {
			u.State.WaitingKind = run.WaitingEvent
		}
		step := run.Step{Number: 1, Status: "completed", StartedAt: at(3), EndedAt: at(6), Position: 1}
		next := run.Step{Number: 2, Status: string(shape.status), StartedAt: at(7), Position: 5}
		if shape.status != run.Running {
			next.Status, next.WaitUntil = "waiting", at(8)
		}
		u.Steps = []run.Step{step, next}
		apply(t, s, u)
	}
	overdue := func(before time.Time, limit int) (ids []string) {
		t.Helper()
		for after := (diagnose.Cursor{}); ; {
			list, err := v.Overdue(t.Context(), before, after, limit)
			require.NoError(t, err)
			for _, c := range list {
				ids = append(ids, c.ID)
			}
			if len(list) < limit {
				return ids
			}
			after = diagnose.Cursor{StatusAt: list[limit-1].StatusAt, ID: list[limit-1].ID}
		}
	}
	require.Equal(t, []string{"worker", "starting", "engine", "running"}, overdue(at(60), 100))
	require.Equal(t, []string{"worker", "starting", "engine", "running"}, overdue(at(60), 1), "page by page")
	require.Equal(t, []string{"worker", "starting"}, overdue(at(1), 100))
	list, err := v.Overdue(t.Context(), at(60), diagnose.Cursor{StatusAt: at(4)}, 100)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, diagnose.Row{
		ID: "running", Project: here, Status: run.Running, StatusAt: at(5), MovedAt: at(7), Sequence: 2}, list[0].Row)
	require.Equal(t, []string{hello, "1.0.0"}, []string{list[0].Workflow, list[0].Version})

	waits, err := v.OverdueWaits(t.Context(), at(8), 100)
	require.NoError(t, err)
	require.Len(t, waits, 1, "one that listens waits for as long as it takes, and one that has ended for nothing")
	require.Equal(t, []any{"waiting", at(8), run.WaitingTimer},
		[]any{waits[0].ID, waits[0].WaitUntil, waits[0].WaitingKind})
	waits, err = v.OverdueWaits(t.Context(), at(7), 100)
	require.NoError(t, err)
	require.Empty(t, waits)
}

func testSuspects(t *testing.T, open Opener) {
	s := open(t)
	v := s.Verdicts()
	for i, id := range []string{"asked", "both", "failed", "long ago", "quiet"} {
		insert(t, s, newRun(id, i))
		apply(t, s, state(id, 5, run.Waiting))
	}
	insert(t, s, newRun("running", 9))
	apply(t, s, state("running", 5, run.Running))
	for _, id := range []string{"asked", "both", "running"} {
		_, err := s.MarkCancelRequested(t.Context(), here, id, "why", entry(audit.RunCancel, here, id))
		require.NoError(t, err)
	}
	require.NoError(t, v.NoteFailures(t.Context(), []diagnose.TaskFailure{
		{RunID: "both", At: at(6), Text: "panic"}, {RunID: "failed", At: at(6), Text: "panic"},
		{RunID: "running", At: at(6), Text: "panic"},
		{RunID: "long ago", At: at(3), Text: "panic"},
	}))
	list, err := v.Suspects(t.Context(), at(5), 10)
	require.NoError(t, err)
	var ids []string
	for _, c := range list {
		ids = append(ids, c.ID)
		require.Equal(t, c.ID != "failed", c.CancelRequested, c.ID)
		require.Equal(t, c.ID != "asked", c.Failure != nil, c.ID)
	}
	require.Equal(t, []string{"asked", "both", "failed"}, ids)
	list, err = v.Suspects(t.Context(), at(5), 1)
	require.NoError(t, err)
	require.Len(t, list, 1)
	list, err = v.Waiting(t.Context(), []string{"quiet", "running", "none"})
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, diagnose.Row{
		ID: "quiet", Project: here, Status: run.Waiting, WaitingKind: list[0].WaitingKind, StatusAt: at(5), Sequence: 2},
		list[0].Row)
}

func testFailures(t *testing.T, open Opener) {
	s := open(t)
	v := s.Verdicts()
	insert(t, s, newRun("r1", 1))
	failure := func() *diagnose.Failure {
		t.Helper()
		list, err := v.Overdue(t.Context(), at(60), diagnose.Cursor{}, 10)
		require.NoError(t, err)
		require.Len(t, list, 1)
		return list[0].Failure
	}
	require.Nil(t, failure())
	require.NoError(t, v.NoteFailures(t.Context(),
		[]diagnose.TaskFailure{{RunID: "r1", At: at(3), Text: "panic\x00"},
			{RunID: "none", At: at(3), Text: "no run of ours"}}))
	require.Equal(t, &diagnose.Failure{At: at(3), Since: at(3), Text: "panic\uFFFD"}, failure())
	require.NoError(t, v.NoteFailures(t.Context(), []diagnose.TaskFailure{{RunID: "r1", At: at(5), Text: "newer"}}))
	require.NoError(t, v.NoteFailures(t.Context(), []diagnose.TaskFailure{{RunID: "r1", At: at(4), Text: "late"}}))
	require.Equal(t, &diagnose.Failure{At: at(5), Since: at(5), Text: "newer"}, failure())
	testFailuresOnBuilds(t, v.NoteFailures, failure)
	require.NoError(t, v.ForgetFailures(t.Context()))
	require.NotNil(t, failure(), "the run is open")
	apply(t, s, state("r1", 1, run.Completed))
	require.NoError(t, v.ForgetFailures(t.Context()))
	require.NoError(t, v.NoteFailures(t.Context(),
		[]diagnose.TaskFailure{{RunID: "r1", At: at(6), Text: "after its end"}}))
}

// testFailuresOnBuilds has builds that fail one after the other: only consecutive failures with the same cause and text
// count as the same failure.
func testFailuresOnBuilds(t *testing.T, note func(context.Context, []diagnose.TaskFailure) error,
	failure func() *diagnose.Failure) {
	t.Helper()
	for i, tt := range []struct {
		n                  int
		text, cause, build string
		since              int
		other              string
	}{
		{10, "cheese", run.Panic, "a", 10, ""},
		{11, "cheese", run.Panic, "a", 10, ""},
		{12, "cheese", run.Panic, "b", 10, "a"},
		{13, "cheese", run.Panic, "b", 10, "a"},
		{14, "cheese", run.Panic, "a", 10, "b"},
		{15, "ham", run.Panic, "b", 15, ""},
		{16, "ham", run.Deadlock, "a", 16, ""},
		{16 + 3600, "ham", run.Deadlock, "b", 16 + 3600, ""},
	} {
		require.NoError(t, note(t.Context(),
			[]diagnose.TaskFailure{{RunID: "r1", At: at(tt.n), Text: tt.text, Cause: tt.cause, Build: tt.build}}))
		require.Equal(t, &diagnose.Failure{
			At: at(tt.n), Since: at(tt.since), Text: tt.text, Cause: tt.cause, Build: tt.build, OtherBuild: tt.other,
		}, failure(), "failure %d", i)
	}
}

// testReserveEndings has a limit of three, and of four if twenty runs are open.
func testReserveEndings(t *testing.T, open Opener) {
	s := open(t)
	createProject(t, s, "other")
	for i := range 19 {
		insert(t, s, newRun(fmt.Sprintf("r%02d", i), i))
	}
	reserve := func(projectName string, n int, ids ...string) diagnose.Endings {
		t.Helper()
		answer, err := s.Verdicts().ReserveEndings(t.Context(), diagnose.EndingRequest{
			Project: projectName, RunIDs: ids, At: at(n), Since: at(n - 3600), Limit: func(open int64) int64 {
				return max(3, open/5)
			},
			Exceeded: func(poison, limit int64) event.Event {
				return event.Event{
					ID: "limit", Source: diagnose.Source(projectName), Type: diagnose.EventPoisonLimit, Subject: projectName,
					DataContentType: "application/json", Data: fmt.Appendf(nil, `{"poison":%d,"limit":%d}`, poison, limit),
				}
			},
		})
		require.NoError(t, err)
		return answer
	}
	published := func() (data []string) {
		t.Helper()
		list, err := s.Events().ListEvents(t.Context(),
			event.ListFilter{Project: here, Type: diagnose.EventPoisonLimit, Limit: 10})
		require.NoError(t, err)
		for _, e := range list {
			data = append(data, string(e.Data))
		}
		return data
	}
	answer := reserve(here, 1, "r00", "r01", "r02", "r03")
	require.Empty(t, answer.Granted, "more than the limit at once: none")
	require.True(t, answer.Exceeded)
	require.Equal(t, []string{`{"poison":4,"limit":3}`}, published())

	require.Equal(t, []string{"r00", "r01"}, reserve(here, 2, "r00", "r01").Granted)
	require.Equal(t, []string{"r00", "r01"}, reserve(here, 3, "r00", "r01").Granted, "a grant is kept")
	require.Equal(t, []string{"r01", "r02"}, reserve(here, 4, "r01", "r02").Granted)
	answer = reserve(here, 5, "r01", "r03")
	require.Equal(t, []string{"r01"}, answer.Granted)
	require.True(t, answer.Exceeded)
	require.Len(t, published(), 1, "an event of the same ID is not repeated")
	require.Equal(t, []string{"r03"}, reserve("other", 6, "r03").Granted, "projects have their own limits")

	insert(t, s, newRun("r19", 19))
	require.Equal(t, []string{"r04"}, reserve(here, 7, "r04").Granted, "the share of the open runs is more")
	require.True(t, reserve(here, 8, "r05").Exceeded)
	require.Equal(t, []string{"r05", "r06", "r07"}, reserve(here, 3604, "r05", "r06", "r07").Granted,
		"what is an hour old does not count")
}
