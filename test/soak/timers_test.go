package soak_test

import (
	"fmt"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/load"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

const (
	// timersFor is how long the timers are set at full length, and briefTimers otherwise, with a fifth of the load.
	timersFor, briefTimers = 5 * time.Minute, 10 * time.Second
	// between is the interval of starts of runs of six waits, which makes 50 timers per second.
	between = 120 * time.Millisecond
	// beside is how many processes that never wait compete with the platform, per processor.
	beside = 2
)

// Timers fire on time while other programs use all processors: Temporal, the servers and the database get what is left
// of them. At full length 50 timers per second are set.
func TestTimersFireOnTimeBesideFullLoad(t *testing.T) {
	t.Parallel()
	lasts, share := promise.Length(briefTimers, timersFor), time.Duration(shortShare)
	if promise.Full() {
		share = 1
	}
	temporal, store := platform.StartTemporal(t), platform.SQLite(t)
	if platform.HasPostgres() {
		store = platform.Postgres(t)
	}
	s := platform.StartServer(t, platform.ServerOptions{Temporal: temporal.Address, Store: store})
	tasks := ""
	for n := range waits {
		tasks += fmt.Sprintf("  - rest%d: {wait: {milliseconds: %d}}\n", n, pause.Milliseconds())
	}
	workflow := s.Publish(t, part{name: "waits", tasks: tasks}.document())
	if promise.Full() {
		for n := range beside * runtime.NumCPU() {
			busy := platform.StartCommand(t, fmt.Sprintf("busy-%d", n), exec.Command("sh", "-c", "while :; do :; done"))
			defer busy.Kill()
		}
	}
	l := load.Start(t, s, workflow, between*share)
	<-time.After(lasts)
	l.Stop()
	load.Judge(t, load.Evidence{
		Loads: []*load.Load{l}, Server: s, Temporal: platform.DialTemporal(t, temporal.Address), Limit: endLimit,
	})
	late := lateness(t, []*platform.Server{s})
	require.GreaterOrEqual(t, late.total, waits*len(l.Of(load.Accepted)), "the lateness of each timer is counted")
	t.Logf("lateness of timers: %s", late)
	if !promise.Full() {
		return
	}
	promise.Record(t, promise.Figure{
		Promise: "soak", What: fmt.Sprintf("lateness of 50 timers per second for %s beside %d busy processes per processor",
			lasts, beside), Aim: "p99 1 s", Trials: late.total, Figure: late.String()})
	assert.LessOrEqual(t, late.at(.99), onTime, "lateness of timers")
}
