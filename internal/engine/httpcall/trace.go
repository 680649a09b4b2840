package httpcall

import (
	"net/http"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/signalbox-dev/signalbox/dsl/httpmessage"
	"github.com/signalbox-dev/signalbox/internal/telemetry/tracing"
)

// headerTraceparent is the header of W3C Trace Context.
const headerTraceparent = "Traceparent"

// trace starts the span of a request below that of its activity, and sends its context with the request. Nothing is
// recorded or sent in a process without traces. The span has the method and the host of the request, without anything
// else of its URL; without the host, too, where this part of the URL contains a secret.
//
// Only traceparent is sent, which consists of random IDs and a flag: tracestate belongs to the vendors of the API's
// callers. A traceparent that the workflow sets itself is left as it is. Redirects to other origins lose it, like all
// headers.
func (c *Caller) trace(req *http.Request, r *resolvedRequest) (*http.Request, trace.Span) {
	parent := trace.SpanFromContext(req.Context())
	if !parent.SpanContext().IsValid() {
		return req, parent // it records nothing
	}
	tracer := parent.TracerProvider().Tracer(tracing.Scope)
	method := spanMethod(req.Method)
	ctx, span := tracer.Start(req.Context(), method, trace.WithSpanKind(trace.SpanKindClient))
	span.SetAttributes(attribute.String("http.request.method", method))
	if !r.secretOrigin {
		span.SetAttributes(attribute.String("server.address", req.URL.Hostname()))
		if port, err := strconv.Atoi(req.URL.Port()); err == nil {
			span.SetAttributes(attribute.Int("server.port", port))
		}
	}
	if c.propagate {
		carrier := propagation.MapCarrier{}
		propagation.TraceContext{}.Inject(ctx, carrier)
		httpmessage.SetDefault(req.Header, headerTraceparent, carrier["traceparent"])
	}
	return req.WithContext(ctx), span
}

// spanMethod returns the method for a span. By convention, others than the known ones are _OTHER.
func spanMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodOptions, http.MethodTrace:
		return method
	}
	return "_OTHER"
}

// traced records the status of a response, or 0 for a request without a complete one.
func traced(span trace.Span, status int) {
	switch {
	case status == 0:
		span.SetAttributes(attribute.String("error.type", "no_response"))
		span.SetStatus(codes.Error, "")
		return
	case status >= http.StatusBadRequest:
		span.SetAttributes(attribute.String("error.type", strconv.Itoa(status)))
		span.SetStatus(codes.Error, "")
	}
	span.SetAttributes(attribute.Int("http.response.status_code", status))
}
