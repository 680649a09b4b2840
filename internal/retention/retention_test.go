package retention_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/retention"
	"github.com/signalbox-dev/signalbox/internal/run"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func noon() time.Time { return time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC) }

// rows is a store with a number of pages of each kind in each project.
type rows struct {
	mu      sync.Mutex
	pages   map[string]int // by project and kind
	cuts    map[string]retention.Cut
	entries []audit.Entry
	broken  retention.Kind
	taken   bool
	counted map[string]int64
	passes  atomic.Int32
	// searched is the time before which all ended executions were searched, away an outage of Temporal.
	searched time.Time
	away     bool
	// removed are the runs with deleted payloads; onRemoved is called for each, with the lock.
	removed   []string
	onRemoved func()
	// sessions are those that have ended.
	sessions int64
	// outages are those that are over.
	outages int64
	// deliveries are those of webhooks that are finished.
	deliveries int64
}

func newRows() *rows {
	return &rows{pages: map[string]int{}, cuts: map[string]retention.Cut{}, counted: map[string]int64{}}
}

func (r *rows) DeletePage(ctx context.Context, kind retention.Kind, cut retention.Cut, after string,
	limit int) (retention.Page, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return retention.Page{}, err
	}
	if kind == r.broken {
		return retention.Page{}, errors.New("the database is unavailable")
	}
	key := cut.Project + " " + string(kind)
	r.cuts[key] = cut
	left := r.pages[key]
	if left == 0 {
		return retention.Page{}, nil
	}
	r.pages[key]--
	page := retention.Page{Deleted: map[string]int64{string(kind): int64(limit), "steps": 0}}
	if left > 1 {
		page.Next = after + "."
	}
	return page, nil
}

// stale is a store of payloads with runs that have old ones, page by page.
type stale struct {
	*rows

	pages [][]string
}

func (s *stale) Stale(_ context.Context, age time.Duration, after string, limit int) ([]string, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if age != 24*time.Hour || limit < 1 {
		return nil, "", fmt.Errorf("age %s, limit %d", age, limit)
	}
	page := s.pages[len(after)]
	if len(after)+1 < len(s.pages) {
		return page, after + ".", nil
	}
	return page, "", nil
}

func (s *stale) DeleteRun(_ context.Context, runID string) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removed = append(s.removed, runID)
	if s.onRemoved != nil {
		s.onRemoved()
	}
	return 10, nil
}

func (r *rows) RunsWithoutRow(_ context.Context, ids []string) (without []string, err error) {
	for _, id := range ids {
		if !strings.HasPrefix(id, "row") {
			without = append(without, id)
		}
	}
	return without, nil
}

func (r *rows) Comparisons(context.Context) (run.Comparisons, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return run.Comparisons{SearchedUntil: r.searched}, nil
}

func (r *rows) IsOpen(_ context.Context, runID string) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.away {
		return false, errors.New("temporal does not answer")
	}
	return strings.HasPrefix(runID, "open"), nil
}

func (r *rows) DeleteSessions(_ context.Context, before time.Time, limit int) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if limit < 1 || before.IsZero() {
		return 0, fmt.Errorf("before %s, limit %d", before, limit)
	}
	deleted := min(r.sessions, int64(limit))
	r.sessions -= deleted
	return deleted, nil
}

func (r *rows) DeleteOutages(_ context.Context, before time.Time, limit int) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if limit < 1 || before.IsZero() {
		return 0, fmt.Errorf("before %s, limit %d", before, limit)
	}
	deleted := min(r.outages, int64(limit))
	r.outages -= deleted
	return deleted, nil
}

func (r *rows) DeleteWebhookDeliveries(_ context.Context, before time.Time, limit int) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if limit < 1 || before.IsZero() {
		return 0, fmt.Errorf("before %s, limit %d", before, limit)
	}
	deleted := min(r.deliveries, int64(limit))
	r.deliveries -= deleted
	return deleted, nil
}

func (r *rows) ListProjects(_ context.Context, after string, limit int) (list []project.Project, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if after == "" {
		r.passes.Add(1)
	}
	for n := range 150 {
		if name := fmt.Sprintf("p%03d", n); name > after && len(list) < limit {
			list = append(list, project.Project{Name: name})
		}
	}
	return list, nil
}

func (r *rows) WriteAudit(ctx context.Context, e audit.Entry) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries = append(r.entries, e)
	return ctx.Err()
}

func (r *rows) Exclusive(ctx context.Context, _ string, fn func(context.Context) error) (bool, error) {
	if r.taken {
		return false, nil
	}
	return true, fn(ctx)
}

func (r *rows) Deleted(_ context.Context, kind string, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counted[kind] += n
}

func cleaner(r *rows, policy retention.Policy) *retention.Cleaner {
	return retention.New(r, retention.Options{Policy: policy, Every: time.Hour, Now: noon, Metrics: r})
}

func TestPassCoversAllProjects(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRows()
		r.pages["p001 runs"], r.pages["p001 audit"], r.pages["p149 runs"], r.pages[" audit"], r.pages["p001 events"] = 3, 1,
			1, 2, 5
		k := cleaner(r, retention.Policy{
			retention.Runs: {MaxAge: 48 * time.Hour, MaxCount: 7}, retention.Audit: {MaxCount: 9}})
		require.NoError(t, k.Pass(t.Context()))
		require.Equal(t, retention.Cut{
			Project: "p149", Before: noon().Add(-48 * time.Hour), Keep: 7, EndedBefore: noon().Add(-time.Hour)},
			r.cuts["p149 runs"])
		require.True(t, r.cuts["p000 audit"].Before.IsZero())
		require.NotContains(t, r.cuts, "p001 events", "kinds without a limit are not read")
		require.NotContains(t, r.cuts, " runs")
		require.Equal(t, map[string]int64{"runs": 4 * 500, "audit": 3 * 500}, r.counted)

		require.Len(t, r.entries, 3, "one for each project with deletions")
		e := r.entries[1]
		require.Equal(t, []string{audit.RetentionDelete, "p001", "p001"}, []string{e.Action, e.Project, e.Subject})
		require.JSONEq(t, `{"runs":1500,"audit":500}`, string(e.Detail))
		require.True(t, json.Valid(r.entries[0].Detail))
		require.Empty(t, r.entries[0].Project)
		require.NoError(t, k.Pass(t.Context()))
		require.Len(t, r.entries, 3, "a pass without deletions writes no entry")
	})
}

func TestDeletionsAreAuditedAfterFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRows()
		r.pages["p000 runs"], r.broken = 1, retention.Events
		k := cleaner(r, retention.Policy{retention.Runs: {MaxCount: 1}, retention.Events: {MaxCount: 1}})
		require.ErrorContains(t, k.Pass(t.Context()), "the database is unavailable")
		require.Len(t, r.entries, 1)
	})
}

func TestPassesAreRepeatedUntilStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRows()
		k := cleaner(r, retention.Policy{retention.Batches: {MaxCount: 1}})
		require.NoError(t, k.Start(t.Context()))
		synctest.Wait()
		require.EqualValues(t, 1, r.passes.Load())
		<-time.After(2*time.Hour + time.Minute)
		synctest.Wait()
		require.EqualValues(t, 3, r.passes.Load())
		require.NoError(t, k.Stop(t.Context()))
	})
}

func TestFailedPassIsRetriedSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRows()
		r.broken = retention.Runs
		k := cleaner(r, retention.Policy{retention.Runs: {MaxAge: time.Hour}})
		require.NoError(t, k.Start(t.Context()))
		<-time.After(5*time.Minute + time.Second)
		synctest.Wait()
		require.EqualValues(t, 6, r.passes.Load())
		require.NoError(t, k.Stop(t.Context()))
	})
}

func TestOnlyOneProcessDeletes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		busy := newRows()
		busy.taken = true
		k := cleaner(busy, retention.Policy{retention.Runs: {MaxCount: 1}})
		require.NoError(t, k.Start(t.Context()))
		<-time.After(time.Hour)
		require.NoError(t, k.Stop(t.Context()))
		require.Zero(t, busy.passes.Load())
	})
}

// Two pages of each, the second one not full.
func TestAgedRowsAreDeletedWithoutLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		free := newRows()
		free.sessions, free.outages, free.deliveries = 700, 501, 502
		k := cleaner(free, retention.Policy{retention.Runs: {}})
		require.NoError(t, k.Start(t.Context()))
		<-time.After(time.Minute)
		require.NoError(t, k.Stop(t.Context()))
		require.Equal(t, map[string]int64{"sessions": 700, "outages": 501, "webhook_deliveries": 502}, free.counted)
	})
}

// caughtUp returns rows whose search for ended executions has caught up.
func caughtUp() *rows {
	r := newRows()
	r.searched = noon().Add(-2 * time.Minute)
	return r
}

// sweeper returns a cleaner of stores of payloads.
func sweeper(r *rows, stores ...*stale) *retention.Cleaner {
	var list []retention.Payloads
	for _, s := range stores {
		list = append(list, s)
	}
	return retention.New(r, retention.Options{Payloads: list, Executions: r, Every: time.Hour, Now: noon, Metrics: r})
}

func TestOrphanedPayloadsAreDeletedWithoutLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := caughtUp()
		k := sweeper(r, &stale{r, [][]string{{"gone-1", "row-1"}, nil, {"row-2", "gone-2"}}},
			&stale{r, [][]string{{"gone-3"}}})
		require.NoError(t, k.Start(t.Context()))
		<-time.After(time.Minute)
		require.NoError(t, k.Stop(t.Context()))
		require.Equal(t, []string{"gone-1", "gone-2", "gone-3"}, r.removed, "of all pages and stores")
		require.Empty(t, r.cuts, "nothing else is read")
		require.Empty(t, r.entries)
		require.Equal(t, map[string]int64{"payloads": 30}, r.counted)
	})
}

// After the restore of an older database, runs of the meantime have no row until the search for ended executions has
// reached the present.
func TestPayloadsAreKeptUntilLostRowsWereSearched(t *testing.T) {
	t.Parallel()
	for name, searched := range map[string]time.Time{
		"a restored database": noon().Add(-48 * time.Hour), "no search yet": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRows()
			r.searched = searched
			k := sweeper(r, &stale{r, [][]string{{"gone"}}})
			require.NoError(t, k.Pass(t.Context()))
			require.Empty(t, r.removed)
			r.searched = noon().Add(-10 * time.Minute)
			require.NoError(t, k.Pass(t.Context()))
			require.Equal(t, []string{"gone"}, r.removed)
		})
	}
}

// An operator has the search begin again while payloads are deleted.
func TestDeletionOfPayloadsStopsWhenTheSearchBeginsAgain(t *testing.T) {
	t.Parallel()
	r := caughtUp()
	r.onRemoved = func() { r.searched = noon().Add(-time.Hour) }
	require.NoError(t, sweeper(r, &stale{r, [][]string{{"gone-1"}, {"gone-2"}}}).Pass(t.Context()))
	require.Equal(t, []string{"gone-1"}, r.removed)
}

// A run whose workflow was not published yet has an open execution and no row.
func TestPayloadsOfOpenExecutionsAreKept(t *testing.T) {
	t.Parallel()
	r := caughtUp()
	k := sweeper(r, &stale{r, [][]string{{"open-1", "gone-1"}}})
	require.NoError(t, k.Pass(t.Context()))
	require.Equal(t, []string{"gone-1"}, r.removed)
	r.away = true
	require.ErrorContains(t, k.Pass(t.Context()), "temporal does not answer")
	require.Equal(t, []string{"gone-1"}, r.removed, "nothing is deleted while Temporal is unavailable")
}
