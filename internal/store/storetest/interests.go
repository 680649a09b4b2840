package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/event/match"
	"github.com/signalbox-dev/signalbox/internal/problem"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

func errContains(err error, part string) bool { return strings.Contains(err.Error(), part) }

// wants returns a spec that matches events of some types; of any type if there is none.
func wants(types ...string) event.Spec {
	spec := event.Spec{Mode: event.Any}
	for _, name := range types {
		literal := json.RawMessage(strconv.Quote(name))
		spec.Filters = append(spec.Filters, event.Filter{With: map[string]event.Value{"type": {Literal: literal}}})
	}
	return spec
}

func listener(id, runID string, types ...string) event.Listener {
	return event.Listener{ID: id, Project: here, RunID: runID, Spec: wants(types...)}
}

func listen(t testing.TB, s Store, l event.Listener) {
	t.Helper()
	_, err := s.Events().Listen(t.Context(), l)
	require.NoError(t, err)
}

func getListener(t testing.TB, s Store, id string) (event.Listener, bool) {
	t.Helper()
	l, found, err := s.Events().GetListener(t.Context(), here, id)
	require.NoError(t, err)
	return l, found
}

// unrouted returns the batch to match after an event of the type was published.
func unrouted(t testing.TB, s Store, typ string) event.Batch {
	t.Helper()
	o := fence(t, s, "host-1")
	batch, err := s.Events().Unrouted(t.Context(), here, 1000)
	require.NoError(t, err)
	var routings []event.Routing
	for _, e := range batch.Events {
		routings = append(routings, routing(e.Position, event.Unmatched))
	}
	route(t, s, o, routings...)
	e := newEvent(fmt.Sprint("of ", typ, len(batch.Events), time.Now().UnixNano()))
	e.Type = typ
	give(t, s, e)
	batch, err = s.Events().Unrouted(t.Context(), here, 1000)
	require.NoError(t, err)
	require.Len(t, batch.Events, 1)
	return batch
}

// waiting returns the IDs of the listeners that may match the events of a batch.
func waiting(t testing.TB, s Store, batch event.Batch) []string {
	t.Helper()
	found, err := awaiting(t.Context(), s, batch)
	require.NoError(t, err)
	return found
}

func awaiting(ctx context.Context, s Store, batch event.Batch) ([]string, error) {
	found, err := s.Events().FindListeners(ctx, here, match.New(match.Options{}).Evaluate(batch).Lookups())
	var ids []string
	for _, l := range slices.Concat(batch.Listeners, found.Listeners) {
		ids = append(ids, l.ID)
	}
	return ids, err
}

func testListeners(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	listen(t, s, listener("l0", "r0", "a"))
	give(t, s, newEvents("e", 3)...)
	l := listener("l1", "r1", "a", "b", "a")
	l.Since = 99
	listen(t, s, l)
	listen(t, s, listener("l2", "r1"))
	listen(t, s, listener("l3", "r2", "b"))
	got, found := getListener(t, s, "l1")
	require.True(t, found)
	l.Since = 3
	require.Equal(t, l, got)
	give(t, s, newEvents("f", 1)...)
	listen(t, s, l)
	got, _ = getListener(t, s, "l1")
	require.Equal(t, int64(3), got.Since, "the existing listener does not change")

	for typ, want := range map[string][]string{"a": {"l0", "l1", "l2"}, "b": {"l1", "l2", "l3"}, "c": {"l2"}} {
		require.Equal(t, want, waiting(t, s, unrouted(t, s, typ)), typ)
	}
	for range 2 {
		require.NoError(t, s.Events().Unlisten(ctx, here, "l2"))
	}
	_, found = getListener(t, s, "l2")
	require.False(t, found)
	require.Empty(t, waiting(t, s, unrouted(t, s, "c")))
	createProject(t, s, "other")
	_, found, err := s.Events().GetListener(ctx, "other", "l1")
	require.NoError(t, err)
	require.False(t, found)
	bad := listener("l9", "r1", "a")
	bad.Spec.Filters[0].With["type"] = event.Value{Expr: "\x00\xff"}
	listen(t, s, bad) // JSON escapes characters that text cannot hold
}

func testListenersEnd(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	for i, id := range []string{"completed", "missing", "corrected", "reset", "open"} {
		insert(t, s, newRun(id, i))
		apply(t, s, state(id, 1, run.Running))
		listen(t, s, listener("1 of "+id, id, "a"))
		listen(t, s, listener("2 of "+id, id))
	}
	listen(t, s, listener("unknown", "unknown", "a"))
	left := func() []string { return waiting(t, s, unrouted(t, s, "a")) }
	require.Len(t, left(), 11)
	apply(t, s, state("completed", 2, run.Completed), state("open", 2, run.Waiting))
	_, err := s.FinishMissing(ctx, "missing", run.Failed, nil, at(9), entry(audit.RunExecutionMissing, here, "missing"))
	require.NoError(t, err)
	_, err = s.CorrectRun(ctx, state("corrected", 2, run.Canceled), nil)
	require.NoError(t, err)
	u := state("reset", 2, run.Failed)
	u.ExecutionID = "execution-2"
	followed, err := s.FollowExecution(ctx, u, "execution-1", []string{"execution-1"},
		entry(audit.RunFollowReset, here, "reset"))
	require.NoError(t, err)
	require.True(t, followed)
	require.Equal(t, []string{"1 of open", "2 of open", "unknown"}, left())

	_, err = s.Events().Listen(ctx, listener("3 of completed", "completed"))
	requireError(t, err, apperror.Refused, apperror.RunEnded, "completed")
	require.Len(t, left(), 3)

	// In any order: no listener outlives its run.
	other := open(t)
	for i := range 20 {
		id := fmt.Sprint("rival-", i)
		insert(t, s, newRun(id, i))
		var wg sync.WaitGroup
		var listening error
		wg.Go(func() { _, listening = other.Events().Listen(ctx, listener(id, id, "a")) })
		wg.Go(func() { _, _ = s.ApplyUpdates(ctx, []run.Update{state(id, 1, run.Completed)}) })
		wg.Wait()
		if listening != nil {
			require.True(t, apperror.Is(listening, apperror.RunEnded), "%v", listening)
		}
		_, found := getListener(t, s, id)
		require.False(t, found)
	}
}

// by returns a listener for events of a type whose order is the expected one.
func by(id, typ, order string) event.Listener {
	l := listener(id, "r", typ)
	l.Spec.Filters[0].Correlate = map[string]event.Key{"order": {From: ".data.order", Expect: json.RawMessage(order)}}
	return l
}

// testListenersByValue: of the listeners for a type, only those are read that expect the values of the event, however
// they are written.
func testListenersByValue(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	two := by("two", "paid", `7`)
	two.Spec.Filters = append(two.Spec.Filters, by("", "shipped", `8`).Spec.Filters...)
	computed := by("computed", "paid", `7`)
	computed.Spec.Filters[0].With["data"] = event.Value{Expr: ".order > 100"}
	failing := by("failing 1", "paid", `7`)
	failing.Spec.Filters[0].With["data"] = event.Value{Expr: ".order.id > 100"}
	other := failing
	other.ID, other.RunID = "failing 2", "r2"
	for _, l := range []event.Listener{
		by("seven", "paid", `7`), by("the same", "paid", `7.0`), by("text", "paid", `"7"`), by("eight", "paid", `8`),
		by("sent", "shipped", `7`),
		by("object", "paid", `{"b":[1],"a":"é"}`), two, computed, other, failing, listener("each", "r", "paid"),
		listener("every", "r"),
	} {
		listen(t, s, l)
	}
	for order, want := range map[string][]string{
		`7`: {"each", "every", "seven", "the same", "two"}, `"7"`: {"each", "every", "text"}, `9`: {"each", "every"},
		`null`:                   {"each", "every"},
		`{"a": "é", "b": [1.0]}`: {"each", "every", "object"},
	} {
		batch := unrouted(t, s, "paid")
		batch.Events[0].Data = json.RawMessage(`{"order":` + order + `}`)
		require.Empty(t, batch.Listeners, "each is in the index")
		require.Len(t, batch.Shapes, 5, "by order, each, computed, failing, every")
		require.ElementsMatch(t, want, waiting(t, s, batch), order)
	}
	batch := unrouted(t, s, "paid")
	batch.Events[0].Data = json.RawMessage(`{"order":7}`)
	found, err := s.Events().FindListeners(ctx, here, match.New(match.Options{}).Evaluate(batch).Lookups())
	require.NoError(t, err)
	require.Len(t, found.Summaries, 1)
	require.Equal(t, 2, found.Summaries[0].Count)
	require.Equal(t, event.Listener{ID: "failing 1", Project: here, RunID: "r"}, found.Summaries[0].First)

	found, err = s.Events().FindListeners(ctx, here, []event.Lookup{
		{Entry: event.Entry{Type: "paid", Shape: "none"}, Summary: true},
		{Entry: event.Entry{Type: "paid", Shape: "none", Values: "1\n"}},
	})
	require.NoError(t, err)
	require.Empty(t, found.Listeners)
	require.Zero(t, found.Summaries[0].Count)

	createProject(t, s, "other")
	found, err = s.Events().FindListeners(ctx, "other", match.New(match.Options{}).Evaluate(batch).Lookups())
	require.NoError(t, err)
	require.Empty(t, found.Listeners, "of another project")
}

// rounds is the number of listeners in [listenAgainstPublish], and half of that of its events.
const rounds = 60

// roundID is the ID of one of its listeners.
func roundID(i int) string { return fmt.Sprintf("l%03d", i) }

// listenAgainstPublish publishes events, commits listeners and routes the events, all at the same time. It returns for
// each event the listeners that were read when it was matched.
func listenAgainstPublish(t *testing.T, stores []Store, listener func(i int) event.Listener) map[int64]map[string]bool {
	t.Helper()
	// a listener for which events were found is refused while the project has no dispatcher
	o := fence(t, stores[2], "host-1")
	errs := make(chan error, 3)
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range rounds {
			if _, _, err := stores[0].Events().Publish(t.Context(), here, newEvents(fmt.Sprint(i, "-"), 2)); err != nil {
				errs <- err
				return
			}
		}
	})
	wg.Go(func() {
		for i := range rounds {
			if _, err := stores[1].Events().Listen(t.Context(), listener(i)); err != nil {
				errs <- err
				return
			}
		}
	})
	known := map[int64]map[string]bool{}
	wg.Go(func() {
		for len(known) < 2*rounds {
			batch, err := stores[2].Events().Unrouted(t.Context(), here, 5)
			if err != nil {
				errs <- err
				return
			}
			found, err := awaiting(t.Context(), stores[2], batch)
			if err != nil {
				errs <- err
				return
			}
			var routings []event.Routing
			for _, e := range batch.Events {
				known[e.Position] = map[string]bool{}
				for _, id := range found {
					known[e.Position][id] = true
				}
				routings = append(routings, routing(e.Position, event.Unmatched))
			}
			if err := stores[2].Events().CommitRouting(t.Context(), here, o, routings); err != nil {
				errs <- err
				return
			}
		}
	})
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	return known
}

// testListenAgainstPublish: for each event and each listener, either the event was accepted before, or the listener is
// read when the event is matched.
func testListenAgainstPublish(t *testing.T, open Opener) {
	stores := []Store{open(t), open(t), open(t)}
	known := listenAgainstPublish(t, stores, func(i int) event.Listener { return listener(roundID(i), "r", "test.event") })
	for i := range rounds {
		l, found := getListener(t, stores[0], roundID(i))
		require.True(t, found)
		for position, listeners := range known {
			if position > l.Since {
				require.True(t, listeners[l.ID], "event %d was matched without the listener from %d", position, l.Since)
			}
		}
	}
}

func triggered(name, number, spec string) workflow.Version {
	v := version(name, number, "sha256:"+name+number, len(number))
	v.Trigger = json.RawMessage(spec)
	return v
}

func testTriggers(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	const onA, onB = `{"mode":"one", "filters":[{"with":{"type":{"literal":"a"}}}]}`,
		`{"mode":"one","filters":[{"with":{"type":{"literal":"b"}}}]}`
	give(t, s, newEvents("e", 3)...)
	v := triggered("x/one", "1", onA)
	v.Timer = json.RawMessage(`{"every":  1000}`)
	publish(t, s, v)
	got, err := s.GetVersion(ctx, here, "x/one", "1")
	require.NoError(t, err)
	require.Equal(t, v, got)
	publish(t, s, triggered("x/any", "1", `{"mode":"any"}`))
	publish(t, s, version("x/none", "1", "sha256:none", 1))

	names := func(typ string) (names []string) {
		for _, t := range unrouted(t, s, typ).Triggers {
			names = append(names, t.Workflow+" "+t.Version)
		}
		return names
	}
	one := func(typ string) event.Trigger {
		for _, t := range unrouted(t, s, typ).Triggers {
			if t.Workflow == "x/one" {
				return t
			}
		}
		require.Fail(t, "no trigger")
		return event.Trigger{}
	}
	require.Equal(t, event.Trigger{
		Project: here, Workflow: "x/one", Version: "1", DocumentHash: v.Hash, Since: 3,
		Spec: event.Spec{Mode: event.One,
			Filters: []event.Filter{{With: map[string]event.Value{"type": {Literal: json.RawMessage(`"a"`)}}}}},
	}, one("a"))
	require.Equal(t, []string{"x/any 1", "x/one 1"}, names("a"))
	require.Equal(t, []string{"x/any 1"}, names("b"))

	// An older version changes nothing; a newer one keeps the starting position of the workflow.
	publish(t, s, triggered("x/one", "333", onB))
	publish(t, s, triggered("x/one", "22", onA))
	require.Equal(t, []string{"x/any 1", "x/one 333"}, names("b"))
	require.Equal(t, []string{"x/any 1"}, names("a"))
	require.Equal(t, int64(3), one("b").Since)
	_, err = s.SetPaused(ctx, here, "x/one", true, "", entry(audit.WorkflowPause, here, "x/one"))
	require.NoError(t, err)
	require.True(t, one("b").Paused)
	publish(t, s, triggered("x/one", "4444", onB))
	require.True(t, one("b").Paused)
	_, err = s.SetPaused(ctx, here, "x/one", false, "", entry(audit.WorkflowPause, here, "x/one"))
	require.NoError(t, err)
	require.False(t, one("b").Paused)
	// A version without a trigger removes it; the next one starts at a new position.
	publish(t, s, version("x/one", "55555", "sha256:none", 5))
	require.Equal(t, []string{"x/any 1"}, names("b"))
	publish(t, s, triggered("x/one", "666666", onB))
	require.Greater(t, one("b").Since, int64(3))

	_, made, err := s.Publish(ctx, triggered("x/two", "1", onB), longer,
		audit.Entry{Time: at(1), Action: "any", Reason: "\x00"})
	require.Error(t, err)
	require.False(t, made)
	require.Equal(t, []string{"x/any 1", "x/one 666666"}, names("b"), "the trigger is that of its version")
	require.NoError(t, s.DeleteWorkflow(ctx, here, "x/one", entry(audit.WorkflowDelete, here, "x/one")))
	require.Equal(t, []string{"x/any 1"}, names("b"))
}

func testTimers(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	createProject(t, s, "another")
	timed := func(projectName, name, number, timer string) workflow.Version {
		v := version(name, number, "sha256:"+name+number, len(number))
		v.Project, v.Timer = projectName, json.RawMessage(timer)
		return v
	}
	publish(t, s, timed(here, "x/cron", "1", `{"cron":"* * * * *"}`))
	publish(t, s, timed(here, "x/every", "1", `{"every":1000000000}`))
	publish(t, s, timed("another", "x/after", "1", `{"after":5}`))
	publish(t, s, version("x/none", "1", "sha256:none", 1))
	publish(t, s, triggered("x/events", "1", `{"mode":"any"}`))
	_, err := s.SetPaused(ctx, here, "x/every", true, "", entry(audit.WorkflowPause, here, "x/every"))
	require.NoError(t, err)
	publish(t, s, timed(here, "x/every", "22", `{"every":2000000000}`))
	override := event.Override{
		TimerSettings: event.TimerSettings{TimeZone: "Europe/Berlin", Overlap: "skip", Jitter: new(time.Duration)},
		PausedUntil:   at(9),
	}
	require.NoError(t, s.SetOverride(ctx, here, "x/cron", override, entry(audit.WorkflowSetSchedule, here, "x/cron")))
	require.Equal(t, audit.WorkflowSetSchedule, audited(t, s, "x/cron")[0].Action)
	err = s.SetOverride(ctx, here, "x/missing", override, entry(audit.WorkflowSetSchedule, here, "x/missing"))
	requireError(t, err, apperror.NotFound, apperror.WorkflowNotFound, "x/missing")
	require.NoError(t, s.Events().SetMissed(ctx, here, "x/cron", at(7)))
	require.NoError(t, s.Events().SetMissed(ctx, here, "x/every", at(7)))
	want := []event.Timer{
		{Project: "another", Workflow: "x/after", Version: "1", Since: at(1), ChangedAt: at(1), Spec: event.TimerSpec{After: 5}},
		{Project: here, Workflow: "x/cron", Version: "1", Since: at(1), ChangedAt: at(0),
			Spec: event.TimerSpec{Cron: "* * * * *"}, Override: override, MissedAt: at(7)},
		{Project: here, Workflow: "x/every", Version: "22", Paused: true, Since: at(2), ChangedAt: at(2), MissedAt: at(7),
			Spec: event.TimerSpec{Every: 2 * time.Second}},
	}
	missed, err := s.Problems().MissedSchedules(ctx, []string{here, "another"})
	require.NoError(t, err)
	require.Equal(t, []problem.MissedSchedule{{Project: here, Workflow: "x/cron", At: at(7)}}, missed, "none that is paused")
	list, err := s.Events().ListTimers(ctx, event.TimerCursor{}, 10)
	require.NoError(t, err)
	require.Equal(t, want, list)
	list, err = s.Events().ListTimers(ctx, event.TimerCursor{Project: "another", Workflow: "x/after"}, 1)
	require.NoError(t, err)
	require.Equal(t, want[1:2], list)
	one, found, err := s.Events().GetTimer(ctx, here, "x/every")
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, want[2], one)
	_, found, err = s.Events().GetTimer(ctx, here, "x/events")
	require.NoError(t, err)
	require.False(t, found)
	require.Len(t, unrouted(t, s, "a").Triggers, 1, "a timer alone matches no events")

	require.NoError(t, s.SetOverride(ctx, here, "x/cron", event.Override{},
		entry(audit.WorkflowSetSchedule, here, "x/cron")))
	require.NoError(t, s.Events().SetMissed(ctx, here, "x/cron", time.Time{}))
	one, _, err = s.Events().GetTimer(ctx, here, "x/cron")
	require.NoError(t, err)
	require.Zero(t, one.Override)
	require.Zero(t, one.MissedAt)
	missed, err = s.Problems().MissedSchedules(ctx, []string{here})
	require.NoError(t, err)
	require.Empty(t, missed)
}
