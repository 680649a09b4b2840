package cutover_test

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
	"github.com/signalbox-dev/signalbox/internal/cutover"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/pause"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// alone is a store that one process at a time may use.
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

// source answers each pass with the next answer, and then with nothing new.
type source struct {
	mu      sync.Mutex
	began   time.Time
	answers []answer
	at      []time.Duration
	actor   string
}

type answer struct {
	pass cutover.Pass
	err  error
	took time.Duration
}

func (s *source) Pass(ctx context.Context) (cutover.Pass, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = append(s.at, time.Since(s.began))
	actor, _ := auth.ActorFrom(ctx)
	s.actor = actor.Name
	if len(s.answers) == 0 {
		return cutover.Pass{}, nil
	}
	a := s.answers[0]
	s.answers = s.answers[1:]
	pause.For(ctx, a.took)
	return a.pass, a.err
}

// passes are how many were made.
func (s *source) passes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.at)
}

// counts are what was counted.
type counts struct {
	runs   map[string]int64
	failed int
}

func (c *counts) Imported(_ context.Context, kind string, runs int64) { c.runs[kind] += runs }
func (c *counts) Failed(context.Context)                              { c.failed++ }

// follow follows a source for a time, and returns what was counted and logged.
func follow(t *testing.T, s *source, d time.Duration) (*counts, string) {
	t.Helper()
	var log bytes.Buffer
	c := &counts{runs: map[string]int64{}}
	ctx := logger.WithContext(t.Context(), slog.New(slog.NewTextHandler(&log, nil)))
	f := cutover.New(make(alone, 1), s, cutover.Options{Interval: 30 * time.Second, Metrics: c})
	s.began = time.Now()
	require.NoError(t, f.Start(ctx))
	pause.For(t.Context(), d)
	require.NoError(t, f.Stop(ctx))
	return c, log.String()
}

func TestPacesAndTelling(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{answers: []answer{
			{pass: cutover.Pass{New: 5000, Settled: 7, First: true}, took: 4 * time.Second},
			{pass: cutover.Pass{New: 10, LeftOut: 2, Why: "odd"}, took: time.Second},
			{pass: cutover.Pass{Changed: 1, LeftOut: 2, Why: "odd"}, took: 10 * time.Second},
			{pass: cutover.Pass{First: true, Busy: true}},
		}}
		c, log := follow(t, s, 3*time.Minute+20*time.Second)
		require.Equal(t, []time.Duration{0, 8 * time.Second, 39 * time.Second, 149 * time.Second, 179 * time.Second}, s.at,
			"at once while not all was read, then every interval, and more slowly where that takes long")
		require.Equal(t, &counts{runs: map[string]int64{"new": 5010, "changed": 1, "settled": 7}}, c)
		require.Equal(t, 3, strings.Count(log, "were imported"), log)
		require.Equal(t, 1, strings.Count(log, "are left out"), log)
		require.Equal(t, auth.System().Name, s.actor)
	})
}

func TestASourceThatIsAwayIsTriedMoreAndMoreSlowly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		away := answer{err: errors.New("no such host")}
		s := &source{answers: []answer{away, away, away, away, away, away}}
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
		first, second := &source{began: time.Now()}, &source{began: time.Now()}
		a := cutover.New(shared, first, cutover.Options{Interval: time.Second, Metrics: c})
		b := cutover.New(shared, second, cutover.Options{Interval: time.Second, Metrics: c})
		require.NoError(t, a.Start(t.Context()))
		synctest.Wait()
		require.NoError(t, b.Start(t.Context()))
		pause.For(t.Context(), 10*time.Second)
		require.Zero(t, second.passes())
		require.NoError(t, a.Stop(t.Context()))
		pause.For(t.Context(), 2*time.Second)
		require.NotZero(t, second.passes(), "it takes over")
		require.NoError(t, b.Stop(t.Context()))
	})
}
