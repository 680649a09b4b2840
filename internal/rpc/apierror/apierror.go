// Package apierror maps errors to API errors: a code, a one-line message for people, and details for programs.
//
// [Error] maps what handlers return. [Handler] completes errors of requests that never reach a handler (malformed JSON,
// a body that is too large, an unknown method), so that those errors have a reason as well. Responses never contain the
// text of an error that is not an apperror; only the log does.
package apierror

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/signalbox-dev/signalbox/internal/apperror"
)

// Domain is the domain of every ErrorInfo.
const Domain = "signalbox"

// Error maps err to the error of the API. The second result is false for internal errors, on which the caller cannot
// act and whose cause belongs in the log.
func Error(err error) (*connect.Error, bool) {
	if coded, ok := errors.AsType[*connect.Error](err); ok {
		return coded, true
	}
	if f, ok := apperror.From(err); ok {
		return fromFault(f)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return New(connect.CodeDeadlineExceeded, DeadlineExceeded, "the call took longer than its deadline"), true
	case errors.Is(err, context.Canceled):
		return New(connect.CodeCanceled, Canceled, "the call was canceled by its caller"), true
	}
	return InternalError(), false
}

// InternalError is the response to an internal failure on which the caller cannot act.
func InternalError() *connect.Error {
	return New(connect.CodeInternal, Internal, "an internal error occurred; see the server's log for the cause")
}

// ReferredError is InternalError with a reference, by which the log has the cause.
func ReferredError(reference string) *connect.Error {
	return detailed(connect.CodeInternal,
		"an internal error occurred; the server's log has the cause under the reference "+reference,
		[]proto.Message{&errdetails.ErrorInfo{
			Reason: Internal, Domain: Domain, Metadata: map[string]string{"reference": reference}}})
}

// New returns an error with a reason.
func New(code connect.Code, why, message string, details ...proto.Message) *connect.Error {
	return detailed(code, message, append([]proto.Message{&errdetails.ErrorInfo{Reason: why, Domain: Domain}}, details...))
}

// HTTPStatus returns the HTTP status of an error for callers that use plain HTTP.
func HTTPStatus(e *connect.Error) int {
	for _, d := range e.Details() {
		value, err := d.Value()
		if info, ok := value.(*errdetails.ErrorInfo); ok && err == nil {
			return StatusOf(e.Code(), info.GetReason())
		}
	}
	return StatusOf(e.Code(), "")
}

func detailed(code connect.Code, message string, details []proto.Message) *connect.Error {
	e := connect.NewError(code, errors.New(readable(message)))
	for _, d := range details {
		if detail, err := connect.NewErrorDetail(d); err == nil {
			e.AddDetail(detail)
		}
	}
	return e
}

// readable returns a text that every protocol can carry. Errors quote input of the caller, which may be invalid UTF-8.
func readable(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

func fromFault(f *apperror.Error) (*connect.Error, bool) {
	code, ok := codeOf(f.Class)
	if !ok {
		return InternalError(), false
	}
	details := []proto.Message{&errdetails.ErrorInfo{Reason: f.Reason, Domain: Domain, Metadata: facts(f.Facts)}}
	if len(f.Fields) > 0 {
		violations := make([]*errdetails.BadRequest_FieldViolation, len(f.Fields))
		for i, field := range f.Fields {
			violations[i] = &errdetails.BadRequest_FieldViolation{
				Field: readable(field.Path), Description: readable(field.Message)}
		}
		details = append(details, &errdetails.BadRequest{FieldViolations: violations})
	}
	retry := f.RetryAfter
	if retry <= 0 && code == connect.CodeUnavailable {
		retry = time.Second // every unavailable error has a retry delay
	}
	if retry > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(retry)})
	}
	e := detailed(code, f.Message, details)
	if retry > 0 {
		RetryAfter(e.Meta(), retry)
	}
	return e, true
}

func facts(all map[string]string) map[string]string {
	if len(all) == 0 {
		return nil
	}
	out := make(map[string]string, len(all))
	for name, value := range all {
		out[readable(name)] = readable(value)
	}
	return out
}

// RetryAfter sets the Retry-After header.
func RetryAfter(header http.Header, d time.Duration) { header.Set("Retry-After", seconds(d)) }

// seconds rounds up, because the header has whole seconds and 0 would mean an immediate retry.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

func codeOf(c apperror.Class) (connect.Code, bool) {
	switch c {
	case apperror.Invalid:
		return connect.CodeInvalidArgument, true
	case apperror.NotFound:
		return connect.CodeNotFound, true
	case apperror.Exists:
		return connect.CodeAlreadyExists, true
	case apperror.Refused:
		return connect.CodeFailedPrecondition, true
	case apperror.Exhausted:
		return connect.CodeResourceExhausted, true
	case apperror.Denied:
		return connect.CodePermissionDenied, true
	case apperror.Unauthenticated:
		return connect.CodeUnauthenticated, true
	case apperror.Unavailable:
		return connect.CodeUnavailable, true
	}
	return 0, false
}
