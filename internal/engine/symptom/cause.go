package symptom

import (
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"

	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/run/problem"
)

// panicType is the type that the SDK gives to the failure of a task whose code panicked.
const panicType = "PanicError"

// Cause classifies the failure of a workflow task by what Temporal calls it, the type of the failure and its text. The result is one of
// [problem.Causes]. That does not distinguish a worker of another program from one of ours: see [problem.ForeignWorker].
func Cause(cause enumspb.WorkflowTaskFailedCause, f *failurepb.Failure, text string) string {
	switch cause { //nolint:exhaustive // the others are classified by their texts
	case enumspb.WORKFLOW_TASK_FAILED_CAUSE_PAYLOADS_TOO_LARGE, enumspb.WORKFLOW_TASK_FAILED_CAUSE_GRPC_MESSAGE_TOO_LARGE,
		enumspb.WORKFLOW_TASK_FAILED_CAUSE_REQUEST_TOO_LARGE, enumspb.WORKFLOW_TASK_FAILED_CAUSE_BAD_SIGNAL_INPUT_SIZE:
		return problem.PayloadTooLarge
	case enumspb.WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR:
		return problem.NonDeterminism
	}
	// The texts of our own panics come before the SDK's: a panic may quote another error.
	for _, known := range []struct{ text, cause string }{
		{"needs interpreter", problem.NewerInterpreter},
		{"opening a payload", problem.MissingKey},
		{"sealed with a key", problem.MissingKey},
		{"load document", problem.DocumentUnavailable},
		{contract.PayloadsAway, problem.DocumentUnavailable},
		{"[TMPRL1101]", problem.Deadlock},
		{contract.ComputesTooLong, problem.Deadlock},
		{"[TMPRL1100]", problem.NonDeterminism},
		{"unable to find workflow type", problem.UnknownType},
		{"exceeds size limit", problem.PayloadTooLarge},
	} {
		if strings.Contains(text, known.text) {
			return known.cause
		}
	}
	if f.GetApplicationFailureInfo().GetType() == panicType {
		return problem.Panic
	}
	return problem.Other
}
