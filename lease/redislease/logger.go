package redislease

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"
)

// LogTo logs the messages of the Redis client at debug level; by default they go to standard error. They report each
// failed attempt, which the methods of Store return as errors anyway. The client has one logger for the whole process:
// call LogTo once, before opening the first store.
func LogTo(log *slog.Logger) { redis.SetLogger(&clientLogger{log}) }

// clientLogger implements the client's logger interface.
type clientLogger struct{ log *slog.Logger }

// Printf logs one message.
func (l *clientLogger) Printf(ctx context.Context, format string, args ...any) {
	if l.log.Enabled(ctx, slog.LevelDebug) {
		l.log.DebugContext(ctx, fmt.Sprintf(format, args...), "component", "redis")
	}
}
