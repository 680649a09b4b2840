// Package otlp exports traces and metrics over OTLP, as the OTEL_* variables of the process configure it.
//
//	settings, err := otlp.Read(os.LookupEnv)
//	spans, err := settings.SpanExporter(ctx, log)
//	metrics, err := settings.MetricExporter(ctx, log)
//
// Nothing is exported unless a variable names an exporter or an endpoint. Invalid values are errors: OpenTelemetry
// would ignore them. Exporters connect when they first export, so a start does not depend on the collector, and their
// failures are logged instead of returned: OpenTelemetry would pass them to a handler that all platforms in the process
// share.
//
// The exporters of OpenTelemetry read the variables of endpoints, headers, certificates, compression and timeouts from
// the environment of the process themselves.
package otlp

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Protocols of OTLP, as in OTEL_EXPORTER_OTLP_PROTOCOL.
const (
	GRPC = "grpc"
	HTTP = "http/protobuf"
)

const (
	defaultInterval = 60 * time.Second
	defaultTimeout  = 30 * time.Second
)

// Settings are what the variables configure.
type Settings struct {
	Traces, Metrics Signal
	// Propagate reports whether trace contexts are read from API requests, and sent to called services (OTEL_PROPAGATORS).
	Propagate bool
	// MetricInterval is the time between two exports of metrics, MetricTimeout the limit of one.
	MetricInterval, MetricTimeout time.Duration
}

// Signal configures the export of traces or metrics.
type Signal struct {
	Enabled  bool
	Protocol string
	// fallback is the endpoint to use where no variable names one.
	fallback string
}

// Lookup returns the value of an environment variable.
type Lookup func(name string) (value string, found bool)

// Violation is a variable with an invalid value.
type Violation struct{ Variable, Message string }

// Violations are all variables with invalid values, an error of [Read].
type Violations []Violation

// Error implements error, with a line for each violation.
func (ps Violations) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Variable + ": " + p.Message
	}
	return strings.Join(lines, "\n")
}

// Read returns the settings. Its only error are [Violations].
func Read(lookup Lookup) (Settings, error) {
	r := reader{lookup: lookup}
	off := r.flag("OTEL_SDK_DISABLED")
	s := Settings{
		Traces:         r.signal("TRACES", "otlp", "none"),
		Metrics:        r.signal("METRICS", "otlp", "none", "prometheus"),
		Propagate:      r.propagators(),
		MetricInterval: r.milliseconds("OTEL_METRIC_EXPORT_INTERVAL", defaultInterval),
		MetricTimeout:  r.milliseconds("OTEL_METRIC_EXPORT_TIMEOUT", defaultTimeout),
	}
	r.sampler()
	if off {
		return Settings{}, nil
	}
	if len(r.violations) > 0 {
		return Settings{}, r.violations
	}
	return s, nil
}

// reader reads variables and collects violations.
type reader struct {
	lookup     Lookup
	violations Violations
}

// value returns a variable without spaces around it. An empty variable is one that is not set.
func (r *reader) value(name string) string {
	value, _ := r.lookup(name)
	return strings.TrimSpace(value)
}

func (r *reader) reject(name, value, advice string) {
	r.add(Violation{name, fmt.Sprintf("invalid value %q; %s", value, advice)})
}

// rejectHidden is reject for a value that may contain credentials.
func (r *reader) rejectHidden(name, advice string) {
	r.add(Violation{name, "invalid value; " + advice})
}

// add adds a violation once: the variables of both signals are read for each of them.
func (r *reader) add(p Violation) {
	if !slices.Contains(r.violations, p) {
		r.violations = append(r.violations, p)
	}
}

func (r *reader) flag(name string) bool { return strings.EqualFold(r.value(name), "true") }

func (r *reader) milliseconds(name string, otherwise time.Duration) time.Duration {
	value := r.value(name)
	if value == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil || n <= 0 {
		r.reject(name, value, "give a number of milliseconds over 0")
		return otherwise
	}
	return time.Duration(n) * time.Millisecond
}

// signal reads the settings of a signal, TRACES or METRICS. It is exported if its exporter is "otlp", or an endpoint is
// set and no exporter.
func (r *reader) signal(name string, exporters ...string) Signal {
	endpoint := r.endpoint("OTEL_EXPORTER_OTLP_" + name + "_ENDPOINT")
	if general := r.endpoint("OTEL_EXPORTER_OTLP_ENDPOINT"); endpoint == "" {
		endpoint = general
	}
	variable := "OTEL_" + name + "_EXPORTER"
	enabled := endpoint != ""
	if value := r.value(variable); value != "" {
		enabled = false
		for chosen := range strings.SplitSeq(value, ",") {
			chosen = strings.TrimSpace(chosen)
			enabled = enabled || chosen == "otlp"
			if !slices.Contains(exporters, chosen) {
				r.reject(variable, chosen, "use "+strings.Join(exporters, " or "))
			}
		}
	}
	if !enabled {
		return Signal{}
	}
	s := Signal{Enabled: true, Protocol: r.protocol(name)}
	if endpoint == "" {
		s.fallback = "http://localhost:4318/v1/" + strings.ToLower(name)
		if s.Protocol == GRPC {
			s.fallback = "http://localhost:4317"
		}
	}
	for _, scope := range []string{"OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_" + name + "_"} {
		r.milliseconds(scope+"TIMEOUT", 0)
		r.headers(scope + "HEADERS")
		for _, file := range []string{"CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"} {
			r.file(scope + file)
		}
	}
	return s
}

func (r *reader) protocol(signal string) string {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_" + signal + "_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		switch value := r.value(name); value {
		case "":
		case GRPC, HTTP:
			return value
		default:
			r.reject(name, value, "use "+GRPC+" or "+HTTP)
			return HTTP
		}
	}
	return HTTP
}

// endpoint returns the URL of a collector. Only URLs are accepted, because without a scheme it is unclear whether to
// use TLS.
func (r *reader) endpoint(name string) string {
	value := r.value(name)
	if value == "" {
		return ""
	}
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		r.rejectHidden(name, "give a URL with http or https, for example http://collector:4318")
	}
	return value
}

// headers checks a list of headers.
func (r *reader) headers(name string) {
	for pair := range strings.SplitSeq(r.value(name), ",") {
		key, value, found := strings.Cut(pair, "=")
		_, err := url.PathUnescape(value)
		if strings.TrimSpace(pair) != "" && (!found || strings.TrimSpace(key) == "" || err != nil) {
			r.rejectHidden(name, "give a list of name=value, separated by commas")
			return
		}
	}
}

func (r *reader) file(name string) {
	value := r.value(name)
	if value == "" {
		return
	}
	if _, err := os.ReadFile(value); err != nil {
		r.reject(name, value, fmt.Sprintf("the file cannot be read: %v", err))
	}
}

// propagators reports whether trace contexts are propagated. Baggage never is: it carries data of the caller.
func (r *reader) propagators() bool {
	const name = "OTEL_PROPAGATORS"
	value := r.value(name)
	if value == "" {
		return true
	}
	propagate := false
	for chosen := range strings.SplitSeq(value, ",") {
		switch chosen = strings.TrimSpace(chosen); chosen {
		case "tracecontext":
			propagate = true
		case "baggage", "none":
		default:
			r.reject(name, chosen, "use tracecontext or none")
		}
	}
	return propagate
}

// sampler checks the variables of the sampler, which the tracer provider reads itself.
func (r *reader) sampler() {
	const name, argument = "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG"
	samplers := []string{"always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off",
		"parentbased_traceidratio"}
	value := r.value(name)
	if value != "" && !slices.Contains(samplers, value) {
		r.reject(name, value, "use one of "+strings.Join(samplers, ", "))
		return
	}
	ratio := r.value(argument)
	if !strings.HasSuffix(value, "traceidratio") || ratio == "" {
		return
	}
	if f, err := strconv.ParseFloat(ratio, 64); err != nil || f < 0 || f > 1 {
		r.reject(argument, ratio, "give a ratio from 0 to 1")
	}
}
