package migrate

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/internal/migrate/internal/legacy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// alone is a store with a lock for one process at a time.
type alone chan struct{}

func (a alone) Exclusive(ctx context.Context, _ string, fn func(context.Context) error) (bool, error) {
	select {
	case a <- struct{}{}:
		defer func() { <-a }()
		return true, fn(ctx)
	default:
		return false, nil
	}
}

// scripted returns the next answer for each pass, and then nothing new.
type scripted struct {
	mu      sync.Mutex
	began   time.Time
	answers []answer
	at      []time.Duration
	actor   string
}

type answer struct {
	pass legacy.Pass
	err  error
	took time.Duration
}

func (s *scripted) Pass(ctx context.Context) (legacy.Pass, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = append(s.at, time.Since(s.began))
	actor, _ := auth.ActorFrom(ctx)
	s.actor = actor.Name
	if len(s.answers) == 0 {
		return legacy.Pass{}, nil
	}
	a := s.answers[0]
	s.answers = s.answers[1:]
	loop.Sleep(ctx, a.took)
	return a.pass, a.err
}

// passes returns the number of passes.
func (s *scripted) passes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.at)
}

// counts records the metrics.
type counts struct {
	runs   map[string]int64
	failed int
	begun  bool
}

func (c *counts) Imported(_ context.Context, kind string, runs int64) { c.runs[kind] += runs }
func (c *counts) Failed(context.Context)                              { c.failed++ }
func (c *counts) Begin(context.Context)                               { c.begun = true }

// follow follows a source for a time, and returns the metrics and the log.
func follow(t *testing.T, s *scripted, d time.Duration) (*counts, string) {
	t.Helper()
	var log bytes.Buffer
	c := &counts{runs: map[string]int64{}}
	ctx := logger.WithContext(t.Context(), slog.New(slog.NewTextHandler(&log, nil)))
	f := newFollower(make(alone, 1), s, 30*time.Second, c)
	s.began = time.Now()
	require.NoError(t, f.Start(ctx))
	loop.Sleep(t.Context(), d)
	require.NoError(t, f.Stop(ctx))
	return c, log.String()
}

func TestDelaysAndLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{answers: []answer{
			{pass: legacy.Pass{New: 5000, Canceled: 7, First: true}, took: 4 * time.Second},
			{pass: legacy.Pass{New: 10, LeftOut: 2, Why: "odd"}, took: time.Second},
			{pass: legacy.Pass{Changed: 1, LeftOut: 2, Why: "odd"}, took: 10 * time.Second},
			{pass: legacy.Pass{First: true, Busy: true}},
		}}
		c, log := follow(t, s, 3*time.Minute+20*time.Second)
		require.Equal(t, []time.Duration{0, 8 * time.Second, 39 * time.Second, 149 * time.Second, 179 * time.Second}, s.at,
			"without delay during the first read, then every interval, and more slowly after long passes")
		require.Equal(t, &counts{runs: map[string]int64{"new": 5010, "changed": 1, "settled": 7}, begun: true}, c)
		require.Equal(t, 3, strings.Count(log, "were imported"), log)
		require.Equal(t, 1, strings.Count(log, "are left out"), log)
		require.Equal(t, auth.System().Name, s.actor)
	})
}

func TestUnavailableSourceIsRetriedWithBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		unavailable := answer{err: errors.New("no such host")}
		s := &scripted{answers: []answer{unavailable, unavailable, unavailable, unavailable, unavailable, unavailable}}
		c, log := follow(t, s, 20*time.Minute)
		m := time.Minute
		require.Equal(t, []time.Duration{0, m / 2, m + m/2, 3*m + m/2, 7*m + m/2, 12*m + m/2, 17*m + m/2, 18 * m}, s.at[:8])
		require.Equal(t, 6, c.failed)
		require.Equal(t, 1, strings.Count(log, "no such host"), "one warning:\n%s", log)
		require.Equal(t, 1, strings.Count(log, "followed again"), log)
	})
}

func TestOneProcessFollows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := make(alone, 1)
		c := &counts{runs: map[string]int64{}}
		first, second := &scripted{began: time.Now()}, &scripted{began: time.Now()}
		a := newFollower(shared, first, time.Second, c)
		b := newFollower(shared, second, time.Second, c)
		require.NoError(t, a.Start(t.Context()))
		synctest.Wait()
		require.NoError(t, b.Start(t.Context()))
		loop.Sleep(t.Context(), 10*time.Second)
		require.Zero(t, second.passes())
		require.NoError(t, a.Stop(t.Context()))
		loop.Sleep(t.Context(), 2*time.Second)
		require.NotZero(t, second.passes(), "it takes over")
		require.NoError(t, b.Stop(t.Context()))
	})
}
