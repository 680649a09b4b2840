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
	// CredentialsActivity is HTTPActivity for requests with secrets or authentication. A worker of a release that does
	// not support them must not execute one: it would send the marks in place of the secrets. As a local activity it
	// never runs on such a worker.
	CredentialsActivity = "signalbox.http.credentials" //nolint:gosec // a name
	// AttachActivity continues a request that a local activity left in flight: func(context.Context, AttachRequest)
	// (HTTPResponse, error). It runs on the task queue of the process that has the request, [Continued.Queue].
	AttachActivity = "signalbox.http.attach"
	// BarrierActivity does nothing: func(context.Context) error. It ends a workflow task that has grown too large.
	BarrierActivity = "signalbox.barrier"
)

// Values of HTTPRequest.Output.
const (
	OutputContent  = "content"  // the decoded body
	OutputRaw      = "raw"      // the body's bytes in base64
	OutputResponse = "response" // request, status code, headers and decoded body
)

// HTTPRequest is the mapped request of one `call: http`. It holds only what the activity requires, because the run's
// history stores it.
type HTTPRequest struct {
	Method  string            `json:"method"` // upper case
	URL     string            `json:"url"`    // absolute, URI template expanded, without Query
	Headers map[string]string `json:"headers,omitempty"`
	Query   map[string]string `json:"query,omitempty"` // added to the query of URL
	// Body is the JSON value to send, absent if there is none. A JSON string is sent as plain text if a Content-Type
	// header names a type other than JSON.
	Body json.RawMessage `json:"body,omitempty"`
	// Output selects the parts of the response: content, raw or response.
	Output string `json:"output"`
	// Redirect true: a 3xx response is a result. false: it is an error (the specification's `with.redirect`). The
	// implementation decides whether it follows redirects.
	Redirect bool `json:"redirect,omitempty"`
	// IdempotencyKey is sent as the header Idempotency-Key with unsafe methods. It stays the same when the same request
	// is sent again because the first response is unknown.
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
	// Timeout bounds the whole exchange, including redirects and body. When it is exceeded, the activity fails with
	// CategoryTransport and the status 504.
	Timeout time.Duration `json:"timeout"`
	// MaxResponseBytes bounds the body. When it is exceeded, the activity fails with CategoryTooLarge.
	MaxResponseBytes int64 `json:"maxResponseBytes"`
	// Local marks a local activity: it must not heartbeat.
	Local bool `json:"local,omitempty"`
	// Patience, in a local activity, is the time after which a request without a response is left in flight and handed
	// over: see [HTTPResponse.Continued]. A response with more than Inline bytes is handed over too. 0: nothing is
	// handed over.
	Patience time.Duration `json:"patience,omitempty"`
	Inline   int64         `json:"inline,omitempty"`
	// Once forbids sending the request a second time, both by another activity and by the HTTP transport.
	Once bool `json:"once,omitempty"`
	// Project owns the secrets in use. It is empty if there are none.
	Project string `json:"project,omitempty"`
	// Secrets are the marks in URL, Headers, Query, Body and Authentication that stand for secrets. Each is replaced by
	// its secret right before the request is sent.
	Secrets map[string]Secret `json:"secrets,omitempty"`
	// Authentication is the authentication of the request, nil if there is none.
	Authentication *Authentication `json:"authentication,omitempty"`
}

// Secret refers to a project's secret, or to a member of a secret that is a JSON object.
type Secret struct {
	Name    string   `json:"name"`
	Members []string `json:"members,omitempty"`
}

// Authentication is a policy: Scheme (basic, bearer, digest, oauth2, oidc) with its Properties, a JSON object, or with
// the Secret that holds them.
type Authentication struct {
	Scheme     string          `json:"scheme"`
	Secret     string          `json:"secret,omitempty"`
	Properties json.RawMessage `json:"properties,omitempty"`
}

// UsesCredentials reports whether the request requires a worker that supports secrets and authentication.
func (r HTTPRequest) UsesCredentials() bool { return len(r.Secrets) > 0 || r.Authentication != nil }

// HTTPResponse is an acceptable response (2xx; 3xx too with Redirect). Any other response is a CallError.
type HTTPResponse struct {
	StatusCode int `json:"statusCode"`
	// Headers and Request are set for OutputResponse only: they would bloat the history otherwise.
	Headers map[string]string `json:"headers,omitempty"`
	Request *SentRequest      `json:"request,omitempty"`
	// Content is the decoded JSON body. It is a JSON string for text, and base64 in a JSON string for other types and
	// always for OutputRaw. It is null if there was no body.
	Content json.RawMessage `json:"content,omitempty"`
	// Attempts are the requests that left the process.
	Attempts []Attempt `json:"attempts,omitempty"`
	// Continued is set if a local activity has handed the request over. All other fields are empty then.
	Continued *Continued `json:"continued,omitempty"`
	// Postponed is set if a local activity has sent nothing, and an activity must make the call. Either the process has
	// enough requests in flight, or an earlier try of the workflow task may have sent the request, which Attempts then
	// contains.
	Postponed bool `json:"postponed,omitempty"`
}

// Size returns the approximate size of the response in a history, in bytes.
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

// Continued identifies a request in flight. AttachActivity with its ID on the task queue returns its result.
type Continued struct {
	Queue string `json:"queue"`
	ID    string `json:"id"`
}

// AttachRequest requests the result of a request in flight.
type AttachRequest struct {
	ID string `json:"id"`
}

// InterruptedError is the type of an activity's failure from which the result of its request does not follow: the
// process ended the request, or does not have it. It is unknown whether the receiver acted.
const InterruptedError = "signalbox.http.interrupted"

// Interrupted returns the failure of a request with a lost result.
func Interrupted(message string) error {
	return temporal.NewApplicationErrorWithOptions(message, InterruptedError, temporal.ApplicationErrorOptions{
		NonRetryable: true, Category: temporal.ApplicationErrorCategoryBenign,
	})
}

// SentRequest is the request as sent.
type SentRequest struct {
	Method  string            `json:"method"`
	URI     string            `json:"uri"`
	Headers map[string]string `json:"headers"`
}

// Category classifies the failure of a call, for retries and for readers of failures in Temporal.
type Category string

// The categories of failed calls.
const (
	// CategoryAnswered: the origin responded with an error status.
	CategoryAnswered Category = "answered"
	// CategoryTransport: no complete response (name, connection, TLS, time). It is unknown whether the origin acted.
	// The error's status is 504 after a timeout.
	CategoryTransport Category = "transport"
	// CategoryRefused: the request was never sent (guard, invalid URL or header).
	CategoryRefused Category = "refused"
	// CategoryTooLarge: the response exceeded MaxResponseBytes.
	CategoryTooLarge Category = "too_large"
)

// CallFailure is the serialized detail of a failed call.
type CallFailure struct {
	Error    dsl.Error `json:"error"`
	Category Category  `json:"category"`
	// Attempts are as in HTTPResponse.
	Attempts []Attempt `json:"attempts,omitempty"`
	// Log is what a program has printed.
	Log *ProgramLog `json:"log,omitempty"`
}

// CallError returns the error of an activity for a failed call. Temporal never retries it: the language's own `try`
// decides that. The interpreter sets the error's instance.
func CallError(category Category, runError dsl.Error, cause error, attempts ...Attempt) error {
	return temporal.NewApplicationErrorWithOptions(
		fmt.Sprintf("%s: %s", runError.Title, runError.Detail),
		runError.Type,
		temporal.ApplicationErrorOptions{
			NonRetryable: true,
			// The run's steps report it. It is not an error of the worker, which would be logged and counted as such.
			Category: temporal.ApplicationErrorCategoryBenign,
			Cause:    cause,
			Details:  []any{CallFailure{Error: runError, Category: category, Attempts: attempts}},
		},
	)
}

// failureOf reads the detail that CallError wrote. It returns false for any other error.
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
