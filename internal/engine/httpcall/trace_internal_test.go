package httpcall

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

func TestSpanOfRequestHasNoSecrets(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewSpanRecorder()
	ctx, parent := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test").Start(t.Context(),
		"activity")
	for propagate, given := range map[bool]string{true: "", false: "given"} {
		req, err := http.NewRequestWithContext(ctx, "PLANTED",
			"https://planted-host.example.com:8443/planted/path?q=planted#planted", http.NoBody)
		require.NoError(t, err)
		if given != "" {
			req.Header.Set("Traceparent", given)
		}
		c := New(Options{Propagate: propagate})
		sent, span := c.trace(req, &resolvedRequest{secretOrigin: propagate})
		traced(span, http.StatusNotFound)
		span.End()
		if given == "" {
			require.Contains(t, sent.Header.Get("Traceparent"),
				parent.SpanContext().TraceID().String()+"-"+span.SpanContext().SpanID().String())
		} else {
			require.Equal(t, given, sent.Header.Get("Traceparent"), "the workflow's own is not replaced")
		}
	}
	shown := 0
	for _, s := range spans.Ended() {
		attributes := map[string]string{}
		for _, a := range s.Attributes() {
			attributes[string(a.Key)] = a.Value.String()
		}
		require.Equal(t, "_OTHER", s.Name())
		want := map[string]string{"http.request.method": "_OTHER", "http.response.status_code": "404", "error.type": "404"}
		if attributes["server.address"] != "" {
			shown++
			want["server.address"], want["server.port"] = "planted-host.example.com", "8443"
		}
		require.Equal(t, want, attributes)
	}
	require.Equal(t, 1, shown, "the host is not in the span of the request with a secret in it")
}

// A process without traces sends nothing.
func TestUntracedRequestHasNoContext(t *testing.T) {
	t.Parallel()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://example.com", http.NoBody)
	require.NoError(t, err)
	sent, span := New(Options{Propagate: true}).trace(req, &resolvedRequest{})
	require.False(t, span.IsRecording())
	require.Empty(t, sent.Header)
}

func BenchmarkUntracedRequest(b *testing.B) {
	c := New(Options{})
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://example.com", http.NoBody)
	require.NoError(b, err)
	r := &resolvedRequest{}
	b.ReportAllocs()
	for b.Loop() {
		_, span := c.trace(req, r)
		traced(span, http.StatusOK)
		span.End()
	}
}
