// Package problem has the words for why runs are stuck, as the API, metrics and events use them. What each means is in docs/stuck.md;
// package stuck finds out which applies.
package problem

// The codes of verdicts about runs. They are part of the API, of metrics and of events.
const (
	EngineDisconnected = "ENGINE_DISCONNECTED" // Temporal cannot be used
	NoPoller           = "NO_POLLER"           // nobody polls the task queue
	PollerStale        = "POLLER_STALE"        // Temporal lists pollers that are dead
	Backlog            = "BACKLOG"             // tasks come faster than they are done
	TaskFailing        = "TASK_FAILING"        // workers fail at the run's workflow task
	ActivityRetrying   = "ACTIVITY_RETRYING"   // an activity fails again and again
	NotStarted         = "NOT_STARTED"         // nobody knows whether Temporal has it
	ExecutionMissing   = "EXECUTION_MISSING"   // Temporal does not know it
	ExecutionClosed    = "EXECUTION_CLOSED"    // it has ended in Temporal
	Unknown            = "UNKNOWN"             // none of these, and no progress
)

// Codes returns all codes, in the order of their page.
func Codes() []string {
	return []string{
		EngineDisconnected, NoPoller, PollerStale, Backlog, TaskFailing, ActivityRetrying, NotStarted,
		ExecutionMissing, ExecutionClosed, Unknown,
	}
}
