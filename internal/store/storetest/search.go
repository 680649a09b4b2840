package storetest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/retention"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/search"
	"github.com/signalbox-dev/signalbox/internal/search/term"
)

// testSearch finds runs by all that they are found by, and not by marks, by runs of other projects or by deleted ones.
func testSearch(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	const id = "019a4f2e-9e07-7c54-8a3b-5d1c22f0ab71"
	r := newRun(id, 5)
	r.RequestID, r.Labels = "web-shop-981", map[string]string{"order": "4711", "region": "EU-West"}
	insert(t, s, r)
	failed := newRun("019a4f2e-9e08-7c54-8a3b-5d1c22f0ab72", 6)
	failed.RequestID, failed.Workflow = "q6", "shop/payment"
	insert(t, s, failed)
	ended := state(failed.ID, 1, run.Failed)
	ended.State.Error = &run.Error{Type: "https://x/errors/communication", Status: 503, Title: "Payment refused",
		Detail: "card " + redact.Mark + " of order 4711: 100% _sure_ 'quoted'", Instance: "/do/0/charge card"}
	apply(t, s, ended)

	find := func(text string, scope search.Scope) (found []string) {
		hits, err := s.Search().Find(ctx, search.Query{
			Project: here, Scope: scope, Text: text, Words: term.Words(text), Limit: 10})
		require.NoError(t, err, text)
		for _, h := range hits {
			if h.Kind == search.Run {
				found = append(found, h.ID)
			}
		}
		return found
	}
	all := search.Scope{All: true}
	for _, text := range []string{"4711", "471", "eu west", "EU-WEST", "region eu", "order 4711 region", "019a4f2e-9e07",
		"22f0ab71", strings.ToUpper(id), "web-shop-9", "981"} {
		require.Contains(t, find(text, all), id, text)
	}
	require.Equal(t, []string{failed.ID, id}, find("4711", all), "the newest first")
	for _, text := range []string{"refused", "Payment ref", "503", "communication", "charge", "payment 4711", "quoted",
		"100% _sure_"} {
		require.Equal(t, []string{failed.ID}, find(text, all), text)
	}
	for _, text := range []string{"4712", "711", "redacted", "%%%%", "____", "'; DROP TABLE runs", "‮4712", "examples", "\x004712",
		"web-shop-99"} {
		require.Empty(t, find(text, all), text)
	}

	require.Empty(t, find("019a4f2e-9e07", search.Scope{Names: []string{"other"}}), "IDs of other projects need a role there")
	require.Contains(t, find("019a4f2e-9e07", search.Scope{Names: []string{here}}), id)
	require.Empty(t, find("019a4f2e-9e07", search.Scope{}))

	list := func(f run.Filter) []string { f.Project, f.Limit = here, 10; return selected(t, s, f) }
	require.Equal(t, []string{failed.ID}, list(run.Filter{ErrorText: "order 4711"}))
	require.Empty(t, list(run.Filter{ErrorText: "west"}))
	require.Equal(t, []string{failed.ID}, list(run.Filter{FailedTask: "Charge Card"}))
	require.Empty(t, list(run.Filter{FailedTask: "charge"}), "the whole name")
	require.Equal(t, []string{id, failed.ID}, list(run.Filter{Words: "4711"}))
	require.Equal(t, []string{id}, list(run.Filter{Words: "4711 region"}))
	counts, err := s.CountRuns(ctx, run.Filter{Project: here, Words: "4711"})
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"queued": 1, "failed": 1}, counts.Statuses)

	require.Positive(t, deleteAll(t, s, retention.Runs, retention.Cut{Before: at(1000), EndedBefore: at(1000)},
		10)["run_terms"])
	require.Equal(t, []string{id}, find("4711", all))
	removed, err := s.RemoveUnstarted(ctx, id, entry(audit.RunStartRefused, here, id))
	require.NoError(t, err)
	require.True(t, removed)
	require.Empty(t, find("4711", all))
	insert(t, s, newRun(id, 7))
	require.Empty(t, find("4711", all), "terms are removed with their run")
}
