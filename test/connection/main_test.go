// Package connection_test tests the library's connection manager against a real Temporal in its own process:
// absent, killed, frozen, disconnected, misconfigured, slow; and checks for leaks.
package connection_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// shared is the Temporal of the tests that only break the connection to it.
var shared *platform.Shared[*platform.Temporal]

func TestMain(m *testing.M) {
	code := platform.MainParallel(m, 5, func(s *platform.Suite) { shared = platform.Share(s, platform.StartTemporal) })
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "after all tests:", err)
		code = 1
	}
	os.Exit(code)
}
