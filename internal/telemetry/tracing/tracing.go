// Package tracing makes the spans of one platform: of API calls, of executions of runs, and of what runs do.
//
//	tracer := tracing.New(ctx, tracing.Options{Exporter: exporter, Resource: resource, Propagate: true})
//	ctx = tracing.WithRun(ctx, tracing.Run{ID: id, Project: project, Workflow: workflow})
//	ctx, span := tracer.Start(ctx, "RunActivity signalbox.http", trace.SpanKindInternal)
//	defer span.End()
//
// Every span that is started in a context with a run has the run's attributes. No attribute contains a value of a run,
// an expression's result, a header, a query or the text of an error: such texts may be sensitive, and a trace is read
// by other people than a run.
//
// The globals of OpenTelemetry are neither set nor read, so the traces of two platforms in one process are separate.
// Code that has a span in its context reaches its provider by trace.Span.TracerProvider, and needs no tracer.
package tracing

import (
	"context"
	"crypto/sha256"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Scope is the instrumentation scope of the spans.
const Scope = "github.com/signalbox-dev/signalbox"

// Options configure a [Tracer].
type Options struct {
	Exporter sdktrace.SpanExporter
	Resource *resource.Resource
	// Propagate continues the traces of API callers.
	Propagate bool
}

// Tracer starts spans.
type Tracer struct {
	ctx       context.Context //nolint:containedctx // the root of spans in workflows, which have no context.Context
	provider  *sdktrace.TracerProvider
	tracer    trace.Tracer
	propagate bool
}

// New returns a tracer. Its sampler is the one of OTEL_TRACES_SAMPLER, by default that of the parent, and always for a
// span without parent. Spans wait for export in a bounded queue; a span that ends while the queue is full is dropped.
func New(ctx context.Context, o Options) *Tracer {
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithResource(o.Resource),
		sdktrace.WithIDGenerator(ids{}),
		sdktrace.WithSpanProcessor(runAttributes{}),
		sdktrace.WithBatcher(o.Exporter),
	)
	return &Tracer{ctx: context.WithoutCancel(ctx), provider: provider, tracer: provider.Tracer(Scope),
		propagate: o.Propagate}
}

// Shutdown exports the remaining spans until ctx ends.
func (t *Tracer) Shutdown(ctx context.Context) error { return t.provider.Shutdown(ctx) }

// Start starts a span below that of the context.
func (t *Tracer) Start(ctx context.Context, name string, kind trace.SpanKind,
	attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	return t.tracer.Start(ctx, name, trace.WithSpanKind(kind), //nolint:spancheck // the caller ends it
		trace.WithAttributes(attributes...))
}

// StartExecution starts the span of an execution of a run, in Temporal's sense. Each call with the same arguments
// returns a span with the same IDs: a workflow task may be executed again, in another process. Only the process that
// completes the execution ends the span.
//
// Without a valid parent, as for a run that a process without traces has started, the trace is derived from the run.
func (t *Tracer) StartExecution(parent trace.SpanContext, execution string, r Run, name string,
	options ...trace.SpanStartOption) trace.Span {
	ctx := trace.ContextWithRemoteSpanContext(WithRun(t.ctx, r), parent)
	traceID, spanID := sha256.Sum256([]byte("run "+r.ID)), sha256.Sum256([]byte("execution "+execution))
	ctx = context.WithValue(ctx, identityKey{}, identity{trace.TraceID(traceID[:16]), trace.SpanID(spanID[:8])})
	_, span := t.tracer.Start(ctx, name, options...) //nolint:spancheck // the caller ends it
	return span                                      //nolint:spancheck // see above
}

// extract returns a context with the span of the caller of a request, if it names one.
func (t *Tracer) extract(ctx context.Context, headers http.Header) context.Context {
	if !t.propagate {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(headers))
}

// Encode returns the span context in the form of W3C Trace Context.
func (t *Tracer) Encode(sc trace.SpanContext) map[string]string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(t.ctx, sc), carrier)
	return carrier
}

// Decode reads what [Tracer.Encode] returned. It returns an invalid span context if there is none in it.
func (t *Tracer) Decode(carrier map[string]string) trace.SpanContext {
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(t.ctx, propagation.MapCarrier(carrier)))
}
