// Package contract defines the names in Temporal on which producers and workers of runs agree. No flag and no variable
// overrides them: every worker finds the runs that any process starts.
package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"

	"github.com/google/uuid"
)

// RunWorkflow is the type of the one Temporal workflow that executes runs.
const RunWorkflow = "signalbox.run"

// WakeSignal is the signal that delivers an event to a listening run.
const WakeSignal = "signalbox.event"

// ControlSignal is the signal that pauses a run, unpauses it, or makes it request its quota.
const ControlSignal = "signalbox.control"

// ChildSignal is the signal that notifies a run of the completion of a child run.
const ChildSignal = "signalbox.child"

// IdentityMemo is the key in the memo of a run's execution of what only its row has.
const IdentityMemo = "signalbox.identity"

// taskQueuePrefix separates Signalbox's queues from others in the same namespace.
const taskQueuePrefix = "signalbox-"

// TaskQueue returns the Temporal task queue of a project. It is a pure function of the project's name.
func TaskQueue(project string) string { return taskQueuePrefix + project }

// ProjectOf returns the project of a task queue; false for another queue.
func ProjectOf(taskQueue string) (string, bool) { return strings.CutPrefix(taskQueue, taskQueuePrefix) }

// callQueuePrefix separates the task queues of processes from those of projects: names of projects contain no dot.
const callQueuePrefix = "signalbox.calls-"

// CallQueue returns the Temporal task queue on which one process continues the calls that its local activities hand
// over.
func CallQueue(process string) string { return callQueuePrefix + process }

// runnerQueuePrefix separates the task queues of runners from those of projects, as callQueuePrefix does.
const runnerQueuePrefix = "signalbox.runner-"

// RunnerQueue returns the Temporal task queue of the programs of a project. It is a pure function of the project's name.
func RunnerQueue(project string) string { return runnerQueuePrefix + project }

// Isolations are how a runner isolates each kind of program, by the key of [dsl.UsedProgram]; the kinds that it refuses
// are absent.
type Isolations map[string]string

// RunnerIdentity returns the name by which a runner polls. Temporal shows it to the readers of the task queue: runners
// have no other place in which they could report what they execute.
func RunnerIdentity(serverID string, isolations Isolations) string {
	values := url.Values{}
	for key, isolation := range isolations {
		values.Set(key, isolation)
	}
	return serverID + "?" + values.Encode()
}

// ParseRunnerIdentity returns the server ID and the isolations in the identity of a runner; nil where it has none.
func ParseRunnerIdentity(identity string) (serverID string, isolations Isolations) {
	serverID, query, found := strings.Cut(identity, "?")
	values, err := url.ParseQuery(query)
	if !found || err != nil {
		return identity, nil
	}
	isolations = Isolations{}
	for key := range values {
		isolations[key] = values.Get(key)
	}
	return serverID, isolations
}

// RunnersOf returns the name of the worker set that serves the RunnerQueue of a project.
func RunnersOf(project string) string { return "runner of " + project }

// functionQueuePrefix separates the task queues of Go functions from those of projects, as callQueuePrefix does.
const functionQueuePrefix = "signalbox.function-"

// FunctionQueue returns the Temporal task queue of the Go functions of a program in a project. Neither name contains a
// slash.
func FunctionQueue(project, program string) string {
	return functionQueuePrefix + project + "/" + program
}

// FireQueue is the Temporal task queue of the fires of schedules, of all projects: a project that is parked has no
// worker. Names of projects contain no dot.
const FireQueue = "signalbox.fires"

// Fires is the name of the worker set that serves the FireQueue.
const Fires = "fires of schedules"

// HandedOverCalls is the name of the worker set that serves a process's CallQueue. The other sets have the names of
// projects, which contain no spaces.
const HandedOverCalls = "handed-over calls"

// WorkflowID returns the Temporal workflow ID of a run: the run's own ID.
func WorkflowID(runID string) string { return runID }

// IsRunID reports whether a workflow ID can be that of a run. Those are UUIDs, and the IDs of Signalbox's other
// workflows are not.
func IsRunID(workflowID string) bool { return uuid.Validate(workflowID) == nil }

// Errors of large payloads that could not be read or stored because their store was unavailable start with these
// texts, both of them with PayloadsAway. Workflows derive from them what happened to a call. PayloadsUnread: its
// request could not be read, so nothing was sent. PayloadsUnkept: its response is lost.
const (
	PayloadsAway   = "large payloads are not available"
	PayloadsUnread = PayloadsAway + ": read"
	PayloadsUnkept = PayloadsAway + ": keep"
)

// PayloadMissing is in the text of the error of a large payload that no store has, although all are available.
const PayloadMissing = "its run was deleted, or"

// ComputesTooLong is the text of the failure of a workflow task with expressions that compute for longer than their
// fuel prices allow. Like a deadlock that the SDK detects, the cause is in the run.
const ComputesTooLong = "an expression computes for longer than a workflow may"

// Fingerprint identifies the contract by twelve hexadecimal digits. Processes with different fingerprints do not find
// each other's runs. The signals are not part of it: a process that does not support one never executes a run that
// handles it, because such a run requires a newer interpreter.
func Fingerprint() string {
	const length = 12
	sum := sha256.Sum256([]byte(strings.Join([]string{RunWorkflow, TaskQueue("*"), WorkflowID("*")}, "\n")))
	return hex.EncodeToString(sum[:])[:length]
}
