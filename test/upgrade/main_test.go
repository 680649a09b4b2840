// Package upgrade_test deploys this release over the previous one, and back, with runs open: every run
// completes once, whichever release serves it.
package upgrade_test

import (
	"os"
	"testing"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// previousVariable is the environment variable with the path of the previous release's server.
const previousVariable = "SIGNALBOX_PREVIOUS_BIN"

const soon = platform.Patience

func TestMain(m *testing.M) {
	os.Exit(platform.Main(m, func(*platform.Suite) {}))
}
