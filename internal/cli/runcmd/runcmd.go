// Package runcmd is the noun "run" of the command line: start, list, show, steps, step, value, summary, waits, watch.
// What is done to a run that is there is package controlcmd's.
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

// Statuses are the words of a run's life, in order.
func Statuses() []string {
	return []string{
		statusQueued, statusRunning, statusWaiting,
		statusCompleted, statusFailed, statusCanceled, statusTerminated, statusTimedOut,
	}
}

// stuckCodes are the codes of runs that are stuck, and the word for all of them.
func stuckCodes() []string {
	return []string{
		"any", "IN_ANOTHER_TEMPORAL", "ENGINE_DISCONNECTED", "NO_POLLER", "POLLER_STALE", "BACKLOG", "TASK_FAILING", "POISON",
		"ACTIVITY_RETRYING", "NOT_STARTED",
		"EXECUTION_MISSING", "EXECUTION_CLOSED", "TIMER_LATE", "UNKNOWN",
	}
}

// triggers are what starts runs.
func triggers() []string {
	return []string{"api", "event", "schedule", "replay", "parent", "import"}
}

// Ended reports whether a run with this status has ended.
func Ended(status string) bool {
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

// New returns the noun with the verbs of this package, and others beside them.
func New(s *invocation.Invocation, others ...*cobra.Command) *cobra.Command {
	noun := invocation.Noun("run", "Start, watch and control runs", "")
	noun.AddCommand(startCommand(s), listCommand(s), countCommand(s), showCommand(s), stepsCommand(s), stepCommand(s),
		valueCommand(s), summaryCommand(s), waitsCommand(s), watchCommand(s))
	noun.AddCommand(others...)
	return noun
}
