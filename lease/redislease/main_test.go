package redislease_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/lease"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
