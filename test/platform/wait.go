package platform

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/signalbox-dev/signalbox/internal/freeport"
)

// Patience is the limit for a condition whose time no test measures. It is so long that a slow machine does not reach
// it, only a condition that never comes.
const Patience = 5 * time.Minute

// A condition is checked every shortTick at first, and every longTick at most: checks send requests to servers under
// load.
const (
	shortTick = 20 * time.Millisecond
	longTick  = 250 * time.Millisecond
)

// Eventually waits until cond returns an empty string. After limit it fails with the last string that cond returned.
// The time between two checks is at most a tenth of the elapsed time, so a duration measured with it is exact to a
// tenth.
func Eventually(t T, limit time.Duration, cond func() string) {
	t.Helper()
	began := time.Now()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for {
		missing := cond()
		if missing == "" {
			return
		}
		next := time.NewTimer(min(max(time.Since(began)/10, shortTick), longTick))
		select {
		case <-next.C:
		case <-deadline.C:
			t.Fatalf("not within %s: %s", limit, missing)
		case <-t.Context().Done():
			t.Fatalf("stopped while waiting: %s", missing)
		}
	}
}

// Throughout checks cond repeatedly for the given time, and fails as soon as it returns a non-empty string.
func Throughout(t T, length time.Duration, cond func() string) {
	t.Helper()
	end := time.NewTimer(length)
	defer end.Stop()
	ticker := time.NewTicker(longTick)
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
			t.Fatalf("stopped while checking")
		}
	}
}

// FreePort returns a loopback port that is not in use and that no other test receives before this one has ended.
func FreePort(t T) int {
	t.Helper()
	port, release, err := freeport.Claim(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(release)
	return port
}

// Address returns the loopback address of a port.
func Address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// TooSlow returns the message for a duration over its limit.
func TooSlow(what string, got, limit time.Duration) string {
	return fmt.Sprintf("%s took %s, over %s", what, got.Round(time.Millisecond), limit)
}
