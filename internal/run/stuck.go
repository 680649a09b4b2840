package run

import "time"

// The codes of [Stuck]. They are part of the API, of metrics and of events.
const (
	StuckEngineDisconnected = "ENGINE_DISCONNECTED" // Temporal cannot be used
	StuckNoPoller           = "NO_POLLER"           // nobody polls the task queue
	StuckPollerStale        = "POLLER_STALE"        // Temporal lists pollers that are dead
	StuckBacklog            = "BACKLOG"             // tasks come faster than they are done
	StuckTaskFailing        = "TASK_FAILING"        // workers fail at the run's workflow task
	StuckActivityRetrying   = "ACTIVITY_RETRYING"   // an activity fails again and again
	StuckNotStarted         = "NOT_STARTED"         // nobody knows whether Temporal has it
	StuckExecutionMissing   = "EXECUTION_MISSING"   // Temporal does not know it
	StuckExecutionClosed    = "EXECUTION_CLOSED"    // it has ended in Temporal
	StuckUnknown            = "UNKNOWN"             // none of these, and no progress
)

// StuckCodes returns all codes, in the order of their page.
func StuckCodes() []string {
	return []string{
		StuckEngineDisconnected, StuckNoPoller, StuckPollerStale, StuckBacklog, StuckTaskFailing, StuckActivityRetrying, StuckNotStarted,
		StuckExecutionMissing, StuckExecutionClosed, StuckUnknown,
	}
}

// Stuck is a verdict about a run that makes no progress although it should; package stuck gives it.
type Stuck struct {
	// Code says what is wrong, in a word of the API.
	Code string
	// Since is since when it makes no progress.
	Since time.Time
	// Detail is what was seen and Advice what to do, in a line each.
	Detail, Advice string
	// CheckedAt is when it was last looked at.
	CheckedAt time.Time
}
