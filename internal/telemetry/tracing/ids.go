package tracing

import (
	"context"
	"encoding/binary"
	"math/rand/v2"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// identity are the IDs of a span that several processes may start.
type identity struct {
	trace trace.TraceID
	span  trace.SpanID
}

type identityKey struct{}

// ids returns the IDs of the context, random ones if it has none.
type ids struct{}

var _ sdktrace.IDGenerator = ids{}

// NewIDs implements [sdktrace.IDGenerator].
func (ids) NewIDs(ctx context.Context) (traceID trace.TraceID, spanID trace.SpanID) {
	if fixed, ok := ctx.Value(identityKey{}).(identity); ok {
		return fixed.trace, fixed.span
	}
	for !traceID.IsValid() {
		binary.NativeEndian.PutUint64(traceID[:8], rand.Uint64()) //nolint:gosec // an ID, not a secret
		binary.NativeEndian.PutUint64(traceID[8:], rand.Uint64()) //nolint:gosec // see above
	}
	return traceID, ids{}.NewSpanID(ctx, traceID)
}

// NewSpanID implements [sdktrace.IDGenerator].
func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) (spanID trace.SpanID) {
	if fixed, ok := ctx.Value(identityKey{}).(identity); ok {
		return fixed.span
	}
	for !spanID.IsValid() {
		binary.NativeEndian.PutUint64(spanID[:], rand.Uint64()) //nolint:gosec // an ID, not a secret
	}
	return spanID
}
