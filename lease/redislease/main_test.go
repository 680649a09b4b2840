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

// written is what the client had to say.
var written = &log{}

func TestMain(m *testing.M) {
	redislease.LogTo(slog.New(slog.NewTextHandler(written, &slog.HandlerOptions{Level: slog.LevelDebug})))
	goleak.VerifyTestMain(m)
}

// log is text that several write.
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

// shared is the URL of a Redis that others use as well.
func shared(t *testing.T) string {
	t.Helper()
	url := os.Getenv("SIGNALBOX_TEST_REDIS")
	if url == "" {
		t.Skip("SIGNALBOX_TEST_REDIS names no Redis to test with; scripts/services.sh with go test … starts one")
	}
	return url
}

// prefix is one that nobody else uses.
func prefix() string { return "test-" + lease.NewToken() + ":" }
