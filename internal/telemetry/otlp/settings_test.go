package otlp_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/telemetry/otlp"
)

func read(variables map[string]string) (otlp.Settings, error) {
	return otlp.Read(func(name string) (string, bool) {
		value, found := variables[name]
		return value, found
	})
}

func TestExportsNeedAnExporterOrAnEndpoint(t *testing.T) {
	t.Parallel()
	const endpoint = "http://collector:4318"
	type want struct{ traces, metrics string }
	for name, tt := range map[string]struct {
		variables map[string]string
		want      want
	}{
		"nothing":                {nil, want{}},
		"a protocol alone":       {map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, want{}},
		"an endpoint":            {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}, want{otlp.HTTP, otlp.HTTP}},
		"an endpoint for traces": {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": endpoint}, want{otlp.HTTP, ""}},
		"an endpoint, no traces": {
			map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_TRACES_EXPORTER": "none"}, want{"", otlp.HTTP}},
		"an exporter": {map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, want{otlp.HTTP, ""}},
		"a page of metrics alone": {
			map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_METRICS_EXPORTER": "prometheus"},
			want{otlp.HTTP, ""}},
		"both kinds of metrics": {map[string]string{"OTEL_METRICS_EXPORTER": "prometheus, otlp"}, want{"", otlp.HTTP}},
		"a protocol per signal": {map[string]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
			"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "grpc",
		}, want{otlp.HTTP, otlp.GRPC}},
		"disabled": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_SDK_DISABLED": "True"}, want{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := read(tt.variables)
			require.NoError(t, err)
			require.Equal(t, tt.want, want{s.Traces.Protocol, s.Metrics.Protocol})
			require.Equal(t, []bool{tt.want.traces != "", tt.want.metrics != ""}, []bool{s.Traces.Enabled, s.Metrics.Enabled})
		})
	}
}

func TestSettingsHaveTheDefaultsOfOpenTelemetry(t *testing.T) {
	t.Parallel()
	s, err := read(nil)
	require.NoError(t, err)
	require.True(t, s.Propagate)
	require.Equal(t, []time.Duration{time.Minute, 30 * time.Second}, []time.Duration{s.MetricInterval, s.MetricTimeout})
	s, err = read(map[string]string{
		"OTEL_PROPAGATORS": "none", "OTEL_METRIC_EXPORT_INTERVAL": "1500", "OTEL_METRIC_EXPORT_TIMEOUT": "100"})
	require.NoError(t, err)
	require.False(t, s.Propagate)
	require.Equal(t, []time.Duration{1500 * time.Millisecond, 100 * time.Millisecond},
		[]time.Duration{s.MetricInterval, s.MetricTimeout})
}

func TestInvalidVariablesAreRefused(t *testing.T) {
	t.Parallel()
	const endpoint = "http://collector:4318"
	for variable, tt := range map[string]struct{ value, advice string }{
		"OTEL_TRACES_EXPORTER":                  {"zipkin", "otlp or none"},
		"OTEL_METRICS_EXPORTER":                 {"console", "otlp or none or prometheus"},
		"OTEL_EXPORTER_OTLP_PROTOCOL":           {"http/json", "grpc or http/protobuf"},
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT":    {"collector:4317", "with http or https"},
		"OTEL_EXPORTER_OTLP_TIMEOUT":            {"10s", "milliseconds"},
		"OTEL_EXPORTER_OTLP_HEADERS":            {"s3cret", "name=value"},
		"OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE": {"/does/not/exist", "cannot be read"},
		"OTEL_METRIC_EXPORT_INTERVAL":           {"0", "over 0"},
		"OTEL_PROPAGATORS":                      {"b3", "tracecontext or none"},
		"OTEL_TRACES_SAMPLER":                   {"jaeger_remote", "parentbased_traceidratio"},
	} {
		t.Run(variable, func(t *testing.T) {
			t.Parallel()
			_, err := read(map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, variable: tt.value})
			require.ErrorContains(t, err, variable)
			require.ErrorContains(t, err, tt.advice)
			require.NotContains(t, err.Error(), "s3cret", "headers often contain credentials")
		})
	}
	_, err := read(map[string]string{"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "10%"})
	require.ErrorContains(t, err, `OTEL_TRACES_SAMPLER_ARG: invalid value "10%"; give a ratio from 0 to 1`)
}
