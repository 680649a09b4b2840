package integration_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/counter"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// The test reads a run repeatedly while it works and while it is idle for long enough to be compared with
// Temporal: its rows are never stale, and no read interprets its history.
func TestReadsOfBusyRunCauseNoRebuild(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		s := newServer(t, store)
		const rounds = "  - rounds:\n      for: {each: r, in: \"${ [range(3)] }\"}\n      do:\n" +
			"        - many:\n            for: {each: i, in: \"${ [range(400)] }\"}\n            do:\n              - mark: {set: {i: \"${ $i }\"}}\n" +
			"        - rest: {wait: {seconds: 4}}\n"
		id := s.Start(t, s.Publish(t, platform.Document("watched", rounds)), "").GetId()
		ctx, cancel := context.WithTimeout(t.Context(), 2*soon)
		defer cancel()
		var readers sync.WaitGroup
		for range 4 {
			readers.Go(func() {
				stream, err := s.Runs.WatchRun(ctx, connect.NewRequest(&signalboxv1.WatchRunRequest{Project: platform.DefaultProject, Id: id}))
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
					res, err := s.Runs.GetRun(ctx, connect.NewRequest(&signalboxv1.GetRunRequest{Project: platform.DefaultProject, Id: id}))
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
