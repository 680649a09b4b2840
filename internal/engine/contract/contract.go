// Package contract is the one place where producers and workers of runs agree: the names under which Temporal knows
// them. Nothing overrides it, neither a flag nor a variable: a run started by one process is found by every worker.
package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// RunWorkflow is the type of the one Temporal workflow that executes runs.
const RunWorkflow = "signalbox.run"

// WakeSignal is the signal that hands an event to a run that listens.
const WakeSignal = "signalbox.event"

// ControlSignal is the signal that pauses a run, lets it go on, or has it ask for its quota.
const ControlSignal = "signalbox.control"

// ChildSignal is the signal that tells a run that one which it started has ended.
const ChildSignal = "signalbox.child"

// taskQueuePrefix keeps Signalbox's queues apart from others in the same namespace.
const taskQueuePrefix = "signalbox-"

// TaskQueue returns the Temporal task queue of a project, a pure function of its name.
func TaskQueue(project string) string { return taskQueuePrefix + project }

// WorkflowID returns the Temporal workflow ID of a run: the run's own ID.
func WorkflowID(runID string) string { return runID }

// Fingerprint names the contract in twelve hexadecimal digits: processes with another one do not find each other's runs.
// The signals are no part of it: a process that does not know one never gets a run that heeds it, as such a run asks for a
// newer interpreter.
func Fingerprint() string {
	const length = 12
	sum := sha256.Sum256([]byte(strings.Join([]string{RunWorkflow, TaskQueue("*"), WorkflowID("*")}, "\n")))
	return hex.EncodeToString(sum[:])[:length]
}
