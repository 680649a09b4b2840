package soak_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/load"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

const (
	// onTime is how late 99 % of the timers may be.
	onTime = time.Second
	// sampleEvery is the interval of the samples of processes, controlEvery that of cancellations, reads and watches.
	sampleEvery  = 10 * time.Second
	controlEvery = 500 * time.Millisecond
	// endLimit is the time for which runs may be open after the last start.
	endLimit = 5 * time.Minute
)

// TestMixRunsForLong runs the mix on two servers.
func TestMixRunsForLong(t *testing.T) {
	t.Parallel()
	if !platform.HasPostgres() || !platform.HasRedis() {
		t.Skipf("%s and %s are not set; `make test` starts both", platform.PostgresVariable, platform.RedisVariable)
	}
	lasts, full := length(t)
	share := shortShare
	if full {
		share = 1
	}
	temporal, store := platform.StartTemporal(t), platform.Postgres(t)
	var servers []*platform.Server
	for range 2 {
		servers = append(servers, platform.StartServer(t, platform.ServerOptions{Temporal: temporal.Address, Store: store}))
	}
	m := begin(t, servers, share)
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	usage := newUsage(servers, temporal.Process)
	var beside sync.WaitGroup
	beside.Go(func() { m.cancelRuns(ctx, t, servers[0]) })
	for _, s := range servers {
		beside.Go(func() { m.read(ctx, t, s) })
	}
	beside.Go(func() { usage.sample(ctx, t) })
	beside.Wait()
	m.stop()
	m.cancelAll(t, servers[0])
	// before the runs are judged: what has not ended by then is an error, and its figures are needed
	late := lateness(t, servers)
	t.Logf("lateness of timers: %s; at most %.0f runs were stuck; %s", late, usage.stuck, usage)
	runs := m.judge(t, servers[0], temporal, endLimit)
	require.NotZero(t, runs)
	ticks := len(servers[0].AllRuns(t, m.names["scheduled"], 500))
	require.LessOrEqual(t, ticks, int(time.Since(began)/scheduled)+1, "the schedule started no run twice")
	if !full {
		return
	}
	require.GreaterOrEqual(t, ticks, int(lasts/scheduled)-1, "the schedule started all runs")
	over := m.overrun(t, servers[0])
	promise.Record(t, promise.Figure{
		Promise: "soak", What: fmt.Sprintf("lateness of timers in %s of a mix of ten starts and 50 timers per second", lasts),
		Aim: "p99 1 s", Trials: late.total, Figure: late.String()})
	promise.Record(t, promise.Figure{
		Promise: "soak", What: fmt.Sprintf("what a run of %d waits of %s takes over them", waits, pause), Trials: len(over),
		Figure: over.String()})
	promise.Record(t, promise.Figure{
		Promise: "soak", What: "memory, goroutines, connections and series: first quarter, last quarter", Aim: "flat",
		Trials: runs, Figure: usage.String()})
	assert.Zero(t, usage.stuck, "stuck runs")
	assert.LessOrEqual(t, late.at(.99), onTime, "lateness of timers")
	usage.requireFlat(t)
}

// cancelRuns cancels runs that end so, until ctx ends.
func (m *started) cancelRuns(ctx context.Context, t *testing.T, s *platform.Server) {
	t.Helper()
	canceled := 0
	every(ctx, controlEvery, func() {
		l := m.loads["canceled"][0]
		for _, r := range l.Of(load.Accepted)[canceled:] {
			cancelRun(t, s, r.Run)
			canceled++
		}
	})
}

// cancelAll cancels the runs that have not been canceled yet.
func (m *started) cancelAll(t *testing.T, s *platform.Server) {
	t.Helper()
	for _, r := range m.loads["canceled"][0].Of(load.Accepted) {
		if s.Run(t, r.Run).GetStatus() != "canceled" {
			cancelRun(t, s, r.Run)
		}
	}
}

func cancelRun(t *testing.T, s *platform.Server, id string) {
	t.Helper()
	_, err := s.Control(context.WithoutCancel(t.Context()), "cancel", id, "as the mix does")
	if reason, _ := platform.Reason(err); reason != "RUN_ENDED" {
		assert.NoError(t, err, "cancel %s", id)
	}
}

// read lists runs, reads one and watches one until it ends, until ctx ends.
func (m *started) read(ctx context.Context, t *testing.T, s *platform.Server) {
	t.Helper()
	every(ctx, controlEvery, func() {
		list, err := s.Runs.ListRuns(t.Context(), connect.NewRequest(&signalboxv1.ListRunsRequest{
			Project: platform.DefaultProject, Filter: &signalboxv1.RunFilter{Workflow: m.names["steps"]}, PageSize: 50,
		}))
		if !assert.NoError(t, err) || len(list.Msg.GetRuns()) == 0 {
			return
		}
		id := list.Msg.GetRuns()[0].GetId()
		s.Steps(t, id)
		watching, cancel := context.WithTimeout(t.Context(), endLimit)
		defer cancel()
		_, err = s.Watch(watching, id)
		assert.NoError(t, err, "watch %s", id)
	})
}

// every calls f at an interval until ctx ends.
func every(ctx context.Context, interval time.Duration, f func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			f()
		case <-ctx.Done():
			return
		}
	}
}

// overrun returns how much longer than their waits the runs took that wait.
func (m *started) overrun(t *testing.T, s *platform.Server) (over promise.Times) {
	t.Helper()
	for _, r := range s.AllRuns(t, m.names["waits"], 500) {
		over = append(over, r.GetEndTime().AsTime().Sub(r.GetStartTime().AsTime())-waits*pause)
	}
	return over
}

// histogram is the lateness of timers: how many were at most this late, by seconds.
type histogram struct {
	bounds []float64
	counts []int
	total  int
}

// at returns the bound that the share of timers did not exceed.
func (h histogram) at(share float64) time.Duration {
	for i, bound := range h.bounds {
		if float64(h.counts[i]) >= share*float64(h.total) {
			return time.Duration(bound * float64(time.Second))
		}
	}
	return math.MaxInt64
}

func (h histogram) String() string {
	var parts []string
	for i, bound := range h.bounds {
		if h.counts[i] > 0 && (i == 0 || h.counts[i] > h.counts[i-1]) {
			parts = append(parts, fmt.Sprintf("%.4g %% within %gs", 100*float64(h.counts[i])/float64(h.total), bound))
		}
	}
	return strings.Join(parts, ", ")
}
