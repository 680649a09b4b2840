package legacy_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/migrate/internal/legacy"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
)

func TestRunsReopenedInOurTablesAreEnded(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, from old, to *storetest.Plain) {
		from.fill(t)
		_, err := legacy.Import(t.Context(), to.Database(), from.options(importedAt))
		require.NoError(t, err)
		open, err := to.OpenImports(t.Context(), "", 50)
		require.NoError(t, err)
		require.Len(t, open, 2, "Temporal's alone")

		// An old process writes to our tables.
		here := connect(t, from.driver, from.into)
		here.exec(t, `UPDATE runs SET status = 'running', ended_at = NULL, error = NULL WHERE id IN ('db-running', 'null-completed')`)
		here.exec(t, `UPDATE runs SET status = 'waiting', waiting_kind = 'event', ended_at = NULL WHERE id = 'null-waiting'`)
		here.exec(t, `UPDATE steps SET status = 'running', ended_at = NULL WHERE run_id = 'db-running' AND number = 2`)
		here.exec(t, `DELETE FROM run_legacy WHERE run_id = 'null-waiting'`)
		open, err = to.OpenImports(t.Context(), "", 50)
		require.NoError(t, err)
		require.Len(t, open, 5)
		ended, err := legacy.Rows{Store: to.Store}.EndImports(t.Context(), open, importedAt.Add(time.Hour))
		require.NoError(t, err)
		require.Equal(t, []string{"db-running", "null-completed", "null-waiting"}, ended)

		r, err := to.GetRun(t.Context(), "shop", "db-running")
		require.NoError(t, err)
		require.Equal(t, []any{run.Canceled, importedAt.Add(time.Hour), "Engine gone", int64(2)},
			[]any{r.Status, r.EndedAt, r.Error.Title, r.Sequence})
		require.Contains(t, r.Error.Detail, `was running on the engine "db"`)
		stepsPage, err := to.ListSteps(t.Context(), "shop", r.ID, run.StepFilter{Limit: 10})
		require.NoError(t, err)
		steps := stepsPage.Steps
		require.Equal(t, []any{"canceled", importedAt.Add(time.Hour), int64(2)},
			[]any{steps[1].Status, steps[1].EndedAt, steps[1].Sequence})
		require.Equal(t, "completed", steps[0].Status)
		r, err = to.GetRun(t.Context(), "shop", "null-completed")
		require.NoError(t, err)
		var original kept
		require.NoError(t, json.Unmarshal(r.Legacy, &original))
		require.Equal(t, []string{"RESOLVED", "canceled"}, []string{original.Waits[0].Status, original.Waits[1].Status})
		require.Equal(t, "2026-05-01T09:00:00Z", *original.Waits[1].ResolvedAt)
		require.Equal(t, "kept", original.Row["note"])
		for _, status := range []string{"running", "waiting", "completed", "failed"} {
			requireImported(t, to, "temporal", status)
		}
		entries, err := to.ListAudit(t.Context(), audit.Filter{Project: "shop", Action: audit.RunEngineGone, Limit: 50})
		require.NoError(t, err)
		require.Len(t, entries, 3)
		ended, err = legacy.Rows{Store: to.Store}.EndImports(t.Context(), open, importedAt)
		require.NoError(t, err)
		require.Empty(t, ended, "what has ended is over")
	})
}
