package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// TestStepValuesAreReadFromTheirExecutions reads outputs of steps of all executions of a run from their histories.
func TestStepValuesAreReadFromTheirExecutions(t *testing.T) {
	t.Parallel()
	if underRace {
		t.Skip("this run computes too much for the race detector")
	}
	f, kept := serve(t), openStore(t)
	r := insert(t, kept, f.load(t, "continued"))
	e, _ := connect(t, f.address, scenarios(t))
	require.NoError(t, e.Rebuild(t.Context(), r, "", &storeWriter{store: kept}))
	r, err := kept.GetRun(t.Context(), project.Default, r.ID)
	require.NoError(t, err)
	page, err := kept.ListSteps(t.Context(), project.Default, r.ID, run.StepFilter{Limit: 10_000})
	require.NoError(t, err)
	chains := map[int64]run.Step{}
	for _, step := range page.Steps {
		if step.Output != nil {
			chains[run.Chain(step.Position)] = step
		}
	}
	require.Greater(t, len(chains), 1, "the run has several executions")
	for _, step := range chains {
		for output, want := range map[bool]string{false: string(step.Input), true: string(step.Output)} {
			got, err := e.StepValue(t.Context(), r, step, output)
			require.NoError(t, err)
			require.Equal(t, want, string(got), step.Path)
		}
	}
	missing := page.Steps[0]
	missing.Number, missing.Position = 100_000, r.Position
	_, err = e.StepValue(t.Context(), r, missing, true)
	require.ErrorIs(t, err, run.ErrNotKnown)
	f.set(func() { clear(f.histories) })
	_, err = e.StepValue(t.Context(), r, page.Steps[0], true)
	require.ErrorIs(t, err, run.ErrNotKnown, "Temporal has deleted the histories")
	_, err = e.StepValue(t.Context(), run.Run{ID: r.ID}, page.Steps[0], true)
	require.ErrorIs(t, err, run.ErrNotKnown, "the run never had an execution here")
}
