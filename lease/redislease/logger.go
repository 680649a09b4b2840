package redislease

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"
)

// LogTo sends the lines of the Redis client to log as debug messages; otherwise they go to standard error. They tell of each attempt that failed,
// which stores tell as errors anyway. The client has one logger for the whole process: call this once, before the first store.
func LogTo(log *slog.Logger) { redis.SetLogger(&lines{log}) }

// lines is the client's idea of a logger.
type lines struct{ log *slog.Logger }

// Printf writes one line.
func (l *lines) Printf(ctx context.Context, format string, args ...any) {
	if l.log.Enabled(ctx, slog.LevelDebug) {
		l.log.DebugContext(ctx, fmt.Sprintf(format, args...), "component", "redis")
	}
}
