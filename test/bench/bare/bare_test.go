package bare

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"
)

// The workflows that record write one row for each step, with what the step had and made; the one that computes writes
// none.
func TestWorkflowsRecordTheirSteps(t *testing.T) {
	t.Parallel()
	const steps = 7
	for name, c := range map[string]struct {
		workflow any
		rows     int
	}{
		"record": {record, steps}, "each": {each, steps}, "fork": {fork, steps}, "compute": {compute, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var suite testsuite.WorkflowTestSuite
			env, database := suite.NewTestWorkflowEnvironment(), openRows(t)
			env.RegisterActivity(database)
			env.ExecuteWorkflow(c.workflow, Input{Steps: steps})
			require.True(t, env.IsWorkflowCompleted())
			require.NoError(t, env.GetWorkflowError())
			if name != "fork" {
				var result counter
				require.NoError(t, env.GetWorkflowResult(&result))
				require.Equal(t, counter{N: steps}, result)
			}
			var count int
			require.NoError(t, database.db.QueryRowContext(t.Context(), "SELECT count(*) FROM steps").Scan(&count))
			require.Equal(t, c.rows, count)
			if c.rows == 0 {
				return
			}
			var input, output string
			require.NoError(t, database.db.QueryRowContext(t.Context(), "SELECT input, output FROM steps WHERE number = ?",
				steps-1).Scan(&input, &output))
			require.JSONEq(t, `{"n":6}`, input)
			require.JSONEq(t, `{"n":7}`, output)
		})
	}
}
