// Package upgrade_test deploys this release over the one before, and back, with runs open: what either has started comes to
// its end, each once, whoever serves it in between.
package upgrade_test

import (
	"os"
	"testing"
	"time"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// previousVariable names the server of the release before this one.
const previousVariable = "SIGNALBOX_PREVIOUS_BIN"

const soon = time.Minute

func TestMain(m *testing.M) {
	os.Exit(platform.Main(m, func(*platform.Suite) {}))
}
