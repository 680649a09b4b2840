// Package fail turns errors into the API's: a code, one line for people, and details for programs.
//
// [Error] maps what handlers return. [Handler] covers what never reaches a handler (a body that is no JSON, one that
// is too large, a method that does not exist), so that those errors have a reason as well. What callers see never
// holds the text of an error that is not a fault; the log does.
package fail

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

	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/rpc/reason"
)

// Domain is the domain of every ErrorInfo.
const Domain = "signalbox"

// Error maps err to the error of the API. The second result is false for what the caller cannot act on: the server's
// own mistakes, whose cause belongs in the log.
func Error(err error) (*connect.Error, bool) {
	if coded, ok := errors.AsType[*connect.Error](err); ok {
		return coded, true
	}
	if f, ok := fault.From(err); ok {
		return fromFault(f)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return New(connect.CodeDeadlineExceeded, reason.DeadlineExceeded, "the call took longer than its deadline"), true
	case errors.Is(err, context.Canceled):
		return New(connect.CodeCanceled, reason.Canceled, "the call was canceled by its caller"), true
	}
	return Internal(), false
}

// Internal is the answer when something broke that the caller can do nothing about.
func Internal() *connect.Error {
	return New(connect.CodeInternal, reason.Internal, "something broke inside the server; its log says what")
}

// New returns an error with a reason.
func New(code connect.Code, why, message string, details ...proto.Message) *connect.Error {
	return detailed(code, message, append([]proto.Message{&errdetails.ErrorInfo{Reason: why, Domain: Domain}}, details...))
}

// HTTPStatus returns the HTTP status of an error where the caller speaks plain HTTP.
func HTTPStatus(e *connect.Error) int {
	for _, d := range e.Details() {
		value, err := d.Value()
		if info, ok := value.(*errdetails.ErrorInfo); ok && err == nil {
			return reason.HTTPStatus(e.Code(), info.GetReason())
		}
	}
	return reason.HTTPStatus(e.Code(), "")
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

// readable returns a text that any protocol can carry: errors quote what the caller has sent, which may be no UTF-8.
func readable(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

func fromFault(f *fault.Fault) (*connect.Error, bool) {
	code, ok := codeOf(f.Class)
	if !ok {
		return Internal(), false
	}
	details := []proto.Message{&errdetails.ErrorInfo{Reason: f.Reason, Domain: Domain, Metadata: facts(f.Facts)}}
	if len(f.Fields) > 0 {
		violations := make([]*errdetails.BadRequest_FieldViolation, len(f.Fields))
		for i, field := range f.Fields {
			violations[i] = &errdetails.BadRequest_FieldViolation{Field: readable(field.Path), Description: readable(field.Message)}
		}
		details = append(details, &errdetails.BadRequest{FieldViolations: violations})
	}
	retry := f.RetryAfter
	if retry <= 0 && code == connect.CodeUnavailable {
		retry = time.Second // whoever is unavailable says when to ask again
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

// RetryAfter sets the header that says when to ask again.
func RetryAfter(header http.Header, d time.Duration) { header.Set("Retry-After", seconds(d)) }

// seconds rounds up: the header knows whole seconds, and 0 would mean at once.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

func codeOf(c fault.Class) (connect.Code, bool) {
	switch c {
	case fault.Invalid:
		return connect.CodeInvalidArgument, true
	case fault.NotFound:
		return connect.CodeNotFound, true
	case fault.Exists:
		return connect.CodeAlreadyExists, true
	case fault.Refused:
		return connect.CodeFailedPrecondition, true
	case fault.Exhausted:
		return connect.CodeResourceExhausted, true
	case fault.Denied:
		return connect.CodePermissionDenied, true
	case fault.Unauthenticated:
		return connect.CodeUnauthenticated, true
	case fault.Unavailable:
		return connect.CodeUnavailable, true
	}
	return 0, false
}
