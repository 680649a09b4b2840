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

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var name = inbox.Name{Project: "shop", TaskQueue: "orders"}

// meter stores measurements by name and tags.
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

// journal fails a given number of times.
type journal struct {
	mu     sync.Mutex
	fail   int
	refuse any // a note that always fails
	tries  int
	notes  []any
}

func (j *journal) take(note any) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tries++
	switch {
	case j.fail > 0:
		j.fail--
		return errors.New("the database is away")
	case j.refuse != nil && note == j.refuse:
		return errors.New("no such project")
	}
	j.notes = append(j.notes, note)
	return nil
}

// recover makes the journal succeed from now on, and returns the number of calls so far.
func (j *journal) recover() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.fail = 0
	return j.tries
}

// taken returns the stored notes.
func (j *journal) taken() []any {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.notes)
}

func (j *journal) OwnerChanged(_ context.Context, c dispatchtype.OwnerChange) error { return j.take(c) }
func (j *journal) Terminated(_ context.Context, t dispatchtype.Termination) error   { return j.take(t) }
func (j *journal) Foreign(_ context.Context, f dispatchtype.ForeignWorkflow) error  { return j.take(f) }
func (j *journal) Evicted(_ context.Context, e dispatchtype.Eviction) error         { return j.take(e) }

// start runs the record; end stops it after the last writes.
func start(t *testing.T, r *record.Record) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		r.Run(ctx)
	}()
	return func() { cancel(); <-over }
}

func TestMetricsAndJournal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, j := newMeter(), &journal{}
		r := record.New(j, m, slog.New(slog.DiscardHandler))
		end := start(t, r)
		r.Joined(name)
		r.Active(name, true)
		r.Active(inbox.Name{Project: "shop", TaskQueue: "other"}, true)
		r.Active(name, false)
		takeover := dispatchtype.OwnerChange{
			Name: name, Outcome: dispatchtype.Takeover, To: inbox.Owner{Epoch: 2, Holder: "b"}}
		r.Changed(takeover, 12*time.Second)
		lost := dispatchtype.OwnerChange{Name: name, Outcome: dispatchtype.Lost, From: inbox.Owner{Holder: "b"}}
		r.Changed(lost, 0)
		r.Failed(name, errors.New("no"))
		crashed := dispatchtype.Termination{Name: name, Kind: "crashed", RunID: "r"}
		r.Terminated(crashed, nil)
		r.Terminated(crashed, errors.New("unavailable"))
		end()
		require.Equal(t, map[string]float64{
			"dispatcher_takeovers_total{outcome=joined,project=shop}":    1,
			"dispatcher_takeovers_total{outcome=takeover,project=shop}":  1,
			"dispatcher_takeovers_total{outcome=lost,project=shop}":      1,
			"dispatcher_takeovers_total{outcome=error,project=shop}":     1,
			"dispatcher_takeover_seconds{project=shop}":                  12,
			"dispatcher_active{project=shop}":                            1,
			"dispatcher_terminations_total{project=shop,reason=crashed}": 1,
			"dispatcher_terminate_errors_total{project=shop}":            1,
		}, m.shelf.values)
		require.Equal(t, []any{takeover, lost, crashed}, j.notes, "queued notes are written at the end")
	})
}

// TestEvictionsAreCountedOnceWritten: the caller repeats a failed report.
func TestEvictionsAreCountedOnceWritten(t *testing.T) {
	t.Parallel()
	const counted = "dispatcher_worker_evictions_total{project=shop}"
	m, j := newMeter(), &journal{fail: 1}
	r := record.New(j, m, slog.New(slog.DiscardHandler))
	evicted := dispatchtype.Eviction{Name: name, Evicted: []string{"x", "y"}}
	require.ErrorContains(t, r.Evicted(t.Context(), evicted), "the database is away")
	require.Zero(t, m.shelf.get(counted))
	require.NoError(t, r.Evicted(t.Context(), evicted))
	require.InDelta(t, 2, m.shelf.get(counted), 0)
	require.Equal(t, []any{evicted}, j.notes)
	require.NoError(t, record.New(nil, m, slog.New(slog.DiscardHandler)).Evicted(t.Context(), evicted))
	require.InDelta(t, 4, m.shelf.get(counted), 0)
}

// ended returns a termination.
func ended(runID string) dispatchtype.Termination {
	return dispatchtype.Termination{Name: name, RunID: runID}
}

// TestJournalOutageLosesNothing has an outage of the journal of one hour.
func TestJournalOutageLosesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := &journal{fail: 1 << 30}
		r := record.New(j, newMeter(), slog.New(slog.DiscardHandler))
		end := start(t, r)
		r.Terminated(ended("r1"), nil)
		<-time.After(30 * time.Minute)
		r.Terminated(ended("r2"), nil)
		<-time.After(30 * time.Minute)
		tries := j.recover()
		require.Less(t, tries, 100, "the pauses grow")
		<-time.After(2 * time.Minute)
		require.ElementsMatch(t, []any{ended("r1"), ended("r2")}, j.taken())
		r.Terminated(ended("r3"), nil)
		synctest.Wait()
		require.Len(t, j.taken(), 3, "without a pause again")
		end()
	})
}

// TestFailingNoteDoesNotBlockOthers: at the end of the process it is dropped.
func TestFailingNoteDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := &journal{refuse: ended("bad")}
		r := record.New(j, newMeter(), slog.New(slog.DiscardHandler))
		end := start(t, r)
		r.Terminated(ended("bad"), nil)
		<-time.After(time.Hour)
		r.Terminated(ended("good"), nil)
		synctest.Wait()
		require.Equal(t, []any{ended("good")}, j.taken())
		began := time.Now()
		end()
		require.Less(t, time.Since(began), 10*time.Second)
	})
}

func TestCallsDoNotBlock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		r := record.New(j, newMeter(), slog.New(slog.DiscardHandler))
		for range 10_000 {
			r.Terminated(ended("r"), nil)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r.Run(ctx)
		require.Len(t, j.notes, 4096)

		// Failed notes wait for a retry, up to the limit, beside the queued ones.
		j = &journal{fail: 10_000}
		r = record.New(j, newMeter(), slog.New(slog.DiscardHandler))
		end := start(t, r)
		for range 10 {
			for range 1000 {
				r.Terminated(ended("r"), nil)
			}
			synctest.Wait()
		}
		j.recover()
		<-time.After(2 * time.Minute)
		end()
		require.Len(t, j.notes, 4096)
		record.New(nil, newMeter(), slog.New(slog.DiscardHandler)).Terminated(ended("r"), nil)
	})
}

// TestSeriesStartAtZero: a rate includes the first event of a series only if the series existed before.
func TestSeriesStartAtZero(t *testing.T) {
	t.Parallel()
	m := newMeter()
	r := record.New(nil, m, slog.New(slog.DiscardHandler))
	r.InitMetrics("shop")
	for _, series := range []string{
		"dispatcher_takeovers_total{outcome=cold_start,project=shop}", "dispatcher_takeovers_total{outcome=error,project=shop}",
		"dispatcher_terminations_total{project=shop,reason=crashed}", "dispatcher_terminations_total{project=shop,reason=owner_gone}",
		"dispatcher_deliveries_total{outcome=dead,project=shop}", "dispatcher_terminate_errors_total{project=shop}",
		"dispatcher_cleanup_errors_total{project=shop}", "dispatcher_supervisor_cycles_total{result=postponed}",
		"dispatcher_active{project=shop}",
	} {
		require.Contains(t, m.shelf.values, series)
	}
	for series, value := range m.shelf.values {
		require.Zero(t, value, series)
	}
}

// TestForeignWorkflowIsReportedOnce: every attempt to own the dispatcher finds it again.
func TestForeignWorkflowIsReportedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, j := newMeter(), &journal{}
		var log strings.Builder
		r := record.New(j, m, slog.New(slog.NewTextHandler(&log, nil)))
		end := start(t, r)
		const gauge = "dispatcher_foreign{project=shop}"
		taken := dispatchtype.ForeignWorkflow{
			Name: name, WorkflowID: name.DispatcherID(), RunID: "theirs", Type: "theirs.type"}
		r.Foreign(taken)
		r.Foreign(taken)
		require.InDelta(t, 1, m.shelf.get(gauge), 0)
		require.InDelta(t, 2, m.shelf.get("dispatcher_takeovers_total{outcome=error,project=shop}"), 0)
		r.NotForeign(inbox.Name{Project: "shop", TaskQueue: "other"})
		require.InDelta(t, 1, m.shelf.get(gauge), 0)
		r.NotForeign(name)
		require.Zero(t, m.shelf.get(gauge))
		end()
		require.Equal(t, []any{taken}, j.notes)
		require.Equal(t, 1, strings.Count(log.String(), "level=ERROR"))
	})
}
