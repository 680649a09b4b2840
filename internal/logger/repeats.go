package logger

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"
)

// WithoutRepeats returns a logger that writes equal lines at most once per interval. It is for loops, of which every
// pass meets the same trouble. Lines are equal if their level, message and attributes are.
func WithoutRepeats(log *slog.Logger, interval time.Duration) *slog.Logger {
	return slog.New(sparing{log.Handler(), "", &written{interval: interval, last: map[string]time.Time{}}})
}

// sparing drops lines that repeat. scope has the attributes and groups of the logger.
type sparing struct {
	slog.Handler

	scope   string
	written *written
}

// written has the times at which lines were written last, for the interval.
type written struct {
	interval time.Duration

	mu   sync.Mutex
	last map[string]time.Time
}

// Handle implements [slog.Handler].
func (s sparing) Handle(ctx context.Context, r slog.Record) error {
	var line strings.Builder
	fmt.Fprintf(&line, "%s %d %q", s.scope, r.Level, r.Message)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&line, " %q=%q", a.Key, a.Value)
		return true
	})
	if s.written.repeats(line.String(), r.Time) {
		return nil
	}
	return s.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (s sparing) WithAttrs(attributes []slog.Attr) slog.Handler {
	return sparing{s.Handler.WithAttrs(attributes), s.scope + fmt.Sprintf("%q", attributes), s.written}
}

// WithGroup implements [slog.Handler].
func (s sparing) WithGroup(name string) slog.Handler {
	return sparing{s.Handler.WithGroup(name), s.scope + fmt.Sprintf("%q.", name), s.written}
}

// repeats reports whether the line was written in the last interval; if not, it is written now.
func (w *written) repeats(line string, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last, ok := w.last[line]; ok && now.Sub(last) < w.interval {
		return true
	}
	maps.DeleteFunc(w.last, func(_ string, last time.Time) bool { return now.Sub(last) >= w.interval })
	w.last[line] = now
	return false
}
