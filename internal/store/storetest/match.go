package storetest

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/statistics"
)

// conditions are the fields of a filter that are conditions on runs; testFilterMatches varies them all.
func conditions() []string {
	return []string{"Project", "Statuses", "Workflow", "Version", "RequestID", "Since", "Until", "Stuck", "Trigger",
		"Text", "NotReplayed", "FailureGroup", "IDs", "ParentRunID", "ReplayOf", "BatchID", "StartedByBatchID", "Labels",
		"EndedSince", "EndedUntil", "ErrorType", "Retrying", "ErrorText", "FailedTask", "Words", "Waiting", "Cause"}
}

// testFilterMatches compares the runs that the store selects with those that [run.Filter.Matches] selects of all rows,
// for random filters.
func testFilterMatches(t *testing.T, open Opener) {
	for field := range reflect.TypeFor[run.Filter]().Fields() {
		if !slices.Contains([]string{"OldestFirst", "After", "Limit"}, field.Name) {
			require.Contains(t, conditions(), field.Name,
				"a new condition must be in Filter.Matches, or in BeyondRow, and in this test")
		}
	}
	s := open(t)
	l := newLister(t, s)
	replay := newRun("019a4f2e-9e07-7c54-8a3b-5d1c22f0ab71", 5)
	replay.Trigger, replay.ReplayOf = run.TriggerReplay, l.runs[0].ID
	insert(t, s, replay)
	ids := []string{replay.ID}
	for _, r := range l.runs {
		ids = append(ids, r.ID)
	}
	rows, err := s.ListRuns(t.Context(), run.Filter{IDs: ids})
	require.NoError(t, err)
	require.Len(t, rows, len(ids))

	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	hits, excluded := 0, 0
	for range 500 {
		f := randomFilter(random, rows)
		require.Equal(t, versions(rows, f), selected(t, s, f), "seed %d: %+v", seed, f)
		hits += len(versions(rows, f))
		f.NotReplayed = true
		require.True(t, f.BeyondRow())
		left := selected(t, s, f)
		for _, id := range left {
			require.Contains(t, versions(rows, f), id, "seed %d: %+v", seed, f)
			require.NotEqual(t, replay.ReplayOf, id)
		}
		excluded += len(versions(rows, f)) - len(left)
		f.NotReplayed = false
		for _, link := range links(f) {
			require.True(t, link.BeyondRow())
			for _, id := range selected(t, s, link) {
				require.Contains(t, versions(rows, f), id, "seed %d: %+v", seed, link)
			}
		}
	}
	require.Positive(t, hits)
	require.Positive(t, excluded)
	for _, end := range []string{"22f0ab71", "-5d1c22f0ab71", replay.ID} {
		require.Equal(t, []string{replay.ID}, selected(t, s, run.Filter{Project: here, Text: end, Limit: 9}), end)
	}
	for _, other := range []string{"2f0ab71", "22f0ab7", "r22f0ab71", "0" + replay.ID} {
		require.Empty(t, selected(t, s, run.Filter{Project: here, Text: other, Limit: 9}), other)
	}
	failed := rows[slices.IndexFunc(rows, func(r run.Run) bool { return r.Project == here && r.Status == run.Failed })]
	for name, f := range map[string]run.Filter{
		"Statuses": {Statuses: []run.Status{run.Failed}}, "Workflow": {Workflow: failed.Workflow},
		"Version":   {Workflow: failed.Workflow, Version: failed.Version},
		"RequestID": {RequestID: failed.RequestID}, "Since": {Since: failed.CreatedAt},
		"Until": {Until: failed.CreatedAt.Add(time.Microsecond)},
		"Stuck": {Stuck: []string{run.AnyCode}}, "Trigger": {Trigger: failed.Trigger}, "Text": {Text: failed.ID},
		"NotReplayed":  {NotReplayed: true},
		"FailureGroup": {FailureGroup: run.FailureGroup(failed)}, "IDs": {IDs: []string{failed.ID}},
		"ParentRunID": {ParentRunID: "r01"}, "ReplayOf": {ReplayOf: "r00"},
		"BatchID": {BatchID: "b"}, "StartedByBatchID": {StartedByBatchID: "b"},
		"Labels":     {Labels: map[string]string{"order": "4711"}},
		"EndedSince": {EndedSince: failed.EndedAt}, "EndedUntil": {EndedUntil: failed.EndedAt.Add(time.Microsecond)},
		"ErrorType": {ErrorType: failed.Error.Type}, "Retrying": {Retrying: run.AnyTask},
		"ErrorText": {ErrorText: run.ErrorWords(failed.Error)[0]}, "FailedTask": {FailedTask: run.FailedTask(failed.Error)},
		"Words": {Words: "4711"}, "Waiting": {Waiting: run.WaitingTimer},
		"Cause": {Cause: run.Panic, Stuck: []string{run.AnyCode}},
	} {
		require.False(t, reflect.ValueOf(f).FieldByName(name).IsZero(), name)
		f.Project, f.Limit = here, len(rows)
		some := selected(t, s, f)
		require.Less(t, len(some), len(selected(t, s, run.Filter{Project: here, Limit: len(rows)})), name)
		none := slices.Contains([]string{"StartedByBatchID", "Retrying", "Cause"}, name)
		require.Equal(t, none, len(some) == 0, "%s: the batch started none, no run retries, and no verdict has a cause", name)
	}
	for _, r := range rows {
		if group := run.FailureGroup(r); group != "" {
			f := run.Filter{Project: r.Project, FailureGroup: group, Limit: len(rows)}
			require.True(t, f.BeyondRow())
			require.Contains(t, selected(t, s, f), r.ID)
			require.Subset(t, versions(rows, f), selected(t, s, f))
			f.IDs = ids
			require.Contains(t, selected(t, s, f), r.ID)
		}
	}
}

func randomFilter(random *rand.Rand, rows []run.Run) run.Filter {
	pick := func() run.Run { return rows[random.IntN(len(rows))] }
	sometimes := func() bool { return random.IntN(4) == 0 }
	f := run.Filter{Project: here, Limit: len(rows)}
	set := func(do func()) {
		if sometimes() {
			do()
		}
	}
	set(func() { f.Project = pick().Project })
	set(func() { f.Statuses = []run.Status{pick().Status, pick().Status} })
	set(func() { f.Workflow = pick().Workflow })
	set(func() { f.Workflow, f.Version = pick().Workflow, pick().Version })
	set(func() { f.RequestID = pick().RequestID })
	set(func() { f.Since = pick().CreatedAt })
	set(func() { f.Until = pick().CreatedAt })
	set(func() { f.EndedSince = pick().EndedAt })
	set(func() { f.EndedUntil = pick().EndedAt })
	set(func() {
		if failed := pick().Error; failed != nil {
			f.ErrorType = failed.Type[random.IntN(2)*(strings.LastIndex(failed.Type, "/")+1):]
		}
	})
	set(func() { f.ErrorText = word(random, run.ErrorWords(pick().Error)) })
	set(func() { f.FailedTask = run.FailedTask(pick().Error) })
	set(func() {
		f.Words = word(random, run.StartWords(pick())) + " " + word(random, append(run.ErrorWords(pick().Error), "shop", "order"))
	})
	set(func() { f.Waiting = pick().WaitingKind })
	set(func() { f.Stuck = []string{run.AnyCode} })
	set(func() { f.Stuck = []string{run.Codes()[random.IntN(4)], run.Codes()[random.IntN(4)]} })
	set(func() { f.Trigger = pick().Trigger })
	set(func() { id := pick().ID; f.Text = id[:random.IntN(len(id)+1)] })
	set(func() { id := pick().ID; f.Text = id[random.IntN(len(id)+1):] })
	set(func() { id := pick().RequestID; f.Text = id[:random.IntN(len(id)+1)] })
	set(func() { f.Labels = someLabels(random, pick().Labels) })
	set(func() { f.Labels = map[string]string{"order": "4711", "none": "x"} })
	set(func() { f.IDs = []string{pick().ID, pick().ID, pick().ID, "none"} })
	return f
}

// word returns the beginning of one of the words; empty if there are none.
func word(random *rand.Rand, words []string) string {
	if len(words) == 0 {
		return ""
	}
	chosen := []rune(words[random.IntN(len(words))])
	return string(chosen[:1+random.IntN(len(chosen))])
}

// someLabels returns some of the labels.
func someLabels(random *rand.Rand, labels map[string]string) map[string]string {
	some := map[string]string{}
	for key, value := range labels {
		if random.IntN(2) == 0 {
			some[key] = value
		}
	}
	return some
}

// links returns the filter with a condition on each relation of a run to others.
func links(f run.Filter) []run.Filter {
	parent, replayed, selectedBy, startedBy := f, f, f, f
	parent.ParentRunID, replayed.ReplayOf, selectedBy.BatchID, startedBy.StartedByBatchID = "r01", "r00", "b", "b"
	return []run.Filter{parent, replayed, selectedBy, startedBy}
}

// versions returns the IDs of the rows that match, in the order of IDs.
func versions(rows []run.Run, f run.Filter) []string {
	found := []string{}
	for _, r := range rows {
		if f.Matches(r) {
			found = append(found, r.ID)
		}
	}
	slices.Sort(found)
	return found
}

// selected returns the IDs that the store selects, and requires that both forms of the list agree.
func selected(t *testing.T, s Store, f run.Filter) []string {
	t.Helper()
	list, err := s.RowVersions(t.Context(), f)
	require.NoError(t, err)
	full, err := s.ListRuns(t.Context(), f)
	require.NoError(t, err)
	require.Len(t, full, len(list))
	lengths, err := s.Statistics().ReadLengths(t.Context(), f)
	require.NoError(t, err)
	require.Len(t, lengths, len(list))
	ids := []string{}
	for i, v := range list {
		require.Equal(t, run.RowVersion{ID: full[i].ID, Sequence: full[i].Sequence}, v)
		require.Equal(t, statistics.Length{ID: full[i].ID, StartedAt: full[i].StartedAt, EndedAt: full[i].EndedAt},
			lengths[i])
		ids = append(ids, v.ID)
	}
	slices.Sort(ids)
	return ids
}
