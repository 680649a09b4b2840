package engine

import (
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"

	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// panicType is the SDK's type for the failure of a task after a panic.
const panicType = "PanicError"

// TaskFailureCause classifies the failure of a workflow task by Temporal's cause, the type of the failure and its text.
// The result is one of the causes in package run. It does not distinguish a worker of another program from one of
// Signalbox.
func TaskFailureCause(cause enumspb.WorkflowTaskFailedCause, f *failurepb.Failure, text string) string {
	switch cause { //nolint:exhaustive // the others are classified by their texts
	case enumspb.WORKFLOW_TASK_FAILED_CAUSE_PAYLOADS_TOO_LARGE, enumspb.WORKFLOW_TASK_FAILED_CAUSE_GRPC_MESSAGE_TOO_LARGE,
		enumspb.WORKFLOW_TASK_FAILED_CAUSE_REQUEST_TOO_LARGE, enumspb.WORKFLOW_TASK_FAILED_CAUSE_BAD_SIGNAL_INPUT_SIZE:
		return run.PayloadTooLarge
	case enumspb.WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR:
		return run.NonDeterminism
	}
	// The texts of Signalbox's panics precede the SDK's: a panic may quote another error.
	for _, pattern := range []struct{ text, cause string }{
		{"needs interpreter", run.NewerInterpreter},
		{"opening a payload", run.MissingKey},
		{"sealed with a key", run.MissingKey},
		{contract.PayloadMissing, run.PayloadMissing},
		{"load document", run.DocumentUnavailable},
		{contract.PayloadsAway, run.DocumentUnavailable},
		{"[TMPRL1101]", run.Deadlock},
		{contract.ComputesTooLong, run.Deadlock},
		{"[TMPRL1100]", run.NonDeterminism},
		{"unable to find workflow type", run.UnknownType},
		{"exceeds size limit", run.PayloadTooLarge},
	} {
		if strings.Contains(text, pattern.text) {
			return pattern.cause
		}
	}
	if f.GetApplicationFailureInfo().GetType() == panicType {
		return run.Panic
	}
	return run.Other
}
