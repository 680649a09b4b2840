package crew

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/logger"
)

// TestHostsAreForTheLog: whoever asks for dispatchers is told that they cannot be read, and not where what did not answer is.
func TestHostsAreForTheLog(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	ctx := logger.WithContext(t.Context(), slog.New(slog.NewTextHandler(&lines, nil)))
	away := errors.New("dial tcp redis.example.com:6379: connection refused")
	err := unreadable(ctx, away)
	require.True(t, fault.Is(err, fault.LeasesUnavailable))
	require.NotContains(t, err.Error(), "example.com")
	require.ErrorIs(t, err, away)
	require.Contains(t, lines.String(), "redis.example.com:6379")

	// What is a fault already says what it says.
	refused := fault.New(fault.Refused, fault.DispatcherNotOwned, "no owner")
	require.Equal(t, error(refused), unreadable(ctx, refused))
}
