// Package contract is the one place where producers and workers of runs agree: the names under which Temporal knows
// them. Nothing overrides it, neither a flag nor a variable: a run started by one process is found by every worker.
package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/google/uuid"
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

// callQueuePrefix keeps the task queues of processes apart from those of projects, whose names have no dot.
const callQueuePrefix = "signalbox.calls-"

// CallQueue returns the Temporal task queue on which one process takes over the calls that its local activities hand over.
func CallQueue(process string) string { return callQueuePrefix + process }

// HandedOverCalls is the name of the worker set that serves a process's CallQueue; the other sets have the names of projects, which have
// no spaces.
const HandedOverCalls = "handed-over calls"

// WorkflowID returns the Temporal workflow ID of a run: the run's own ID.
func WorkflowID(runID string) string { return runID }

// IsRunID reports whether a workflow ID can be that of a run: these are UUIDs, and the IDs of Signalbox's other workflows are not.
func IsRunID(workflowID string) bool { return uuid.Validate(workflowID) == nil }

// Errors about large payloads that could not be read or kept for want of the database begin with these texts, both with PayloadsAway.
// Workflows recognize by them what became of a call: PayloadsUnread, its request could not be read, so nothing was sent;
// PayloadsUnkept, its answer is lost.
const (
	PayloadsAway   = "large payloads are not available"
	PayloadsUnread = PayloadsAway + ": read"
	PayloadsUnkept = PayloadsAway + ": keep"
)

// ComputesTooLong is the text with which a workflow task fails whose expressions take longer than their prices say. Like a deadlock that the SDK
// detects, it lies in the run.
const ComputesTooLong = "an expression computes for longer than a workflow may"

// Fingerprint names the contract in twelve hexadecimal digits: processes with another one do not find each other's runs.
// The signals are no part of it: a process that does not know one never gets a run that heeds it, as such a run asks for a
// newer interpreter.
func Fingerprint() string {
	const length = 12
	sum := sha256.Sum256([]byte(strings.Join([]string{RunWorkflow, TaskQueue("*"), WorkflowID("*")}, "\n")))
	return hex.EncodeToString(sum[:])[:length]
}
