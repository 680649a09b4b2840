package integration_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/counter"
	"github.com/signalbox-dev/signalbox/test/origin"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// A loop of safe calls is one workflow task for its worker. Its run is running once the worker has it, and its steps
// are recorded while the loop continues.
func TestLoopOfCallsIsRunningFromItsStart(t *testing.T) {
	t.Parallel()
	s := newServer(t, platform.SQLite(t))
	o := origin.New(t)
	var id atomic.Pointer[string]
	seen := make(chan *signalboxv1.Run, 2)
	calls := 0 // one at a time
	o.Handle("GET /slow", func(origin.Call) origin.Answer {
		<-time.After(80 * time.Millisecond)
		if calls++; calls == 20 || calls == 60 { // 1.6 s and 4.8 s after the first one, or later
			seen <- s.Run(t, *id.Load())
		}
		return origin.Answer{Status: 200, Body: `{}`}
	})
	const loop = "  - each:\n      for: {each: i, in: \"${ [range(80)] }\"}\n      do:\n" +
		"        - get: {call: http, with: {method: get, endpoint: '${ .base + \"/slow\" }'}, output: {as: '${ $input }'}}\n"
	started := s.Start(t, s.Publish(t, platform.Document("slow-loop", loop)), `{"base":"`+o.URL+`"}`).GetId()
	id.Store(&started)
	early, later := <-seen, <-seen
	require.Equal(t, "running", early.GetStatus())
	require.NotNil(t, early.GetStartTime())
	require.Equal(t, "running", later.GetStatus())
	require.Equal(t, early.GetStartTime().AsTime(), later.GetStartTime().AsTime())
	require.GreaterOrEqual(t, later.GetStepsDone(), int64(25), "60 calls were made")
	require.Equal(t, int64(81), s.Await(t, started, soon, "completed").GetStepsDone())
}

// The test reads a run repeatedly while it works and while it is idle for long enough to be compared with
// Temporal: its rows are never stale, and no read interprets its history.
func TestReadsOfBusyRunCauseNoRebuild(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		s := newServer(t, store)
		const rounds = "  - rounds:\n      for: {each: r, in: \"${ [range(3)] }\"}\n      do:\n" +
			"        - many:\n            for: {each: i, in: \"${ [range(400)] }\"}\n            do:\n              - mark: " +
			"{set: {i: \"${ $i }\"}}\n" +
			"        - rest: {wait: {seconds: 4}}\n"
		id := s.Start(t, s.Publish(t, platform.Document("watched", rounds)), "").GetId()
		ctx, cancel := context.WithTimeout(t.Context(), 2*soon)
		defer cancel()
		var readers sync.WaitGroup
		for range 4 {
			readers.Go(func() {
				stream, err := s.Runs.WatchRun(ctx,
					connect.NewRequest(&signalboxv1.WatchRunRequest{Project: platform.DefaultProject, Id: id}))
				if err != nil {
					t.Errorf("watch: %v", err)
					return
				}
				for stream.Receive() {
					if behind := stream.Msg().GetRun().GetBehind(); behind != nil {
						t.Errorf("the row of the watched run is stale: %v", behind)
					}
				}
				if err := stream.Err(); err != nil {
					t.Errorf("watch: %v", err)
				}
				_ = stream.Close() // it has ended
			})
		}
		for range 2 {
			readers.Go(func() {
				ticker := time.NewTicker(50 * time.Millisecond)
				defer ticker.Stop()
				for {
					res, err := s.Runs.GetRun(ctx,
						connect.NewRequest(&signalboxv1.GetRunRequest{Project: platform.DefaultProject, Id: id}))
					if err != nil {
						t.Errorf("get: %v", err)
						return
					}
					if behind := res.Msg.GetRun().GetBehind(); behind != nil {
						t.Errorf("the row of the run is stale: %v", behind)
					}
					if res.Msg.GetRun().GetEndTime() != nil {
						return
					}
					<-ticker.C
				}
			})
		}
		readers.Wait()
		run := s.Run(t, id)
		require.Equal(t, "completed", run.GetStatus())
		require.Greater(t, run.GetStepsTotal(), int64(1200))
		rebuilds, series, err := counter.Metric(t.Context(), s, "signalbox_rebuilds_total")
		require.NoError(t, err)
		require.Equal(t, 3, series)
		require.Zero(t, rebuilds)
	})
}
