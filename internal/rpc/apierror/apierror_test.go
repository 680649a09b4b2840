package apierror_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/rpc/apierror"
)

func info(t *testing.T, e *connect.Error) *errdetails.ErrorInfo {
	t.Helper()
	require.NotEmpty(t, e.Details())
	v, err := e.Details()[0].Value()
	require.NoError(t, err)
	require.IsType(t, &errdetails.ErrorInfo{}, v)
	return v.(*errdetails.ErrorInfo)
}

func TestErrorMapsEveryClass(t *testing.T) {
	t.Parallel()
	codes := map[apperror.Class]connect.Code{
		apperror.Invalid: connect.CodeInvalidArgument, apperror.NotFound: connect.CodeNotFound,
		apperror.Exists:  connect.CodeAlreadyExists,
		apperror.Refused: connect.CodeFailedPrecondition, apperror.Exhausted: connect.CodeResourceExhausted,
		apperror.Unavailable: connect.CodeUnavailable,
	}
	for class, code := range codes {
		e, expected := apierror.Error(
			fmt.Errorf("wrapped: %w", apperror.New(class, "REASON", "line %d", 1).WithCause(errors.New("secret"))))
		require.True(t, expected)
		require.Equal(t, code, e.Code())
		require.Equal(t, "line 1", e.Message())
		require.Equal(t, "REASON", info(t, e).GetReason())
		require.Equal(t, "signalbox", info(t, e).GetDomain())
		require.Equal(t, code == connect.CodeUnavailable, e.Meta().Get("Retry-After") == "1")
	}
}

// An unavailable error has a retry delay in the header and in the details, and facts beside the reason.
func TestUnavailableHasRetryDelayAndFacts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		after, delay time.Duration
		header       string
	}{{0, time.Second, "1"}, {2500 * time.Millisecond, 2500 * time.Millisecond, "3"}} {
		e, _ := apierror.Error(apperror.New(apperror.Unavailable, "REASON", "away").WithFact("kind", "hung").WithFact("state",
			"down").WithRetry(test.after))
		require.Equal(t, map[string]string{"kind": "hung", "state": "down"}, info(t, e).GetMetadata())
		require.Len(t, e.Details(), 2)
		detail, err := e.Details()[1].Value()
		require.NoError(t, err)
		require.Equal(t, test.delay, detail.(*errdetails.RetryInfo).GetRetryDelay().AsDuration())
		require.Equal(t, test.header, e.Meta().Get("Retry-After"))
	}
	e, _ := apierror.Error(apperror.New(apperror.Refused, "REASON", "no"))
	require.Len(t, e.Details(), 1)
	require.Empty(t, e.Meta().Get("Retry-After"))
}

func TestErrorMapsOtherErrors(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err      error
		code     connect.Code
		reason   string
		expected bool
	}{
		"deadline": {fmt.Errorf("store: %w", context.DeadlineExceeded), connect.CodeDeadlineExceeded, "DEADLINE_EXCEEDED",
			true},
		"canceled": {fmt.Errorf("store: %w", context.Canceled), connect.CodeCanceled, "CANCELED", true},
		"unknown":  {errors.New("secret"), connect.CodeInternal, "INTERNAL", false},
		"class 99": {apperror.New(99, "REASON", "secret"), connect.CodeInternal, "INTERNAL", false},
	}
	for name, test := range tests {
		e, expected := apierror.Error(test.err)
		require.Equal(t, test.expected, expected, name)
		require.Equal(t, test.code, e.Code(), name)
		require.Equal(t, test.reason, info(t, e).GetReason(), name)
		require.NotContains(t, e.Message(), "secret", name)
	}
	own := connect.NewError(connect.CodeAborted, errors.New("as it is"))
	e, expected := apierror.Error(own)
	require.True(t, expected)
	require.Same(t, own, e)
}

func TestErrorCarriesFieldsAndRetry(t *testing.T) {
	t.Parallel()
	e, _ := apierror.Error(apperror.New(apperror.Invalid, "REASON", "line").WithField("a", "is %s", "odd").
		WithField("b", "too").WithRetry(1100 * time.Millisecond))
	fields, err := e.Details()[1].Value()
	require.NoError(t, err)
	violations := fields.(*errdetails.BadRequest).GetFieldViolations()
	require.Len(t, violations, 2)
	require.Equal(t, "a", violations[0].GetField())
	require.Equal(t, "is odd", violations[0].GetDescription())
	retry, err := e.Details()[2].Value()
	require.NoError(t, err)
	require.Equal(t, 1100*time.Millisecond, retry.(*errdetails.RetryInfo).GetRetryDelay().AsDuration())
	require.Equal(t, "2", e.Meta().Get("Retry-After"))
}

func TestHandlerKeepsCompleteResponses(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"code":"not_found","message":"m","details":[{"type":"t","value":"AA"}]}`,
		`no JSON`,
		`{"code":"nonsense","message":"m"}`,
	} {
		h := apierror.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			w.Write([]byte(body))
			w.(http.Flusher).Flush()
		}), 10)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", http.NoBody))
		require.Equal(t, http.StatusBadRequest, w.Code)
		require.Equal(t, body, w.Body.String())
	}
	h := apierror.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("fine")) }), 10)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", http.NoBody))
	require.Equal(t, "fine", w.Body.String())
}

func TestCompleted(t *testing.T) {
	t.Parallel()
	for code, reason := range map[connect.Code]string{
		connect.CodeInvalidArgument: "INVALID_ARGUMENT", connect.CodeResourceExhausted: "REQUEST_TOO_LARGE",
		connect.CodeUnimplemented: "UNIMPLEMENTED", connect.CodeDeadlineExceeded: "DEADLINE_EXCEEDED",
		connect.CodeCanceled: "CANCELED", connect.CodeUnknown: "INVALID_ARGUMENT", connect.CodeUnavailable: "UNAVAILABLE",
	} {
		require.Equal(t, reason, info(t, apierror.Completed(code, "unmarshal message: m", 10)).GetReason())
	}
	require.Equal(t, "request body: m",
		apierror.Completed(connect.CodeInvalidArgument, "unmarshal message: m", 10).Message())
}

// An error that quotes invalid UTF-8 of the caller is still sent, with its reason.
func TestErrorsWithInvalidUTF8(t *testing.T) {
	t.Parallel()
	f := apperror.New(apperror.Invalid, apperror.InvalidArgument, "no \xe9")
	f.Facts, f.Fields = map[string]string{"value": "\xe9"}, []apperror.Field{{Path: "/\xe9", Message: "\xe9"}}
	e, coded := apierror.Error(f)
	require.True(t, coded)
	w := httptest.NewRecorder()
	apierror.WriteREST(w, e, http.StatusBadRequest)
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Equal(t, 4, strings.Count(w.Body.String(), "\uFFFD"), w.Body)
	require.Contains(t, w.Body.String(), apperror.InvalidArgument)
	plain := httptest.NewRecorder()
	apierror.WriteREST(plain, connect.NewError(connect.CodeUnimplemented, errors.New("nothing at /\xe9")),
		http.StatusNotFound)
	require.Equal(t, http.StatusNotFound, plain.Code)
}
