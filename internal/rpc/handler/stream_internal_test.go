package handler

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// always is a topic that has a message whenever it may send one.
func always(name string) topic[string] {
	return func(ctx context.Context, o *outlet[string]) error {
		for {
			if err := o.message(ctx, func(context.Context) (string, bool, error) { return name, true, nil }); err != nil {
				return err
			}
		}
	}
}

func TestStreamSendsAtMostFourMessagesPerSecond(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{{"a"}, {"a", "b", "c", "d", "e", "f"}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			var sent []time.Time
			count := map[string]int{}
			s := newStream(func(m string) error {
				sent = append(sent, time.Now())
				count[m]++
				return nil
			}, func() string { return "heartbeat" })
			var topics []topic[string]
			for _, name := range names {
				topics = append(topics, always(name))
			}
			require.ErrorIs(t, s.run(ctx, topics), context.DeadlineExceeded)
			for i := range sent[:len(sent)-streamRate] {
				require.GreaterOrEqual(t, sent[i+streamRate].Sub(sent[i]), streamPeriod)
			}
			require.InDelta(t, 4*30, len(sent), 5)
			require.Zero(t, count["heartbeat"])
			for _, name := range names {
				require.GreaterOrEqual(t, count[name], len(sent)/len(names)/2, "each topic has its turn: %v", count)
			}
		})
	}
}

func TestStreamSendsHeartbeats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), heartbeat*3)
		defer cancel()
		began := time.Now()
		var sent []time.Duration
		s := newStream(func(string) error {
			sent = append(sent, time.Since(began))
			return nil
		}, func() string { return "heartbeat" })
		once := func(ctx context.Context, o *outlet[string]) error {
			require.NoError(t, sleepUntil(ctx, began.Add(heartbeat/2)))
			require.NoError(t, o.message(ctx, func(context.Context) (string, bool, error) { return "change", true, nil }))
			<-ctx.Done()
			return ctx.Err()
		}
		require.ErrorIs(t, s.run(ctx, []topic[string]{once}), context.DeadlineExceeded)
		require.Equal(t, []time.Duration{heartbeat / 2, heartbeat * 3 / 2, heartbeat * 5 / 2}, sent,
			"15 s after the last message")
	})
}

// TestStreamTakesTheStateOfTheMomentItSends blocks the client while a topic changes.
func TestStreamTakesTheStateOfTheMomentItSends(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		unblocked, state := make(chan struct{}), 1
		var sent []int
		s := newStream(func(m int) error {
			if sent = append(sent, m); len(sent) == 1 {
				<-unblocked
			}
			return nil
		}, func() int { return -1 })
		take := func(context.Context) (int, bool, error) { return state, true, nil }
		twice := func(ctx context.Context, o *outlet[int]) error {
			return errors.Join(o.message(ctx, take), o.message(ctx, take))
		}
		ended := make(chan error, 1)
		go func() { ended <- s.run(ctx, []topic[int]{twice}) }()
		synctest.Wait()
		for range 100 {
			state++
		}
		close(unblocked)
		require.NoError(t, <-ended, "the stream ends with its topics")
		require.Equal(t, []int{1, 101}, sent)
	})
}

func TestStreamEndsWithTheFirstError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		s := newStream(func(string) error { return nil }, func() string { return "" })
		fails := func(context.Context, *outlet[string]) error { return broken }
		require.Equal(t, broken, s.run(t.Context(), []topic[string]{always("a"), fails}))
		gone := errors.New("the client is gone")
		s = newStream(func(string) error { return gone }, func() string { return "" })
		waits := func(ctx context.Context, _ *outlet[string]) error {
			<-ctx.Done()
			return ctx.Err()
		}
		require.Equal(t, gone, s.run(t.Context(), []topic[string]{waits}), "a heartbeat finds out")
	})
}

func TestPolledTopicSendsChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		var sent []int
		s := newStream(func(m int) error {
			sent = append(sent, m)
			return nil
		}, func() int { return -1 })
		read := func(context.Context) (int, error) { return int(time.Since(began) / (4 * time.Second)), nil }
		err := s.run(ctx, []topic[int]{polled(time.Second, read, func(a, b int) bool {
			return a == b
		}, func(v int) int { return v })})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, []int{0, 1, 2}, sent)
	})
}
