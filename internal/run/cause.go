package run

// The codes of diagnoses of stuck runs, as the API, metrics and events use them. docs/what-is-wrong.md explains them;
// package diagnose determines which applies.
const (
	EngineDisconnected = "ENGINE_DISCONNECTED" // Temporal is unavailable
	NoPoller           = "NO_POLLER"           // the task queue has no poller
	PollerStale        = "POLLER_STALE"        // Temporal lists pollers that are dead
	NoRunner           = "NO_RUNNER"           // no runner takes the run's program
	Backlog            = "BACKLOG"             // tasks arrive faster than they are processed
	TaskFailing        = "TASK_FAILING"        // workers fail the run's workflow task
	ActivityRetrying   = "ACTIVITY_RETRYING"   // an activity fails repeatedly
	NotStarted         = "NOT_STARTED"         // it is unknown whether Temporal has the run
	InAnotherTemporal  = "IN_ANOTHER_TEMPORAL" // the run is in another Temporal than the server's
	ExecutionMissing   = "EXECUTION_MISSING"   // Temporal does not have the run
	ExecutionClosed    = "EXECUTION_CLOSED"    // the run has ended in Temporal
	Poison             = "POISON"              // workers fail the run's workflow task, for a cause inside the run
	TimerLate          = "TIMER_LATE"          // Temporal has not fired the run's timer
	Unknown            = "UNKNOWN"             // none of these, and no progress
)

// The causes of failing workflow tasks. TASK_FAILING and POISON have one; it is part of the API and of events.
const (
	PayloadTooLarge     = "PAYLOAD_TOO_LARGE"    // a value, or a task's answer, exceeds a limit of Temporal
	Deadlock            = "DEADLOCK"             // the task used the processor for a second without yielding
	ProcessorShortage   = "PROCESSOR_SHORTAGE"   // the same, on a worker that gets too little processor time
	Panic               = "PANIC"                // the worker's code panicked
	UnknownType         = "UNKNOWN_TYPE"         // a Signalbox worker has no workflow of that type
	NonDeterminism      = "NON_DETERMINISM"      // the history does not match what the worker's code does
	NewerInterpreter    = "NEWER_INTERPRETER"    // the run needs a newer worker
	MissingKey          = "MISSING_KEY"          // a payload could not be opened
	ForeignWorker       = "FOREIGN_WORKER"       // a worker of another program polls the task queue
	DocumentUnavailable = "DOCUMENT_UNAVAILABLE" // the run's document or one of its large values could not be loaded
	PayloadMissing      = "PAYLOAD_MISSING"      // no store has one of the run's large values
	NoAnswer            = "NO_ANSWER"            // the worker did not answer within the task's timeout
	Other               = "OTHER"                // none of these
)

// Causes returns all causes, in the order of docs/what-is-wrong.md.
func Causes() []string {
	return []string{
		PayloadTooLarge, Deadlock, ProcessorShortage, Panic, UnknownType, NonDeterminism, NewerInterpreter, MissingKey,
		ForeignWorker,
		DocumentUnavailable, PayloadMissing, NoAnswer, Other,
	}
}

// InRun reports whether a cause lies in the run itself, so that neither another build nor a key nor a recovery of the
// store resolves it. A panic does so only where two builds have it: twoBuilds reports that they have.
func InRun(cause string, twoBuilds bool) bool {
	return cause == PayloadTooLarge || cause == Deadlock || cause == Panic && twoBuilds
}

// Codes returns all codes, in the order of docs/what-is-wrong.md.
func Codes() []string {
	return []string{
		InAnotherTemporal, EngineDisconnected, NoPoller, PollerStale, NoRunner, Backlog, TaskFailing, Poison, ActivityRetrying,
		NotStarted,
		ExecutionMissing, ExecutionClosed, TimerLate, Unknown,
	}
}
