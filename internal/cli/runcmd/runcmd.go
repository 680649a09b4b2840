// Package runcmd is the noun "run" of the command line, and the noun "view", a saved filter of the list of runs.
//
// It talks to the RunService only. Waiting and watching follow the server's stream and pick it up again where it
// broke, so a server may restart meanwhile; a run never ends because its watcher does.
package runcmd

import (
	"github.com/spf13/cobra"

	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
)

// The words of a run's life.
const (
	statusQueued     = "queued"
	statusRunning    = "running"
	statusWaiting    = "waiting"
	statusCompleted  = "completed"
	statusFailed     = "failed"
	statusCanceled   = "canceled"
	statusTerminated = "terminated"
	statusTimedOut   = "timed_out"
)

// Reasons of a run that is queued without being Temporal's yet.
const (
	queuedEngine    = "engine"
	queuedStarting  = "starting"
	queuedAdmission = "admission"
)

// runStatuses are the words of a run's life, in order.
func runStatuses() []string {
	return []string{
		statusQueued, statusRunning, statusWaiting,
		statusCompleted, statusFailed, statusCanceled, statusTerminated, statusTimedOut,
	}
}

// stuckCodes are the codes of runs that are stuck, and the word for all of them.
func stuckCodes() []string {
	return []string{
		"any", "IN_ANOTHER_TEMPORAL", "ENGINE_DISCONNECTED", "NO_POLLER", "POLLER_STALE", "NO_RUNNER", "BACKLOG", "TASK_FAILING",
		"POISON", "ACTIVITY_RETRYING", "NOT_STARTED",
		"EXECUTION_MISSING", "EXECUTION_CLOSED", "TIMER_LATE", "UNKNOWN",
	}
}

// causes are why workflow tasks of stuck runs fail.
func causes() []string {
	return []string{
		"PAYLOAD_TOO_LARGE", "DEADLOCK", "PROCESSOR_SHORTAGE", "PANIC", "UNKNOWN_TYPE", "NON_DETERMINISM", "NEWER_INTERPRETER",
		"MISSING_KEY", "FOREIGN_WORKER", "DOCUMENT_UNAVAILABLE", "PAYLOAD_MISSING", "NO_ANSWER", "OTHER",
	}
}

// waitingKinds are what runs wait for.
func waitingKinds() []string { return []string{"event", "timer", "retry", "quota", "child", "paused"} }

// triggers are what starts runs.
func triggers() []string {
	return []string{"api", "event", "schedule", "replay", "parent", "import"}
}

// hasEnded reports whether a run with this status has ended.
func hasEnded(status string) bool {
	switch status {
	case statusCompleted, statusFailed, statusCanceled, statusTerminated, statusTimedOut:
		return true
	default:
		return false
	}
}

// outcome is the exit code of having waited for a run.
func outcome(status string) error {
	switch status {
	case statusFailed:
		return exit.Silently(exit.RunFailed)
	case statusCanceled, statusTerminated:
		return exit.Silently(exit.RunCanceled)
	case statusTimedOut:
		return exit.Silently(exit.RunTimedOut)
	default:
		return nil
	}
}

// New returns the noun "run" with its verbs.
func New(s *invocation.Invocation) *cobra.Command {
	noun := invocation.Noun("run", "Start, watch and control runs", "")
	noun.AddCommand(startCommand(s), listCommand(s), countCommand(s), showCommand(s), stepsCommand(s), stepCommand(s),
		valueCommand(s), logsCommand(s), summaryCommand(s), waitsCommand(s), watchCommand(s))
	noun.AddCommand(controlCommands(s)...)
	noun.AddCommand(replayCommand(s), exportCommand(s))
	return noun
}
