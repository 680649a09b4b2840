// Package chaos_test injects random faults into a real platform: it kills, freezes and restarts Temporal, slows and
// cuts the connection to it, kills the server and locks the database, all under a steady load, and then verifies the
// outcome of each run. It also backs up the database and Temporal at random moments, kills everything, restores older
// backups of one or both, and verifies what is left of each run.
//
// A schedule is a pure function of its seed, which is printed; SIGNALBOX_CHAOS_SEED repeats one. Timing depends on the
// machine, so the same seed injects the same faults in the same order, but not at the same instruction.
package chaos_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

// A variable of the environment.
const (
	minutesVariable = "SIGNALBOX_CHAOS_MINUTES" // how long to run further schedules; a few short ones when empty
)

const (
	// startEvery is the interval of the starts of a schedule.
	startEvery = 50 * time.Millisecond
	// sideBySide is how many schedules of a long run are executed at a time, each on a platform of its own and with a
	// quarter of the load.
	sideBySide = 6
)

func TestMain(m *testing.M) {
	os.Exit(platform.MainParallel(m, 3, func(*platform.Suite) {}))
}

func TestNoRunIsLostUnderRandomFaults(t *testing.T) {
	t.Parallel()
	seed := promise.Seed(t)
	minutes, long := minutes(t)
	if !long {
		for n, kind := range []string{"sqlite", "postgres"} {
			t.Run(fmt.Sprintf("%s with seed %d", kind, seed+uint64(n)), func(t *testing.T) {
				t.Parallel()
				result := play(t, store(t, kind), plan(seed+uint64(n), 6), startEvery)
				record(t, kind, seed+uint64(n), 1, result)
			})
		}
		return
	}
	end := time.Now().Add(minutes)
	schedules := uint64(0)
	for time.Now().Before(end) {
		ok := t.Run(fmt.Sprintf("from seed %d", seed+schedules), func(t *testing.T) {
			for n := schedules; n < schedules+sideBySide; n++ {
				kind := []string{"sqlite", "postgres"}[n%2]
				t.Run(fmt.Sprintf("%s with seed %d", kind, seed+n), func(t *testing.T) {
					t.Parallel()
					t.Log(play(t, store(t, kind), plan(seed+n, 12), 4*startEvery))
				})
			}
		})
		require.True(t, ok, "a schedule from seed %d on failed", seed+schedules)
		schedules += sideBySide
	}
	record(t, "both databases", seed, int(schedules),
		fmt.Sprintf("%d schedules without a finding in %s", schedules, minutes))
}

func record(t *testing.T, kind string, seed uint64, schedules int, figure string) {
	t.Helper()
	promise.Record(t, promise.Figure{
		Promise: "P-R1", What: "random faults under steady starts, " + kind +
			": accepted runs once, refused ones nowhere, rows as in Temporal",
		Trials: schedules, Seed: seed, Figure: figure})
}

func store(t *testing.T, kind string) platform.Store {
	t.Helper()
	if kind == "sqlite" {
		return platform.SQLite(t)
	}
	if !platform.HasPostgres() {
		t.Skipf("%s is not set; `make test` starts a Postgres", platform.PostgresVariable)
	}
	return platform.Postgres(t)
}

func minutes(t *testing.T) (time.Duration, bool) {
	t.Helper()
	text := os.Getenv(minutesVariable)
	if text == "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, minutesVariable)
	return time.Duration(n) * time.Minute, true
}
