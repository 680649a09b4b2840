// Package fault is the one error type that crosses from the domain to its callers: a class that decides the API's
// code and the CLI's exit code, a machine-readable reason, and one line that says what is wrong, where, and what to
// do about it.
//
// Errors that are not a [Fault] are internal: callers see that something broke, the log sees what.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// Class says what kind of answer a caller gets.
type Class int

// The classes, each with the gRPC code that the API gives it.
const (
	// Invalid: the request itself is wrong (INVALID_ARGUMENT).
	Invalid Class = iota + 1
	// NotFound: what it names does not exist (NOT_FOUND).
	NotFound
	// Exists: what it would make is there already, and differs (ALREADY_EXISTS).
	Exists
	// Refused: right request, wrong state (FAILED_PRECONDITION).
	Refused
	// Exhausted: over a limit (RESOURCE_EXHAUSTED).
	Exhausted
	// Denied: the caller may not (PERMISSION_DENIED).
	Denied
	// Unauthenticated: nobody knows who the caller is (UNAUTHENTICATED).
	Unauthenticated
	// Unavailable: a dependency is away; the same request may succeed later (UNAVAILABLE).
	Unavailable
)

// Reasons, stable and machine-readable. Every one is listed in the API's reference.
const (
	InvalidArgument      = "INVALID_ARGUMENT"
	InvalidPageToken     = "INVALID_PAGE_TOKEN"
	InvalidDocument      = "INVALID_DOCUMENT"
	InvalidInput         = "INVALID_INPUT"
	InputTooLarge        = "INPUT_TOO_LARGE"
	DefinitionTooLarge   = "DEFINITION_TOO_LARGE"
	RequestTooLarge      = "REQUEST_TOO_LARGE"
	ProjectNotFound      = "PROJECT_NOT_FOUND"
	ProjectExists        = "PROJECT_EXISTS"
	WorkflowNotFound     = "WORKFLOW_NOT_FOUND"
	WorkflowAmbiguous    = "WORKFLOW_AMBIGUOUS"
	VersionNotFound      = "VERSION_NOT_FOUND"
	DraftNotFound        = "DRAFT_NOT_FOUND"
	VersionTaken         = "VERSION_TAKEN"
	WorkflowPaused       = "WORKFLOW_PAUSED"
	WorkflowNotPublished = "WORKFLOW_NOT_PUBLISHED"
	WorkflowHasOpenRuns  = "WORKFLOW_HAS_OPEN_RUNS"
	RunNotFound          = "RUN_NOT_FOUND"
	RunEnded             = "RUN_ENDED"
	RunStarting          = "RUN_STARTING"
	RunNotStarted        = "RUN_NOT_STARTED"
	RunCanceling         = "RUN_CANCELING"
	RunImported          = "RUN_IMPORTED"
	RunTooOld            = "RUN_TOO_OLD"
	ExecutionMissing     = "EXECUTION_MISSING"
	RunElsewhere         = "RUN_ELSEWHERE"
	InputRedacted        = "INPUT_REDACTED"
	OriginalSealed       = "ORIGINAL_SEALED"
	RequestIDReused      = "REQUEST_ID_REUSED"
	EngineUnavailable    = "ENGINE_UNAVAILABLE"
	EngineRefused        = "ENGINE_REFUSED"
	QueueFull            = "QUEUE_FULL"
	ContractMismatch     = "CONTRACT_MISMATCH"
	NoWorkerForProject   = "NO_WORKER_FOR_PROJECT"
	StoreUnavailable     = "STORE_UNAVAILABLE"
	EventNotFound        = "EVENT_NOT_FOUND"
	EventAmbiguous       = "EVENT_AMBIGUOUS"
	EventInvalid         = "EVENT_INVALID"
	EventTooLarge        = "EVENT_TOO_LARGE"
	DeliveryNotFound     = "DELIVERY_NOT_FOUND"
	DispatcherNotOwned   = "DISPATCHER_NOT_OWNED"
	LeasesUnavailable    = "LEASES_UNAVAILABLE"
	BatchNotFound        = "BATCH_NOT_FOUND"
	BatchEnded           = "BATCH_ENDED"
	BatchNothingFailed   = "BATCH_NOTHING_FAILED"
	PermissionDenied     = "PERMISSION_DENIED"
	Unidentified         = "UNAUTHENTICATED"
	TokenExpired         = "TOKEN_EXPIRED"
	TokenRevoked         = "TOKEN_REVOKED"
	TokenNotFound        = "TOKEN_NOT_FOUND"
	TokenExists          = "TOKEN_EXISTS"
	RateLimited          = "RATE_LIMITED"
	MemoryExhausted      = "MEMORY_EXHAUSTED"
)

// Field is one wrong part of a request.
type Field struct {
	// Path of the field in the request, such as "workflow" or "input/name".
	Path string
	// Message says what is wrong with it.
	Message string
}

// Fault is an error that a caller can act on.
type Fault struct {
	Class   Class
	Reason  string
	Message string
	Fields  []Field
	// Facts tell programs more than the reason does, by lower-camel names such as "kind"; may be nil.
	Facts map[string]string
	// RetryAfter, when positive, is how long to wait before the same request is worth trying again.
	RetryAfter time.Duration
	// Cause, for the log; never shown to callers.
	Cause error
}

// Error returns the line for people.
func (f *Fault) Error() string { return f.Message }

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Cause }

// New makes a fault with a formatted message.
func New(class Class, reason, format string, args ...any) *Fault {
	return &Fault{Class: class, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// WithCause returns f with the error behind it.
func (f *Fault) WithCause(err error) *Fault {
	f.Cause = err
	return f
}

// WithField returns f with one more wrong field.
func (f *Fault) WithField(path, format string, args ...any) *Fault {
	f.Fields = append(f.Fields, Field{Path: path, Message: fmt.Sprintf(format, args...)})
	return f
}

// WithFact returns f with one more fact.
func (f *Fault) WithFact(name, value string) *Fault {
	if f.Facts == nil {
		f.Facts = map[string]string{}
	}
	f.Facts[name] = value
	return f
}

// WithRetry returns f with a time after which to try again.
func (f *Fault) WithRetry(d time.Duration) *Fault {
	f.RetryAfter = d
	return f
}

// NoProject is the fault of a project that does not exist. Whoever has no role in one that does is answered the same, so that
// nobody learns which projects there are.
func NoProject(name string) *Fault {
	return New(NotFound, ProjectNotFound, "project %q does not exist: `signalbox project list` shows those that do", name)
}

// From returns the fault in err's chain, if there is one.
func From(err error) (*Fault, bool) {
	var f *Fault
	ok := errors.As(err, &f)
	return f, ok
}

// Is tells whether err is a fault with this reason.
func Is(err error, reason string) bool {
	f, ok := From(err)
	return ok && f.Reason == reason
}
