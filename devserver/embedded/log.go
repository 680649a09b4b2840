package embedded

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/log/tag"
)

// logAdapter forwards Temporal's log lines. Much of what Temporal logs is irrelevant for the operator of a single
// process, so its info lines become debug lines, and so do its warnings about work that it cannot finish while it
// stops.
type logAdapter struct {
	log      *slog.Logger
	stopping *atomic.Bool
}

var _ log.Logger = logAdapter{}

func (l logAdapter) Debug(msg string, tags ...tag.Tag) { l.write(slog.LevelDebug-1, msg, tags) }
func (l logAdapter) Info(msg string, tags ...tag.Tag)  { l.write(slog.LevelDebug, msg, tags) }
func (l logAdapter) Warn(msg string, tags ...tag.Tag)  { l.write(slog.LevelInfo, msg, tags) }
func (l logAdapter) Error(msg string, tags ...tag.Tag) { l.write(slog.LevelWarn, msg, tags) }

// DPanic, Panic and Fatal are Temporal's levels for broken invariants; Fatal ends the process, as Temporal expects.
func (l logAdapter) DPanic(msg string, tags ...tag.Tag) { l.write(slog.LevelError, msg, tags) }

func (l logAdapter) Panic(msg string, tags ...tag.Tag) {
	l.write(slog.LevelError, msg, tags)
	panic(msg)
}

func (l logAdapter) Fatal(msg string, tags ...tag.Tag) {
	l.write(slog.LevelError, msg, tags)
	panic("embedded Temporal: " + msg)
}

// With implements Temporal's log.WithLogger.
func (l logAdapter) With(tags ...tag.Tag) log.Logger {
	return logAdapter{log: l.log.With(attributes(tags)...), stopping: l.stopping}
}

func (l logAdapter) write(level slog.Level, msg string, tags []tag.Tag) {
	if l.stopping.Load() && level < slog.LevelError {
		level = slog.LevelDebug
	}
	ctx := context.Background() //nolint:forbidigo // Temporal's logger has no context to pass on
	if l.log.Enabled(ctx, level) {
		l.log.Log(ctx, level, msg, attributes(tags)...)
	}
}

func attributes(tags []tag.Tag) []any {
	out := make([]any, 0, len(tags))
	for _, t := range tags {
		out = append(out, attribute(t))
	}
	return out
}

// attribute returns the attribute of a tag. Libraries of the Temporal server have formatted some durations already.
func attribute(t tag.Tag) slog.Attr {
	if text, ok := t.Value().(string); ok {
		if d, err := time.ParseDuration(text); err == nil {
			return slog.Duration(t.Key(), d)
		}
	}
	return slog.Any(t.Key(), t.Value())
}
