package record_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/record"
	"github.com/signalbox-dev/signalbox/dispatch/internal/terms"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var name = inbox.Name{Project: "shop", TaskQueue: "orders"}

// meter keeps what was measured, by name and tags.
type meter struct {
	tags  map[string]string
	shelf *shelf
}

type shelf struct {
	mu     sync.Mutex
	values map[string]float64
}

func newMeter() meter { return meter{shelf: &shelf{values: map[string]float64{}}} }

func (m meter) WithTags(tags map[string]string) client.MetricsHandler {
	all := maps.Clone(tags)
	maps.Copy(all, m.tags)
	return meter{tags: all, shelf: m.shelf}
}

func (m meter) key(name string) string {
	var tags []string
	for _, key := range slices.Sorted(maps.Keys(m.tags)) {
		tags = append(tags, fmt.Sprintf("%s=%s", key, m.tags[key]))
	}
	return name + "{" + strings.Join(tags, ",") + "}"
}

type instrument func(float64)

func (i instrument) Inc(n int64)            { i(float64(n)) }
func (i instrument) Update(v float64)       { i(v) }
func (i instrument) Record(d time.Duration) { i(d.Seconds()) }

func (m meter) Counter(name string) client.MetricsCounter {
	return instrument(func(v float64) { m.shelf.add(m.key(name), v) })
}

func (m meter) Gauge(name string) client.MetricsGauge {
	return instrument(func(v float64) { m.shelf.add(m.key(name), v-m.shelf.get(m.key(name))) })
}

func (m meter) Timer(name string) client.MetricsTimer {
	return instrument(func(v float64) { m.shelf.add(m.key(name), v) })
}

func (s *shelf) add(key string, v float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[key] += v
}

func (s *shelf) get(key string) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values[key]
}

// journal fails as often as it is told to.
type journal struct {
	mu    sync.Mutex
	fail  int
	tries int
	notes []any
}

func (j *journal) take(note any) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tries++
	if j.fail > 0 {
		j.fail--
		return errors.New("the database is away")
	}
	j.notes = append(j.notes, note)
	return nil
}

func (j *journal) OwnerChanged(_ context.Context, c terms.OwnerChange) error { return j.take(c) }
func (j *journal) Terminated(_ context.Context, t terms.Termination) error   { return j.take(t) }
func (j *journal) Evicted(_ context.Context, e terms.Eviction) error         { return j.take(e) }

func TestMetricsAndJournal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, j := newMeter(), &journal{}
		r := record.New(j, m, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			r.Run(ctx)
		}()
		r.Joined(name)
		r.Active(name, true)
		r.Active(inbox.Name{Project: "shop", TaskQueue: "other"}, true)
		r.Active(name, false)
		takeover := terms.OwnerChange{Name: name, Outcome: terms.Takeover, To: "b", ToEpoch: 2}
		r.Changed(takeover, 12*time.Second)
		lost := terms.OwnerChange{Name: name, Outcome: terms.Lost, From: "b"}
		r.Changed(lost, 0)
		r.Failed(name, errors.New("no"))
		ended := terms.Termination{Name: name, Kind: "crashed", RunID: "r"}
		r.Terminated(ended, nil)
		r.Terminated(ended, errors.New("unavailable"))
		evicted := terms.Eviction{Name: name, Evicted: []string{"x", "y"}}
		r.Evicted(evicted)
		cancel()
		<-over
		require.Equal(t, map[string]float64{
			"dispatcher_takeovers_total{outcome=joined,project=shop}":    1,
			"dispatcher_takeovers_total{outcome=takeover,project=shop}":  1,
			"dispatcher_takeovers_total{outcome=lost,project=shop}":      1,
			"dispatcher_takeovers_total{outcome=error,project=shop}":     1,
			"dispatcher_takeover_seconds{project=shop}":                  12,
			"dispatcher_active{project=shop}":                            1,
			"dispatcher_terminations_total{project=shop,reason=crashed}": 1,
			"dispatcher_terminate_errors_total{project=shop}":            1,
			"dispatcher_worker_evictions_total{project=shop}":            2,
		}, m.shelf.values)
		require.Equal(t, []any{takeover, lost, ended, evicted}, j.notes, "what was told before the end is written")
	})
}

func TestAJournalThatFailsIsAskedAgainAFewTimes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := &journal{fail: 3}
		r := record.New(j, newMeter(), slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			r.Run(ctx)
		}()
		r.Evicted(terms.Eviction{Name: name, Evicted: []string{"x"}})
		<-time.After(time.Minute)
		j.mu.Lock()
		require.Len(t, j.notes, 1)
		require.Equal(t, 4, j.tries)
		j.fail = 100
		j.mu.Unlock()
		r.Evicted(terms.Eviction{Name: name, Evicted: []string{"y"}})
		<-time.After(time.Minute)
		cancel()
		<-over
		require.Equal(t, 9, j.tries)
	})
}

func TestWhoTellsNeverWaits(t *testing.T) {
	t.Parallel()
	j := &journal{}
	r := record.New(j, newMeter(), slog.New(slog.DiscardHandler))
	for range 10_000 {
		r.Evicted(terms.Eviction{Name: name, Evicted: []string{"x"}})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.Run(ctx)
	require.Len(t, j.notes, 4096)
	record.New(nil, newMeter(), slog.New(slog.DiscardHandler)).Evicted(terms.Eviction{Name: name})
}
