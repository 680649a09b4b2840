package soak_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	// between is the interval of starts of runs of six waits, which makes 50 timers per second.
	between = 120 * time.Millisecond
	// beside is how many processes that never wait compete with the platform, per processor.
	beside = 2
)

// Timers fire on time while other programs use all processors: Temporal, the servers and the database get what is left
// of them. At full length 50 timers per second are set.
func TestTimersFireOnTimeBesideFullLoad(t *testing.T) {
	t.Parallel()
	lasts, full := length(t)
	share := time.Duration(shortShare)
	if full {
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
	if full {
		for n := range beside * runtime.NumCPU() {
			busy := platform.StartCommand(t, fmt.Sprintf("busy-%d", n), exec.Command("sh", "-c", "while :; do :; done"))
			defer busy.Kill()
		}
	}
	l := load.Start(t, s, workflow, between*share)
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	usage := newUsage([]*platform.Server{s}, temporal.Process)
	usage.sample(ctx, t)
	l.Stop()
	stopped := time.Now()
	load.Judge(t, load.Evidence{
		Loads: []*load.Load{l}, Server: s, Temporal: platform.DialTemporal(t, temporal.Address), Limit: endLimit,
	})
	drained := time.Since(stopped)
	late, stored := lateness(t, []*platform.Server{s}), megabytes(t, temporal.File)
	require.GreaterOrEqual(t, late.total, waits*len(l.Of(load.Accepted)), "the lateness of each timer is counted")
	runs := len(l.Of(load.Accepted))
	t.Logf("lateness of timers: %s; all runs had ended %s after the last start; database of Temporal: %.0f MB after "+
		"%d runs; at most %.0f runs were stuck; %s", late, drained.Round(time.Second), stored, runs, usage.stuck, usage)
	if !full {
		return
	}
	promise.Record(t, promise.Figure{
		Promise: "soak", What: fmt.Sprintf("lateness of 50 timers per second for %s beside %d busy processes per processor",
			lasts, beside), Aim: "p99 1 s", Trials: late.total, Figure: late.String()})
	promise.Record(t, promise.Figure{
		Promise: "soak", What: "the same: until all runs had ended after the last start; database of Temporal; memory, " +
			"goroutines, connections and series in the second and in the last quarter", Aim: "flat", Trials: runs,
		Figure: fmt.Sprintf("%s; %.0f MB; %s", drained.Round(time.Second), stored, usage)})
	assert.Zero(t, usage.stuck, "stuck runs")
	assert.LessOrEqual(t, late.at(.99), onTime, "lateness of timers")
	usage.requireFlat(t)
}

// megabytes returns the size of the database in file, with its log.
func megabytes(t *testing.T, file string) float64 {
	t.Helper()
	parts, err := filepath.Glob(file + "*")
	require.NoError(t, err)
	total := int64(0)
	for _, part := range parts {
		info, err := os.Stat(part)
		require.NoError(t, err)
		total += info.Size()
	}
	return float64(total) / 1e6
}
