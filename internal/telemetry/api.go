package telemetry

import (
	"context"
	"strings"
	"time"

	"connectrpc.com/connect"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// API measures calls of the API and their duration, named as in OpenTelemetry's conventions:
// rpc_server_call_duration_seconds, whose _count is the number of calls. It is a connect.Interceptor for handlers.
// Calls of unknown procedures never reach an interceptor, so the labels stay bounded.
type API struct {
	duration metric.Float64Histogram
	refusals metric.Int64Counter
	now      func() time.Time
}

var _ connect.Interceptor = (*API)(nil)

func newAPI(meter metric.Meter) (*API, error) {
	duration, err := meter.Float64Histogram("rpc.server.call.duration", metric.WithUnit("s"),
		metric.WithDescription("Duration of API calls; streams count until they end. A series appears with the first call "+
			"of a method that ends with its code."),
		metric.WithExplicitBucketBoundaries(seconds()...))
	if err != nil {
		return nil, err
	}
	refusals, err := meter.Int64Counter("signalbox.api.refusals",
		metric.WithDescription("Requests whose caller was not admitted, or lacked the role, by reason."))
	if err != nil {
		return nil, err
	}
	return &API{duration: duration, refusals: refusals, now: time.Now}, nil
}

// Begin exports the series of these reasons, at 0.
func (a *API) Begin(ctx context.Context, reasons ...string) {
	for _, reason := range reasons {
		a.refusals.Add(ctx, 0, metric.WithAttributes(attribute.String("reason", reason)))
	}
}

// Refused counts a refused request by its reason, one of the API's reference (signalbox_api_refusals_total).
func (a *API) Refused(ctx context.Context, reason string) {
	a.refusals.Add(ctx, 1, metric.WithAttributes(attribute.String("reason", reason)))
}

// WrapUnary measures a unary call.
func (a *API) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		begin := a.now()
		response, err := next(ctx, request)
		a.record(ctx, request.Peer().Protocol, request.Spec(), begin, err)
		return response, err
	}
}

// WrapStreamingHandler measures a stream from its opening to its end.
func (a *API) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, stream connect.StreamingHandlerConn) error {
		begin := a.now()
		err := next(ctx, stream)
		a.record(ctx, stream.Peer().Protocol, stream.Spec(), begin, err)
		return err
	}
}

// WrapStreamingClient does not change clients.
func (a *API) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (a *API) record(ctx context.Context, protocol string, spec connect.Spec, begin time.Time, err error) {
	code := "OK"
	if err != nil {
		code = strings.ToUpper(connect.CodeOf(err).String())
	}
	system := "connectrpc"
	if protocol != connect.ProtocolConnect {
		system = "grpc" // gRPC and gRPC-Web
	}
	a.duration.Record(ctx, a.now().Sub(begin).Seconds(), metric.WithAttributes(
		attribute.String("rpc.system.name", system),
		attribute.String("rpc.method", strings.TrimPrefix(spec.Procedure, "/")),
		attribute.String("rpc.response.status_code", code),
	))
}
