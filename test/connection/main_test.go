// Package connection_test holds the library's connection manager to its promises against a real Temporal in a process of its
// own: absent, killed, frozen, cut off, misconfigured, slow; and looks at what it leaves behind.
package connection_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// shared is the Temporal of those tests that only break the way to it.
var shared *platform.Shared[*platform.Temporal]

func TestMain(m *testing.M) {
	if err := platform.Crowd(12); err != nil {
		panic(err)
	}
	code := platform.Main(m, func(s *platform.Suite) { shared = platform.Share(s, platform.StartTemporal) })
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "after all tests:", err)
		code = 1
	}
	os.Exit(code)
}
