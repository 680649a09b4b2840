package retention_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	orphans int64 // payloads without a run, found page by page
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

func (r *rows) DeletePage(ctx context.Context, kind retention.Kind, cut retention.Cut, after string, limit int) (retention.Page, error) {
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

func (r *rows) DeleteOrphans(_ context.Context, age time.Duration, after string, limit int) (int64, string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if age < time.Hour || limit < 1 {
		return 0, "", fmt.Errorf("age %s, limit %d", age, limit)
	}
	deleted := min(r.orphans, 10)
	if r.orphans -= deleted; r.orphans > 0 {
		return deleted, after + ".", nil
	}
	return deleted, "", nil
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
		r.pages["p001 runs"], r.pages["p001 audit"], r.pages["p149 runs"], r.pages[" audit"], r.pages["p001 events"] = 3, 1, 1, 2, 5
		k := cleaner(r, retention.Policy{retention.Runs: {MaxAge: 48 * time.Hour, MaxCount: 7}, retention.Audit: {MaxCount: 9}})
		require.NoError(t, k.Pass(t.Context()))
		require.Equal(t, retention.Cut{Project: "p149", Before: noon().Add(-48 * time.Hour), Keep: 7, EndedBefore: noon().Add(-time.Hour)}, r.cuts["p149 runs"])
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
		busy.taken, busy.orphans = true, 5
		k := cleaner(busy, retention.Policy{retention.Runs: {MaxCount: 1}})
		require.NoError(t, k.Start(t.Context()))
		<-time.After(time.Hour)
		require.NoError(t, k.Stop(t.Context()))
		require.Zero(t, busy.passes.Load())
		require.EqualValues(t, 5, busy.orphans)
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

func TestOrphanedPayloadsAreDeletedWithoutLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		free := newRows()
		free.orphans = 25
		k := cleaner(free, retention.Policy{retention.Runs: {}})
		require.NoError(t, k.Start(t.Context()))
		<-time.After(time.Minute)
		require.NoError(t, k.Stop(t.Context()))
		require.Empty(t, free.cuts, "nothing else is read")
		require.Empty(t, free.entries)
		require.Equal(t, map[string]int64{"payloads": 25}, free.counted)
	})
}
