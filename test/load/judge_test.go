package load

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
)

func row(id, status string) *signalboxv1.Run { return &signalboxv1.Run{Id: id, Status: status} }

// consistent returns findings without an error: one request of each outcome, and a lost one that was executed.
func consistent() *findings {
	return &findings{
		requests: map[string]Request{
			"a": {ID: "a", Outcome: Accepted, Run: "run-a"}, "r": {ID: "r", Outcome: Refused}, "l": {ID: "l", Outcome: Lost},
			"m": {ID: "m", Outcome: Lost},
		},
		rows: map[string]*signalboxv1.Run{"a": row("run-a", "completed"), "l": row("run-l", "completed")},
		executions: map[string][]enums.WorkflowExecutionStatus{
			"run-a": {enums.WORKFLOW_EXECUTION_STATUS_COMPLETED}, "run-l": {enums.WORKFLOW_EXECUTION_STATUS_COMPLETED},
		},
	}
}

func TestConsistentEvidenceHasNoFinding(t *testing.T) {
	t.Parallel()
	require.Empty(t, consistent().fatal())
	require.Empty(t, consistent().open("completed"))
}

func TestEveryInconsistencyIsFound(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change func(*findings)
		want   string
	}{
		"accepted without a row": {func(v *findings) { delete(v.rows, "a") }, "was accepted and has no row"},
		"accepted as another run": {func(v *findings) {
			v.rows["a"] = row("run-l", "completed")
		}, "was answered with run run-a"},
		"refused with a row":      {func(v *findings) { v.rows["r"] = row("run-r", "queued") }, "was refused"},
		"a row without a request": {func(v *findings) { v.rows["x"] = row("run-x", "completed") }, "never sent"},
		"an execution without a row": {func(v *findings) {
			v.executions["run-y"] = v.executions["run-a"]
		}, "execution run-y has no row"},
		"executed twice": {func(v *findings) {
			v.executions["run-a"] = append(v.executions["run-a"], v.executions["run-a"]...)
		}, "2 executions"},
		"not ended":      {func(v *findings) { v.rows["a"] = row("run-a", "running") }, "is running"},
		"never executed": {func(v *findings) { delete(v.executions, "run-l") }, "in Temporal []"},
		"ended otherwise in Temporal": {func(v *findings) {
			v.executions["run-a"][0] = enums.WORKFLOW_EXECUTION_STATUS_TERMINATED
		}, "Terminated"},
		"still running in Temporal": {func(v *findings) {
			v.executions["run-a"][0] = enums.WORKFLOW_EXECUTION_STATUS_RUNNING
		}, "Running"},
		"ended otherwise on both ends": {func(v *findings) {
			v.rows["a"].Status, v.executions["run-a"][0] = "failed", enums.WORKFLOW_EXECUTION_STATUS_FAILED
		}, "is failed"},
	}
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := consistent()
			tt.change(v)
			require.Contains(t, FirstOf(append(v.fatal(), v.open("completed")...)), tt.want)
		})
	}
}
