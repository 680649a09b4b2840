package rpc_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/api/signalbox/v1/signalboxv1connect"
	"github.com/signalbox-dev/signalbox/conn/conntype"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/run"
)

type topicStream = connect.ServerStreamForClient[signalboxv1.WatchResponse]

func (p *platform) watchTopics(t *testing.T, topics ...*signalboxv1.WatchTopic) *topicStream {
	t.Helper()
	stream, err := signalboxv1connect.NewWatchServiceClient(p.client, p.base).Watch(t.Context(),
		connect.NewRequest(&signalboxv1.WatchRequest{Topics: topics}))
	require.NoError(t, err)
	t.Cleanup(func() { stream.Close() })
	return stream
}

func runsTopic(m *signalboxv1.RunsTopic) *signalboxv1.WatchTopic {
	return &signalboxv1.WatchTopic{Topic: &signalboxv1.WatchTopic_Runs{Runs: m}}
}

func runTopic(id string) *signalboxv1.WatchTopic {
	return &signalboxv1.WatchTopic{Topic: &signalboxv1.WatchTopic_Run{Run: &signalboxv1.RunTopic{Id: id}}}
}

func engineTopic() *signalboxv1.WatchTopic {
	return &signalboxv1.WatchTopic{Topic: &signalboxv1.WatchTopic_Engine{Engine: &signalboxv1.EngineTopic{}}}
}

// until returns the first message that the condition accepts.
func until(t *testing.T, stream *topicStream, accept func(*signalboxv1.WatchResponse) bool) *signalboxv1.WatchResponse {
	t.Helper()
	for stream.Receive() {
		m := stream.Msg()
		require.WithinDuration(t, time.Now(), m.GetTime().AsTime(), time.Minute, "each message has the server's time")
		if accept(m) {
			return m
		}
	}
	require.NoError(t, stream.Err())
	require.Fail(t, "the stream ended")
	return nil
}

func TestWatchStreamsSeveralTopics(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.publish()
	first, second := p.startRun(`{"name":"Ada"}`), p.startRun(`{"name":"Bob"}`)
	open := &signalboxv1.ListRunsRequest{
		Filter: &signalboxv1.RunFilter{Statuses: []string{"queued", "running"}}, PageSize: 1}
	stream := p.watchTopics(t, runsTopic(&signalboxv1.RunsTopic{List: open, WithCounts: true}), runTopic(first),
		engineTopic())
	begun := map[int32]*signalboxv1.WatchResponse{}
	until(t, stream, func(m *signalboxv1.WatchResponse) bool {
		begun[m.GetTopic()] = m
		return len(begun) == 3
	})
	for index, m := range begun {
		require.True(t, m.GetReset_(), index)
	}
	list := begun[0].GetRuns()
	require.Len(t, list.GetRows(), 1)
	require.Equal(t, second, list.GetRows()[0].GetRun().GetId())
	require.True(t, list.GetRows()[0].GetMatches())
	require.Nil(t, list.GetRows()[0].GetRun().GetInput())
	require.Equal(t, map[string]int64{"queued": 2}, list.GetCounts().GetStatuses())
	next, err := signalboxv1connect.NewRunServiceClient(p.client, p.base).ListRuns(t.Context(),
		connect.NewRequest(&signalboxv1.ListRunsRequest{
			Filter: open.GetFilter(), PageSize: 1, PageToken: list.GetNextPageToken(),
		}))
	require.NoError(t, err)
	require.Equal(t, first, next.Msg.GetRuns()[0].GetId(), "ListRuns continues the list")
	require.JSONEq(t, `{"name":"Ada"}`, begun[1].GetRun().GetRun().GetInput().GetJson())
	require.Equal(t, "down", begun[2].GetEngine().GetState())
	require.Equal(t, int64(7), begun[2].GetEngine().GetAttempts())
	require.Equal(t, noon, begun[2].GetEngine().GetSince().AsTime())

	p.apply(t, first, 9, run.Completed, `{}`)
	p.system.setConnection(conntype.Status{State: conntype.Connected, Since: noon.Add(time.Hour)})
	seen := map[string]bool{}
	var cursor string
	until(t, stream, func(m *signalboxv1.WatchResponse) bool {
		for _, r := range m.GetRuns().GetRows() {
			if r.GetRun().GetId() == first {
				require.Equal(t, "completed", r.GetRun().GetStatus())
				require.False(t, r.GetMatches())
				seen["list"], cursor = true, m.GetCursor()
			}
		}
		seen["run"] = seen["run"] || m.GetRun().GetRun().GetStatus() == "completed"
		seen["engine"] = seen["engine"] || m.GetEngine().GetState() == "connected"
		seen["counts"] = seen["counts"] || m.GetRuns().GetCounts().GetStatuses()["completed"] == 1
		return len(seen) == 4 && seen["list"] && seen["run"] && seen["engine"] && seen["counts"]
	})

	p.apply(t, second, 9, run.Running, "")
	topic := runsTopic(&signalboxv1.RunsTopic{List: open, WithCounts: true})
	topic.Cursor = cursor
	until(t, p.watchTopics(t, topic), func(m *signalboxv1.WatchResponse) bool {
		require.False(t, m.GetReset_())
		return slices.ContainsFunc(m.GetRuns().GetRows(), func(r *signalboxv1.RunsRow) bool {
			return r.GetRun().GetId() == second && r.GetRun().GetStatus() == "running"
		})
	})
	topic.Cursor = "of-another-server.7"
	require.True(t, until(t, p.watchTopics(t, topic), func(*signalboxv1.WatchResponse) bool { return true }).GetReset_())
}

func TestWatchEndsWhenItsTopicsHaveEnded(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.publish()
	id := p.startRun(`{}`)
	p.apply(t, id, 9, run.Completed, `{}`)
	stream := p.watchTopics(t, runTopic(id))
	require.True(t, stream.Receive())
	require.Equal(t, "completed", stream.Msg().GetRun().GetRun().GetStatus())
	require.False(t, stream.Receive())
	require.NoError(t, stream.Err())
}

func TestWatchRefusesWrongTopics(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.publish()
	list := func(m *signalboxv1.ListRunsRequest) *signalboxv1.WatchTopic {
		return runsTopic(&signalboxv1.RunsTopic{List: m})
	}
	for name, topics := range map[string][]*signalboxv1.WatchTopic{
		"none":         nil,
		"an empty one": {{}},
		"no run":       {runTopic("")},
		"project":      {list(&signalboxv1.ListRunsRequest{Project: "other"})},
		"page token":   {list(&signalboxv1.ListRunsRequest{PageToken: "x"})},
		"page size":    {list(&signalboxv1.ListRunsRequest{PageSize: 201})},
		"status": {engineTopic(),
			list(&signalboxv1.ListRunsRequest{Filter: &signalboxv1.RunFilter{Statuses: []string{"broken"}}})},
		"order":         {list(&signalboxv1.ListRunsRequest{Order: "longest"})},
		"version":       {list(&signalboxv1.ListRunsRequest{Filter: &signalboxv1.RunFilter{Version: "1.0.0"}})},
		"cursor":        {{Cursor: "x", Topic: runTopic("r").GetTopic()}},
		"more than 16":  make([]*signalboxv1.WatchTopic, 17),
		"negative size": {list(&signalboxv1.ListRunsRequest{PageSize: -1})},
	} {
		for i := range topics {
			if topics[i] == nil {
				topics[i] = engineTopic()
			}
		}
		stream := p.watchTopics(t, topics...)
		require.False(t, stream.Receive(), name)
		requireReason(t, stream.Err(), connect.CodeInvalidArgument, apperror.InvalidArgument)
	}
	stream := p.watchTopics(t, engineTopic(), runTopic("none"))
	for stream.Receive() {
		require.NotNil(t, stream.Msg().GetEngine())
	}
	requireReason(t, stream.Err(), connect.CodeNotFound, apperror.RunNotFound)

	stream = p.watchTopics(t,
		&signalboxv1.WatchTopic{Topic: &signalboxv1.WatchTopic_Batch{Batch: &signalboxv1.BatchTopic{Id: "b"}}})
	require.False(t, stream.Receive())
	requireReason(t, stream.Err(), connect.CodeNotFound, apperror.BatchNotFound)
}

// TestWatchMergesManyUpdates writes far more updates than messages may be sent.
func TestWatchMergesManyUpdates(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.publish()
	id := p.startRun(`{}`)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stream, err := signalboxv1connect.NewWatchServiceClient(p.client, p.base).Watch(ctx,
		connect.NewRequest(&signalboxv1.WatchRequest{
			Topics: []*signalboxv1.WatchTopic{runsTopic(&signalboxv1.RunsTopic{WithCounts: true}), runTopic(id)},
		}))
	require.NoError(t, err)
	t.Cleanup(func() { stream.Close() })
	const updates = 1000
	began := time.Now()
	for i := range int64(updates) {
		status := run.Running
		if i == updates-1 {
			status = run.Completed
		}
		p.apply(t, id, 5+i, status, `{}`)
	}
	messages, seen := 0, map[int32]bool{}
	for len(seen) < 2 {
		require.True(t, stream.Receive(), stream.Err())
		messages++
		m := stream.Msg()
		for _, r := range m.GetRuns().GetRows() {
			seen[0] = seen[0] || r.GetRun().GetStatus() == "completed"
		}
		if m.GetRun().GetRun().GetStatus() == "completed" {
			seen[1] = true
		}
	}
	require.LessOrEqual(t, float64(messages), 4*(time.Since(began).Seconds()+1))
	t.Logf("%d updates, %d messages in %v", updates, messages, time.Since(began))
}

func TestStopEndsTopicsAtOnce(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	stream := p.watchTopics(t, runsTopic(&signalboxv1.RunsTopic{WithCounts: true}), engineTopic())
	require.True(t, stream.Receive())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- p.server.Stop(ctx) }()
	for stream.Receive() {
	}
	requireReason(t, stream.Err(), connect.CodeUnavailable, "SERVER_STOPPING")
	stream.Close()
	p.client.CloseIdleConnections()
	require.NoError(t, <-stopped)
}

func TestWatchesOfOneTokenLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, nil)
	_, hostile := g.token(map[string]auth.Role{"shop": auth.Viewer})
	_, admin := g.token(map[string]auth.Role{"shop": auth.Admin})
	client := signalboxv1connect.NewWatchServiceClient(oneConnection(t), g.base)
	watch := func(header []string) error {
		req := connect.NewRequest(
			&signalboxv1.WatchRequest{Project: "shop", Topics: []*signalboxv1.WatchTopic{engineTopic()}})
		req.Header().Set(header[0], header[1])
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		stream, err := client.Watch(ctx, req)
		require.NoError(t, err)
		if stream.Receive() {
			return nil
		}
		return stream.Err()
	}
	const most = 100
	for range most {
		require.NoError(t, watch(hostile))
	}
	for range 450 {
		if err := watch(hostile); err != nil {
			requireReason(t, err, connect.CodeResourceExhausted, apperror.TooManyWatches)
			require.ErrorContains(t, err, "the maximum of one token")
		}
	}
	require.NoError(t, watch(admin))
	require.Error(t, watch(hostile))
}
