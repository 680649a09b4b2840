package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/conn/conntest"
	"github.com/signalbox-dev/signalbox/test/database"
	"github.com/signalbox-dev/signalbox/test/load"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// step is one fault of a schedule: its kind, its duration, and the pause that follows.
type step struct {
	fault string
	lasts time.Duration
	pause time.Duration
}

func (s step) String() string {
	return fmt.Sprintf("%s for %s, %s", s.fault, s.lasts.Round(time.Millisecond), s.pause.Round(time.Millisecond))
}

// faults returns the faults that schedules choose from.
func faults() []string {
	return []string{
		"temporal killed", "temporal stopped", "temporal frozen", "connections cut", "frontend stopped",
		"connections forgotten",
		"requests dropped", "answers dropped", "answers slow", "server killed", "server stopped", "database locked",
	}
}

// plan generates a schedule.
func plan(seed uint64, steps int) []step {
	random := rand.New(rand.NewPCG(seed, 0))
	all := faults()
	out := make([]step, steps)
	for i := range out {
		out[i] = step{
			fault: all[random.IntN(len(all))],
			lasts: 100*time.Millisecond + time.Duration(random.Int64N(int64(4*time.Second))),
			pause: time.Duration(random.Int64N(int64(3 * time.Second))),
		}
	}
	return out
}

// environment is the platform that a schedule breaks.
type environment struct {
	t        *testing.T
	store    platform.Store
	temporal *platform.Temporal
	frontend *conntest.Frontend
	options  platform.ServerOptions
	server   *platform.Server
	loads    []*load.Load
	unlock   func()
}

// answered is a workflow whose event arrives before the task that listens for it.
const answered = `  - ask:
      emit: {event: {with: {type: io.example.chaos.answer, source: /chaos, data: {n: '${ $workflow.input.n }'}}}}
  - hear:
      listen: {to: {one: {with: {type: io.example.chaos.answer}, correlate: {n: {from: .data.n, expect: '${ $workflow.input.n }'}}}}}
`

// answeredEvery is the number of other starts for one of that workflow: each of its runs has an event.
const answeredEvery = 4

// play executes a schedule under steady starts and events and verifies the outcome.
func play(t *testing.T, store platform.Store, schedule []step, every time.Duration) string {
	t.Helper()
	var lines []string
	for _, s := range schedule {
		lines = append(lines, s.String())
	}
	t.Log("schedule:\n" + strings.Join(lines, "\n"))
	temporal := platform.StartTemporal(t)
	x := &environment{t: t, store: store, temporal: temporal,
		frontend: conntest.Run(t, conntest.Options{Upstream: temporal.Address})}
	x.options = platform.ServerOptions{Temporal: x.frontend.Addr(), Store: store, Port: platform.FreePort(t)}
	x.server = platform.StartServer(t, x.options)
	workflow := x.server.Publish(t, platform.Document("chaos", "  - a:\n      set: {n: 1}\n  - b:\n      set: {n: 2}\n"))
	listens := x.server.Publish(t, platform.Document("answered", answered))
	x.loads = []*load.Load{load.Start(t, x.server, workflow, every), load.Start(t, x.server, listens, answeredEvery*every)}
	for _, s := range schedule {
		x.begin(s.fault)
		wait(t, s.lasts)
		x.end(s.fault)
		wait(t, s.pause)
	}
	for _, l := range x.loads {
		l.Stop()
	}
	x.server.AwaitReady(t)
	load.Judge(t, load.Evidence{
		Loads: x.loads, Server: x.server, Temporal: platform.DialTemporal(t, temporal.Address), Limit: 3 * time.Minute})
	require.NotEmpty(t, x.loads[0].Of(load.Accepted))
	require.NotEmpty(t, x.loads[1].Of(load.Accepted))
	return x.loads[0].String() + "; of runs whose event is early " + x.loads[1].String()
}

func (x *environment) begin(fault string) {
	switch fault {
	case "temporal killed":
		x.temporal.Kill()
	case "temporal stopped":
		x.temporal.Terminate()
		<-x.temporal.Done()
	case "temporal frozen":
		x.temporal.Freeze()
	case "connections cut":
		x.frontend.CutConnections()
	case "frontend stopped":
		x.frontend.Stop()
	case "connections forgotten":
		x.frontend.LoseConnections()
	case "requests dropped":
		x.frontend.Blackhole(conntest.ToServer)
	case "answers dropped":
		x.frontend.Blackhole(conntest.ToClient)
	case "answers slow":
		x.frontend.Slow(2 * time.Second)
	case "server killed":
		x.server.Kill()
	case "server stopped":
		x.server.Terminate()
		<-x.server.Done()
	case "database locked":
		x.lock()
	}
}

func (x *environment) end(fault string) {
	switch fault {
	case "temporal killed", "temporal stopped":
		x.temporal = x.temporal.Restart(x.t)
	case "temporal frozen":
		x.temporal.Thaw()
	case "frontend stopped":
		require.NoError(x.t, x.frontend.Restart())
	case "requests dropped", "answers dropped":
		x.frontend.Restore()
	case "answers slow":
		x.frontend.Slow(0)
	case "server killed", "server stopped":
		x.server = platform.LaunchServer(x.t, x.options)
		x.server.AwaitAPI(x.t)
		for _, l := range x.loads {
			l.Follow(x.server)
		}
	case "database locked":
		x.unlock()
	}
}

// lock keeps the server from writing to the database.
func (x *environment) lock() {
	if x.store.Driver == "sqlite" {
		x.unlock = database.LockSQLite(x.t, x.store)
		return
	}
	x.unlock = database.LockPostgres(x.t, x.store)
}

// wait waits for the duration of a fault.
func wait(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}
