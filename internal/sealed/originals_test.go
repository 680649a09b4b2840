package sealed_test

import (
	"database/sql"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/keyring"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/sealed"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
)

// hiddenRun is a run of which the input, a step and the end have originals, with a second step whose mark is part of
// the data.
func hiddenRun(t *testing.T) (sealer *sealed.Sealer, kept *store.Store, db *sql.DB) {
	t.Helper()
	dsn := storetest.SQLite(t)
	kept = openStore(t, dsn)
	sealer = over(kept, keyring.Random("k1"))
	db, err := sql.Open("sqlite", dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	insert(t, sealer, kept, "r1", hash, "", `{"card":"planted-card"}`)
	write(t, sealer, kept, "r1", "x", 1, `{"said":"planted-card"}`, nil)
	write(t, sealer, kept, "r1", "x", 2, `{"said":"`+redact.Mark+`"}`, nil)
	_, err = sealer.Rows(kept).ApplyUpdates(t.Context(),
		[]run.Update{{RunID: "r1", ExecutionID: "x", Position: 3 << 32, State: &run.State{
			Status: run.Completed, Since: at, StartedAt: at, EndedAt: at, Output: json.RawMessage(`"planted-card"`),
		}}})
	require.NoError(t, err)
	return sealer, kept, db
}

// opened returns the errors with which the run and its steps are opened in a project.
func opened(t *testing.T, sealer *sealed.Sealer, kept *store.Store, project string) (input, end, steps error) {
	t.Helper()
	r, err := kept.GetRun(t.Context(), project, "r1")
	require.NoError(t, err)
	page, err := kept.ListSteps(t.Context(), project, "r1", run.StepFilter{Limit: 9})
	require.NoError(t, err)
	_, input = sealer.Input(t.Context(), r)
	_, end = sealer.Open(t.Context(), r)
	_, steps = sealer.OpenSteps(t.Context(), project, "r1", page.Steps)
	return input, end, steps
}

// TestOriginalsOpenInTheirProjectAlone moves a run to another project in the database: its administrators get nothing
// of it.
func TestOriginalsOpenInTheirProjectAlone(t *testing.T) {
	t.Parallel()
	sealer, kept, db := hiddenRun(t)
	input, end, steps := opened(t, sealer, kept, here)
	require.NoError(t, input)
	require.NoError(t, end)
	require.NoError(t, steps)

	require.NoError(t, kept.CreateProject(t.Context(), project.Project{Name: "elsewhere", CreatedAt: at},
		audit.NewEntry(t.Context(), at, audit.ProjectCreate, "elsewhere", "elsewhere", "")))
	_, err := db.ExecContext(t.Context(), `UPDATE runs SET project = 'elsewhere' WHERE id = 'r1'`)
	require.NoError(t, err)
	input, end, steps = opened(t, sealer, kept, "elsewhere")
	for _, err := range []error{input, end, steps} {
		require.ErrorIs(t, err, keyring.ErrForged)
	}
}

// TestMissingOriginalsAreReported deletes originals in the database. Marks without their original are not shown as if
// they were the value; a mark that is part of the data is.
func TestMissingOriginalsAreReported(t *testing.T) {
	t.Parallel()
	for what, want := range map[string]int{
		run.OriginalInput: 2, run.OriginalEnd: 1, run.OriginalStep: 1, run.OriginalSecrets: 0} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			sealer, kept, db := hiddenRun(t)
			deleted, err := db.ExecContext(t.Context(), `DELETE FROM originals WHERE run_id = 'r1' AND what = ?`, what)
			require.NoError(t, err)
			count, err := deleted.RowsAffected()
			require.NoError(t, err)
			require.Positive(t, count)
			input, end, steps := opened(t, sealer, kept, here)
			missing := 0
			for _, err := range []error{input, end, steps} {
				if err == nil {
					continue
				}
				missing++
				f, ok := apperror.From(err)
				require.True(t, ok, "%v", err)
				require.Equal(t, apperror.OriginalGone, f.Reason)
				require.Contains(t, f.Message, "is gone")
			}
			require.Equal(t, want, missing)
		})
	}
}
