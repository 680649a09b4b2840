package outage_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/database"
	"github.com/signalbox-dev/signalbox/test/load"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

// The server is killed at random moments of a start: between row and execution, between execution and acknowledgement.
func TestServerKilledWhileRunsStart(t *testing.T) {
	eachStore(t, func(t *testing.T, store platform.Store) {
		x := build(t, store)
		l := load.Start(t, x.Server, x.workflow, 10*time.Millisecond)
		kills := promise.Trials(3, 100)
		for range kills {
			waitFor(t, 500*time.Millisecond+rand.N(500*time.Millisecond))
			x.Kill()
			x.Server = platform.LaunchServer(t, x.options)
			l.Follow(x.Server)
			x.waitForReady(t)
		}
		l.Stop()
		x.verify(t, l)
		promise.Record(t, promise.Figure{Promise: "P-R1", What: "server killed under 100 starts/s: accepted runs once, " +
			"lost answers once or never, rows as in Temporal", Trials: kills, Figure: l.String()})
	})
}

// The database is down while many runs are in progress: starts are refused, runs continue, and rows are updated once it
// is back.
func TestRunsContinueWhileDatabaseIsDown(t *testing.T) {
	t.Parallel()
	away := promise.Length(15*time.Second, time.Minute)
	faults := map[string]func(*testing.T) (store platform.Store, begin, end func()){
		"postgres crashed": func(t *testing.T) (platform.Store, func(), func()) {
			p := database.StartPostgres(t, t.Skip)
			return p.Store(), p.Crash, func() { p.Restart(t) }
		},
		"postgres frozen": func(t *testing.T) (platform.Store, func(), func()) {
			p := database.StartPostgres(t, t.Skip)
			return p.Store(), p.Freeze, p.Thaw
		},
		"sqlite locked": func(t *testing.T) (platform.Store, func(), func()) {
			store := platform.SQLite(t)
			var unlock func()
			return store, func() { unlock = database.LockSQLite(t, store) }, func() { unlock() }
		},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, begin, end := fault(t)
			x := build(t, store)
			slow := x.Publish(t, platform.Document("slow", "  - pause:\n      wait:\n        seconds: 3\n"+hello))
			first := load.New(x.Server, slow)
			for n := range 200 {
				platform.Eventually(t, soon, func() string {
					if r := first.Send(t.Context(), n); r.Outcome != load.Accepted {
						return fmt.Sprintf("start %d is %s: %v", n, r.Outcome, r.Err)
					}
					return ""
				})
			}
			l := load.Start(t, x.Server, x.workflow, 100*time.Millisecond)
			begin()
			waitFor(t, away)
			code, body, err := x.Get(t.Context(), "/livez")
			require.NoError(t, err)
			require.Equal(t, 200, code, body)
			end()
			back := time.Now()
			x.waitForReady(t)
			ready := time.Since(back)
			waitFor(t, time.Second)
			l.Stop()
			x.verify(t, first, l)
			promise.Record(t, promise.Figure{
				Promise: "P-R1", What: name + " for " + away.String() +
					" in the middle of 200 runs and 10 starts/s: from its return to ready; the starts",
				Trials: 1, Figure: promise.Round(ready).String() + "; " + l.String()})
		})
	}
}
