package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"

	"github.com/signalbox-dev/signalbox/internal/engine"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/run"
)

func TestFailuresAreClassified(t *testing.T) {
	t.Parallel()
	const unhandled = enumspb.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE
	panicked := &failurepb.Failure{
		FailureInfo: &failurepb.Failure_ApplicationFailureInfo{
			ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Type: "PanicError"}}}
	for _, tt := range []struct {
		cause   enumspb.WorkflowTaskFailedCause
		failure *failurepb.Failure
		text    string
		want    string
	}{
		{enumspb.WORKFLOW_TASK_FAILED_CAUSE_GRPC_MESSAGE_TOO_LARGE, nil, "", run.PayloadTooLarge},
		{enumspb.WORKFLOW_TASK_FAILED_CAUSE_PAYLOADS_TOO_LARGE, nil, "", run.PayloadTooLarge},
		{enumspb.WORKFLOW_TASK_FAILED_CAUSE_REQUEST_TOO_LARGE, nil, "", run.PayloadTooLarge},
		{enumspb.WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR, panicked, "lookup failed", run.NonDeterminism},
		{unhandled, panicked, "[TMPRL1100] nondeterministic workflow", run.NonDeterminism},
		{unhandled, panicked, `[TMPRL1101] Potential deadlock detected: workflow goroutine "root" didn't yield for over 1s`,
			run.Deadlock},
		{unhandled, panicked, contract.ComputesTooLong + " (800ms)", run.Deadlock},
		{unhandled, panicked, `run "r" needs interpreter 9, this worker has 4: it is for a newer worker`,
			run.NewerInterpreter},
		{unhandled, panicked, `load document "sha256:aa" of run "r": the store is away`, run.DocumentUnavailable},
		{unhandled, nil, contract.PayloadsAway + `: read payload aa of run "r": the store is away`, run.DocumentUnavailable},
		{unhandled, nil, `payload aa of run "r": ` + contract.PayloadMissing, run.PayloadMissing},
		{unhandled, panicked, `opening a payload: key "k2" is not there`, run.MissingKey},
		{unhandled, nil, "unable to find workflow type: signalbox.run. Supported types: [a]", run.UnknownType},
		{unhandled, panicked, "out of cheese", run.Panic},
		{unhandled, nil, "something", run.Other},
		{enumspb.WORKFLOW_TASK_FAILED_CAUSE_UNSPECIFIED, nil, "", run.Other},
	} {
		require.Equal(t, tt.want, engine.TaskFailureCause(tt.cause, tt.failure, tt.text), tt.text)
	}
}
