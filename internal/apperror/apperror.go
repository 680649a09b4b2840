// Package apperror defines the one error type that the domain returns to its callers: a class that decides the API's
// code and the CLI's exit code, a machine-readable reason, and one line that says what is wrong, where, and what to
// do about it.
//
// An error that is not an [Error] is internal: the caller gets a general message, and the log gets the details.
package apperror

import (
	"errors"
	"fmt"
	"time"
)

// Class is the kind of an error.
type Class int

// The classes, each with the gRPC code that the API gives it.
const (
	// Invalid: the request itself is invalid (INVALID_ARGUMENT).
	Invalid Class = iota + 1
	// NotFound: an object that the request names does not exist (NOT_FOUND).
	NotFound
	// Exists: the object to create exists already, and differs (ALREADY_EXISTS).
	Exists
	// Refused: the request is valid, the state does not allow it (FAILED_PRECONDITION).
	Refused
	// Exhausted: a limit is exceeded (RESOURCE_EXHAUSTED).
	Exhausted
	// Denied: the caller lacks the permission (PERMISSION_DENIED).
	Denied
	// Unauthenticated: the request has no valid credentials (UNAUTHENTICATED).
	Unauthenticated
	// Unavailable: a dependency is unavailable; the same request may succeed later (UNAVAILABLE).
	Unavailable
)

// Reasons are stable and machine-readable. The API's reference lists each of them.
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
	FunctionNotFound     = "FUNCTION_NOT_FOUND"
	WorkflowPaused       = "WORKFLOW_PAUSED"
	NoSchedule           = "NO_SCHEDULE"
	TooManyTimes         = "TOO_MANY_TIMES"
	GenerationLimit      = "GENERATION_LIMIT"
	WorkflowNotPublished = "WORKFLOW_NOT_PUBLISHED"
	WorkflowHasOpenRuns  = "WORKFLOW_HAS_OPEN_RUNS"
	RunNotFound          = "RUN_NOT_FOUND"
	StepNotFound         = "STEP_NOT_FOUND"
	ValueNotRecorded     = "VALUE_NOT_RECORDED"
	RunEnded             = "RUN_ENDED"
	RunStarting          = "RUN_STARTING"
	RunNotStarted        = "RUN_NOT_STARTED"
	RunCanceling         = "RUN_CANCELING"
	RunImported          = "RUN_IMPORTED"
	ExecutionMissing     = "EXECUTION_MISSING"
	RunElsewhere         = "RUN_ELSEWHERE"
	InputRedacted        = "INPUT_REDACTED"
	OriginalSealed       = "ORIGINAL_SEALED"
	OriginalGone         = "ORIGINAL_GONE"
	RequestIDReused      = "REQUEST_ID_REUSED"
	EngineUnavailable    = "ENGINE_UNAVAILABLE"
	EngineRefused        = "ENGINE_REFUSED"
	EngineListFailed     = "ENGINE_LIST_FAILED"
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
	BatchTotalChanged    = "BATCH_TOTAL_CHANGED"
	BatchNothingFailed   = "BATCH_NOTHING_FAILED"
	ProblemNotFound      = "PROBLEM_NOT_FOUND"
	ProblemResolved      = "PROBLEM_RESOLVED"
	ProblemChanged       = "PROBLEM_CHANGED"
	PermissionDenied     = "PERMISSION_DENIED"
	Unidentified         = "UNAUTHENTICATED"
	TokenExpired         = "TOKEN_EXPIRED"
	TokenRevoked         = "TOKEN_REVOKED"
	TokenNotFound        = "TOKEN_NOT_FOUND"
	TokenExists          = "TOKEN_EXISTS"
	SessionEnded         = "SESSION_ENDED"
	SessionNotFound      = "SESSION_NOT_FOUND"
	NoSession            = "NO_SESSION"
	CSRFTokenWrong       = "CSRF_TOKEN_WRONG" //nolint:gosec // the name of a reason
	SignInNotNeeded      = "SIGN_IN_NOT_NEEDED"
	RateLimited          = "RATE_LIMITED"
	MemoryExhausted      = "MEMORY_EXHAUSTED"
	Maintenance          = "MAINTENANCE"
	TooManyWatches       = "TOO_MANY_WATCHES"
	TooManySessions      = "TOO_MANY_SESSIONS"
	ViewNotFound         = "VIEW_NOT_FOUND"
	ViewChanged          = "VIEW_CHANGED"
	ViewExists           = "VIEW_EXISTS"
	TooManyViews         = "TOO_MANY_VIEWS"
	WebhookNotFound      = "WEBHOOK_NOT_FOUND"
	WebhookExists        = "WEBHOOK_EXISTS"
	WebhookPaused        = "WEBHOOK_PAUSED"
	TooManyWebhooks      = "TOO_MANY_WEBHOOKS"
)

// Field is one invalid part of a request.
type Field struct {
	// Path of the field in the request, such as "workflow" or "input/name".
	Path string
	// Message is what is wrong with the field.
	Message string
}

// Error is an error that a caller can act on.
type Error struct {
	Class   Class
	Reason  string
	Message string
	Fields  []Field
	// Facts are details for programs beside the reason, with names in lower camel case such as "kind"; may be nil.
	Facts map[string]string
	// RetryAfter, when positive, is how long to wait before the same request can succeed.
	RetryAfter time.Duration
	// Detail is what the log has beside the message, such as the address of a dependency or the text of its error. It is
	// never returned to callers, and neither is Cause.
	Detail string
	Cause  error
}

// Error returns the message with the detail, for the log.
func (e *Error) Error() string {
	if e.Detail == "" {
		return e.Message
	}
	return e.Message + " (" + e.Detail + ")"
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// New returns an error with a formatted message.
func New(class Class, reason, format string, args ...any) *Error {
	return &Error{Class: class, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// WithDetail sets the detail and returns e.
func (e *Error) WithDetail(format string, args ...any) *Error {
	e.Detail = fmt.Sprintf(format, args...)
	return e
}

// WithCause sets the cause and returns e.
func (e *Error) WithCause(err error) *Error {
	e.Cause = err
	return e
}

// WithField adds an invalid field and returns e.
func (e *Error) WithField(path, format string, args ...any) *Error {
	e.Fields = append(e.Fields, Field{Path: path, Message: fmt.Sprintf(format, args...)})
	return e
}

// WithFact adds a fact and returns e.
func (e *Error) WithFact(name, value string) *Error {
	if e.Facts == nil {
		e.Facts = map[string]string{}
	}
	e.Facts[name] = value
	return e
}

// WithRetry sets RetryAfter and returns e.
func (e *Error) WithRetry(d time.Duration) *Error {
	e.RetryAfter = d
	return e
}

// NoProject returns the error for a project that does not exist. A caller without a role in an existing project gets
// the same error, so that the API does not disclose which projects exist.
func NoProject(name string) *Error {
	return New(NotFound, ProjectNotFound, "project %q does not exist: `signalbox project list` shows those that do", name)
}

// From returns the Error in err's chain, if there is one.
func From(err error) (*Error, bool) {
	var e *Error
	ok := errors.As(err, &e)
	return e, ok
}

// Temporary reports whether the same request may succeed later although its caller changes nothing: a system that it
// needs is unavailable or over its limits, or the workers of another release must come or go first.
func Temporary(err error) bool {
	e, ok := From(err)
	return ok && (e.Class == Unavailable || e.RetryAfter > 0 || e.Reason == ContractMismatch)
}

// Is reports whether err is an Error with this reason.
func Is(err error, reason string) bool {
	e, ok := From(err)
	return ok && e.Reason == reason
}
