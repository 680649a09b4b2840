// Package logger creates the platform's structured log and carries it in the context.
//
//	log, err := logger.New(os.Stderr, "info", "json")
//	ctx = logger.WithContext(ctx, log)
//	logger.FromContext(ctx).InfoContext(ctx, "run started", "run_id", id)
//
// There is no global logger, and slog's default is neither set nor used, so the lines of two platforms in one process
// stay separate. A line is a JSON object or key=value text, without characters that would steer a terminal. The package
// hides nothing by itself: secret values have a type that redacts itself, such as config.Secret.
//
// Durations are numbers of seconds, and the names of their attributes end in _seconds. A line that is written with a
// context in which a span is active has the attributes trace_id and span_id.
package logger

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/signalbox-dev/signalbox/internal/terminal"
)

// Formats of a line.
const (
	FormatJSON = "json"
	FormatText = "text"
)

// New returns a logger that writes lines of the level and above to w. Levels are debug, info, warn and
// error; formats json and text.
func New(w io.Writer, level, format string) (*slog.Logger, error) {
	var threshold slog.Level
	if err := threshold.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("make the logger: %q is not a level; use debug, info, warn or error", level)
	}
	options := &slog.HandlerOptions{Level: threshold, ReplaceAttr: inSeconds}
	switch format {
	case FormatJSON:
		return slog.New(correlated{slog.NewJSONHandler(terminal.NewEscaper(w), options)}), nil
	case FormatText:
		return slog.New(correlated{slog.NewTextHandler(w, options)}), nil
	default:
		return nil, fmt.Errorf("make the logger: %q is not a format; use json or text", format)
	}
}

// inSeconds writes durations as seconds, to the millisecond: JSON would write them as numbers of nanoseconds, text with
// varying units.
func inSeconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() != slog.KindDuration {
		return a
	}
	const suffix = "_seconds"
	return slog.Float64(strings.TrimSuffix(a.Key, suffix)+suffix, a.Value.Duration().Round(time.Millisecond).Seconds())
}

// correlated adds the IDs of the active span to lines.
type correlated struct{ slog.Handler }

// Handle implements [slog.Handler].
func (c correlated) Handle(ctx context.Context, r slog.Record) error {
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", sc.TraceID().String()), slog.String("span_id", sc.SpanID().String()))
	}
	return c.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (c correlated) WithAttrs(attributes []slog.Attr) slog.Handler {
	return correlated{c.Handler.WithAttrs(attributes)}
}

// WithGroup implements [slog.Handler].
func (c correlated) WithGroup(name string) slog.Handler { return correlated{c.Handler.WithGroup(name)} }

type contextKey struct{}

// WithContext returns a context that carries the logger.
func WithContext(ctx context.Context, log *slog.Logger) context.Context {
	return context.WithValue(ctx, contextKey{}, log)
}

// With returns a context with a logger that adds the attributes to every line.
func With(ctx context.Context, attributes ...any) context.Context {
	return WithContext(ctx, FromContext(ctx).With(attributes...))
}

// FromContext returns the logger of the context, or one that discards everything where there is none.
func FromContext(ctx context.Context) *slog.Logger {
	if log, ok := ctx.Value(contextKey{}).(*slog.Logger); ok {
		return log
	}
	return slog.New(slog.DiscardHandler)
}
