package flow

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
)

// Activity names. They are part of every recorded history: a worker registers its implementations under exactly these
// names, and a name never changes its meaning.
const (
	// HTTPActivity performs one HTTP exchange: func(context.Context, HTTPRequest) (HTTPResponse, error).
	// The same function serves as an activity and as a local activity (safe methods).
	HTTPActivity = "signalbox.http"
	// CredentialsActivity is HTTPActivity for requests with secrets or authentication. A worker of a release that knows neither
	// must not take one: it would send the marks in place of the secrets. As a local activity there is no such worker.
	CredentialsActivity = "signalbox.http.credentials" //nolint:gosec // a name
	// AttachActivity takes over a request that a local activity has left in flight: func(context.Context, AttachRequest) (HTTPResponse,
	// error). It runs on the task queue of the process that has the request, [Continued.Queue].
	AttachActivity = "signalbox.http.attach"
	// BarrierActivity does nothing: func(context.Context) error. It ends a workflow task that has grown too big.
	BarrierActivity = "signalbox.barrier"
)

// Values of HTTPRequest.Output.
const (
	OutputContent  = "content"  // the decoded body
	OutputRaw      = "raw"      // the body's bytes in base64
	OutputResponse = "response" // request, status code, headers and decoded body
)

// HTTPRequest is the mapped request of one `call: http`: everything the activity needs and nothing else, since it is
// what the run's history keeps.
type HTTPRequest struct {
	Method  string            `json:"method"` // upper case
	URL     string            `json:"url"`    // absolute, URI template expanded, without Query
	Headers map[string]string `json:"headers,omitempty"`
	Query   map[string]string `json:"query,omitempty"` // to be added to what URL already carries
	// Body is the JSON value to send; absent when there is none. A JSON string is sent as plain text when a
	// Content-Type header says something other than JSON.
	Body json.RawMessage `json:"body,omitempty"`
	// Output says which parts of the response are wanted: content, raw or response.
	Output string `json:"output"`
	// Redirect true: a 3xx answer is a result; false: it is an error (the specification's `with.redirect`).
	// Whether redirects are followed is the implementation's own guarded decision.
	Redirect bool `json:"redirect,omitempty"`
	// IdempotencyKey goes out as the header Idempotency-Key with unsafe methods. It stays the same when the same
	// request is sent again without the first answer being known.
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
	// Timeout bounds the whole exchange, redirects and body included. Over it the activity fails with
	// CategoryTransport and the status 504.
	Timeout time.Duration `json:"timeout"`
	// MaxResponseBytes bounds the body. Over it the activity fails with CategoryTooLarge.
	MaxResponseBytes int64 `json:"maxResponseBytes"`
	// Local tells that this is a local activity: it must not heartbeat.
	Local bool `json:"local,omitempty"`
	// Patience, in a local activity, is after how long a request without an answer is left in flight and handed over: see
	// [HTTPResponse.Continued]. So is an answer with more than Inline bytes. 0: nothing is handed over.
	Patience time.Duration `json:"patience,omitempty"`
	Inline   int64         `json:"inline,omitempty"`
	// ReportAttempts asks for the requests that left the process.
	ReportAttempts bool `json:"reportAttempts,omitempty"`
	// Once: nothing may send the request a second time, neither another activity nor the HTTP transport.
	Once bool `json:"once,omitempty"`
	// Project is whose secrets are used; empty where none is.
	Project string `json:"project,omitempty"`
	// Secrets are the marks in URL, Headers, Query, Body and Authentication that stand for secrets. Each is put in its place right
	// before the request goes out.
	Secrets map[string]Secret `json:"secrets,omitempty"`
	// Authentication is how the request authenticates, nil where it does not.
	Authentication *Authentication `json:"authentication,omitempty"`
}

// Secret refers to a project's secret, or to a member of one that is a JSON object.
type Secret struct {
	Name    string   `json:"name"`
	Members []string `json:"members,omitempty"`
}

// Authentication is a policy: Scheme (basic, bearer, digest, oauth2, oidc) with its Properties, a JSON object, or with the secret
// that is one.
type Authentication struct {
	Scheme     string          `json:"scheme"`
	Secret     string          `json:"secret,omitempty"`
	Properties json.RawMessage `json:"properties,omitempty"`
}

// UsesCredentials tells whether the request needs a worker that knows secrets and authentication.
func (r HTTPRequest) UsesCredentials() bool { return len(r.Secrets) > 0 || r.Authentication != nil }

// HTTPResponse is an acceptable answer (2xx; 3xx too with Redirect). Anything else is a CallError.
type HTTPResponse struct {
	StatusCode int `json:"statusCode"`
	// Headers and Request are filled for OutputResponse only: they would bloat the history otherwise.
	Headers map[string]string `json:"headers,omitempty"`
	Request *SentRequest      `json:"request,omitempty"`
	// Content is the decoded JSON body, a JSON string for text, base64 in a JSON string for other types and always
	// for OutputRaw; null when there was no body.
	Content json.RawMessage `json:"content,omitempty"`
	// Attempts are the requests that left the process, where HTTPRequest.ReportAttempts asks for them.
	Attempts []Attempt `json:"attempts,omitempty"`
	// Continued is set where a local activity has handed the request over; all else is empty then.
	Continued *Continued `json:"continued,omitempty"`
	// Postponed is set where a local activity has sent nothing: the process has enough requests in flight, or an earlier try of the
	// workflow task may have sent the request, which Attempts has then. An activity has to make the call.
	Postponed bool `json:"postponed,omitempty"`
}

// Size is about what the response takes in a history, in bytes.
func (r *HTTPResponse) Size() int {
	size := len(r.Content)
	for name, value := range r.Headers {
		size += len(name) + len(value)
	}
	if r.Request != nil {
		size += len(r.Request.URI)
		for name, value := range r.Request.Headers {
			size += len(name) + len(value)
		}
	}
	return size
}

// Attempt is one request that left the process.
type Attempt = interp.Attempt

// Continued is a request in flight: AttachActivity with its ID on the task queue gets its result.
type Continued struct {
	Queue string `json:"queue"`
	ID    string `json:"id"`
}

// AttachRequest asks for the result of a request in flight.
type AttachRequest struct {
	ID string `json:"id"`
}

// InterruptedError is the type of an activity's failure that says nothing about its request: the process ended it, or does not have
// it. Whether the receiver acted is unknown.
const InterruptedError = "signalbox.http.interrupted"

// Interrupted makes the failure of a request whose result is lost.
func Interrupted(message string) error {
	return temporal.NewApplicationErrorWithOptions(message, InterruptedError, temporal.ApplicationErrorOptions{
		NonRetryable: true, Category: temporal.ApplicationErrorCategoryBenign,
	})
}

// SentRequest is what really went out.
type SentRequest struct {
	Method  string            `json:"method"`
	URI     string            `json:"uri"`
	Headers map[string]string `json:"headers"`
}

// Category tells why a call failed, for retries and for reading failures in Temporal.
type Category string

// The categories of failed calls.
const (
	// CategoryAnswered: the origin answered with a status that is an error.
	CategoryAnswered Category = "answered"
	// CategoryTransport: no complete answer (name, connection, TLS, time). Whether the origin acted is unknown. The
	// problem's status is 504 when it was for lack of time.
	CategoryTransport Category = "transport"
	// CategoryRefused: the request was never sent (guard, invalid URL or header).
	CategoryRefused Category = "refused"
	// CategoryTooLarge: the answer was over MaxResponseBytes.
	CategoryTooLarge Category = "too_large"
)

// CallFailure is the detail of a failed call as it crosses the wire.
type CallFailure struct {
	Error    dsl.Error `json:"error"`
	Category Category  `json:"category"`
	// Attempts are as in HTTPResponse.
	Attempts []Attempt `json:"attempts,omitempty"`
}

// CallError makes the error an activity returns for a failed call. It is never retried by Temporal: the language's own
// `try` decides. The problem's instance is filled in by the interpreter.
func CallError(category Category, problem dsl.Error, cause error, attempts ...Attempt) error {
	return temporal.NewApplicationErrorWithOptions(
		fmt.Sprintf("%s: %s", problem.Title, problem.Detail),
		problem.Type,
		temporal.ApplicationErrorOptions{
			NonRetryable: true,
			// The workflow's affair, told by its steps; not an error of the worker, to be logged and counted as one.
			Category: temporal.ApplicationErrorCategoryBenign,
			Cause:    cause,
			Details:  []any{CallFailure{Error: problem, Category: category, Attempts: attempts}},
		},
	)
}

// failureOf reads what CallError wrote; false when err is none of it.
func failureOf(err error) (CallFailure, bool) {
	var failure CallFailure
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	if !ok || !app.HasDetails() {
		return failure, false
	}
	if app.Details(&failure) != nil || failure.Error.Type == "" {
		return failure, false
	}
	return failure, true
}
