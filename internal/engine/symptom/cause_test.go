package symptom_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"

	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/symptom"
	"github.com/signalbox-dev/signalbox/internal/run/problem"
)

func TestFailuresAreClassified(t *testing.T) {
	t.Parallel()
	const unhandled = enumspb.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE
	panicked := &failurepb.Failure{FailureInfo: &failurepb.Failure_ApplicationFailureInfo{ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Type: "PanicError"}}}
	for _, tt := range []struct {
		cause   enumspb.WorkflowTaskFailedCause
		failure *failurepb.Failure
		text    string
		want    string
	}{
		{enumspb.WORKFLOW_TASK_FAILED_CAUSE_GRPC_MESSAGE_TOO_LARGE, nil, "", problem.PayloadTooLarge},
		{enumspb.WORKFLOW_TASK_FAILED_CAUSE_PAYLOADS_TOO_LARGE, nil, "", problem.PayloadTooLarge},
		{enumspb.WORKFLOW_TASK_FAILED_CAUSE_REQUEST_TOO_LARGE, nil, "", problem.PayloadTooLarge},
		{enumspb.WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR, panicked, "lookup failed", problem.NonDeterminism},
		{unhandled, panicked, "[TMPRL1100] nondeterministic workflow", problem.NonDeterminism},
		{unhandled, panicked, `[TMPRL1101] Potential deadlock detected: workflow goroutine "root" didn't yield for over 1s`, problem.Deadlock},
		{unhandled, panicked, contract.ComputesTooLong + " (800ms)", problem.Deadlock},
		{unhandled, panicked, `run "r" needs interpreter 9, this worker has 4: it is for a newer worker`, problem.NewerInterpreter},
		{unhandled, panicked, `load document "sha256:aa" of run "r": the store is away`, problem.DocumentUnavailable},
		{unhandled, nil, contract.PayloadsAway + `: read payload aa of run "r": the store is away`, problem.DocumentUnavailable},
		{unhandled, panicked, `opening a payload: key "k2" is not there`, problem.MissingKey},
		{unhandled, nil, "unable to find workflow type: signalbox.run. Supported types: [a]", problem.UnknownType},
		{unhandled, panicked, "out of cheese", problem.Panic},
		{unhandled, nil, "something", problem.Other},
		{enumspb.WORKFLOW_TASK_FAILED_CAUSE_UNSPECIFIED, nil, "", problem.Other},
	} {
		require.Equal(t, tt.want, symptom.Cause(tt.cause, tt.failure, tt.text), tt.text)
	}
}
