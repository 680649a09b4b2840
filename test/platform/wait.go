package platform

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/signalbox-dev/signalbox/internal/freeport"
)

// tick is how often a condition is looked at.
const tick = 20 * time.Millisecond

// Eventually waits until cond returns an empty string, and fails with what it said last when that takes too long.
func Eventually(t T, limit time.Duration, cond func() string) {
	t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		missing := cond()
		if missing == "" {
			return
		}
		select {
		case <-ticker.C:
		case <-deadline.C:
			t.Fatalf("not within %s: %s", limit, missing)
		case <-t.Context().Done():
			t.Fatalf("stopped while waiting: %s", missing)
		}
	}
}

// Throughout looks again and again for that long, and fails as soon as cond says something.
func Throughout(t T, length time.Duration, cond func() string) {
	t.Helper()
	end := time.NewTimer(length)
	defer end.Stop()
	ticker := time.NewTicker(10 * tick)
	defer ticker.Stop()
	for {
		if wrong := cond(); wrong != "" {
			t.Fatalf("%s", wrong)
		}
		select {
		case <-ticker.C:
		case <-end.C:
			return
		case <-t.Context().Done():
			t.Fatalf("stopped while looking")
		}
	}
}

// FreePort returns a loopback port that nobody listens on, which no other test is given before this one has ended.
func FreePort(t T) int {
	t.Helper()
	port, release, err := freeport.Claim(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(release)
	return port
}

// Address is a loopback address.
func Address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// Took describes a duration that was too long.
func Took(what string, got, limit time.Duration) string {
	return fmt.Sprintf("%s took %s, over %s", what, got.Round(time.Millisecond), limit)
}
