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
	Poison             = "POISON"              // workers fail at the run's workflow task, for a cause that lies in the run
	Unknown            = "UNKNOWN"             // none of these, and no progress
)

// The causes for which workflow tasks fail. TASK_FAILING and POISON have one; it is part of the API and of events.
const (
	PayloadTooLarge     = "PAYLOAD_TOO_LARGE"    // a value, or a task's answer, exceeds a limit of Temporal
	Deadlock            = "DEADLOCK"             // the task used the processor for a second without a pause
	Panic               = "PANIC"                // the worker's code panicked
	UnknownType         = "UNKNOWN_TYPE"         // a Signalbox worker has no workflow of that type
	NonDeterminism      = "NON_DETERMINISM"      // the history does not match what the worker's code does
	NewerInterpreter    = "NEWER_INTERPRETER"    // the run needs a newer worker
	MissingKey          = "MISSING_KEY"          // a payload could not be opened
	ForeignWorker       = "FOREIGN_WORKER"       // a worker of another program polls the task queue
	DocumentUnavailable = "DOCUMENT_UNAVAILABLE" // the run's document or one of its large values could not be loaded
	NoAnswer            = "NO_ANSWER"            // the worker did not answer within the task's timeout
	Other               = "OTHER"                // none of these
)

// Causes returns all causes, in the order of their page.
func Causes() []string {
	return []string{
		PayloadTooLarge, Deadlock, Panic, UnknownType, NonDeterminism, NewerInterpreter, MissingKey, ForeignWorker, DocumentUnavailable,
		NoAnswer, Other,
	}
}

// InRun reports whether a cause lies in the run itself, so that neither another build nor a key nor the store's return heals it. A panic
// does so only where two builds have it: twoBuilds says that they have.
func InRun(cause string, twoBuilds bool) bool {
	return cause == PayloadTooLarge || cause == Deadlock || cause == Panic && twoBuilds
}

// Codes returns all codes, in the order of their page.
func Codes() []string {
	return []string{
		EngineDisconnected, NoPoller, PollerStale, Backlog, TaskFailing, Poison, ActivityRetrying, NotStarted,
		ExecutionMissing, ExecutionClosed, Unknown,
	}
}
