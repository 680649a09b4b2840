package redislease_test

import (
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/lease"
	"github.com/signalbox-dev/signalbox/lease/redislease"
)

// written is the log of the Redis client.
var written = &log{}

func TestMain(m *testing.M) {
	redislease.LogTo(slog.New(slog.NewTextHandler(written, &slog.HandlerOptions{Level: slog.LevelDebug})))
	goleak.VerifyTestMain(m)
}

// log is a buffer for concurrent writers.
type log struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// shared returns the URL of a Redis that other tests use too.
func shared(t *testing.T) string {
	t.Helper()
	url := os.Getenv("SIGNALBOX_TEST_REDIS")
	if url == "" {
		t.Skip("SIGNALBOX_TEST_REDIS names no Redis to test with; scripts/services.sh with go test … starts one")
	}
	return url
}

// prefix returns a unique prefix.
func prefix() string { return "test-" + lease.NewToken() + ":" }
