package contract_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/engine/contract"
)

// The names are written out: a process of another version finds runs by them, so a change breaks compatibility.
func TestNamesAreStable(t *testing.T) {
	t.Setenv("SIGNALBOX_TASK_QUEUE", "elsewhere")
	t.Setenv("TEMPORAL_TASK_QUEUE", "elsewhere")
	require.Equal(t, "signalbox.run", contract.RunWorkflow)
	require.Equal(t, "signalbox.event", contract.WakeSignal)
	require.Equal(t, "signalbox-default", contract.TaskQueue("default"))
	require.Equal(t, "signalbox-team-7", contract.TaskQueue("team-7"))
	require.Equal(t, "signalbox.function-team-7/pricing", contract.FunctionQueue("team-7", "pricing"))
	require.Equal(t, "signalbox.calls-x", contract.CallQueue("x"))
	require.Equal(t, "01990000-0000-7000-8000-000000000000", contract.WorkflowID("01990000-0000-7000-8000-000000000000"))
}

func TestRunnersReportTheirIsolations(t *testing.T) {
	t.Parallel()
	identity := contract.RunnerIdentity("host:1@a", contract.Isolations{"shell": "bubblewrap", "js": "webassembly"})
	require.Equal(t, "host:1@a?js=webassembly&shell=bubblewrap", identity)
	id, isolations := contract.ParseRunnerIdentity(identity)
	require.Equal(t, "host:1@a", id)
	require.Equal(t, contract.Isolations{"shell": "bubblewrap", "js": "webassembly"}, isolations)
	id, isolations = contract.ParseRunnerIdentity("host:1@a")
	require.Equal(t, "host:1@a", id)
	require.Nil(t, isolations, "it has not reported them")
}

func TestFingerprintCoversTheNames(t *testing.T) {
	t.Parallel()
	require.Regexp(t, "^[0-9a-f]{12}$", contract.Fingerprint())
	require.Equal(t, "6997d2b51558", contract.Fingerprint(),
		"another value means that processes of other versions are refused")
}
