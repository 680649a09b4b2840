package tracing

import (
	"context"
	"strings"

	"connectrpc.com/connect"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Interceptor returns the interceptor of the API's handlers, which makes a span of each call. It is the outermost one.
// Health checks and scrapes are no calls of the API, and have no spans.
func (t *Tracer) Interceptor() connect.Interceptor { return calls{t} }

type calls struct{ tracer *Tracer }

// WrapUnary traces a unary call.
func (c calls) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		ctx, span := c.start(c.tracer.extract(ctx, request.Header()), request.Spec(), request.Peer())
		defer span.End()
		response, err := next(ctx, request)
		finish(span, err)
		return response, err
	}
}

// WrapStreamingHandler traces a stream from its opening to its end.
func (c calls) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, stream connect.StreamingHandlerConn) error {
		ctx, span := c.start(c.tracer.extract(ctx, stream.RequestHeader()), stream.Spec(), stream.Peer())
		defer span.End()
		err := next(ctx, stream)
		finish(span, err)
		return err
	}
}

// WrapStreamingClient does not change clients.
func (calls) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (c calls) start(ctx context.Context, spec connect.Spec, peer connect.Peer) (context.Context, trace.Span) {
	method, system := strings.TrimPrefix(spec.Procedure, "/"), "connectrpc"
	if peer.Protocol != connect.ProtocolConnect {
		system = "grpc" // gRPC and gRPC-Web
	}
	return c.tracer.Start(ctx, method, trace.SpanKindServer, attribute.String("rpc.system.name", system),
		attribute.String("rpc.method", method))
}

// finish records the code of a call's error, not its text, which may quote the request. By convention, only errors of
// the server make the span fail.
func finish(span trace.Span, err error) {
	code := "OK"
	if err != nil {
		code = strings.ToUpper(connect.CodeOf(err).String())
		switch connect.CodeOf(err) {
		case connect.CodeUnknown, connect.CodeDeadlineExceeded, connect.CodeUnimplemented, connect.CodeInternal,
			connect.CodeUnavailable, connect.CodeDataLoss:
			span.SetAttributes(attribute.String("error.type", code))
			span.SetStatus(codes.Error, "")
		}
	}
	span.SetAttributes(attribute.String("rpc.response.status_code", code))
}
