// Package logger creates the platform's structured log and carries it in the context.
//
//	log, err := logger.New(os.Stderr, "info", "json")
//	ctx = logger.WithContext(ctx, log)
//	logger.FromContext(ctx).InfoContext(ctx, "run started", "run_id", id)
//
// There is no global logger, and slog's default is neither set nor used, so the lines of two platforms in one process stay
// separate. A line is a JSON object or key=value text. The package hides nothing by itself: secret values have a type that
// redacts itself, such as config.Secret.
package logger

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"
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
	options := &slog.HandlerOptions{Level: threshold, ReplaceAttr: readable}
	switch format {
	case FormatJSON:
		return slog.New(slog.NewJSONHandler(w, options)), nil
	case FormatText:
		return slog.New(slog.NewTextHandler(w, options)), nil
	default:
		return nil, fmt.Errorf("make the logger: %q is not a format; use json or text", format)
	}
}

// readable writes durations as 1.5s in every format: JSON would write them as numbers of nanoseconds.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		return slog.String(a.Key, a.Value.Duration().Round(time.Millisecond).String())
	}
	return a
}

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
