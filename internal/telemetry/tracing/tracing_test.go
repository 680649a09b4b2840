package tracing_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"sync"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/signalbox-dev/signalbox/internal/telemetry/tracing"
)

// recorder keeps exported spans.
type recorder struct {
	mu    sync.Mutex
	spans []sdktrace.ReadOnlySpan
}

func (r *recorder) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spans = append(r.spans, spans...)
	return nil
}

func (*recorder) Shutdown(context.Context) error { return nil }

// call makes a call of an API with traces, with the trace of a caller, and returns its span.
func call(t *testing.T, propagate bool, result error) sdktrace.ReadOnlySpan {
	t.Helper()
	const method = "/signalbox.v1.RunService/GetRun"
	spans := &recorder{}
	tracer := tracing.New(t.Context(), tracing.Options{Exporter: spans, Resource: resource.Empty(), Propagate: propagate})
	server := httptest.NewServer(
		connect.NewUnaryHandler(method,
			func(context.Context, *connect.Request[emptypb.Empty]) (*connect.Response[emptypb.Empty], error) {
				return connect.NewResponse(&emptypb.Empty{}), result
			}, connect.WithInterceptors(tracer.Interceptor())))
	t.Cleanup(server.Close)
	request := connect.NewRequest(&emptypb.Empty{})
	request.Header().Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	request.Header().Set("Authorization", "Bearer planted")
	_, err := connect.NewClient[emptypb.Empty, emptypb.Empty](server.Client(), server.URL+method).CallUnary(t.Context(),
		request)
	require.Equal(t, result != nil, err != nil)
	require.NoError(t, tracer.Shutdown(t.Context()))
	require.Len(t, spans.spans, 1)
	return spans.spans[0]
}

func attributes(s sdktrace.ReadOnlySpan) map[string]string {
	all := map[string]string{}
	for _, a := range s.Attributes() {
		all[string(a.Key)] = a.Value.String()
	}
	return all
}

func TestCallContinuesTheTraceOfItsCaller(t *testing.T) {
	t.Parallel()
	s := call(t, true, nil)
	require.Equal(t, "signalbox.v1.RunService/GetRun", s.Name())
	require.Equal(t, "b7ad6b7169203331", s.Parent().SpanID().String())
	require.Equal(t, "0af7651916cd43dd8448eb211c80319c", s.SpanContext().TraceID().String())
	require.Equal(t, map[string]string{
		"rpc.system.name": "connectrpc", "rpc.method": "signalbox.v1.RunService/GetRun", "rpc.response.status_code": "OK",
	}, attributes(s))
	require.False(t, call(t, false, nil).Parent().IsValid(), "it is a trace of its own without propagation")
}

func TestErrorsOfTheCallerDoNotFailTheSpan(t *testing.T) {
	t.Parallel()
	refused := call(t, true, connect.NewError(connect.CodeInvalidArgument, errors.New("quotes planted input")))
	require.Equal(t, codes.Unset, refused.Status().Code)
	require.Equal(t, "INVALID_ARGUMENT", attributes(refused)["rpc.response.status_code"])
	failed := call(t, true, connect.NewError(connect.CodeInternal, errors.New("quotes planted input")))
	require.Equal(t, sdktrace.Status{Code: codes.Error}, failed.Status())
	require.Equal(t, "INTERNAL", attributes(failed)["error.type"])
	require.Empty(t, failed.Events())
}
