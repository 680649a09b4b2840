// Package soak_test runs a mix of everything that runs do on two servers with Postgres and Redis, steadily and for
// long, and verifies that no run is lost, doubled or stuck, that timers are on time, and that no process grows.
//
// SIGNALBOX_SOAK_MINUTES sets the length, as `make soak` does. Without it, and outside of `make prove`, a short form
// verifies only what does not depend on the speed of the machine.
package soak_test

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

const (
	minutesVariable = "SIGNALBOX_SOAK_MINUTES"
	// defaultMinutes is the length at full length without the variable.
	defaultMinutes = 60
	// shortLength is the length in `make test`, which runs a fifth of the load.
	shortLength = 20 * time.Second
	shortShare  = 5
)

func TestMain(m *testing.M) { os.Exit(platform.Main(m, func(*platform.Suite) {})) }

// length returns how long the load runs, and whether that is the full form.
func length(t *testing.T) (time.Duration, bool) {
	t.Helper()
	text := os.Getenv(minutesVariable)
	if text == "" {
		return promise.Length(shortLength, defaultMinutes*time.Minute), promise.Full()
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, minutesVariable)
	return time.Duration(n) * time.Minute, true
}
