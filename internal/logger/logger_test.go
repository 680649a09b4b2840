package logger_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"
	sdklog "go.temporal.io/sdk/log"

	"github.com/signalbox-dev/signalbox/internal/logger"
)

var _ sdklog.Logger = logger.Temporal{}

func TestNewWritesTheFormatAndKeepsTheLevel(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log, err := logger.New(&out, "warn", "json")
	require.NoError(t, err)
	log.Info("quiet")
	log.Warn("loud", "run_id", "r1")
	var line map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &line), "one JSON object: %s", out.String())
	require.Equal(t, "loud", line["msg"])
	require.Equal(t, "r1", line["run_id"])

	out.Reset()
	log, err = logger.New(&out, "debug", "text")
	require.NoError(t, err)
	log.Debug("fine", "n", 1)
	require.Contains(t, out.String(), "level=DEBUG msg=fine n=1")
}

// What others put into a line does not steer the terminal that shows the log, and is the same value in JSON.
func TestLinesCannotSteerATerminal(t *testing.T) {
	t.Parallel()
	const hostile = "a\x1b[2J\u007f\u009b\u202e\u200b\u2028z"
	for _, format := range []string{"json", "text"} {
		var out bytes.Buffer
		log, err := logger.New(&out, "info", format)
		require.NoError(t, err)
		log.Info(hostile, hostile, hostile, "error", errors.New(hostile))
		require.NotRegexp(t, `[^\n -~]`, out.String(), format)
		if format == "json" {
			var line map[string]any
			require.NoError(t, json.Unmarshal(out.Bytes(), &line))
			require.Equal(t, hostile, line[hostile])
		}
	}
}

func TestDurationsAreSecondsInEveryFormat(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{"json": `"took_seconds":1.234`, "text": "took_seconds=1.234"} {
		var out bytes.Buffer
		log, err := logger.New(&out, "info", format)
		require.NoError(t, err)
		const took = 1234*time.Millisecond + 400*time.Microsecond
		log.Info("done", "took", took)
		log.With("took", took).Info("done")
		log.Info("done", "took_seconds", took)
		log.WithGroup("step").Info("done", slog.Duration("took", took))
		require.Equal(t, 4, strings.Count(strings.ReplaceAll(out.String(), "step.", ""), want), out.String())
	}
}

func TestLinesHaveTheIDsOfTheActiveSpan(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log, err := logger.New(&out, "info", "text")
	require.NoError(t, err)
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{15: 1}, SpanID: trace.SpanID{7: 2}})
	log.With("run_id", "r1").InfoContext(trace.ContextWithSpanContext(t.Context(), span), "traced")
	require.Contains(t, out.String(),
		"msg=traced run_id=r1 trace_id=00000000000000000000000000000001 span_id=0000000000000002")

	out.Reset()
	log.InfoContext(t.Context(), "not traced")
	require.NotContains(t, out.String(), "trace_id")
}

func TestNewRefusesUnknownLevelsAndFormats(t *testing.T) {
	t.Parallel()
	_, err := logger.New(nil, "loud", "json")
	require.ErrorContains(t, err, `"loud" is not a level`)
	_, err = logger.New(nil, "info", "xml")
	require.ErrorContains(t, err, `"xml" is not a format`)
}

func TestContextCarriesTheLoggerAndItsAttributes(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log, err := logger.New(&out, "info", "text")
	require.NoError(t, err)
	ctx := logger.With(logger.WithContext(t.Context(), log), "project", "default")
	logger.FromContext(ctx).Info("hello")
	require.Contains(t, out.String(), "msg=hello project=default")

	logger.FromContext(t.Context()).Error("a context without a logger discards")
	require.NotContains(t, out.String(), "discards")
}

func TestTemporalLinesKeepLevelAndNameTheComponent(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log, err := logger.New(&out, "debug", "text")
	require.NoError(t, err)
	adapter := logger.ForTemporal(log)
	adapter.Debug("d")
	adapter.Info("i")
	adapter.Warn("w", "Attempt", 3)
	adapter.Error("e")
	adapter.Warn("gone", "Error", fmt.Errorf("heartbeat: %w", context.Canceled))
	adapter.Warn("left", "Error", errors.New("context canceled"))
	for _, want := range []string{
		"level=DEBUG msg=gone", "level=DEBUG msg=left", "level=DEBUG msg=d", "level=INFO msg=i", "level=WARN msg=w component=temporal Attempt=3", "level=ERROR msg=e"} {
		require.Contains(t, out.String(), want)
	}
}

// applicationError has the methods of an application error of Temporal's SDK.
type applicationError struct{}

func (applicationError) Error() string { return "refused: password hunter22" }
func (applicationError) Type() string  { return "urn:refused" }

func TestTemporalLinesDoNotQuoteActivityErrors(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log, err := logger.New(&out, "debug", "text")
	require.NoError(t, err)
	keyvals := []any{"Attempt", 1, "Error", fmt.Errorf("activity: %w", applicationError{})}
	logger.ForTemporal(log).Debug("Activity error.", keyvals...)
	logger.ForTemporal(log).Warn("polling", "Error", errors.New("cut off"))
	require.NotContains(t, out.String(), "hunter22")
	require.Contains(t, out.String(), "urn:refused")
	require.Contains(t, out.String(), "cut off")
	require.Implements(t, (*error)(nil), keyvals[3], "the argument is not modified")
}
