package handler

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
)

func TestIdleWatchSendsHeartbeats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sent []*signalboxv1.WatchRunResponse
		w := &watch{send: func(m *signalboxv1.WatchRunResponse) error {
			sent = append(sent, m)
			return nil
		}}
		ctx, cancel := context.WithTimeout(t.Context(), heartbeat*5/2)
		defer cancel()
		err := w.follow(ctx, func(ctx context.Context) error {
			require.NoError(t, w.change(&signalboxv1.WatchRunResponse{
				Run:   &signalboxv1.Run{Id: "r", Sequence: 4, Input: &signalboxv1.JsonValue{Json: "{}"}},
				Steps: []*signalboxv1.Step{{Number: 1}},
			}))
			<-ctx.Done()
			return ctx.Err()
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Len(t, sent, 3, "the change and two heartbeats")
		require.Equal(t, int64(4), sent[2].GetRun().GetSequence())
		require.Empty(t, sent[2].GetSteps())
		require.Nil(t, sent[2].GetRun().GetInput())
	})
}

func TestWatchEndsWhenClientIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("the client is gone")
		calls := 0
		w := &watch{send: func(*signalboxv1.WatchRunResponse) error {
			if calls++; calls > 1 {
				return gone
			}
			return nil
		}}
		begin := time.Now()
		err := w.follow(t.Context(), func(ctx context.Context) error {
			require.NoError(t, w.change(&signalboxv1.WatchRunResponse{Run: &signalboxv1.Run{Id: "r"}}))
			<-ctx.Done()
			return ctx.Err()
		})
		require.ErrorIs(t, err, gone)
		require.Equal(t, heartbeat, time.Since(begin))
	})
}

func TestNothingIsSentBeforeTheFirstChange(t *testing.T) {
	t.Parallel()
	w := &watch{send: func(*signalboxv1.WatchRunResponse) error { return errors.New("unexpected") }}
	require.NoError(t, w.beat())
}
