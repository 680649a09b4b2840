// Package collector is a substitute for an OpenTelemetry collector: it receives traces and metrics over OTLP, by gRPC
// and by HTTP with protobuf, and keeps them for tests.
//
//	c := collector.New(t)
//	env := c.Env(collector.GRPC)
//	… spans := c.Spans() … points := c.Points() …
package collector

import (
	"compress/gzip"
	"context"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	metricsservice "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	traceservice "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // exporters may compress
	"google.golang.org/protobuf/proto"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// The values of OTEL_EXPORTER_OTLP_PROTOCOL.
const (
	GRPC = "grpc"
	HTTP = "http/protobuf"
)

// Span is a received span.
type Span struct {
	Service, Trace, ID, Parent, Name string
	Kind                             tracepb.Span_SpanKind
	Attributes                       map[string]string
	Failed                           bool
	Links                            []string // the spans that it links, as trace/ID
	Start, End                       time.Time
}

// Point is a received data point: the value of a counter or a gauge, or the count and the sum of a histogram.
type Point struct {
	Name, Unit, Instance string
	Monotonic, Histogram bool
	Attributes           map[string]string
	Value, Count         float64
}

// Collector receives over OTLP. It is safe for concurrent use.
type Collector struct {
	traceservice.UnimplementedTraceServiceServer

	http *httptest.Server
	grpc net.Listener

	mu      sync.Mutex
	traces  []*tracepb.ResourceSpans
	metrics []*metricspb.ResourceMetrics
	headers []string // the header Api-Key of each request
}

// metricsServer receives metrics over gRPC: the methods of both services have the same name.
type metricsServer struct {
	metricsservice.UnimplementedMetricsServiceServer

	c *Collector
}

// New starts a collector that ends with t.
func New(t platform.T) *Collector {
	t.Helper()
	c := &Collector{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces",
		receive(func(r *http.Request, m *traceservice.ExportTraceServiceRequest) proto.Message {
			c.addTraces(r.Header.Get("Api-Key"), m)
			return &traceservice.ExportTraceServiceResponse{}
		}))
	mux.HandleFunc("POST /v1/metrics",
		receive(func(r *http.Request, m *metricsservice.ExportMetricsServiceRequest) proto.Message {
			c.addMetrics(r.Header.Get("Api-Key"), m)
			return &metricsservice.ExportMetricsServiceResponse{}
		}))
	c.http = httptest.NewServer(mux)
	t.Cleanup(c.http.Close)

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen for OTLP: %v", err)
	}
	c.grpc = listener
	server := grpc.NewServer()
	traceservice.RegisterTraceServiceServer(server, c)
	metricsservice.RegisterMetricsServiceServer(server, metricsServer{c: c})
	go func() { _ = server.Serve(listener) }() // ends with Stop
	t.Cleanup(server.Stop)
	return c
}

// Env returns the variables by which a process exports to the collector, frequently.
func (c *Collector) Env(protocol string) []string {
	endpoint := c.http.URL
	if protocol == GRPC {
		endpoint = "http://" + c.grpc.Addr().String()
	}
	return append(Frequently(), "OTEL_EXPORTER_OTLP_PROTOCOL="+protocol, "OTEL_EXPORTER_OTLP_ENDPOINT="+endpoint)
}

// Frequently returns variables by which a process exports frequently.
func Frequently() []string {
	return []string{"OTEL_BSP_SCHEDULE_DELAY=100", "OTEL_METRIC_EXPORT_INTERVAL=300"}
}

func receive[M any, P interface {
	*M
	proto.Message
}](add func(*http.Request, P) proto.Message) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			unpacked, err := gzip.NewReader(r.Body)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			body = unpacked
		}
		sent, err := io.ReadAll(body)
		m := P(new(M))
		if err != nil || proto.Unmarshal(sent, m) != nil {
			http.Error(w, "not a message of OTLP", http.StatusBadRequest)
			return
		}
		response, _ := proto.Marshal(add(r, m)) // an empty message
		w.Header().Set("Content-Type", "application/x-protobuf")
		_, _ = w.Write(response)
	}
}

// Export receives traces over gRPC.
func (c *Collector) Export(_ context.Context,
	m *traceservice.ExportTraceServiceRequest) (*traceservice.ExportTraceServiceResponse, error) {
	c.addTraces("", m)
	return &traceservice.ExportTraceServiceResponse{}, nil
}

// Export receives metrics over gRPC.
func (s metricsServer) Export(_ context.Context,
	m *metricsservice.ExportMetricsServiceRequest) (*metricsservice.ExportMetricsServiceResponse, error) {
	s.c.addMetrics("", m)
	return &metricsservice.ExportMetricsServiceResponse{}, nil
}

func (c *Collector) addTraces(key string, m *traceservice.ExportTraceServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.traces = append(c.traces, m.GetResourceSpans()...)
	c.headers = append(c.headers, key)
}

func (c *Collector) addMetrics(key string, m *metricsservice.ExportMetricsServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.metrics = m.GetResourceMetrics() // each export has all metrics
	c.headers = append(c.headers, key)
}

// Keys returns the header Api-Key of each request over HTTP.
func (c *Collector) Keys() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string{}, c.headers...)
}

// Dump returns all that was received, as bytes of protobuf, to search in.
func (c *Collector) Dump(t platform.T) string {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	traces, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: c.traces})
	if err != nil {
		t.Fatalf("encode the traces: %v", err)
	}
	metrics, err := proto.Marshal(&metricspb.MetricsData{ResourceMetrics: c.metrics})
	if err != nil {
		t.Fatalf("encode the metrics: %v", err)
	}
	return string(traces) + string(metrics)
}

// Spans returns all spans that were received.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []Span
	for _, of := range c.traces {
		for _, scope := range of.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				var links []string
				for _, l := range s.GetLinks() {
					links = append(links, hex.EncodeToString(l.GetTraceId())+"/"+hex.EncodeToString(l.GetSpanId()))
				}
				all = append(all, Span{
					Links: links, Service: resource(of.GetResource(), "service.name"), Trace: hex.EncodeToString(s.GetTraceId()),
					ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()), Name: s.GetName(),
					Kind:       s.GetKind(),
					Attributes: attributes(s.GetAttributes()), Failed: s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR,
					Start: nanoseconds(s.GetStartTimeUnixNano()), End: nanoseconds(s.GetEndTimeUnixNano()),
				})
			}
		}
	}
	return all
}

// Points returns the data points of the last export.
func (c *Collector) Points() []Point {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []Point
	for _, of := range c.metrics {
		for _, scope := range of.GetScopeMetrics() {
			for _, m := range scope.GetMetrics() {
				for _, p := range points(m) {
					p.Instance = resource(of.GetResource(), "service.instance.id")
					all = append(all, p)
				}
			}
		}
	}
	return all
}

func points(m *metricspb.Metric) []Point {
	var all []Point
	point := Point{Name: m.GetName(), Unit: m.GetUnit(), Monotonic: m.GetSum().GetIsMonotonic()}
	for _, p := range append(m.GetGauge().GetDataPoints(), m.GetSum().GetDataPoints()...) {
		point.Attributes, point.Value = attributes(p.GetAttributes()), p.GetAsDouble()+float64(p.GetAsInt())
		all = append(all, point)
	}
	for _, p := range m.GetHistogram().GetDataPoints() {
		point.Histogram = true
		point.Attributes, point.Value, point.Count = attributes(p.GetAttributes()), p.GetSum(), float64(p.GetCount())
		all = append(all, point)
	}
	return all
}

func nanoseconds(n uint64) time.Time { return time.Unix(0, int64(n)) }

func resource(r *resourcepb.Resource, name string) string { return attributes(r.GetAttributes())[name] }

// attributes returns attributes with their values as text.
func attributes(list []*commonpb.KeyValue) map[string]string {
	all := map[string]string{}
	for _, a := range list {
		text := a.GetValue().GetStringValue()
		if _, ok := a.GetValue().GetValue().(*commonpb.AnyValue_StringValue); !ok {
			text = a.GetValue().String()
		}
		all[a.GetKey()] = text
	}
	return all
}
