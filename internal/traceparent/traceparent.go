// Package traceparent writes the span of a context as a text, in the form of the header traceparent of W3C Trace
// Context, and reads it again: for work that is stored, and done later or by another process.
//
//	stored := traceparent.Of(ctx)
//	ctx = traceparent.Follow(ctx, stored)
//
// The text has random IDs and the sampling decision, and nothing about the work. The package links no SDK of
// OpenTelemetry: a context without traces has no span, and a text that cannot be read is ignored.
package traceparent

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const header = "traceparent"

// Of returns the span of a context, empty if there is none.
func Of(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[header]
}

// Read returns the span that a text names, an invalid one if it names none.
func Read(ctx context.Context, text string) trace.SpanContext {
	none := trace.ContextWithSpanContext(ctx, trace.SpanContext{})
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(none, propagation.MapCarrier{header: text}))
}

type linksKey struct{}

// Follow returns a context whose spans are below the last one of these spans, for work that several causes have
// together. [Links] has the others.
func Follow(ctx context.Context, texts ...string) context.Context {
	var causes []trace.SpanContext
	for _, text := range texts {
		if sc := Read(ctx, text); sc.IsValid() {
			causes = append(causes, sc)
		}
	}
	if len(causes) == 0 {
		return ctx
	}
	last := len(causes) - 1
	var links []trace.Link
	for _, sc := range causes[:last] {
		links = append(links, trace.Link{SpanContext: sc})
	}
	return trace.ContextWithRemoteSpanContext(context.WithValue(ctx, linksKey{}, links), causes[last])
}

// Links returns the further causes of the work of a context.
func Links(ctx context.Context) []trace.Link {
	links, _ := ctx.Value(linksKey{}).([]trace.Link)
	return links
}
