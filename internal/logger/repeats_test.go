package logger_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/logger"
)

func TestRepeatedLinesAreWrittenOncePerInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log, err := logger.New(&out, "info", "text")
		require.NoError(t, err)
		log = logger.WithoutRepeats(log, time.Minute)
		lines := func() int {
			n := strings.Count(out.String(), "\n")
			out.Reset()
			return n
		}
		for range 12 {
			log.Warn("no answer", "part", "temporal", "error", errors.New("refused"))
			<-time.After(5 * time.Second)
		}
		require.Equal(t, 1, lines(), "one in a minute")
		log.Warn("no answer", "part", "temporal", "error", errors.New("refused"))
		require.Equal(t, 1, lines(), "again after a minute")

		log.Warn("no answer", "part", "temporal", "error", errors.New("timed out"))
		log.Warn("no answer", "part", "redis", "error", errors.New("refused"))
		log.Error("no answer", "part", "temporal", "error", errors.New("refused"))
		log.Warn("an answer", "part", "temporal", "error", errors.New("refused"))
		log.With("project", "a").Warn("no answer", "part", "temporal", "error", errors.New("refused"))
		log.With("project", "b").Warn("no answer", "part", "temporal", "error", errors.New("refused"))
		log.WithGroup("project").Warn("no answer", "part", "temporal", "error", errors.New("refused"))
		require.Equal(t, 7, lines(), "lines that differ in level, message or attributes")
		log.With("project", "a").Warn("no answer", "part", "temporal", "error", errors.New("refused"))
		log.WithGroup("project").Warn("no answer", "part", "temporal", "error", errors.New("refused"))
		log.Log(t.Context(), slog.LevelDebug, "below the level")
		require.Zero(t, lines())
	})
}
